"""Tidy rows -> Markdown: price for price, the paper's three tables with its figures beside ours, a summary of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib.resources import files

import pandas as pd

from tdce.explainer import PAPER
from tdce_reproduction.benchmark.contests import (
    HIGHER_IS_BETTER,
    MIN_VALIDITY,
    PAPER_COLUMNS,
    RANKED_IF_VALID,
    TITLES,
    UNRANKED,
    Contest,
    contests,
    ordered,
    present,
)
from tdce_reproduction.benchmark.price import price_section
from tdce_reproduction.benchmark.settings import (
    ANY_YES_VARIANTS,
    BASELINES,
    OURS,
    PAPER_DATA,
    PRESETS,
    SEARCH_VARIANTS,
    published_table,
    table_name,
)

FURTHER_METRICS = (
    "l2_common", "im1_median", "im2_median", "sparsity", "gower", "realism", "held_out_distance", "coherence",
    "two_sample", "lof_outliers", "low_density", "copies", "violations", "contradictions",
)  # fmt: skip
OF_VARIANTS = (
    "sparsity", "gower", "l2", "im1_median", "im2_median", "held_out_distance", "instability", "js", "coherence",
    "validity",
)  # fmt: skip
"""The metrics shown for each position of the trade-off, and for refined methods."""
SHOWN_POSITIONS = (*SEARCH_VARIANTS[::5], *ANY_YES_VARIANTS[::5])
"""Positions of the trade-off from 0 to 1 in quarters; `benchmark.csv` has all."""

Stale = frozenset[tuple[str, str, str]]
"""The (data, masked, method) that were measured with other than the current rows, settings or editions."""


def markdown(rows: pd.DataFrame, stale: Stale = frozenset()) -> str:
    """The page: price for price, the results without and with a mask, each with further metrics, and times."""
    plain = rows[~rows["method"].str.contains("[@+]") | (rows["method"] == "guided+")]
    trade_off = rows[rows["method"].isin([OURS, *SHOWN_POSITIONS])]
    refined = rows[rows["method"].str.endswith("+")]
    parts = [
        "# The paper's tables, reproduced",
        f"Mean ± standard deviation (n - 1) over {_seeds(rows)}; best **bold**, second <u>underlined</u>; the paper's "
        "own figure in small type. Every figure is from `benchmark.csv` in this folder, which `tdce bench` writes. "
        "Validity, violations and contradictions (of the table's laws, which no method is given here; docs/rules.md) "
        "are over all rows, all other metrics over the valid ones. CounterNet explains a classifier of its own, "
        "trained with it; its validity is measured with that classifier, on the rows that it refuses. German is not in "
        "the paper.",
        "`guided` is Algorithm 1, one walk and nothing else, with one setting for all data sets; `guided_tuned` has a "
        "setting for each, `guided_literal` is the printed loop to the letter. A `+`: the answers are refined as by "
        '`search`; `guided+`, the best of several walks, is what `Explainer(method="guided")` gives. `search@0.25` is '
        "`search` at a closeness of 0.25, `search@0.25@0` without a wanted safety: whatever the model accepts. "
        "`unchanged` are the refused rows as they are; its metrics are over all rows, and it has no rank. Adult is "
        "measured with all its columns (6 numbers + 8 categories) and with as many as the paper counts (9 + 2, our "
        "choice, docs/data.md); methods were tuned on the former. LAW is balanced 1 : 1 (4,586 rows), and beside it "
        "stand as many rows as the paper has, 7,502, a balance of 1 : 2.27. `l2_per_feature` is `l2` divided by the "
        "number of numeric features; the paper's L2 is probably such a mean, so its figures stand beside both.",
        f"† A method whose validity is below {MIN_VALIDITY:g} is not ranked in {', '.join(sorted(RANKED_IF_VALID))}: "
        "these are small for a method that gives up on hard rows.",
        "° Measured with other rows, settings or editions than the rest; `tdce bench` measures it again." * bool(stale),
        price_section(rows, stale),
    ]
    for masked, title in (("no", "Without a mask"), ("yes", "One feature masked")):
        if (rows["masked"] == masked).any():
            metrics = [m for m in PAPER if masked == "no" or m != "js"]
            shown = [m for m in PAPER_COLUMNS if masked == "no" or m != "js"]
            parts += [f"## {title}", _masks(rows) if masked == "yes" else ""]
            parts += [_table(plain, masked, shown, stale, with_paper=True), _standings(plain, masked, metrics)]
            parts += [_comparison(plain, masked)]
            parts += [f"### {title}: further metrics", _table(plain, masked, FURTHER_METRICS, stale)]
            if trade_off["method"].nunique() > 1:
                parts += [f"### {title}: `{OURS}` by closeness, then for any yes"]
                parts += [_table(trade_off, masked, OF_VARIANTS, stale)]
            if len(refined):
                parts += [f"### {title}: baselines with refinement", _table(refined, masked, OF_VARIANTS, stale)]
    if (rows["metric"] == "seconds_per_100").any():
        parts += ["## Seconds per 100 rows", _times(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def paper_figures() -> dict[tuple[str, str, str, str], float]:
    """The paper's own figures by data, masked, metric, method."""
    with files("tdce_reproduction.benchmark").joinpath("paper.csv").open(encoding="utf-8") as file:
        known = pd.read_csv(file)
    keys = zip(known["data"], known["masked"], known["metric"], known["method"], strict=True)
    return dict(zip(keys, known["mean"].tolist(), strict=True))


