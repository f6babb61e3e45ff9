"""Wide tables: all blocks of weights at once, and candidates whose number does not grow with the width."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
import toys
from asking import class_goals, feasible_set, make_query, run_dialogue

from tdce._core.noise import Noise
from tdce.diffusion.model import TabularDiffusion
from tdce.explainer.precedents import FIRST_PRECEDENTS, affordable
from tdce.methods.candidates import Candidates
from tdce.methods.exemplars import COMPARED_FEATURES, EFFECT_ROWS, EFFECT_SAMPLE, ExemplarPool, ValueEffects
from tdce.methods.narrowing import HALVINGS, MANY_FEATURES, narrow
from tdce.methods.objective import Objective
from tdce.methods.search import MAX_CHANGES_COMBINED_WIDE, DiffusionSearch, front, group_reverts
from tdce.models.goals import Class
from tdce.schema.blocks import SMALL, Blocks
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet

SIZES = (3, 2, SMALL + 5, 7, 3, SMALL, SMALL + 1, 2)
SAME_BITS = f"""
import torch
from tdce.schema.blocks import Blocks
blocks, x = Blocks({SIZES}), 3 * torch.randn(200, {sum(SIZES)}, generator=torch.Generator().manual_seed(0))
for rows in (x, x.double()):
    for function in (blocks.softmax, blocks.log_softmax):
        whole = function(rows)
        assert torch.equal(function(rows.flip(0)).flip(0), whole)
        assert all(torch.equal(function(rows[i : i + n]), whole[i : i + n]) for i in (0, 7, 130) for n in (1, 5, 64))
