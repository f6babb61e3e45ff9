"""Dialogues side by side."""

from dataclasses import replace

import torch
import toys
from asking import class_goals, make_query, run_dialogue
from torch import Tensor

from tdce.methods import coordinates
from tdce.methods.candidates import Candidates
from tdce.methods.coordinates import try_ends
from tdce.methods.dialogues import together
from tdce.methods.protocol import FEW_ROWS


def scene(rows: int):
    """The sum of two numbers decides."""
    calls: list[int] = []

    def classify(x: Tensor) -> Tensor:
        calls.append(len(x))
        return torch.stack([torch.zeros(len(x)), x.sum(dim=1) - 5], dim=1)

    task = toys.task(toys.encoder("ab"), classify, torch.zeros(1, 2))
    x = torch.arange(rows)[:, None] / torch.tensor([4.0, 8.0])
    return task, x, class_goals(1, x), calls


def test_what_several_dialogues_ask_is_one_round_and_each_gets_its_own_replies():
    task, x, goals, calls = scene(3)
    query = make_query(task, x, goals)

    def ask(values: list[float]):
        margins = []
        for value in values:
            reply = yield query.ask(x[1:] + value, torch.tensor([1, 2]))
            margins.append(reply.margin[:, 0])
            assert torch.equal(reply.x[:, 0], task.encoder.embed(reply.raw[:, 0]).float())
        return margins

    before = len(calls)
    several = run_dialogue(together(ask([1.0, 2.0, 3.0]), ask([]), ask([4.0])), task, x, goals)
    rounds = len(calls) - before
    alone = [run_dialogue(ask(values), task, x, goals) for values in ([1.0, 2.0, 3.0], [4.0])]
    assert rounds == 3
    assert torch.equal(torch.stack(several[0]), torch.stack(alone[0]))
    assert several[1] == []
    assert torch.equal(torch.stack(several[2]), torch.stack(alone[1]))


def test_a_bisection_of_few_rows_asks_in_fewer_rounds_and_ends_at_the_same_place(monkeypatch):
    task, x, goals, calls = scene(FEW_ROWS)
    found, rounds = [], []
    for ahead in (1, 2, 4):
        monkeypatch.setattr(coordinates, "AHEAD", ahead)
        query = make_query(task, x, goals)
        candidates, before = Candidates(task, query, None), len(calls)
        run_dialogue(try_ends(task, query, candidates, torch.tensor([0, 1])), task, x, goals)
        found.append((candidates.x, candidates.nearest_miss, candidates.miss_margin))
        rounds.append(len(calls) - before)
    assert rounds == [1 + 4, 1 + 2, 1 + 1]
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_many_rows_and_those_with_a_budget_ask_for_nothing_they_may_not_need():
    task, x, goals, calls = scene(FEW_ROWS + 1)
    query = make_query(task, x, goals)
    before = len(calls)
    run_dialogue(try_ends(task, query, Candidates(task, query, None), torch.tensor([0, 1])), task, x, goals)
    assert len(calls) - before == 1 + 4
    assert not query.few
    assert replace(query, x=x[torch.zeros(64, dtype=torch.long)]).few  # copies of one row
