"""Explainers that are fitted once per run of the tests, whichever file and worker asks first."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import tdce
from tdce.datasets.files import lock_file
from tdce.diffusion import SamplingPlan
from tdce.methods.baselines import vae


def kept(name: str, make: Callable[[], tdce.Explainer]) -> tdce.Explainer:
    """A copy of the explainer of this name, made and saved by the first who asks for it."""
    path = Path(os.environ["TDCE_FITS"]) / f"{name}.tdce"
    with path.with_suffix(".lock").open("w") as lock:
        with suppress(OSError):  # Windows has no such locks
            lock_file(lock)  # the others wait for the first
        if not path.exists():
            made = make()
            made.keep_rows = True  # many tests need them
            made.save(path)
    return tdce.Explainer.load(path, progress="silent")


def small(patch: pytest.MonkeyPatch) -> None:
    """Explainers with default settings train small networks: where it matters how they are called, not how good."""
    patch.setattr(tdce.Explainer.__init__, "__kwdefaults__", tdce.Explainer.__init__.__kwdefaults__ | SMALL)


def short_training() -> None:
    """In this process: explainers train for a few steps, unless they are given other plans."""
    defaults = tdce.Explainer.__init__.__kwdefaults__
    tdce.Explainer.__init__.__kwdefaults__ = defaults | {"plans": SHORT}
    vae.STEPS = 250


SMALL = {"hidden": 32, "steps": 150}

SHORT = replace(
    tdce.TrainingPlans(),
    classifier=replace(tdce.TrainingPlans().classifier, steps=120, rate=4e-3, patience=3),
    autoencoder=replace(tdce.TrainingPlans().autoencoder, steps=30),
    sampling=SamplingPlan(512, 512, 15),
    precedents=16,
)
