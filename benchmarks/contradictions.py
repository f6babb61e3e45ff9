"""Do answers contradict the equations of a table? Writes results/contradictions.csv.

    TDCE_DATA=... python benchmarks/contradictions.py [--tables months,...] [--rows 40] [--seeds 2]
    python benchmarks/contradictions.py --docs          writes the table of docs/rules.md from the results
    TDCE_DATA=... python benchmarks/contradictions.py --shuffles 25   in how many shuffled tables is a law found?

Seven tables are generated from known equations (tests/lawful.py), and contradictions are counted against these
equations, not against our own laws. In tables of real people they are counted against laws discovered in the half of
the table that no method learned. For the causal chain, the causes are given. Each table is learned once per seed, with
a gradient-boosting model of scikit-learn that knows no laws; nothing is immutable. The same refused rows are answered
by `search` with laws, by `search` with all laws switched off, and by a simple neighbour search: it takes over from the
nearest accepted training row the feature that helps most, then the next, until the model accepts.

Columns: contradictions and validity as shares, features changed (followers are not counted), Gower distance, and
seconds with laws divided by seconds without, in turns in the same process.
"""

import argparse
import csv
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from docs_tables import put
from lawful import TABLES, Lawful
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

import tdce
from tdce._core import same
from tdce.schema import ConstraintSet, Schema

REAL = ("adult", "german", "gmc", "lcd", "law")
SUMMARY = ("table", "method", "contradictions", "validity", "features", "Gower", "time with / without laws")
LEARNED_ROWS = 4_000
NEAREST = 5  # accepted training rows that the neighbour search tries
TURNS = 2
HEAD = (
    "table",
    "method",
    "seed",
    "contradictions",
    "validity",
    "features",
    "gower",
    "seconds",
    "laws",
    "missed",
    "false",
)


def as_floats(numbers: pd.DataFrame) -> pd.DataFrame:
    return numbers.astype(float)  # gaps as NaN, whatever the dtype


def boosting(frame: pd.DataFrame, label: str) -> object:
    words = make_column_selector(dtype_exclude="number")
    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(
        make_column_transformer((encode, words), remainder=FunctionTransformer(as_floats)),
        HistGradientBoostingClassifier(max_iter=60, random_state=0),
    )
    return model.fit(frame.drop(columns=label), frame[label])


def neighbours(explainer: tdce.Explainer, rows: pd.DataFrame, favourable: object) -> np.ndarray:
    """(n, features) raw answers of the simple neighbour search."""
    fitted = explainer.fitted
    encoder, model, names = fitted.encoder, explainer.model, explainer.schema.names
    at = list(model.classes_).index(favourable)

    def score(raw: np.ndarray) -> np.ndarray:
        return model.predict_proba(encoder.write(raw, frame_of(len(raw))))[:, at]

    def frame_of(count: int) -> pd.DataFrame:
        return pd.DataFrame({name: rows[name].iloc[[0] * count].to_numpy() for name in names}).astype(
            rows[list(names)].dtypes
        )

    own, known = encoder.read(rows), fitted.raw[score(fitted.raw) > 0.5]
    spread = np.maximum(np.nanquantile(fitted.raw, 0.95, axis=0) - np.nanquantile(fitted.raw, 0.05, axis=0), 1e-9)
    number = np.array([column.numbers > 0 for column in explainer.schema])
    out = own.copy()
    for i, row in enumerate(own):
        apart = np.where(number, np.minimum(np.abs(known - row) / spread, 1.0), known != row)
        best, fewest = row, np.inf
        for j in np.nan_to_num(apart, nan=1.0).sum(axis=1).argsort()[:NEAREST]:
            candidate, left = row.copy(), list(np.flatnonzero(~same(known[j], row)))
            while left:
                trials = np.tile(candidate, (len(left), 1))
                trials[range(len(left)), left] = known[j][left]
                helps = score(trials)
                candidate = trials[helps.argmax()]
                left.pop(int(helps.argmax()))
                if helps.max() > 0.5:
                    break
            changed = (~same(candidate, row)).sum()
            if changed < fewest and score(candidate[None])[0] > 0.5:
                best, fewest = candidate, changed
        out[i] = best
    return out


def figures(
    explainer: tdce.Explainer, own: np.ndarray, raw: np.ndarray, valid: np.ndarray, wrong: np.ndarray, laws: bool
) -> list[float]:
    """What follows by a law is not a change of its own; without laws everything is."""
    followers = explainer.schema.followers if laws else ()
    chosen = [i for i, name in enumerate(explainer.schema.names) if name not in followers]
    number = np.array([column.numbers > 0 for column in explainer.schema])
    low, high = np.nanquantile(explainer.fitted.raw, [0.05, 0.95], axis=0)
    changed = ~same(raw, own)
    share = np.minimum(np.nan_to_num(np.abs(raw - own) / np.maximum(high - low, 1e-9), nan=1.0), 1.0)
    gower = np.where(changed, np.where(number, share, 1.0), 0.0).mean(axis=1)
    return [wrong.mean(), valid.mean(), changed[valid][:, chosen].sum(axis=1).mean(), gower[valid].mean()]


