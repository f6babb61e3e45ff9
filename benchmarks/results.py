"""Make everything in results/ anew with today's code, and the tables of docs/ from it: `make results`.

    TDCE_DATA=... python benchmarks/results.py [--scale 1] [--budget MINUTES] [--only bench,safety] [--jobs 2]
                                               [--before TREE]
    python benchmarks/results.py --list        which steps are up to date, and how long they took
    python benchmarks/results.py --docs        only writes the pages from the results

Each step is a process with one thread; those of which the time is measured run alone. It can be stopped at any time and
goes on where it was. A step is skipped if it was finished with today's editions and the same scale; files of other
editions are removed before it starts. `--scale 0.1` takes a tenth of the seeds and rows, `--budget` stops after so many
minutes. results/steps.csv notes with which editions and at which scale each step was measured, when and in how many
seconds; a page whose step was measured with other editions than today's says so by itself. The most quoted come first.
`speed` compares with a checkout of an earlier version, and is left out without one.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pandas as pd
from docs_tables import put

from tdce.datasets import write_whole
from tdce.explainer import evaluation, fitting
from tdce.methods import DiffusionSearch, Guided

ROOT = Path(__file__).parents[1]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
COLUMNS = ["step", "finished", "seconds", "scale", "editions", "date", "commit"]
EDITIONS = {
    "search": DiffusionSearch.edition,
    "fit": fitting.EDITION,
    "metrics": evaluation.EDITION,
    "guided": Guided.edition,
}
WORDS = {"search": "the search", "fit": "`fit`", "metrics": "the metrics", "guided": "Algorithm 1"}
LEARNED, ANSWERED = ("fit",), ("fit", "search")


@dataclass(frozen=True)
class Step:
    """One benchmark: `benchmarks/NAME.py`, or a command of its own."""

    name: str
    uses: tuple[str, ...]  # the editions that its results depend on
    files: tuple[str, ...] = ()  # in results/; none: it prints, and what it prints is kept as results/printed/NAME.txt
    sizes: tuple[tuple[str, int], ...] = ()  # options that are scaled, with their full sizes
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    alone: bool = False  # its time is measured
    checks: bool = False  # it knows with what its files were measured, so they are never removed

    def line(self, scale: float, jobs: int) -> list[str]:
        sizes = [word for option, full in self.sizes for word in (option, str(max(1, round(scale * full))))]
        words = [word.replace("{jobs}", str(jobs)) for word in self.arguments]
        return [sys.executable, *(self.command or (f"benchmarks/{self.name}.py",)), *words, *sizes]

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
    csv("optimum", ANSWERED, ("--rows", 20)),
    csv("guided_settings", ("fit", "metrics", "guided"), ("--rows", 120)),
    csv("readings", ("fit", "metrics", "guided"), ("--rows", 120)),
    csv("reasons", ANSWERED, ("--people", 100)),
    csv("segments", ANSWERED, ("--people", 150)),
    csv("monitor", LEARNED, ("--samples", 50)),
    csv("pooling", ANSWERED, ("--seeds", 5), ("--rows", 30)),
    Step("privacy", ANSWERED, (), (("--rows", 300),)),
    Step("energy", LEARNED, (), (("--rows", 1000),)),
    Step("fidelity", LEARNED),
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
    csv("scale", ANSWERED, alone=True),
    Step("claims", ("fit", "search", "guided"), ("claims.csv",)),
)  # fmt: skip


class Log:
    """results/steps.csv: a line for each step that was begun."""

    def __init__(self, path: Path) -> None:
        self.path = path
        table = pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else pd.DataFrame(columns=COLUMNS)
        self.lines = {line["step"]: line for line in table.to_dict("records")}

    def is_done(self, step: Step, scale: float) -> bool:
        return self.is_same(step, scale) and self.lines[step.name]["finished"] == "yes"

    def is_same(self, step: Step, scale: float) -> bool:
        """Whether the step was begun with today's editions and this scale."""
        line = self.lines.get(step.name)
        return line is not None and (line["editions"], line["scale"]) == (step.editions, f"{scale:g}")

    def add(self, step: Step, scale: float, seconds: float, finished: bool) -> None:
        """A step that goes on where it was adds to its time."""
        before = float(self.lines[step.name]["seconds"] or 0) if self.is_same(step, scale) else 0.0
        self.lines[step.name] = {
            "step": step.name, "finished": "yes" if finished else "no", "seconds": f"{before + seconds:.0f}",
            "scale": f"{scale:g}", "editions": step.editions, "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "commit": subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                                     check=False).stdout.strip(),
        }  # fmt: skip
        order = [each.name for each in STEPS]
        lines = sorted(self.lines.values(), key=lambda line: order.index(line["step"]))
        write_whole(self.path, pd.DataFrame(lines, columns=COLUMNS).to_csv(index=False).encode())

    def note(self, name: str) -> str:
        """What a page says of the step's results: nothing if they are of today's editions and of full size."""
        step, line = next(each for each in STEPS if each.name == name), self.lines.get(name)
        if line is None:
            return "It is not known with which editions this was measured."
        then = dict(each.split("=") for each in line["editions"].split())
        notes = [
            f"Measured with edition {then[each] or 'unknown'} of {WORDS[each]}; today's is {EDITIONS[each]}."
            for each in step.uses
            if then.get(each) not in (None, str(EDITIONS[each]))
        ]
        if line["finished"] == "no":
            notes.append("The measurement is not finished.")
        if line["scale"] != "1":
            notes.append(f"Seeds and rows are {float(line['scale']):.0%} of those of a full run.")
        return " ".join(notes)


