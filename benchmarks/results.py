"""Regenerate everything in results/ with the current code, and the tables of docs/ from it: `make results`.

    TDCE_DATA=... python benchmarks/results.py [--scale 1] [--seeds 5] [--budget MINUTES] [--only bench,safety]
                                               [--jobs 2] [--before TREE]
    python benchmarks/results.py --list        which steps are up to date, and how long they took
    python benchmarks/results.py --docs        only writes the pages from the results

Each step is a process with one thread; steps whose time is measured run alone. A stopped run resumes: what a step has
so far is in results/partial, and its earlier results stay until it is finished. A
step is skipped if it was finished with today's editions and the same size. `--scale 0.1` takes a tenth of the rows,
`--seeds 1` one seed at most, and `--budget` stops after so many minutes. results/steps.csv notes with which editions
and of which size each step was measured, when and in how many seconds; a page whose step was measured with other
editions than today's says so by itself. What a step prints is kept in results/printed, and its tables are written into
the pages as well. The most quoted come first. `speed` compares with a checkout of an earlier version, and is left out
without.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path

import pandas as pd
from docs_tables import put

from tdce.datasets import write_whole
from tdce.explainer import evaluation, fitting
from tdce.methods import DiffusionSearch, Guided
from tdce_reproduction.benchmark.settings import DATA, plain_schema

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md")
COLUMNS = ["step", "seconds", "scale", "seeds", "editions", "date", "commit"]
EDITIONS = {
    "search": DiffusionSearch.edition,
    "fit": fitting.EDITION,
    "metrics": evaluation.EDITION,
    "guided": Guided.edition,
}
WORDS = {"search": "the search", "fit": "`fit`", "metrics": "the metrics", "guided": "Algorithm 1"}
LEARNED, ANSWERED = ("fit",), ("fit", "search")


@dataclass(frozen=True)
class Size:
    """How much of a full run is measured."""

    scale: float = 1.0  # the share of its rows
    seeds: int = 5  # at most

    def of(self, option: str, full: int) -> int:
        return min(full, self.seeds) if option == "--seeds" else max(1, round(self.scale * full))


@dataclass(frozen=True)
class Step:
    """One benchmark: `benchmarks/NAME.py`, or a command of its own."""

    name: str
    uses: tuple[str, ...]  # the editions that its results depend on
    files: tuple[str, ...] = ()  # in results/; none: it prints, which is kept as results/printed/NAME.txt
    sizes: tuple[tuple[str, int], ...] = ()  # options that say how much is measured, with their values in a full run
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    alone: bool = False  # its time is measured
    checks: bool = False  # it notes in its files with what they were measured, and goes on from them by itself

    def line(self, size: Size, jobs: int) -> list[str]:
        sizes = [word for option, full in self.sizes for word in (option, str(size.of(option, full)))]
        words = [word.replace("{jobs}", str(jobs)) for word in self.arguments]
        return [sys.executable, *(self.command or (f"benchmarks/{self.name}.py",)), *words, *sizes]

    def noted_size(self, size: Size) -> dict[str, str]:
        """As results/steps.csv has it; "" is what the step has none of."""
        sizes, scaled = dict(self.sizes), any(option != "--seeds" for option, _ in self.sizes)
        seeds = str(size.of("--seeds", sizes["--seeds"])) if "--seeds" in sizes else ""
        return {"scale": f"{size.scale:g}" if scaled else "", "seeds": seeds}

    @property
    def editions(self) -> str:
        return " ".join(f"{name}={EDITIONS[name]}" for name in self.uses)


def csv(name: str, uses: tuple[str, ...], *sizes: tuple[str, int], alone: bool = False) -> Step:
    """A benchmark that writes results/NAME.csv."""
    return Step(name, uses, (f"{name}.csv",), sizes, alone=alone)


def figure(names: str, uses: tuple[str, ...], *sizes: tuple[str, int]) -> Step:
    files = tuple(f"figures/{name}.csv" for name in names.split(","))
    words = ("figures", "--only", names, "--workers", "{jobs}")
    return Step(f"figures_{names.replace(',', '_')}", uses, files, sizes, words, ("-m", "tdce"), alone=True)


STEPS = (
    Step(
        "bench", ("fit", "search", "metrics", "guided"), ("benchmark.csv", "cells.csv"),
        (("--seeds", 5), ("--rows", 1000)), ("bench", "--workers", "{jobs}"), ("-m", "tdce"), alone=True, checks=True,
    ),
    Step("safety", ANSWERED, ("safety.csv", "calibration.csv"), (("--seeds", 3), ("--rows", 100))),
    csv("closeness", (*ANSWERED, "metrics"), ("--seeds", 2), ("--rows", 150)),
    csv("enumeration", ANSWERED, ("--rows", 30)),
    csv("minimal", ANSWERED, ("--seeds", 3), ("--people", 8)),
    csv("contradictions", ANSWERED, ("--seeds", 2), ("--rows", 40)),
    csv("bands", ANSWERED, ("--rows", 60)),
    csv("ablation", (*ANSWERED, "metrics"), ("--seeds", 3), ("--rows", 100)),
    csv("robustness", (*ANSWERED, "metrics"), ("--seeds", 3), ("--rows", 100)),
    csv("peers", ANSWERED, ("--rows", 100)),
    csv("optimum", ANSWERED, ("--people", 100)),
    csv("reachable", ANSWERED, ("--people", 40)),
    csv("recourse_bench", ANSWERED),
    csv("guided_settings", ("fit", "metrics", "guided"), ("--rows", 120)),
    csv("readings", ("fit", "metrics", "guided"), ("--rows", 120)),
    csv("reasons", ANSWERED, ("--people", 100)),
    csv("segments", ANSWERED, ("--people", 150)),
    csv("monitor", LEARNED, ("--samples", 50)),
    csv("pooling", ANSWERED, ("--seeds", 5), ("--rows", 30)),
    Step("privacy", ANSWERED, (), (("--rows", 300),)),
    Step("energy", LEARNED, (), (("--rows", 1000),)),
    Step("fidelity", LEARNED),
    Step("fuzz_artefact", LEARNED, (), (("--tries", 10_000),)),
    Step("machines", ANSWERED, (), (("--rows", 2000),)),
    Step("theorem", ()),
    Step("tune", ("fit", "metrics")),
    figure("pipeline,simplex,kl", ()),
    figure("correlations", (*ANSWERED, "guided"), ("--seeds", 5), ("--rows", 1000)),
    figure("tau", (*ANSWERED, "metrics", "guided"), ("--seeds", 5), ("--rows", 1000)),
    figure("person", ANSWERED),
    figure("frontier", (*ANSWERED, "metrics", "guided")),
    Step("safety_times", ANSWERED, ("safety_times.csv",), command=("benchmarks/safety.py", "--times"), alone=True),
    csv("speed", ANSWERED, ("--seeds", 3), alone=True),
    csv("width", ANSWERED, alone=True),
    csv("threads", ANSWERED, alone=True),
    csv("slow_models", ANSWERED, ("--people", 10), alone=True),
    Step("imports", (), alone=True),
    Step("studio", ANSWERED, alone=True),
    Step("report_size", ANSWERED, alone=True),
    Step("scale_parts", ANSWERED, command=("benchmarks/scale.py", "--parts"), alone=True),
    Step("scale", ANSWERED, ("scale.csv",), arguments=("--ways", "local-1,local-2"), alone=True),
    Step("claims", ("fit", "search", "guided"), ("claims.csv",)),
)  # fmt: skip


class Log:
    """A line for each step: in results/steps.csv what was finished, in results/partial/steps.csv what was begun."""

    def __init__(self, path: Path) -> None:
        self.path = path
        table = pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else pd.DataFrame(columns=COLUMNS)
        self.lines = {line["step"]: line for line in table.to_dict("records")}

    def has(self, step: Step, size: Size) -> bool:
        """Whether the step is here with today's editions and of this size."""
        wanted = {"editions": step.editions} | step.noted_size(size)
        return wanted.items() <= self.lines.get(step.name, {}).items()

    def add(self, step: Step, size: Size, seconds: float) -> None:
        """A step that goes on where it was adds to its time."""
        before = float(self.lines[step.name]["seconds"] or 0) if self.has(step, size) else 0.0
        git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.lines[step.name] = {
            "step": step.name, "seconds": f"{before + seconds:.0f}", "editions": step.editions,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": git.stdout.strip(),
        } | step.noted_size(size)  # fmt: skip
        self.write()

    def write(self) -> None:
        order = [each.name for each in STEPS]
        lines = sorted(self.lines.values(), key=lambda line: order.index(line["step"]))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, pd.DataFrame(lines, columns=COLUMNS).to_csv(index=False).encode())

    def note(self, name: str) -> str:
        """What a page says of the step's results: nothing if they are of today's editions and of full size."""
        step, line = next(each for each in STEPS if each.name == name), self.lines.get(name)
        if line is None:
            return "It is not known with which editions this was measured."
        then = dict(each.split("=") for each in line["editions"].split())
        notes = [
            f"Measured with edition {then[each]} of {WORDS[each]}; today's is {EDITIONS[each]}."
            for each in step.uses
            if then.get(each) not in (None, str(EDITIONS[each]))
        ]
        full = step.noted_size(Size())
        if line["scale"] != full["scale"]:
            notes.append(f"The rows are {float(line['scale']):.0%} of those of a full run.")
        if line["seeds"] != full["seeds"]:
            notes.append(f"Measured with {line['seeds']} of the {full['seeds']} seeds of a full run.")
        return " ".join(notes)