def measure(name: str, table: Lawful | None, frame: pd.DataFrame, label: str, favourable: object, seed: int, rows: int):
    """Rows of the result for one table."""
    shuffled = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
    half = min(len(frame) // 2, LEARNED_ROWS)
    learned, rest = shuffled[:half], shuffled[half : 2 * half]
    model = boosting(learned, label)
    schema = Schema.infer(learned, label, roles=False)
    explainer = tdce.Explainer(model=model, seed=seed, keep_rows=True, progress="silent")
    causes = None if table is None else table.causes
    explainer.fit(learned, label=label, favourable=favourable, schema=schema, causes=causes)
    refused = rest[model.predict(rest.drop(columns=label)) != favourable].drop(columns=label).head(rows)
    encoder = explainer.fitted.encoder
    own = encoder.read(refused)
    if table is None:
        judge = Schema.infer(rest, label, roles=False)
        bound = ConstraintSet.hard(judge.laws, judge.features)

        def wrong(raw: np.ndarray) -> np.ndarray:
            cells = encoder.write(raw, refused, own)
            values, before = (
                np.stack([column.read(f[column.name]) for column in judge], axis=1) for f in (cells, refused)
            )
            return (bound.contradicted(values) & ~bound.contradicted(before)).any(axis=1)
    else:

        def wrong(raw: np.ndarray) -> np.ndarray:
            return table.contradictions(encoder.write(raw, refused, own))

    truth = set() if table is None else set(table.laws)
    found = {frozenset(law.columns) for law in schema.laws}
    counts = [
        len(schema.laws),
        "" if table is None else len(truth - found),
        "" if table is None else len(found - truth),
    ]
    without = replace(encoder, full_schema=encoder.schema.without_laws())
    lawless = tdce.Explainer(model=model, seed=seed, keep_rows=True, progress="silent")
    lawless._set_fitted(replace(explainer.fitted, encoder=without, memo={}))
    answers, seconds = {}, {"search": [], "search without laws": []}
    for _ in range(TURNS):
        for method, one in (("search", explainer), ("search without laws", lawless)):
            began = time.process_time()
            answers[method] = one.explain(refused).explanation
            seconds[method].append(time.process_time() - began)
    for method, answer in answers.items():
        raw, valid = answer.raw[:, 0], answer.status[:, 0] == "valid"
        extra = counts if method == "search" else ["", "", ""]
        yield [
            name,
            method,
            seed,
            *figures(explainer, own, raw, valid, wrong(raw), method == "search"),
            min(seconds[method]),
            *extra,
        ]
    began = time.process_time()
    raw = neighbours(explainer, refused, favourable)
    valid = model.predict(encoder.write(raw, refused, own)[list(refused.columns)]) == favourable
    yield [
        name,
        "neighbours",
        seed,
        *figures(explainer, own, raw, valid, wrong(raw), False),
        time.process_time() - began,
        "",
        "",
        "",
    ]


def summary(path: Path) -> str:
    """The results as a table, mean over seeds."""
    results = pd.read_csv(path).replace({"": np.nan})
    mean = results.groupby(["table", "method"], sort=False).mean(numeric_only=True)
    lines = [f"| {' | '.join(SUMMARY)} |", "|---" * len(SUMMARY) + "|"]
    for (table, method), row in mean.iterrows():
        without = mean.loc[(table, "search without laws")]
        ratio = f"{row['seconds'] / without['seconds']:.2f}" if method == "search" else ""
        figures = (
            f"{100 * row['contradictions']:.1f} % | {row['validity']:.2f} | {row['features']:.2f} | {row['gower']:.3f}"
        )
        lines.append(f"| {table} | {method} | {figures} | {ratio} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, contradictions=summary(results))


def shuffled(names: list[str], times: int) -> None:
    """In how many of so many tables, in which every column is shuffled by itself, is a law discovered?"""
    for name in names:
        data = tdce.load(name)
        frame = data.frame.sample(min(LEARNED_ROWS, len(data.frame)), random_state=0)
        found = 0
        for seed in range(times):
            rng = np.random.default_rng(seed)
            mixed = pd.DataFrame({column: rng.permutation(frame[column].to_numpy()) for column in frame})
            found += bool(Schema.infer(mixed, data.label).laws)
        print(name, times, found, sep=" | ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", default=",".join([*TABLES, *REAL]))
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--shuffles", type=int, default=0)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/contradictions.csv"))
    arguments = parser.parse_args()
    if arguments.docs:
        return write_docs(arguments.out, Path("docs/rules.md"))
    if arguments.shuffles:
        return shuffled(list(REAL), arguments.shuffles)
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    with arguments.out.open("w", newline="") as file:
        write = csv.writer(file, lineterminator="\n")
        write.writerow(HEAD)
        for name in arguments.tables.split(","):
            for seed in range(arguments.seeds):
                if name in TABLES:
                    table = TABLES[name](seed)
                    lines = measure(name, table, table.frame, "label", "yes", seed, arguments.rows)
                else:
                    data = tdce.load(name)
                    lines = measure(name, None, data.frame, data.label, data.favourable, seed, arguments.rows)
                for line in lines:
                    write.writerow([f"{v:.4f}" if isinstance(v, float) else v for v in line])
                    file.flush()
                    print(*[f"{v:.3f}" if isinstance(v, float) else v for v in line], sep=" | ", flush=True)


if __name__ == "__main__":
    main()
