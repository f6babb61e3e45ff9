"""From tidy rows: whom ours dominates, the paper's three tables with its numbers beside ours, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Literal, NamedTuple

import pandas as pd

from tdce.datasets import SETS
from tdce.explainer import PAPER
from tdce_reproduction.benchmark.settings import BASELINES, OURS, PAPER_DATA, PRESETS

HIGHER = {"diversity", "validity"}
HALF = {"two_sample"}  # best at 0.5
NEAR = {"l2", "sparsity", "gower", "instability"}  # easy for who gives up on hard rows: no ranks without validity
ENOUGH = 0.95  # validity
TITLES = {"lcd": "LCD", "gmc": "GMC", "adult": "Adult", "law": "LAW", "german": "German"}
ORDER = (*BASELINES, "nice", "guided_literal", "guided", OURS, "matrix_products")
BESIDE = (
    "l2_common", "im1_median", "im2_median", "sparsity", "gower", "realism", "held_out_distance", "coherence",
    "two_sample", "copies", "violations", "contradictions",
)  # fmt: skip
COMPARED = (
    "sparsity", "gower", "l2", "im1_median", "im2_median", "held_out_distance", "instability", "js", "coherence",
    "validity",
)  # fmt: skip
"""To dominate is to be at least as good in all of these."""


class Figure(NamedTuple):
    mean: float
    deviation: float


class Contest(NamedTuple):
    """One metric on one data set, masked or not: the figure of each method."""

    metric: str
    figures: dict[str, Figure]
    unranked: frozenset[str] = frozenset()  # methods that make too few rows valid for a rank in this metric

    @property
    def digits(self) -> int:
        return 2 if self.metric in PAPER else 3

    def ranking(self) -> list[str]:
        """The methods from best to worst, then those without a rank."""
        return sorted(self.figures, key=lambda method: (method in self.unranked, self.cost(method)))

    def cost(self, method: str) -> float:
        """Lower is better."""
        mean = self.figures[method].mean
        return -mean if self.metric in HIGHER else abs(mean - 0.5) if self.metric in HALF else mean

    def loses(self, method: str, other: str) -> bool:
        """Whether a method is worse than another by more than the other's own deviation. One that was not measured
        loses to all; one that made no row valid has no figure to lose to."""
        if method not in self.figures or other not in self.figures:
            return method not in self.figures
        return self.cost(method) > self.cost(other) + self.figures[other].deviation

    def standing(self, method: str) -> Literal["first", "within", "lost"]:
        """Whether a method is first, or within one standard deviation of the first (the larger of the two)."""
        own, best = self.figures[method], self.figures[self.ranking()[0]]
        if method in self.unranked:
            return "lost"
        if own.mean == best.mean:
            return "first"
        return "within" if abs(own.mean - best.mean) <= max(own.deviation, best.deviation) else "lost"

    def shown(self, method: str) -> float:
        return round(self.figures[method].mean, self.digits)


def markdown(rows: pd.DataFrame) -> str:
    """Markdown: dominance, then unmasked and masked, each with what the paper leaves out, and times."""
    plain = rows[~rows["method"].str.contains("[@+]")]
    dial = rows[rows["method"].str.fullmatch(f"{OURS}(@.*)?")]
    back = rows[rows["method"].str.endswith("+")]
    seeds = rows.loc[rows["metric"] == "validity", "seed"].nunique()
    parts = [
        "# The paper's tables, run again",
        f"Mean ± standard deviation (n - 1) over {seeds} seeds; best **bold**, second <u>underlined</u>; the paper's "
        "own figure in small type. Every figure is from `benchmark.csv` in this folder, which `tdce bench` makes. "
        "Validity, violations and contradictions (of laws of the table, of which nobody was told here; docs/rules.md) "
        "are over all rows, everything else over those that a method made valid. CounterNet "
        "explains a classifier of its own, trained with it: its validity is by that one, on the rows that it refuses. "
        "German is not in the paper.",
        f"† A method whose validity is below {ENOUGH:g} has no rank in {', '.join(sorted(NEAR))}: these are small for "
        "whoever gives up on hard rows.",
        _dominated(rows),
    ]
    for masked, title in (("no", "Without a mask"), ("yes", "One feature masked")):
        if (rows["masked"] == masked).any():
            metrics = [m for m in PAPER if masked == "no" or m != "js"]
            parts += [f"## {title}", _masks(rows) if masked == "yes" else ""]
            parts += [_table(plain, masked, metrics, printed=True), _says(plain, masked, metrics)]
            parts += [_differs(plain, masked)]
            parts += [f"### {title}: further metrics", _table(plain, masked, BESIDE, printed=False)]
            if dial["method"].nunique() > 1:
                parts += [f"### {title}: the dial of `{OURS}`", _table(dial, masked, COMPARED, printed=False)]
            if len(back):
                parts += [f"### {title}: with the common way back", _table(back, masked, COMPARED, printed=False)]
    if (rows["metric"] == "seconds_per_100").any():
        parts += ["## Seconds per 100 rows", _times(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def dominance(rows: pd.DataFrame) -> pd.DataFrame:
    """For each other method, data set and mask the position of our dial with the fewest losses, and these: the metrics
    in which ours is worse there by more than the other's deviation over seeds. Where there are none, ours dominates."""
    lines = []
    for data, masked in rows[["data", "masked"]].drop_duplicates().itertuples(index=False):
        found = contests(rows, data, masked, [m for m in COMPARED if masked == "no" or m != "js"])
        methods = _ordered(method for contest in found for method in contest.figures)
        ours = [method for method in methods if method.partition("@")[0] == OURS]
        for other in (method for method in methods if method not in ours):
            losses = {at: [contest.metric for contest in found if contest.loses(at, other)] for at in ours}
            if losses:
                best = min(losses, key=lambda at: len(losses[at]))
                lines.append((other, data, masked, best, losses[best]))
    return pd.DataFrame(lines, columns=["method", "data", "masked", "position", "losses"])


