"""The columns of an encoded row: numbers first, then the blocks of category weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tdce._core import Name
from tdce.schema.blocks import Blocks
from tdce.schema.schema import Schema


@dataclass(frozen=True)
class Space:
    """The position of each feature in an encoded row."""

    num: int  # columns 0 .. num - 1 are numbers
    sizes: tuple[int, ...]  # then a block of this many weights each
    places: dict[Name, tuple[int, ...]]  # the columns of each feature: its numbers, then its weights
    ranks: tuple[float, ...] = ()  # of the weights; see `Column.ranks`

    @classmethod
    def of(cls, schema: Schema) -> Space:
        num = sum(f.numbers for f in schema)
        places: dict[Name, tuple[int, ...]] = {}
        next_num, next_cat = 0, num
        for f in schema:
            places[f.name] = (*range(next_num, next_num + f.numbers), *range(next_cat, next_cat + f.weights))
            next_num, next_cat = next_num + f.numbers, next_cat + f.weights
        ranks = tuple(rank for f in schema for rank in f.ranks)
        return cls(num, tuple(f.weights for f in schema if f.weights), places, ranks)

    @property
    def cat(self) -> int:
        """The number of category weights."""
        return sum(self.sizes)

    @property
    def width(self) -> int:
        return self.num + self.cat

    @cached_property
    def uniform(self) -> Tensor:
        """(cat,) 1 / K for every category weight of a block of size K: the limit of the multinomial noise."""
        return torch.cat([torch.full((k,), 1.0 / k) for k in self.sizes]) if self.sizes else torch.zeros(0)

    @cached_property
    def spans(self) -> tuple[slice | list[int], ...]:
        """The columns of each feature, as a slice if they are adjacent."""
        return tuple(
            slice(at[0], at[-1] + 1) if at and at == tuple(range(at[0], at[-1] + 1)) else list(at)
            for at in self.places.values()
        )

    @cached_property
    def members(self) -> Tensor:
        """(features, width) which columns belong to which feature."""
        return torch.stack([self.mask([name]) for name in self.places])

    @cached_property
    def owner(self) -> Tensor:
        """(width,) the index of the feature that each column belongs to."""
        return self.members.int().argmax(dim=0)

    def moved(self, x: Tensor, other: Tensor) -> Tensor:
        """(n, features) which features differ between two encoded tensors."""
        return self.sum_by_feature((x != other).float()) > 0

    def sum_by_feature(self, values: Tensor) -> Tensor:
        """(n, width) -> (n, features) the sum over each feature's columns."""
        return values.new_zeros(len(values), len(self.places)).index_add_(1, self.owner, values)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, width) -> numbers (n, num) and category weights (n, cat)."""
        return x[:, : self.num], x[:, self.num :]

    def join(self, num: Tensor, cat: Tensor) -> Tensor:
        return torch.cat([num, cat], dim=1)

    def blocks(self, cat: Tensor) -> tuple[Tensor, ...]:
        """(n, cat) -> one (n, K) view per block."""
        return torch.split(cat, list(self.sizes), dim=1) if self.sizes else ()

    def log_softmax(self, logits: Tensor) -> Tensor:
        """Log probabilities, each block normalised separately."""
        return self._blocks.log_softmax(logits)

    def softmax(self, logits: Tensor) -> Tensor:
        return self._blocks.softmax(logits)

    def one_hot(self, weights: Tensor) -> Tensor:
        """The hard choice: 1 at the largest weight of each block, 0 elsewhere."""
        return self._blocks.one_hot(weights)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.sizes)

    def mask(self, names: Iterable[Name]) -> Tensor:
        """(width,) True for the columns of these features."""
        mask = torch.zeros(self.width, dtype=torch.bool)
        for name in names:
            mask[list(self.places[name])] = True
        return mask
