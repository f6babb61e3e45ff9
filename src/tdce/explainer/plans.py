"""How the networks of an explainer are trained."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from tdce._core import TrainingPlan, check_integer, check_type
from tdce.diffusion import SamplingPlan

CLASSIFIER = TrainingPlan(steps=800, batch=512, rate=1e-3, check_every=25, patience=8)
DIFFUSION = TrainingPlan()
AUTOENCODER = TrainingPlan(steps=600, batch=256, rate=3e-3, check_every=50)
SAMPLING = SamplingPlan()


@dataclass(frozen=True)
class TrainingPlans:
    """One training plan per network, and how synthetic rows are drawn. The defaults suit users; tests shorten them."""

    classifier: TrainingPlan = CLASSIFIER
    diffusion: TrainingPlan = DIFFUSION  # its steps are set by `Explainer(steps=...)`
    autoencoder: TrainingPlan = AUTOENCODER  # for the metrics IM1 and IM2
    sampling: SamplingPlan = SAMPLING
    precedents: int = 1024  # maximum number of precedents: answers to synthetic rows, tried for similar rows

    def __post_init__(self) -> None:
        for name, kind in {each.name: type(each.default) for each in fields(self)}.items():
            if kind is not int:
                check_type(name, getattr(self, name), kind, f"it must be a {kind.__name__}")
        check_integer("precedents", self.precedents, 0)


def plan_for(plan: TrainingPlan, rows: int) -> TrainingPlan:
    """The plan with fewer steps for small tables: about 200 passes over the rows are plenty."""
    batch = min(plan.batch, max(32, rows // 4))
    return replace(plan, batch=batch, steps=min(plan.steps, max(200, 200 * rows // batch)))
