"""The packages of NICE and DiCE, each in an environment of its own; they query the model of this process."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from environments import make_environment
from workers import wire

from tdce._core import Flags, Floats

PACKAGES = {
    "nice, sparsity": ("nice", "sparsity"),
    "nice, none": ("nice", "none"),
    "dice, random": ("dice", "random"),
    "dice, genetic": ("dice", "genetic"),
}  # by title: the worker and its setting
REQUIREMENTS = {  # installed without dependencies, and what they really need
    "nice": (["NICEx==0.2.3"], ["numpy==1.26.4", "pandas==1.5.3", "scipy==1.11.4"]),
    "dice": (
        ["dice-ml==0.12", "raiutils==0.4.2"],
        ["numpy==2.4.6", "pandas==3.1.1", "scikit-learn==1.9.1", "jsonschema==4.26.0", "tqdm==4.70.1"],
    ),
}
WORKERS = Path(__file__).parent / "workers"


@dataclass(frozen=True)
class Question:
    """What a package is told: complete rows as numbers, with categories as codes."""

    train: Floats  # (rows, features)
    label: Floats  # (rows,) the class of each
    people: Floats  # (people, features) whom to explain
    numeric: Flags  # (features,)
    immutable: Flags  # (features,)
    favourable: int  # the wanted class


class Effort(NamedTuple):
    seconds: float  # processor time of the package and of the model
    calls: int  # of the model
    rows: int


class Answered(NamedTuple):
    raw: Floats  # (people, options, features), missing where there is none
    preparation: Effort
    answering: Effort


def answer(title: str, asked: Question, options: int, scores: Callable[[Floats], Floats], cache: Path) -> Answered:
    """Start a package's worker and answer its queries, with (n, features) -> (n, classes), until it is done."""
    package, setting = PACKAGES[title]
    alone, others = REQUIREMENTS[package]
    command = [make_environment(cache / package, others, alone), WORKERS / f"answer_{package}.py"]
    efforts, (seconds, calls, rows) = [], (0.0, 0, 0)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        whole = (asked.train == np.rint(asked.train)).all(axis=0)
        wire.send(worker.stdin, wire.TASK, whole=whole, setting=setting, options=options, **vars(asked))
        while len(efforts) < 2:
            kind, arrays = wire.receive(worker.stdout)
            if kind == wire.ASK:
                began = time.process_time()
                found = scores(arrays["rows"])
                seconds, calls, rows = seconds + time.process_time() - began, calls + 1, rows + len(found)
                wire.send(worker.stdin, wire.SCORES, scores=found)
            else:  # its preparation, or all of it, is over
                efforts.append(Effort(seconds + float(arrays["seconds"]), calls, rows))
                seconds, calls, rows = 0.0, 0, 0
    return Answered(arrays["answers"].reshape(len(asked.people), options, -1), *efforts)
