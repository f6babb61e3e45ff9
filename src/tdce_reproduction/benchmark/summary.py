"""Tidy rows -> Markdown: dominance, the paper's three tables with its figures beside ours, and a summary of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Literal, NamedTuple

import pandas as pd

from tdce.explainer import PAPER
from tdce_reproduction.benchmark.settings import BASELINES, OURS, PAPER_DATA, PRESETS, published_table, table_name

HIGHER_IS_BETTER = {"diversity", "validity"}
BEST_AT_HALF = {"two_sample"}
RANKED_IF_VALID = {"l2", "sparsity", "gower", "instability"}  # small for methods that give up on hard rows
MIN_VALIDITY = 0.95  # for a rank in these
TITLES = {
    "lcd": "LCD",
    "gmc": "GMC",
    "adult": "Adult 6 + 8",
    "adult_9_2": "Adult 9 + 2",
    "law": "LAW",
    "german": "German",
}
ORDER = ("unchanged", *BASELINES, "nice", "guided_literal", "guided_tuned", "guided", OURS, "matrix_products")
UNRANKED = "unchanged"  # no method, but shown beside them
PAPER_COLUMNS = ("l2", "l2_per_feature", *PAPER[1:])
"""Of the paper's tables, with both readings of its L2."""

FURTHER_METRICS = (
    "l2_common", "im1_median", "im2_median", "sparsity", "gower", "realism", "held_out_distance", "coherence",
    "two_sample", "lof_outliers", "low_density", "copies", "violations", "contradictions",
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
    unranked: frozenset[str] = frozenset()  # methods with too low a validity for a rank in this metric

    @property
    def digits(self) -> int:
        return 2 if self.metric in PAPER_COLUMNS else 3

    def ranking(self) -> list[str]:
        """The methods from best to worst, then those without a rank."""
        return sorted(self.figures, key=lambda method: (method in self.unranked, self.cost(method)))

    def cost(self, method: str) -> float:
        """Lower is better."""
        mean = self.figures[method].mean
        return -mean if self.metric in HIGHER_IS_BETTER else abs(mean - 0.5) if self.metric in BEST_AT_HALF else mean

    def loses(self, method: str, other: str) -> bool:
        """Whether a method is worse than another by more than the other's deviation. A method without a figure loses to
        every method; nothing loses to a method without one."""
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
    """The page: dominance, the results without and with a mask, each with further metrics, and times."""
    plain = rows[~rows["method"].str.contains("[@+]") | (rows["method"] == "guided+")]
    trade_off = rows[rows["method"].str.fullmatch(f"{OURS}(@.*)?")]
    refined = rows[rows["method"].str.endswith("+")]
    seeds = rows.loc[rows["metric"] == "validity", "seed"].nunique()
    parts = [
        "# The paper's tables, reproduced",
        f"Mean ± standard deviation (n - 1) over {seeds} seeds; best **bold**, second <u>underlined</u>; the paper's "
        "own figure in small type. Every figure is from `benchmark.csv` in this folder, which `tdce bench` writes. "
        "Validity, violations and contradictions (of the table's laws, which no method is given here; docs/rules.md) "
        "are over all rows, all other metrics over the valid ones. CounterNet explains a classifier of its own, "
        "trained with it; its validity is measured with that classifier, on the rows that it refuses. German is not in "
        "the paper.",
        "`guided` is Algorithm 1, one walk and nothing else, with one setting for all data sets; `guided_tuned` has a "
        "setting for each, `guided_literal` is the printed loop to the letter. A `+`: the answers are refined as by "
        '`search`; `guided+`, the best of several walks, is what `Explainer(method="guided")` gives. '
        "`unchanged` are the refused rows as they are; its metrics are over all rows, and it has no rank. Adult is "
        "measured with all its columns (6 numbers + 8 categories) and with as many as the paper counts (9 + 2, our "
        "choice, docs/data.md); methods were tuned on the former. `l2_per_feature` is `l2` divided by the number of "
        "numeric features; the paper's L2 is probably such a mean, so its figures stand beside both.",
        f"† A method whose validity is below {MIN_VALIDITY:g} is not ranked in {', '.join(sorted(RANKED_IF_VALID))}: "
        "these are small for a method that gives up on hard rows.",
        _dominance_section(rows),
    ]
    for masked, title in (("no", "Without a mask"), ("yes", "One feature masked")):
        if (rows["masked"] == masked).any():
            metrics = [m for m in PAPER if masked == "no" or m != "js"]
            shown = [m for m in PAPER_COLUMNS if masked == "no" or m != "js"]
            parts += [f"## {title}", _masks(rows) if masked == "yes" else ""]
            parts += [_table(plain, masked, shown, with_paper=True), _standings(plain, masked, metrics)]
            parts += [_comparison(plain, masked)]
            parts += [f"### {title}: further metrics", _table(plain, masked, FURTHER_METRICS)]
            if trade_off["method"].nunique() > 1:
                parts += [f"### {title}: `{OURS}` by closeness", _table(trade_off, masked, COMPARED)]
            if len(refined):
                parts += [f"### {title}: baselines with refinement", _table(refined, masked, COMPARED)]
    if (rows["metric"] == "seconds_per_100").any():
        parts += ["## Seconds per 100 rows", _times(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def dominance(rows: pd.DataFrame) -> pd.DataFrame:
    """For each other method, data set and mask: the variant of `search` with the fewest losses, and its losses. A loss
    is a metric in which it is worse by more than the other's deviation over seeds; without one, `search` dominates."""
    lines = []
    for data, masked in rows[["data", "masked"]].drop_duplicates().itertuples(index=False):
        compared = contests(rows, data, masked, [m for m in COMPARED if masked == "no" or m != "js"])
        methods = _ordered(method for contest in compared for method in contest.figures)
        ours = [method for method in methods if method.partition("@")[0] == OURS]
        for other in (method for method in methods if method not in ours and method != UNRANKED):
            losses = {own: [contest.metric for contest in compared if contest.loses(own, other)] for own in ours}
            if losses:
                best = min(losses, key=lambda own: len(losses[own]))
                lines.append((other, data, masked, best, losses[best]))
    return pd.DataFrame(lines, columns=["method", "data", "masked", "variant", "losses"])


def contests(rows: pd.DataFrame, data: str, masked: str, metrics: Iterable[str]) -> list[Contest]:
    """Mean and deviation over seeds; the deviation is that of a sample, 0 with one seed."""
    part = rows[(rows["data"] == data) & (rows["masked"] == masked)]
    validity = part[part["metric"] == "validity"].groupby("method")["value"].mean()
    unranked = frozenset(map(str, validity.index[validity < MIN_VALIDITY]))
    out = []
    for metric in metrics:
        groups = part[part["metric"] == metric].groupby("method")["value"]
        figures = {str(method): Figure(float(v.mean()), float(v.std()) if len(v) > 1 else 0.0) for method, v in groups}
        without = unranked if metric in RANKED_IF_VALID else frozenset()
        out.append(Contest(metric, figures, without | ({UNRANKED} & figures.keys())))
    return out


def paper_figures() -> dict[tuple[str, str, str, str], float]:
    """The paper's own figures by data, masked, metric, method."""
    with files("tdce_reproduction.benchmark").joinpath("paper.csv").open(encoding="utf-8") as file:
        known = pd.read_csv(file)
    keys = zip(known["data"], known["masked"], known["metric"], known["method"], strict=True)
    return dict(zip(keys, known["mean"].tolist(), strict=True))


def _dominance_section(rows: pd.DataFrame) -> str:
    """How often `search` dominates, and which metrics it loses where it does not."""
    compared = dominance(rows)
    if compared.empty:
        return ""
    published, german = compared["method"].isin(BASELINES), compared["data"] == "german"
    refined = compared["method"].str.endswith("+")
    groups = {
        "The paper's baselines as published, on its data": published & ~german,
        "The same on German": published & german,
        "Baselines with refinement": refined,
        "Other methods": ~published & ~refined,
    }
    parts = [
        "## Dominance",
        f"Is there a closeness (from 0 to 1, or the default) at which `{OURS}` is at least as good as another method "
        f"in all of {', '.join(COMPARED)}, within the other's own deviation over seeds? If so, it is in **bold**; if "
        "not, the closeness with the fewest losses is followed by the metrics that it loses. No metric is left out, "
        "whatever the other's validity; with a mask there is no js, as in the paper.",
    ]
    for title, members in groups.items():
        if members.any():
            won = int((compared[members]["losses"].str.len() == 0).sum())
            parts += [f"{title}: **{won} of {members.sum()}**.", _dominance_table(compared[members])]
    return "\n\n".join(parts)


def _dominance_table(compared: pd.DataFrame) -> str:
    """A line per method, a column per data set and mask."""
    pairs = set(zip(compared["data"], compared["masked"], strict=True))
    columns = [(data, masked) for masked in ("no", "yes") for data in TITLES if (data, masked) in pairs]
    cells = {(m, data, masked): (own, lost) for m, data, masked, own, lost in compared.itertuples(index=False)}
    heads = [TITLES[data] + (" masked" if masked == "yes" else "") for data, masked in columns]
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (1 + len(columns)) + "|"]
    for method in _ordered(compared["method"]):
        shown = [_dominance_cell(*cells[method, *column]) if (method, *column) in cells else "–" for column in columns]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _dominance_cell(variant: str, losses: list[str]) -> str:
    closeness = variant.partition("@")[2] or "default"
    return f"{closeness}: {', '.join(losses)}" if losses else f"**{closeness}**"


def _table(rows: pd.DataFrame, masked: str, metrics: Iterable[str], with_paper: bool = False) -> str:
    metrics, known = list(metrics), paper_figures() if with_paper else {}
    arrows = [f"{m} {'↑' if m in HIGHER_IS_BETTER else '↓'}" for m in metrics]
    lines = [f"| data | method | {' | '.join(arrows)} |", "|---" * (2 + len(metrics)) + "|"]
    for d in _present(rows["data"], TITLES):
        columns = contests(rows, d, masked, metrics)
        for method in _ordered(rows["method"]):
            if any(method in contest.figures for contest in columns):
                cells = [_cell(c, method, _known(known, d, masked, c.metric, method)) for c in columns]
                lines.append(f"| {TITLES[d]} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(contest: Contest, method: str, paper: float | None) -> str:
    if method not in contest.figures:
        return "–"
    best = dict.fromkeys(contest.shown(m) for m in contest.ranking() if m not in contest.unranked)
    style = dict(zip(best, ("**{}**", "<u>{}</u>"), strict=False)).get(contest.shown(method), "{}")
    style = "{}†" if method in contest.unranked and method != UNRANKED else style
    mean, deviation = (f"{v:.{contest.digits}f}" for v in contest.figures[method])
    small = "" if paper is None else f" <small>{paper:g}</small>"
    return f"{style.format(mean)} ± {deviation}{small}"


def _standings(rows: pd.DataFrame, masked: str, metrics: list[str]) -> str:
    """Where `search` is first, within one deviation of the first, or last, and which method wins a lost column."""
    counts, lines = {"the paper's": Counter[str](), "German's": Counter[str]()}, []
    for d in _present(rows["data"], TITLES):
        lost, standings = [], counts["the paper's" if d in PAPER_DATA else "German's"]
        for contest in contests(rows, d, masked, metrics):
            if OURS not in contest.figures or len(contest.figures.keys() - {UNRANKED}) < 2:
                continue
            ranking = [method for method in contest.ranking() if method != UNRANKED]
            standing = contest.standing(OURS)
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
        for whose, n in counts.items()
        if n
    ]
    return "\n".join([" ".join(heads), "", *lines]) if heads else ""


def _comparison(rows: pd.DataFrame, masked: str) -> str:
    """How the figures compare with the paper's on average, and how the two experiments differ."""
    known = paper_figures()

    def mean(metric: str, methods: Iterable[str]) -> str:
        """Ours (theirs), over the data sets and methods that both have."""
        pairs = []
        for d in _present(rows["data"], TITLES):
            (contest,) = contests(rows, d, masked, [metric])
            for m in methods:
                theirs = _known(known, d, masked, metric, m)
                if m in contest.figures and theirs is not None:
                    pairs.append((contest.figures[m].mean, theirs))
        if not pairs:
            return "–"
        own, other = (sum(values) / len(values) for values in zip(*pairs, strict=True))
        return f"{own:.2f} ({other:.2f})"

    def both(metric: str) -> str:
        return f"baselines {mean(metric, BASELINES)}, `guided` {mean(metric, ['guided'])}"

    have = set(rows.loc[(rows["masked"] == masked) & rows["data"].isin(PAPER_DATA), "method"])
    if "guided" not in have or not have & set(BASELINES):
        return ""
    return f"""Comparison with the paper's figures (in brackets), as means over the data sets. Each figure is followed
by the differences between the two experiments; how much each of them contributes was not tested:

- Validity: {both("validity")}. Our baselines are tuned on validation rows and keep a candidate only if it is
  valid as it would be returned; the paper used a library's defaults. `guided` is one reading of Algorithm 1, chosen on
  validation rows; docs/paper.md measures others.
- L2: {both("l2")}; divided by the number of numeric features {both("l2_per_feature")}. The paper's formula is a sum
  over features, but its figures are probably means over them: {_within_two(rows, masked)}. Ours are in
  standard deviations of the raw columns, including long tails and codes such as 98, over the valid rows; the paper does
  not say how its columns were prepared.
- Instability: {both("instability")}. Ours explains the nearest training row. The paper does not say whether its
  noise was independent between rows.
- IM1: {both("im1")}. It is a mean of ratios with a heavy tail; the medians below are more stable. The paper
  does not describe its autoencoders."""


def _within_two(rows: pd.DataFrame, masked: str) -> str:
    """How many of the baselines' cells are within a factor of two of the paper's L2, by either reading."""
    known, counts = paper_figures(), []
    for metric in ("l2", "l2_per_feature"):
        ratios = []
        for d in _present(rows["data"], PAPER_DATA):
            (contest,) = contests(rows, d, masked, [metric])
            cells = [(contest.figures.get(m), _known(known, d, masked, metric, m)) for m in BASELINES]
            ratios += [own.mean / theirs for own, theirs in cells if own and theirs]
        counts.append(f"{sum(0.5 <= ratio <= 2 for ratio in ratios)} of {len(ratios)}")
    return f"of the baselines' cells {counts[1]} are within a factor of two of the paper's then, {counts[0]} otherwise"


def _masks(rows: pd.DataFrame) -> str:
    """Which feature is immutable on each data set."""
    masks = [f"{TITLES[d]} `{published_table(d).presets[PRESETS[d]].mask}`" for d in _present(rows["data"], TITLES)]
    return f"Masked: {', '.join(masks)}."


def _times(rows: pd.DataFrame) -> str:
    methods = _ordered(rows.loc[rows["metric"] == "seconds_per_100", "method"])
    known = paper_figures()
    lines = ["| data | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for d in _present(rows["data"], TITLES):
        (contest,) = contests(rows, d, "no", ["seconds_per_100"])
        cells = []
        for method in methods:
            paper = _known(known, d, "no", "seconds_per_100", method)
            small = "" if paper is None else f" <small>{paper:g}</small>"
            cells.append(f"{contest.shown(method):.3f}{small}" if method in contest.figures else "–")
        lines.append(f"| {TITLES[d]} | " + " | ".join(cells) + " |")
    note = (
        "One process, one thread, every method on the same 256 rows (repeated where there are fewer), best of three "
        "after a warm-up, without fitting. `matrix_products`: the matrix products alone of the networks of `guided`."
    )
    return "\n".join([*lines, "", note])


def _known(known: dict[tuple[str, str, str, str], float], *cell: str) -> float | None:
    """The paper's figure (by data, masked, metric, method) beside which one of ours stands: for all of our methods that
    of its TDCE, here `guided`, for both presets of a table the same, and for both readings of its L2."""
    data, masked, metric, method = cell
    own = "guided" if method == OURS or method.startswith("guided") else method
    return known.get((table_name(data), masked, "l2" if metric == "l2_per_feature" else metric, own))


def _ordered(methods: Iterable[str]) -> list[str]:
    """The distinct methods in the order of `ORDER`; variants (`search@0`, `wachter+`) follow their method."""

    def place(method: str) -> tuple[int, float, str]:
        name, _, closeness = method.removesuffix("+").partition("@")
        return ORDER.index(name) if name in ORDER else len(ORDER), float(closeness or -1), method

    return sorted(set(methods), key=place)


def _present(values: Iterable[str], order: Iterable[str]) -> list[str]:
    have = set(values)
    return [v for v in order if v in have]