def _seeds(rows: pd.DataFrame) -> str:
    """How many seeds and rows the cells have: 5 seeds of up to 1,000 rows."""
    seeds = rows[rows["metric"] != "seconds_per_100"].groupby(["data", "masked", "method"])["seed"].nunique()
    least, most = int(seeds.min()), int(seeds.max())
    counts = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    explained = rows.loc[rows["metric"] == "rows", "value"]
    return counts + (f" of up to {int(explained.max()):,} rows" if len(explained) else "")


def _table(rows: pd.DataFrame, masked: str, metrics: Iterable[str], stale: Stale, with_paper: bool = False) -> str:
    metrics, known = list(metrics), paper_figures() if with_paper else {}
    arrows = [f"{m} {'↑' if m in HIGHER_IS_BETTER else '↓'}" for m in metrics]
    lines = [f"| data | method | {' | '.join(arrows)} |", "|---" * (2 + len(metrics)) + "|"]
    for d in present(rows["data"], TITLES):
        columns = contests(rows, d, masked, metrics)
        for method in ordered(rows["method"]):
            if any(method in contest.figures for contest in columns):
                cells = [_cell(c, method, _known(known, d, masked, c.metric, method)) for c in columns]
                mark = " °" if (d, masked, method) in stale else ""
                lines.append(f"| {TITLES[d]} | {method}{mark} | {' | '.join(cells)} |")
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
    counts, lines = {"the paper's": Counter[str](), "the other data's": Counter[str]()}, []
    for d in present(rows["data"], TITLES):
        lost, standings = [], counts["the paper's" if d in PAPER_DATA else "the other data's"]
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
    """How the figures compare with the paper's on average, and how the experiments differ."""
    known = paper_figures()

    def mean(metric: str, methods: Iterable[str]) -> str:
        """Ours (theirs), over the data sets and methods that both have."""
        pairs = []
        for d in present(rows["data"], TITLES):
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
    """How many of the baselines' L2 are within a factor of two of the paper's, by either reading."""
    known, counts = paper_figures(), []
    for metric in ("l2", "l2_per_feature"):
        ratios = []
        for d in present(rows["data"], PAPER_DATA):
            (contest,) = contests(rows, d, masked, [metric])
            cells = [(contest.figures.get(m), _known(known, d, masked, metric, m)) for m in BASELINES]
            ratios += [own.mean / theirs for own, theirs in cells if own and theirs]
        counts.append(f"{sum(0.5 <= ratio <= 2 for ratio in ratios)} of {len(ratios)}")
    return f"of the baselines' cells {counts[1]} are within a factor of two of the paper's then, {counts[0]} otherwise"


def _masks(rows: pd.DataFrame) -> str:
    """Which feature is immutable on each data set."""
    masks = [f"{TITLES[d]} `{published_table(d).presets[PRESETS[d]].mask}`" for d in present(rows["data"], TITLES)]
    return f"Masked: {', '.join(masks)}."


def _times(rows: pd.DataFrame) -> str:
    methods = ordered(rows.loc[rows["metric"] == "seconds_per_100", "method"])
    known = paper_figures()
    lines = ["| data | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for d in present(rows["data"], TITLES):
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
    """The paper's figure (by data, masked, metric, method) to show beside one of ours. All of our methods have that of
    its TDCE, here `guided`; both presets of a table have the same, as have both readings of its L2."""
    data, masked, metric, method = cell
    own = "guided" if method == OURS or method.startswith("guided") else method
    return known.get((table_name(data), masked, "l2" if metric == "l2_per_feature" else metric, own))
