"""A method asked directly, without an explainer around it."""

from torch import Tensor

from tdce._core.noise import Noise
from tdce.methods.driver import Block, drive
from tdce.methods.protocol import Dialogue, Method, Query, Task, task_of
from tdce.models.goals import Class, Goals
from tdce.schema.feasible import FeasibleSet


def limits_of(task: Task, x: Tensor) -> FeasibleSet:
    """Of encoded rows, with the task's immutable features."""
    encoder = task.encoder
    frozen = [name for name in encoder.schema.names if not task.mutable[encoder.space.mask([name])].any()]
    return FeasibleSet.of(encoder, encoder.decode(x), frozen)


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
    feasible = limits_of(task, x)
    return Query(x, task.oracle.decide_alone(feasible.own, goals), goals, feasible.encoded_bounds(), closeness, options)


def driven(talk: Dialogue, task: Task, x: Tensor, goals: Goals):
    """What a part of a method returns, its questions answered."""
    return drive([talk], [Block(limits_of(task, x), goals)], task.oracle)[0]


def accepted(task: Task, x: Tensor, goals: Goals) -> Tensor:
    """(n,) whether encoded rows meet their goals."""
    return task.oracle(task.encoder.unembed(x), goals).met