def contests(rows: pd.DataFrame, data: str, masked: str, metrics: Iterable[str]) -> list[Contest]:
    """Mean and deviation over seeds; the deviation is that of a sample, 0 with one seed."""
    part = rows[(rows["data"] == data) & (rows["masked"] == masked)]
    validity = part[part["metric"] == "validity"].groupby("method")["value"].mean()
    few = frozenset(map(str, validity.index[validity < ENOUGH]))
    out = []
    for metric in metrics:
        groups = part[part["metric"] == metric].groupby("method")["value"]
        figures = {str(method): Figure(float(v.mean()), float(v.std()) if len(v) > 1 else 0.0) for method, v in groups}
        out.append(Contest(metric, figures, few if metric in NEAR else frozenset()))
    return out


def paper_figures() -> dict[tuple[str, str, str, str], float]:
    """The paper's own figures by data, masked, metric, method."""
    with files("tdce_reproduction.benchmark").joinpath("paper.csv").open(encoding="utf-8") as file:
        known = pd.read_csv(file)
    keys = zip(known["data"], known["masked"], known["metric"], known["method"], strict=True)
    return dict(zip(keys, known["mean"].tolist(), strict=True))


def _dominated(rows: pd.DataFrame) -> str:
    """How often ours dominates, and what stands in the way where it does not."""
    found = dominance(rows)
    if found.empty:
        return ""
    published, german = found["method"].isin(BASELINES), found["data"] == "german"
    back = found["method"].str.endswith("+")
    groups = {
        "The paper's baselines as published, on its data": published & ~german,
        "The same on German": published & german,
        "Baselines with the common way back": back,
        "Other methods": ~published & ~back,
    }
    parts = [
        "## Dominance",
        f"Is there a position of `{OURS}`'s dial (its closeness, from 0 to 1, or its default) at which it is at least "
        f"as good as another method in all of {', '.join(COMPARED)}, within the other's own deviation over seeds? If "
        "so, the position is in **bold**; if not, the metrics that stand in the way are named, at the position with "
        "the fewest. No metric is left out, whatever the other's validity; masked there is no js, as in the paper.",
    ]
    for title, at in groups.items():
        if at.any():
            won = int((found[at]["losses"].str.len() == 0).sum())
            parts += [f"{title}: **{won} of {at.sum()}**.", _positions(found[at])]
    return "\n\n".join(parts)