@dataclass(frozen=True)
class Run:
    """All steps of one call."""

    results: Path
    size: Size
    jobs: int
    until: float  # the time at which it stops
    before: Path | None = None

    @cached_property
    def done(self) -> Log:
        return Log(self.results / "steps.csv")

    @cached_property
    def begun(self) -> Log:
        return Log(self.results / "partial" / "steps.csv")

    def everything(self, steps: Iterable[Step]) -> list[str]:
        """Run the steps that are not up to date in their order, up to `jobs` at a time; the names of those that
        failed."""
        running: dict[Step, tuple[subprocess.Popen[bytes], float]] = {}
        waiting, failed = [step for step in steps if not self.done.has(step, self.size)], []
        try:
            while waiting or running:
                if time.time() >= self.until:
                    break
                while waiting and len(running) < self.jobs and not any(step.alone for step in running):
                    if waiting[0].alone and running:
                        break
                    print(f"{waiting[0].name} begins", flush=True)
                    running[waiting[0]] = self.begin(waiting[0]), time.time()
                    waiting.pop(0)
                for step, (process, began) in list(running.items()):
                    if process.poll() is not None:
                        del running[step]
                        self.end(step, time.time() - began, process.returncode == 0)
                        failed += [step.name] if process.returncode else []
                time.sleep(0.2)
        finally:
            for step, (process, began) in running.items():
                process.terminate()
                process.wait()
                self.end(step, time.time() - began, good=False)
        return failed

    def begin(self, step: Step) -> subprocess.Popen[bytes]:
        """Start a step, with what it had when it was stopped, if that is of the same editions."""
        if not self.begun.has(step, self.size):
            for part, _, _ in self.places(step):
                part.unlink(missing_ok=True)
        for part, place, older in self.places(step):
            _move(place, older)
            _move(part, place)
        self.begun.add(step, self.size, 0.0)
        words = [*step.line(self.size, self.jobs), *(["--before", str(self.before)] if step.name == "speed" else [])]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        printed, messages = (self.results / "partial" / f"{step.name}.{kind}" for kind in ("txt", "err"))
        with printed.open("wb") as out, messages.open("ab") as errors:
            return subprocess.Popen(words, cwd=ROOT, env=os.environ | threads, stdout=out, stderr=errors)

    def end(self, step: Step, seconds: float, good: bool) -> None:
        """Keep the new results of a step that is finished; otherwise put them aside, and the earlier ones back."""
        self.begun.add(step, self.size, seconds)
        print(f"{step.name}: {'done' if good else 'not finished'}, {seconds:.0f} s", flush=True)
        for part, place, older in self.places(step):
            if good:
                older.unlink(missing_ok=True)
            else:
                _move(place, part)
                _move(older, place)
        if good:
            if not step.files:
                _move(self.results / "partial" / f"{step.name}.txt", self.results / "printed" / f"{step.name}.txt")
            self.done.lines[step.name] = self.begun.lines.pop(step.name)
            self.done.write()
            self.begun.write()

    def places(self, step: Step) -> list[tuple[Path, Path, Path]]:
        """Of each file: where it is kept unfinished, where it belongs, and where an earlier one waits meanwhile."""
        if step.checks:
            return []
        folder = self.results / "partial"
        names = [(name, name.replace("/", "_")) for name in step.files]
        return [(folder / f"new_{flat}", self.results / name, folder / f"old_{flat}") for name, flat in names]