"""


def logits(rows: int = 70) -> torch.Tensor:
    return 3 * torch.randn(rows, sum(SIZES), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("sizes", [SIZES, (2, 3, 2), (SMALL + 1, SMALL + 2)])
def test_all_blocks_at_once_are_normalised_like_each_by_itself(name, sizes):
    x, weights = logits()[:, : sum(sizes)].double().requires_grad_(), torch.linspace(-1, 1, 70)[:, None].double()
    whole = getattr(Blocks(sizes), name)(x)
    each = torch.cat([getattr(block, name)(dim=1) for block in torch.split(x, sizes, dim=1)], dim=1)
    torch.testing.assert_close(whole, each)
    slopes = [torch.autograd.grad((weights * out.sin()).sum(), x)[0] for out in (whole, each)]
    torch.testing.assert_close(*slopes)


def test_of_equal_weights_the_first_is_chosen_in_every_block():
    x = logits().round()  # many are equal
    each = [
        torch.zeros_like(block).scatter_(1, block.argmax(dim=1, keepdim=True), 1.0) for block in x.split(SIZES, dim=1)
    ]
    assert torch.equal(Blocks(SIZES).one_hot(x), torch.cat(each, dim=1))


@pytest.mark.parametrize("processor", ["default", "avx2"])
def test_a_row_is_normalised_to_the_same_bits_at_any_place_on_any_processor(processor):
    env = os.environ | {"ATEN_CPU_CAPABILITY": processor}
    subprocess.run([sys.executable, "-c", SAME_BITS], env=env, check=True)


FEATURES = 60
ROW, PERSON = [0.0] * FEATURES, [1.0] * FEATURES
OTHERS = [[value * (i == feature) for i in range(FEATURES)] for feature, value in ((5, 2.0), (6, 4.0))]


def wide_task():
    """Features 5, 6 and 7 are worth 4, 2 and 1; more than 6.5 is needed."""

    def classify(x):
        worth = 4 * x[:, 5] + 2 * x[:, 6] + x[:, 7]
        return torch.stack([torch.full_like(worth, 6.5), worth], dim=1)

    encoder = toys.encoder([f"n{i}" for i in range(FEATURES)])  # type: ignore[arg-type]
    task = toys.task(encoder, classify, torch.tensor([ROW]))
    diffusion = TabularDiffusion(encoder.space, 16, classes=2).eval().requires_grad_(False)
    return replace(task, synthetic=torch.tensor([PERSON, *OTHERS, ROW]), diffusion=diffusion)


def accepted_person(task, query):
    objective = Objective(task, query, Noise(query.x, 0), torch.ones(len(query.x), dtype=torch.long))
    near = Candidates(task, query, objective)
    near.add(torch.tensor([PERSON]), torch.tensor([0]), torch.ones(1, dtype=torch.double))
    return near


def narrowed(task, x, near, query, closeness):
    best = partial(front, positions=[closeness])
    run_dialogue(narrow(task, query, near, best, closeness), task, x, class_goals(1, x))
    return near.x[best(near)]


def test_of_many_changes_those_that_help_least_are_reverted_many_at_a_time():
    task, x = wide_task(), torch.tensor([ROW])
    query = make_query(task, x, class_goals(1, x))
    near = accepted_person(task, query)
    assert len(next(narrow(task, query, near, partial(front, positions=[1.0]), 1.0)).x) == 2 * HALVINGS
    best = narrowed(task, x, near, query, 1.0)
    assert best.sum() == 3  # no fewer suffice
    assert best[0, 5:8].tolist() == [1, 1, 1]
    assert len(near.at) <= 1 + 4 * 2 * HALVINGS  # a few rounds were enough
    assert set(near.line.tolist()) == {0}


def test_no_change_is_reverted_at_a_time_if_that_lowers_no_objective():
    """All that counts is the energy, and every row but a whole person has a higher one."""
    task, x = wide_task(), torch.tensor([ROW])
    query = make_query(task, x, class_goals(1, x))
    near = accepted_person(task, query)
    near.objective.errors = lambda x_cf, at: (x_cf != 1).sum(dim=1).float()
    assert narrowed(task, x, near, query, 0.0).tolist() == [PERSON]


def test_a_table_of_few_features_is_asked_nothing():
    task, x = wide_task(), torch.tensor([ROW])
    task = replace(task, mutable=torch.arange(FEATURES) < MANY_FEATURES)
    query = make_query(task, x, class_goals(1, x))
    assert list(narrow(task, query, accepted_person(task, query), partial(front, positions=[1.0]), 1.0)) == []


def test_only_what_is_best_in_a_wide_table_is_reverted_one_change_at_a_time():
    """After it was narrowed: otherwise each of four lines at each of two positions would be, again and again."""
    task, x = wide_task(), torch.tensor([ROW])
    query = make_query(task, x, class_goals(1, x))
    search, near = DiffusionSearch().fit(task), accepted_person(task, query)
    settled = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiffusionSearch, "settle", lambda *given, groups=True: settled.append(given[3](near)) or iter(()))
        run_dialogue(search.refine(query, near, (0.75, 1.0)), task, x, class_goals(1, x))
    assert [len(which) <= 2 for which in settled] == [True, True]


@pytest.mark.parametrize(
    ("features", "count"), [(1, 1024), (MANY_FEATURES, 1024), (25, 943), (48, FIRST_PRECEDENTS), (49, 0), (500, 0)]
)
def test_the_wider_a_table_the_fewer_precedents_are_answered(features, count):
    assert affordable(1024, features) == count
    assert affordable(0, features) == 0


def test_an_answer_of_a_wide_table_has_no_change_that_it_does_not_need():
    task, x = wide_task(), torch.tensor([ROW, [*PERSON[:5], 1.0, 1.0, 0.0, *PERSON[8:]]])
    query = make_query(task, x, class_goals(1, x), closeness=1.0)
    talk = DiffusionSearch().fit(task).search(query, Noise(x, 0))
    x_cf = run_dialogue(talk, task, x, class_goals(1, x))
    assert (x_cf != x).nonzero().tolist() == [[0, 5], [1, 5]]  # what is worth most goes furthest


def test_in_a_wide_table_pairs_of_changes_are_reverted_and_what_a_law_ties():
    changed = torch.zeros(3, FEATURES, dtype=torch.bool)
    changed[0, :MAX_CHANGES_COMBINED_WIDE] = True
    changed[1, : MAX_CHANGES_COMBINED_WIDE + 1] = True
    changed[2, : MANY_FEATURES + 1] = True
    which, reverted = group_reverts(changed, [(1, 2, 50), (1, 2, 50), (40, 50), (3,)])
    sets = [(i, tuple(some.nonzero().flatten().tolist())) for i, some in zip(which.tolist(), reverted, strict=True)]
    few, more = range(MAX_CHANGES_COMBINED_WIDE), range(MAX_CHANGES_COMBINED_WIDE + 1)
    expected = [(0, some) for size in few[2:] for some in combinations(few, size)]
    expected += [(1, some) for some in combinations(more, 2)]
    assert sets == [*expected, (1, (1, 2)), (2, (1, 2))]


def test_of_people_the_features_of_the_largest_effects_are_combined():
    task = wide_task()
    pool = ExemplarPool.of(task, Class(1))
    compared = pool.compared(task)
    assert len(compared) == COMPARED_FEATURES < FEATURES
    assert {5, 6, 7} <= set(compared.tolist())
    assert compared.tolist() == sorted(compared.tolist())
    assert pool.values.spread(FEATURES)[4:8].tolist() == pytest.approx([0, 7.9, 7.8, 1], rel=0.05)  # quantiles 1 % off
    effects = replace(pool.values, effect=torch.arange(FEATURES) % 59.0, feature=torch.arange(FEATURES) // 2)
    assert effects.spread(FEATURES)[[0, 29, 30]].tolist() == [1, 58, 0]


def test_effects_of_many_values_are_measured_by_fewer_rows():
    task = replace(wide_task(), synthetic=torch.tensor([PERSON, *[ROW] * EFFECT_SAMPLE]))
    assert ValueEffects.of(task, Class(1)).sample == EFFECT_SAMPLE
    values = ValueEffects.of(task, Class(1))
    many = replace(values, rows=values.rows.repeat(EFFECT_ROWS // 16 // FEATURES + 1, 1))
    task.memo.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ValueEffects, "_of", lambda *_: many)
        patch.setattr(ValueEffects, "_measure", lambda self, task, goal, refused: replace(self, sample=len(refused)))
        assert ValueEffects.of(task, Class(1)).sample == EFFECT_ROWS // len(many.rows) < 16 + 1


def test_a_few_proposals_are_snapped_like_those_of_a_part_of_the_rows():
    task = wide_task()
    feasible = feasible_set(task, torch.tensor([ROW, PERSON]))
    at = torch.tensor([1, 0, 1]).numpy()
    x_cf = torch.randn(3, FEATURES, generator=torch.Generator().manual_seed(0))
    x_cf[:, ::2] = feasible.x[at][:, ::2]
    snapped = feasible.snap(x_cf, at)
    assert (snapped == feasible.take(at).snap(x_cf)).all()
    assert (snapped[:, ::2] == feasible.own[at][:, ::2]).all()
    assert (snapped[:, 1::2] != feasible.own[at][:, 1::2]).all()


def test_answers_are_encoded_as_whole_rows_are_to_the_bit():
    """Although only what differs from the row is: numbers, marks, empty cells and categories."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "income": rng.lognormal(8, 1, 200).round(2),
        "paid": np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200).round(1)),
        "delays": np.where(rng.random(200) < 0.2, -999, rng.poisson(3, 200)),
        "kind": rng.choice(["a", "b", None], 200),
        "home": rng.choice(["own", "rent", "free"], 200),
    })  # fmt: skip
    encoder = Encoder.fit(frame)
    feasible = FeasibleSet.of(encoder, frame.head(100))
    at = rng.integers(0, 100, 400)
    answers = np.where(rng.random((400, 5)) < 0.5, feasible.own[at], encoder.read(frame)[rng.integers(0, 200, 400)])
    assert torch.equal(feasible.embed(answers, at), encoder.embed(answers).float())
    assert torch.equal(feasible.embed(feasible.own, np.arange(100)), feasible.x)