def _positions(found: pd.DataFrame) -> str:
    """A line per method, a column per data set and mask."""
    columns = [(d, m) for m in ("no", "yes") for d in TITLES if ((found["data"] == d) & (found["masked"] == m)).any()]
    cells = {(m, d, k): (at, lost) for m, d, k, at, lost in found.itertuples(index=False)}
    heads = [TITLES[d] + (" masked" if masked == "yes" else "") for d, masked in columns]
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (1 + len(columns)) + "|"]
    for method in _ordered(found["method"]):
        shown = [_position(*cells[method, *column]) if (method, *column) in cells else "–" for column in columns]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _position(at: str, losses: list[str]) -> str:
    closeness = at.partition("@")[2] or "default"
    return f"{closeness}: {', '.join(losses)}" if losses else f"**{closeness}**"


def _table(rows: pd.DataFrame, masked: str, metrics: Iterable[str], printed: bool) -> str:
    metrics, known = list(metrics), paper_figures() if printed else {}
    arrows = [f"{m} {'↑' if m in HIGHER else '↓'}" for m in metrics]
    lines = [f"| data | method | {' | '.join(arrows)} |", "|---" * (2 + len(metrics)) + "|"]
    for d in _present(rows["data"], TITLES):
        found = contests(rows, d, masked, metrics)
        for method in _ordered(rows["method"]):
            if any(method in contest.figures for contest in found):
                cells = [_cell(c, method, known.get((d, masked, c.metric, _in_paper(method)))) for c in found]
                lines.append(f"| {TITLES[d]} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(contest: Contest, method: str, printed: float | None) -> str:
    if method not in contest.figures:
        return "–"
    best = dict.fromkeys(contest.shown(m) for m in contest.ranking() if m not in contest.unranked)
    style = dict(zip(best, ("**{}**", "<u>{}</u>"), strict=False)).get(contest.shown(method), "{}")
    style = "{}†" if method in contest.unranked else style
    mean, deviation = (f"{v:.{contest.digits}f}" for v in contest.figures[method])
    small = "" if printed is None else f" <small>{printed:g}</small>"
    return f"{style.format(mean)} ± {deviation}{small}"


def _says(rows: pd.DataFrame, masked: str, metrics: list[str]) -> str:
    """Where ours is first, within one deviation of the first, or last, and which method wins a lost column."""
    counted, lines = {"the paper's": Counter[str](), "German's": Counter[str]()}, []
    for d in _present(rows["data"], TITLES):
        lost, standings = [], counted["the paper's" if d in PAPER_DATA else "German's"]
        for contest in contests(rows, d, masked, metrics):
            if OURS not in contest.figures or len(contest.figures) < 2:
                continue
            ranking, standing = contest.ranking(), contest.standing(OURS)
            standings[standing] += 1
            standings["last"] += ranking[-1] == OURS
            if standing == "lost":
                lost.append(
                    f"{contest.metric} to {ranking[0]} ({contest.shown(OURS)} against {contest.shown(ranking[0])})"
                )
        lines.append(f"- {TITLES[d]}: " + (f"lost {', '.join(lost)}." if lost else "no column lost."))
    heads = [
        f"`{OURS}` is first in {n['first']} of {whose} {n['first'] + n['within'] + n['lost']} cells, within one "
        f"standard deviation of the first in {n['within']} more, and last in {n['last']}."
        for whose, n in counted.items()
        if n
    ]
    return "\n".join([" ".join(heads), "", *lines]) if heads else ""


def _differs(rows: pd.DataFrame, masked: str) -> str:
    """How the figures compare with the paper's on average, and what differs between the two experiments."""
    known = paper_figures()

    def mean(metric: str, methods: Iterable[str]) -> str:
        """Ours (theirs), over the data sets and methods that both have."""
        pairs = []
        for d in _present(rows["data"], TITLES):
            (contest,) = contests(rows, d, masked, [metric])
            for m in methods:
                if m in contest.figures and (d, masked, metric, _in_paper(m)) in known:
                    pairs.append((contest.figures[m].mean, known[d, masked, metric, _in_paper(m)]))
        if not pairs:
            return "–"
        ours, theirs = (sum(values) / len(values) for values in zip(*pairs, strict=True))
        return f"{ours:.2f} ({theirs:.2f})"

    def both(metric: str) -> str:
        return f"baselines {mean(metric, BASELINES)}, `guided` {mean(metric, ['guided'])}"

    have = set(rows.loc[(rows["masked"] == masked) & rows["data"].isin(PAPER_DATA), "method"])
    if "guided" not in have or not have & set(BASELINES):
        return ""
    return f"""Compared with the paper's figures (in brackets), as means over the data sets. Each figure is followed by
how the two experiments differ; which of these differences makes the gap was not tested one by one:

- Validity: {both("validity")}. Our baselines are tuned on validation rows and keep a candidate only if it is
  valid as it would be returned; the paper ran a library's defaults. `guided` is one reading of Algorithm 1;
  docs/paper.md measures others.
- L2: {both("l2")}. Ours is the squared distance in deviations of the raw columns, long tails and codes such as
  98 included, over the valid rows, and more of the baselines' rows flip here. The paper does not say how its
  columns were prepared.
- Instability: {both("instability")}. Ours explains the nearest training row. The noise of `guided` is independent
  between rows; the paper does not say whether its noise was.
- IM1: {both("im1")}. A mean of ratios with a heavy tail; the medians below are steadier. The
  paper's autoencoders are not described."""


def _masks(rows: pd.DataFrame) -> str:
    """Which feature may not change."""
    masks = [f"{TITLES[d]} `{SETS[d].presets[PRESETS[d]].mask}`" for d in _present(rows["data"], TITLES)]
    return f"Masked: {', '.join(masks)}."


def _times(rows: pd.DataFrame) -> str:
    methods = _ordered(rows.loc[rows["metric"] == "seconds_per_100", "method"])
    known = paper_figures()
    lines = ["| data | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for d in _present(rows["data"], TITLES):
        (contest,) = contests(rows, d, "no", ["seconds_per_100"])
        cells = []
        for method in methods:
            paper = known.get((d, "no", "seconds_per_100", _in_paper(method)))
            small = "" if paper is None else f" <small>{paper:g}</small>"
            cells.append(f"{contest.shown(method):.3f}{small}" if method in contest.figures else "–")
        lines.append(f"| {TITLES[d]} | " + " | ".join(cells) + " |")
    note = (
        "One process, one thread, every method on the same 256 rows (repeated where there are fewer), best of three "
        "after a warm-up; fitting is not counted. `matrix_products`: the bare products of `guided`'s networks."
    )
    return "\n".join([*lines, "", note])


def _in_paper(method: str) -> str:
    """All of our methods are compared with the paper's TDCE."""
    return "guided" if method in (OURS, "guided_literal") else method


def _ordered(methods: Iterable[str]) -> list[str]:
    """Each once: as in `ORDER`, our default before the positions of its dial, a baseline before its other form."""

    def place(method: str) -> tuple[int, float, str]:
        name, _, closeness = method.removesuffix("+").partition("@")
        return ORDER.index(name) if name in ORDER else len(ORDER), float(closeness or -1), method

    return sorted(set(methods), key=place)


def _present(values: Iterable[str], order: Iterable[str]) -> list[str]:
    have = set(values)
    return [v for v in order if v in have]
