"""Speed: every method, the matrix products alone that `search` needs, memory, a profile, threads and fitting.

    TDCE_DATA=... python benchmarks/speed.py [--data adult,lcd] [--rows 100,1000,10000] [--only products,methods]

Prints the tables of docs/speed.md; run a whole table on one machine, so that its ratios can be compared. Rows are
refused test rows, repeated where there are fewer. `prepare` is what a method does once for a task and its immutable
features (FACE's graph, the VAEs; without the explainer's own classifier and diffusion model). Seconds are per 100 rows,
best of the repeats after a warm-up.
"""

import argparse
import cProfile
import pstats
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import tdce
from tdce.methods import METHODS, DiffusionSearch, Method
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.settings import tuned_method

PARTS = {
    "nearest exemplars": ("exemplars.py", "nearest"),
    "best exemplars": ("exemplars.py", "best"),
    "parts of exemplars": ("exemplars.py", "compare"),
    "energy": ("objective.py", "energy"),
    "plausibility": ("driver.py", "_plausibility"),
    "grid and feasible set": ("feasible.py", "snap"),
    "decisions": ("oracle.py", "score"),
}  # by title: the file and the function

FACTORS = 8  # pairs of matrices of each shape


Shape = tuple[int, int, int, torch.dtype]


class Products(TorchDispatchMode):
    """Records the shape of every matrix product, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[Shape] = []
        self.factors: dict[Shape, list[tuple[Tensor, Tensor]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            a, b = args[-2:]
            self.shapes.append((a.shape[0], a.shape[1], b.shape[1], a.dtype))
        return func(*args, **(kwargs or {}))

    def replay(self) -> None:
        """Compute the same products in the same order and nothing else. Each shape has several pairs of factors, used
        in turn: in a network, too, each layer has weights of its own."""
        if not self.factors:
            for n, k, m, dtype in set(self.shapes):
                pairs = [(torch.randn(n, k, dtype=dtype), torch.randn(k, m, dtype=dtype)) for _ in range(FACTORS)]
                self.factors[n, k, m, dtype] = pairs
        for i, shape in enumerate(self.shapes):
            torch.mm(*self.factors[shape][i % FACTORS])


def best(run: Callable[[], object], repeats: int, warm: bool = True) -> float:
    """Seconds of the fastest run, after a warm-up."""
    if warm:
        run()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def queries(bench: Bench, rows: int) -> pd.DataFrame:
    return pd.concat([bench.queries] * (-(-rows // len(bench.queries)))).head(rows)


def peak() -> float:
    """The peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def methods_table(bench: Bench, sizes: list[int]) -> None:
    print(f"\n### {bench.name}: seconds per 100 rows\n")
    print("| method | prepare, s | " + " | ".join(f"{n:,} rows" for n in sizes) + " |")
    print("|---" * (2 + len(sizes)) + "|")
    methods: dict[str, Method] = {name: tuned_method(name, bench.name) for name in METHODS}
    for name, method in methods.items():
        bench.fitted.memo.clear()
        began = time.perf_counter()
        ready = method.fit(bench.task("no"))
        prepare = time.perf_counter() - began
        cells = []
        for n in sizes:
            frame = queries(bench, n)
            few = n <= 1000
            seconds = best(lambda frame=frame, ready=ready: bench.explanation(ready, "no", frame), 2 if few else 1, few)
            cells.append(f"{100 * seconds / n:.4f}")
        print(f"| {name} | {prepare:.1f} | {' | '.join(cells)} |", flush=True)


