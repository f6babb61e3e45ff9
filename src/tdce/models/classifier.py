"""The paper's classifier, explained if the user brings no model; it has the same shape as the denoiser."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from tdce._core import Backbone, Progress, TrainingHistory, TrainingPlan, train


class Classifier(nn.Module):
    """Encoded rows (n, width) -> calibrated logits (n, classes)."""

    temperature: Tensor

    def __init__(self, width: int, classes: int, hidden: int = 256, blocks: int = 2, seed: int = 0) -> None:
        super().__init__()
        self.settings = {"width": width, "classes": classes, "hidden": hidden, "blocks": blocks}
        self.network = Backbone(width, classes, hidden, blocks, Generator().manual_seed(seed))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x) / self.temperature
        return out

    def fit(
        self,
        x: Tensor,
        y: Tensor,
        held_out_x: Tensor,
        held_out_y: Tensor,
        plan: TrainingPlan,
        seed: int,
        progress: Progress,
    ) -> TrainingHistory:
        """Train on rows and class numbers, then calibrate by temperature scaling (Guo et al. 2017)."""
        from scipy.optimize import minimize_scalar  # imported here, since only training needs it

        history = train(
            self,
            lambda module, index, _: cross_entropy(module(x[index]), y[index]),
            lambda module: cross_entropy(module(held_out_x), held_out_y),
            len(x), plan, seed, progress, "classifier",
        )  # fmt: skip
        with torch.no_grad():
            logits = self(held_out_x).double()
        best = minimize_scalar(
            lambda log_t: cross_entropy(logits / 2.0**log_t, held_out_y).item(), bounds=(-2, 4), method="bounded"
        )
        self.temperature.fill_(2.0**best.x)
        return history
