"""A method asked directly, without an explainer around it."""

from torch import Tensor

from tdce.explaining import propose
from tdce.explanation import Question
from tdce.goal import Class, Goals
from tdce.limits import Limits
from tdce.methods import Method, Task
from tdce.methods.interface import task_of


def limits_of(task: Task, x: Tensor) -> Limits:
    """Of encoded rows, with the task's immutable features."""
    encoder = task.encoder
    frozen = [name for name in encoder.schema.names if not task.mutable[encoder.space.mask([name])].any()]
    return Limits.of(encoder, encoder.decode(x), frozen)


def towards(k: int, x: Tensor) -> Goals:
    """The class k for every row."""
    return Goals.all(Class(k), len(x))


def proposed(method: Method, x: Tensor, goals: Goals, seed: int = 0, option: int = 0, closeness=None) -> Tensor:
    """(n, width) what one search of a fitted method returns."""
    return propose(method, limits_of(task_of(method), x), Question(goals, 1, seed, closeness), option)