def products_table(bench: Bench, sizes: list[int]) -> None:
    print(f"\n### {bench.name}: `search` beside its matrix products alone, and memory\n")
    print("| rows | seconds per 100 | products, seconds per 100 | ratio | peak memory, MB |")
    print("|---" * 5 + "|")
    ready = DiffusionSearch().fit(bench.task("no"))
    runs = {n: partial(bench.explanation, ready, "no", queries(bench, n)) for n in sizes}
    memory = {n: (run(), peak())[1] for n, run in runs.items()}  # before the products, which need memory of their own
    for n, run in runs.items():
        seconds = best(run, 2)
        with Products() as products:
            run()
        bare = best(products.replay, 2)
        print(
            f"| {n:,} | {100 * seconds / n:.4f} | {100 * bare / n:.4f} | {seconds / bare:.2f} | {memory[n]:.0f} |",
            flush=True,
        )


def parts_table(bench: Bench, rows: int) -> None:
    print(f"\n### {bench.name}: where the time goes, {rows:,} rows, defaults\n")
    print("| part | share of the time |\n|---|---|")
    ready, frame = DiffusionSearch().fit(bench.task("no")), queries(bench, rows)
    bench.explanation(ready, "no", frame)  # the first call also decides on the synthetic rows, once
    profile = cProfile.Profile()
    profile.runcall(bench.explanation, ready, "no", frame)
    stats: Any = pstats.Stats(profile)
    for part, (file, function) in PARTS.items():
        inside = [v[3] for (path, _, name), v in stats.stats.items() if path.endswith(file) and name == function]
        print(f"| {part} | {sum(inside) / stats.total_tt:.0%} |")


def threads_table(bench: Bench, rows: int) -> None:
    print(f"\n### {bench.name}: threads, {rows:,} rows, defaults\n")
    print("| threads | seconds per 100 rows |\n|---|---|")
    ready, frame, before = DiffusionSearch().fit(bench.task("no")), queries(bench, rows), torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        print(f"| {threads} | {100 * best(lambda: bench.explanation(ready, 'no', frame), 3) / rows:.4f} |", flush=True)
    torch.set_num_threads(before)


def fit_table() -> None:
    """How much of fitting is the networks' own arithmetic: forward, backward and the optimiser's step."""
    data = tdce.load("adult")
    profile = cProfile.Profile()
    profile.runcall(tdce.Explainer(progress="silent").fit, data.part("train"), data.label, data.favourable)
    stats: Any = pstats.Stats(profile)

    def inside(file: str, function: str) -> float:
        """Seconds in a function and those it calls; the outermost of that name."""
        found = [v[3] for (path, _, name), v in stats.stats.items() if Path(path).name == file and name == function]
        return max(found, default=0.0)

    parts = {
        "forward": inside("network.py", "forward"),
        "backward": inside("_tensor.py", "backward"),
        "optimiser": inside("optimizer.py", "wrapper"),
    }
    print("\n### Fitting adult (42,842 rows), defaults\n")
    print("| part | share of the time |\n|---|---|")
    for part, seconds in parts.items():
        print(f"| {part} | {seconds / stats.total_tt:.0%} |")
    print(f"| everything else | {1 - sum(parts.values()) / stats.total_tt:.0%} |")
    print(f"\n{stats.total_tt:.0f} s under the profiler.")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="adult,lcd")
    parser.add_argument("--rows", default="100,1000,10000")
    parser.add_argument("--only", default="", help="some of products, methods, parts, threads, fit")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sizes = [int(n) for n in arguments.rows.split(",")]
    tables: dict[str, Callable[[Bench], None]] = {
        "products": lambda bench: products_table(bench, sizes),
        "methods": lambda bench: methods_table(bench, sizes),
        "parts": lambda bench: parts_table(bench, 1000),
        "threads": lambda bench: threads_table(bench, 1000),
    }
    wanted = arguments.only.split(",") if arguments.only else [*tables, "fit"]
    if unknown := set(wanted) - {*tables, "fit"}:
        parser.error(f"there is no table {', '.join(sorted(unknown))}; known: {', '.join(tables)}, fit")
    for name in arguments.data.split(","):
        bench = Bench(name, 0, 1000, arguments.cache)
        for table in (t for t in tables if t in wanted):
            tables[table](bench)
    if "fit" in wanted:
        fit_table()


if __name__ == "__main__":
    main()