def run(step: Step, log: Log, scale: float, jobs: int, before: Path | None) -> subprocess.Popen[bytes]:
    """Begin a step, from nothing if its files are of other editions."""
    if not step.checks and not log.is_same(step, scale):
        for name in step.files:
            (RESULTS / name).unlink(missing_ok=True)
    log.add(step, scale, 0.0, finished=False)
    words = [*step.line(scale, jobs), *(["--before", str(before)] if step.name == "speed" else [])]
    folder = RESULTS / ("logs" if step.files else "printed")
    folder.mkdir(exist_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with (folder / f"{step.name}.txt").open("wb") as out, (RESULTS / "logs" / f"{step.name}.err").open("ab") as errors:
        return subprocess.Popen(words, cwd=ROOT, env=os.environ | threads, stdout=out, stderr=errors)


def run_all(steps: list[Step], log: Log, scale: float, jobs: int, until: float, before: Path | None) -> list[str]:
    """Run the steps in their order, up to `jobs` at a time; the names of those that failed."""
    running: dict[str, tuple[Step, subprocess.Popen[bytes], float]] = {}
    waiting, failed = list(steps), []
    while waiting or running:
        exclusive = any(step.alone for step, _, _ in running.values())
        while waiting and time.time() < until and not exclusive and len(running) < jobs:
            if waiting[0].alone and running:
                break
            step = waiting.pop(0)
            print(f"{step.name} begins", flush=True)
            running[step.name] = step, run(step, log, scale, jobs, before), time.time()
            exclusive = step.alone
        for name, (step, process, began) in list(running.items()):
            if process.poll() is None and time.time() >= until:
                process.terminate()
                process.wait()
            if process.poll() is not None:
                seconds, good = time.time() - began, process.returncode == 0
                log.add(step, scale, seconds, good)
                failed += [] if good or time.time() >= until else [name]
                print(f"{name}: {'done' if good else 'not finished'}, {seconds:.0f} s", flush=True)
                del running[name]
        if not running and time.time() >= until:
            break
        time.sleep(1)
    return failed


def writers() -> Iterator[str]:
    """The benchmarks that write tables into docs/."""
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        if '"--docs"' in path.read_text(encoding="utf-8") and path.stem != Path(__file__).stem:
            yield path.stem


def write_notes(log: Log, page: Path) -> None:
    """Write what is to be said of each step between its markers, `<!-- measured: NAME -->`."""
    for name in re.findall(r"<!-- measured: (\w+) -->", page.read_text(encoding="utf-8")):
        put(page, **{f"measured: {name}": log.note(name)})


def write_pages(log: Log) -> None:
    for name in writers():
        subprocess.run([sys.executable, f"benchmarks/{name}.py", "--docs"], cwd=ROOT, check=True)
    for page in sorted(DOCS.glob("*.md")):
        write_notes(log, page)
    about = RESULTS / "environment.json"
    if about.exists():
        known = json.loads(about.read_text(encoding="utf-8"))
        tables = import_module("tdce_reproduction.benchmark.run").tables
        write_whole(RESULTS / "tables.md", tables(RESULTS, known.get("rows", 1000)).encode())


def show(log: Log, scale: float) -> None:
    for step in STEPS:
        line = log.lines.get(step.name, {})
        state = "up to date" if log.is_done(step, scale) else log.note(step.name) if line else "not measured"
        print(f"{step.name}: {line.get('seconds') or '?'} s; {state or 'at another scale'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="MINUTES")
    parser.add_argument("--only", default="", help="steps, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--before", type=Path, metavar="TREE", help="a checkout of an earlier version, for speed")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    log, names = Log(RESULTS / "steps.csv"), asked.only.split(",") if asked.only else [step.name for step in STEPS]
    if unknown := set(names) - {step.name for step in STEPS}:
        parser.error(f"there is no step {', '.join(sorted(unknown))}; known: {', '.join(s.name for s in STEPS)}")
    if asked.list:
        show(log, asked.scale)
        return
    failed: list[str] = []
    if not asked.docs:
        (RESULTS / "logs").mkdir(parents=True, exist_ok=True)
        steps = [step for step in STEPS if step.name in names and not log.is_done(step, asked.scale)]
        steps = [step for step in steps if step.name != "speed" or asked.before is not None]
        failed = run_all(steps, log, asked.scale, asked.jobs, time.time() + 60 * asked.budget, asked.before)
    write_pages(log)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; results/logs has their messages")


if __name__ == "__main__":
    main()
