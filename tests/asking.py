"""A method asked directly, without an explainer around it."""

from torch import Tensor

from tdce.explaining import Block, drive
from tdce.goal import Class, Goals
from tdce.limits import Limits
from tdce.methods import Method, Query, Task
from tdce.methods.interface import Talk, task_of
from tdce.noise import Noise


def limits_of(task: Task, x: Tensor) -> Limits:
    """Of encoded rows, with the task's immutable features."""
    encoder = task.encoder
    frozen = [name for name in encoder.schema.names if not task.mutable[encoder.space.mask([name])].any()]
    return Limits.of(encoder, encoder.decode(x), frozen)


def towards(k: int, x: Tensor) -> Goals:
    """The class k for every row."""
    return Goals.all(Class(k), len(x))


def proposed(method: Method, x: Tensor, goals: Goals, seed: int = 0, option: int = 0, closeness=None) -> Tensor:
    """(n, width) what one search of a fitted method returns, before it is judged."""
    task = task_of(method)
    query = query_of(task, x, goals, closeness)
    return driven(method.search(query, Noise(query.x, seed, option)), task, x, goals)


def query_of(task: Task, x: Tensor, goals: Goals, closeness=None, options: int = 1) -> Query:
    """What a method is asked about encoded rows."""
    limits = limits_of(task, x)
    return Query(x, task.judge.alone(limits.own, goals), goals, limits.reach(), closeness, options)


def driven(talk: Talk, task: Task, x: Tensor, goals: Goals):
    """What a part of a method returns, its questions answered."""
    return drive([talk], [Block(limits_of(task, x), goals)], task.judge)[0]


def accepted(task: Task, x: Tensor, goals: Goals) -> Tensor:
    """(n,) whether encoded rows meet their goals."""
    return task.judge(task.encoder.unembed(x), goals).met
