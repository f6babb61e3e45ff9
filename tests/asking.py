"""Run a method directly, without an explainer around it."""

from torch import Tensor

from tdce._core.noise import Noise
from tdce.methods.driver import Block, drive
from tdce.methods.protocol import Dialogue, Method, Query, Task, task_of
from tdce.models.goals import Class, Goals
from tdce.schema.feasible import FeasibleSet


def feasible_set(task: Task, x: Tensor) -> FeasibleSet:
    """The feasible set of encoded rows, with the task's immutable features."""
    encoder = task.encoder
    frozen = [name for name in encoder.schema.names if not task.mutable[encoder.space.mask([name])].any()]
    return FeasibleSet.of(encoder, encoder.decode(x), frozen)


def class_goals(k: int, x: Tensor) -> Goals:
    """The class k for every row."""
    return Goals.all(Class(k), len(x))


def run_method(method: Method, x: Tensor, goals: Goals, seed: int = 0, option: int = 0, closeness=None) -> Tensor:
    """(n, width) what one search of a fitted method returns, before the driver snaps and decides."""
    task = task_of(method)
    query = make_query(task, x, goals, closeness)
    return run_dialogue(method.search(query, Noise(query.x, seed, option)), task, x, goals)


def make_query(task: Task, x: Tensor, goals: Goals, closeness=None, options: int = 1, safety: float = 0.0) -> Query:
    """The query of encoded rows."""
    feasible = feasible_set(task, x)
    decision = task.oracle.decide_alone(feasible.own, goals)
    return Query(x, decision, goals, feasible.encoded_bounds(), closeness, options, safety)


def run_dialogue(talk: Dialogue, task: Task, x: Tensor, goals: Goals):
    """What a dialogue returns when its requests are answered."""
    return drive([talk], [Block(feasible_set(task, x), goals)], task.oracle)[0]


def meets_goals(task: Task, x: Tensor, goals: Goals) -> Tensor:
    """(n,) whether encoded rows meet their goals."""
    return task.oracle(task.encoder.unembed(x), goals).met