def _move(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)


def writers() -> Iterator[str]:
    """The benchmarks that write tables into docs/."""
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        if '"--docs"' in path.read_text(encoding="utf-8") and path.stem != Path(__file__).stem:
            yield path.stem


def write_notes(log: Log, page: Path) -> None:
    """Write what is to be said of each step between its markers, `<!-- measured: NAME -->`."""
    for name in re.findall(r"<!-- measured: (\w+) -->", page.read_text(encoding="utf-8")):
        put(page, **{f"measured: {name}": log.note(name)})


def write_printed(folder: Path, page: Path) -> None:
    """Write tables that a step printed between their markers, `<!-- printed: NAME 2 -->` for the second one."""
    for name, which in re.findall(r"<!-- printed: (\w+) (\d+) -->", page.read_text(encoding="utf-8")):
        lines = (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        tables = ["\n".join(some) for is_table, some in groupby(lines, lambda line: line.startswith("|")) if is_table]
        put(page, **{f"printed: {name} {which}": tables[int(which) - 1]})


def write_pages(log: Log) -> None:
    for data in DATA:
        plain_schema(data)  # without the data nobody can say which cells are stale: an error before any page is written
    for name in writers():
        subprocess.run([sys.executable, f"benchmarks/{name}.py", "--docs"], cwd=ROOT, check=True)
    for page in PAGES:
        write_notes(log, page)
        write_printed(RESULTS / "printed", page)
    about = RESULTS / "environment.json"
    if about.exists():
        known = json.loads(about.read_text(encoding="utf-8"))
        tables = import_module("tdce_reproduction.benchmark.run").tables
        write_whole(RESULTS / "tables.md", tables(RESULTS, known.get("rows", 1000)).encode())


def show(run: Run) -> None:
    times = [float(line["seconds"]) for line in run.done.lines.values() if line["seconds"]]
    for step in STEPS:
        line = run.done.lines.get(step.name) or run.begun.lines.get(step.name)
        state = "up to date" if run.done.has(step, run.size) else "begun" if run.begun.has(step, run.size) else ""
        note = run.done.note(step.name) if step.name in run.done.lines else "not measured"
        print(f"{step.name}: {(line or {}).get('seconds') or '?'} s; {state or note or 'of another scale'}")
    print(f"{len(times)} of {len(STEPS)} steps took {sum(times) / 3600:.1f} hours together")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows of a full run")
    parser.add_argument("--seeds", type=int, default=Size.seeds, help="at most so many")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="MINUTES")
    parser.add_argument("--only", default="", help="steps, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--before", type=Path, metavar="TREE", help="a checkout of an earlier version, for speed")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else [step.name for step in STEPS]
    if unknown := set(names) - {step.name for step in STEPS}:
        parser.error(f"there is no step {', '.join(sorted(unknown))}; known: {', '.join(s.name for s in STEPS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the steps are stopped, too
    run = Run(RESULTS, Size(asked.scale, asked.seeds), asked.jobs, time.time() + 60 * asked.budget, asked.before)
    if asked.list:
        show(run)
        return
    failed: list[str] = []
    if not asked.docs:
        steps = [step for step in STEPS if step.name in names and (step.name != "speed" or asked.before is not None)]
        failed = run.everything(steps)
    write_pages(run.done)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; results/partial has their messages")


if __name__ == "__main__":
    main()
