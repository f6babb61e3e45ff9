"""CounterNet: a predictor and a generator of counterfactuals for it, trained together.

H. Guo, T. H. Nguyen, A. Yadav, "CounterNet: End-to-End Training of Prediction Aware Counterfactual Explanations",
KDD 2023. The generator sees the predictor's latents of a row and answers in one forward pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn.functional import leaky_relu, mse_loss, one_hot

from tdce._core import Noise, Progress, TrainingPlan, linear, train
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.settings import POSITIVE, check_settings
from tdce.models import NetworkModel, Oracle
from tdce.schema import Space

HELD_OUT = 0.1  # share of the rows for early stopping


@dataclass(frozen=True)
class CounterNet:
    """CounterNet, which explains its own predictor, not the model of the task.

    Loss weights, widths, batch size and learning rate are those of the authors' code. Unlike in the paper, the
    generator is given the target, so that there may be more than two classes; it sees the row in addition to its
    latents; and it learns on hard categories, because soft ones can satisfy the predictor half-way between two
    categories and fail at either. Early stopping and averaged weights replace dropout, and both blocks are updated at
    the same time, not in turns.
    """

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    lambda_1: float = 1.0  # weight of the prediction loss
    lambda_2: float = 0.2  # weight of the validity loss
    lambda_3: float = 0.1  # weight of the proximity loss
    encoder: tuple[int, ...] = (50, 10)  # widths of the layers
    predictor: tuple[int, ...] = (10,)
    generator: tuple[int, ...] = (50, 50)
    sees_row: bool = True  # False: as in the paper, where the generator cannot keep what the encoder drops
    straight_through: bool = True  # hard categories in training; False: soft ones, as in the paper
    steps: int = 2000
    batch: int = 128
    rate: float = 3e-3
    task_: Task | None = field(default=None, repr=False)
    network_: Network | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(
            self, lambda_1=(0, 1e3), lambda_2=(0, 1e3), lambda_3=(0, 1e3), encoder=(1, 4096), predictor=(1, 4096),
            generator=(1, 4096), steps=(1, 1_000_000), batch=(1, 1_000_000), rate=(POSITIVE, 1),
        )  # fmt: skip

    def fit(self, task: Task) -> Self:
        task.require_rows("CounterNet")
        key = (replace(self, task_=None, network_=None), tuple(task.mutable.tolist()), task.seed)
        network = task.memoise(key, lambda: self._train(task))
        classes = task.oracle.model.outputs[0].classes  # some of which may be missing in y
        oracle = Oracle(NetworkModel(network.predictor, task.encoder.embed, classes))
        return replace(self, task_=replace(task, oracle=oracle, guide=network.predictor), network_=network)

    def _train(self, task: Task) -> Network:
        draw = Generator().manual_seed(task.seed)
        order = torch.randperm(len(task.x), generator=draw)
        held_out, rows = order.tensor_split([int(len(order) * HELD_OUT)])
        if len(held_out) < 5:
            held_out = rows = order
        classes = task.oracle.model.outputs[0].classes
        predictor = Predictor(task.space.width, len(classes), self.encoder, self.predictor, draw)
        network = Network(task.space, predictor, self.generator, self.sees_row, self.straight_through, draw)

        def loss(module: nn.Module, index: Tensor, draw: Generator) -> Tensor:
            assert isinstance(module, Network)
            one, two, three = losses(module, task.x[index], task.y[index], task.mutable, draw)
            return self.lambda_1 * one + self.lambda_2 * two + self.lambda_3 * three

        # no clipping: one norm for both blocks would couple them
        plan = TrainingPlan(self.steps, self.batch, self.rate, clip=math.inf)
        train(
            network,
            lambda module, index, draw: loss(module, rows[index], draw),
            lambda module: loss(module, held_out, Generator().manual_seed(task.seed)),
            len(rows), plan, task.seed, Progress("silent"), "CounterNet",
        )  # fmt: skip
        return network

    def search(self, query: Query, noise: Noise) -> Search:
        """One forward pass; `noise` is not used."""
        assert self.network_ is not None, "call fit first"
        space, mutable, x = task_of(self).space, task_of(self).mutable, query.x
        target = query.goals.target_class(self.network_.predictor(x).softmax(dim=1))
        num, cat = space.split(self.network_(x, target))
        return torch.where(mutable, space.join(num, space.one_hot(cat)), x)
        yield  # makes it a generator, although it never queries the model


class Losses(NamedTuple):
    prediction: Tensor  # L_1, of the predictor alone
    validity: Tensor  # L_2, of the generator alone
    proximity: Tensor  # L_3, of the generator alone


def losses(
    network: Network,
    x: Tensor,  # (n, width)
    y: Tensor,  # (n,) class numbers
    mutable: Tensor,
    draw: Generator,
) -> Losses:
    """The paper's block-wise coordinate descent in one backward pass: each block gets only its own gradient.

    The generator aims at a class other than the predicted one; of two, that is 1 - y_hat.
    """
    predictor, classes = network.predictor, network.predictor.classes
    p = predictor(x).softmax(dim=1)
    target = (p.argmax(dim=1) + torch.randint(1, classes, (len(x),), generator=draw)) % classes
    x_cf = torch.where(mutable, network(x, target), x)
    still = {name: weight.detach() for name, weight in predictor.named_parameters()}
    p_cf = functional_call(predictor, still, x_cf).softmax(dim=1)
    return Losses(mse_loss(p, _hot(y, classes)), mse_loss(p_cf, _hot(target, classes)), mse_loss(x_cf, x))


class Network(nn.Module):
    """(x, target) -> x_cf; the generator's losses do not change the predictor."""

    def __init__(
        self,
        space: Space,
        predictor: Predictor,
        hidden: tuple[int, ...],
        sees_row: bool,
        straight_through: bool,
        draw: Generator,
    ) -> None:
        super().__init__()
        self.space, self.predictor, self.sees_row, self.straight_through = space, predictor, sees_row, straight_through
        width = predictor.latent + predictor.classes + sees_row * space.width
        self.generator = Layers(width, hidden, draw)
        self.outputs = linear(self.generator.width, space.width, draw)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        z, h = self.predictor.latents(x)
        seen = [z.detach(), h.detach(), _hot(target, self.predictor.classes), *([x] if self.sees_row else [])]
        num, logits = self.space.split(self.outputs(self.generator(torch.cat(seen, dim=1))))
        cat = self.space.softmax(logits)
        if self.straight_through:
            cat = self.space.one_hot(cat.detach()) + (cat - cat.detach())  # the value is hard, the gradient soft
        return self.space.join(num, cat)


class Predictor(nn.Module):
    """(n, width) -> logits (n, classes), through the two latents that the generator sees."""

    def __init__(
        self, width: int, classes: int, encoder: tuple[int, ...], head: tuple[int, ...], draw: Generator
    ) -> None:
        super().__init__()
        self.classes = classes
        self.encoder = Layers(width, encoder, draw)
        self.head = Layers(self.encoder.width, head, draw)
        self.outputs = linear(self.head.width, classes, draw)
        self.latent = self.encoder.width + self.head.width

    def latents(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = self.encoder(x)
        return z, self.head(z)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.outputs(self.latents(x)[1])
        return logits


class Layers(nn.Module):
    """Linear layers, each with a leaky ReLU."""

    def __init__(self, width: int, hidden: tuple[int, ...], draw: Generator) -> None:
        super().__init__()
        widths = (width, *hidden)
        self.layers = nn.ModuleList(linear(a, b, draw) for a, b in zip(widths, hidden, strict=False))
        self.width = widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = leaky_relu(layer(x))
        return x


def _hot(classes: Tensor, size: int) -> Tensor:
    hot: Tensor = one_hot(classes, size).float()
    return hot
