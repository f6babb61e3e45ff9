"""The default method: each of its parts by a second route, and what it promises as a whole."""

from dataclasses import replace
from math import erf, sqrt
from types import SimpleNamespace

import lending
import numpy as np
import pandas as pd
import pytest
import torch
import toys
from asking import class_goals, feasible_set, make_query, meets_goals, run_dialogue
from torch import Tensor, nn

import tdce
from tdce._core.deterministic import pad_rows
from tdce._core.errors import InputError
from tdce._core.noise import GeneratorDraws, Noise
from tdce.diffusion import gaussian
from tdce.diffusion.model import TabularDiffusion
from tdce.methods.candidates import MIN_MARGIN, Candidates, _overlap
from tdce.methods.exemplars import EFFECT_SAMPLE, IMMUTABLE_WEIGHT, MAX_MARGIN, ExemplarPool, ValueEffects
from tdce.methods.objective import (
    FAR,
    FAR_COST,
    FIXED_COST,
    NOISE_LEVELS,
    Objective,
    change_costs,
    feature_positions,
    safety_shortfall,
)
from tdce.methods.protocol import Search, Task
from tdce.methods.question import DEFAULT_SAFETY
from tdce.methods.search import DiffusionSearch
from tdce.models.goals import Class, Goals
from tdce.schema.constraints.laws import Order
from tdce.schema.encoder import Encoder
from tdce.schema.schema import Schema


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def scene(explainer) -> tuple[Task, Tensor, Goals]:
    """A task, encoded refused rows (64, width) and their goals."""
    fitted = explainer.fitted_
    x = fitted.encoder.encode(lending.refused(explainer, 64)).float()
    return fitted.task(), x, class_goals(fitted.classes.index("yes"), x)


def objective_of(scene) -> Objective:
    task, x, goals = scene
    return Objective(task, make_query(task, x, goals), Noise(x, 0), goals.target_class(torch.zeros(len(x), 2)))


# The objective


def test_what_a_change_costs_by_hand():
    """A number that passes 34 % of the people and a part of the range, a category, nothing."""
    frame = pd.DataFrame({"n": [0.0, 1.0, 2.0], "c": ["a", "b", "c"]})
    encoder = Encoder.fit(frame)
    space, top = encoder.space, encoder.encode(frame)[2, 0].item()  # 2 is the highest, 1 is at 0
    x = torch.tensor([[0.0, 1, 0, 0]] * 3)
    x_cf = torch.tensor([[1.0, 1, 0, 0], [0.0, 0, 0, 1], [0.0, 1, 0, 0]])
    found = change_costs(space.moved(x, x_cf), feature_positions(encoder, x), feature_positions(encoder, x_cf))
    passed = (erf(1 / sqrt(2)) / 2 + (1 / top) / 2) / 2  # from 1 up to 2 is half of the range
    assert found.tolist() == [[pytest.approx(FIXED_COST + (1 - FIXED_COST) * passed), 0], [0, 1], [0, 0]]


def test_a_place_in_the_range_by_the_raw_values(scene):
    """The second route: what is decoded, between the ends of the column."""
    task, x, _ = scene
    raw = task.encoder.unembed(x)
    for i, name in enumerate(("income", "debt", "age")):
        column = list(task.encoder.schema.names).index(name)
        low, high = task.encoder.schema[name].bounds
        share = (raw[:, column].clip(low, high) - low) / (high - low)
        step = 20 / (high - low)  # values are rounded to the grid when they are decoded
        np.testing.assert_allclose(task.encoder.range_share(x[:, : task.space.num])[:, i], share, atol=step)


def test_a_far_move_costs_more_for_every_deviation_beyond_two():
    """Nearly all have 0 and a few thousands: the whole range is many deviations, whatever its quantiles."""
    values = np.concatenate([np.zeros(900), np.linspace(1_000, 100_000, 100)])
    encoder = Encoder.fit(pd.DataFrame({"gain": values}))
    raw = np.array([[0.0], [1_000.0], [100_000.0]])
    place = feature_positions(encoder, encoder.embed(raw).float())
    found = change_costs(torch.tensor([True]), place[0], place[1:])[:, 0]
    near = (place[0, 0, 0] - place[1:, 0, 0]).abs()
    beyond = raw[1:, 0] / values.std() - FAR
    assert beyond[0] < 0 < beyond[1]
    expected = FIXED_COST + (1 - FIXED_COST) * near + FAR_COST * torch.from_numpy(beyond).clamp_min(0)
    torch.testing.assert_close(found.double(), expected.double(), rtol=0.02, atol=0)


def test_a_missing_number_is_as_far_as_can_be_from_any_other():
    encoder = Encoder.fit(pd.DataFrame({"n": [0.0, 1.0, 2.0, np.nan]}))
    present, missing = torch.tensor([[2.0, 1, 0]]), torch.tensor([[0.0, 0, 1]])
    found = change_costs(
        encoder.space.moved(present, missing), feature_positions(encoder, present), feature_positions(encoder, missing)
    )
    assert found.tolist() == [[1.0]]


def test_breaking_a_law_that_nearly_all_rows_keep_costs_a_half():
    """a is at most b in all rows but one of a hundred: a = 2 beside b = 1 breaks that, a = 1 does not."""
    plain = toys.encoder("ab")
    law = Order("a", "b", support=100, exceptions=1)
    soft = replace(plain, full_schema=Schema(plain.schema.features, laws=(law,)))
    x, at = torch.tensor([[0.0, 1.0]]), torch.tensor([0, 0])
    x_cf = torch.tensor([[2.0, 1.0], [1.0, 1.0]])
    query = SimpleNamespace(x=x, costs=torch.ones(()))
    without, costs = (
        Objective(toys.task(encoder, lambda x: x, x), query, Noise(x, 0), torch.ones(1).long()).cost(x_cf, at)
        for encoder in (plain, soft)
    )
    assert (costs - without).tolist() == pytest.approx([0.5, 0])


def test_nobody_at_all_has_no_places_with_or_without_categories():
    for encoder in (toys.encoder("ab"), toys.encoder("ab", c=3), toys.encoder("", c=3)):
        assert feature_positions(encoder, torch.zeros(0, encoder.space.width)).shape == (0, len(encoder.schema), 2)


def test_the_energy_is_the_sum_of_the_denoising_errors_of_one_row_after_another(scene):
    """The second route: each row by itself, eps and the category's probability feature by feature."""
    task, x, goals = scene
    objective, diffusion, space = objective_of(scene), task.diffusion, task.space
    found = objective.energy(x, torch.arange(64))
    for i in (0, 5, 63):
        total = 0.0
        for level, (normal, gumbel) in zip(NOISE_LEVELS, objective.noise, strict=True):
            t = round(level * 1000)
            a, (num, cat) = diffusion.schedule.alpha_bar[t], space.split(x[[i]])
            soft = torch.softmax(((a * cat + (1 - a) / 3).log() + gumbel[[i]]) / diffusion.temperature(t), dim=1)
            x_t = torch.cat([gaussian.add_noise(num, a, normal[[i]]), soft, torch.tensor([[0.0, 1.0]])], dim=1)
            out = diffusion.network(x_t, torch.tensor([t]))[0]
            for j in range(space.num):
                total += (out[j] - normal[i, j]).item() ** 2
            total -= out[space.num :].log_softmax(dim=0)[int(cat.argmax())].item()
        error, limit = total / len(NOISE_LEVELS), objective.tolerated[i].item()
        assert found[i].item() == pytest.approx(error + 3 * max(0.0, error - limit), rel=1e-4)
    assert goals.kinds[0].of == 1  # the class that the network was told


def test_the_same_noise_for_all_candidates_of_a_row_and_nothing_of_its_neighbours(scene):
    objective, x = objective_of(scene), scene[1]
    twice = objective.energy(torch.cat([x, x[:3]]), torch.cat([torch.arange(64), torch.arange(3)]))
    assert torch.equal(twice[64:], twice[:3])


def test_what_several_ways_lead_to_is_weighed_once(scene, monkeypatch):
    """Rows 0 and 1 three times each, one after the other and in turns; but what one takes from the other is its own."""
    objective, x, weighed = objective_of(scene), scene[1], []
    real = TabularDiffusion.errors_at
    counted = lambda self, *given: weighed.append(given[-1]) or real(self, *given)  # noqa: E731
    alone = objective.energy(torch.stack([x[0], x[1], x[1]]), torch.tensor([0, 1, 0]))
    monkeypatch.setattr(TabularDiffusion, "errors_at", counted)
    candidates, at = torch.tensor([0, 0, 1, 0, 1, 1, 1, 1]), torch.tensor([0, 0, 1, 0, 1, 1, 0, 0])
    found = objective.energy(x[candidates], at)
    assert weighed == [3]
    assert torch.equal(found, alone[[0, 0, 1, 0, 1, 1, 2, 2]])
    assert alone[1] != alone[2]  # the same values, but as another person's they have other noise


def test_rows_with_cells_of_others_have_more_energy(explainer, scene):
    """Their debt goes up by two and a half deviations."""
    task, _, _ = scene
    accepted_rows = task.synthetic[task.oracle.predict(task.encoder.unembed(task.synthetic)) == 1][:256]
    query = SimpleNamespace(x=accepted_rows, costs=torch.ones(()))
    objective = Objective(task, query, Noise(accepted_rows, 0), torch.ones(256, dtype=torch.long))
    spoilt = accepted_rows.clone()
    spoilt[:, 1] += 2.5
    everyone = torch.arange(256)
    assert (objective.energy(spoilt, everyone) > objective.energy(accepted_rows, everyone)).float().mean() > 0.8


def test_the_dial_weighs_the_two(scene):
    for closeness in (0.0, 0.3, 1.0):
        total = objective_of(scene).total(torch.tensor(2.0), torch.tensor(5.0), closeness)
        assert total == 2 * closeness + 5 * (1 - closeness)


def test_along_the_dial_cost_falls_and_energy_rises(explainer, scene):
    task, _, _ = scene
    people = lending.refused(explainer, 200)
    x = task.encoder.encode(people).float()
    objective = Objective(task, make_query(task, x, class_goals(1, x)), Noise(x, 0), torch.ones(200, dtype=torch.long))
    found = []
    for closeness in (0.0, 0.3, 0.6, 0.8, 1.0):
        answer = explainer.explain(people, closeness=closeness)
        x_cf = task.encoder.embed(answer.explanation.raw[:, 0]).float()
        assert (answer.explanation.status == "valid").all()
        everyone = torch.arange(200)
        found.append((objective.cost(x_cf, everyone).mean().item(), objective.energy(x_cf, everyone).mean().item()))
    cost, energy = zip(*found, strict=True)
    assert (np.diff(cost) < 0.005).all()
    assert (np.diff(energy) > -0.005).all()
    assert cost[0] > 1.1 * cost[-1]
    assert energy[0] < 0.9 * energy[-1]


# Accepted people


def test_the_crowd_are_those_whom_the_model_accepts(scene):
    task, _, goals = scene
    pool = ExemplarPool.of(task, goals.kinds[0])
    yes = task.oracle.predict(task.encoder.unembed(task.synthetic)) == 1
    assert 0 < len(pool.x) < len(task.synthetic)
    assert torch.equal(pool.x, task.synthetic[yes])


def test_the_nearest_people_are_those_of_a_search_by_hand_and_agree_on_what_cannot_change(scene):
    task, x, goals = scene
    frozen = task.space.mask(["housing"])
    pool = ExemplarPool.of(task, goals.kinds[0])
    found = pool.x[pool.nearest(x, ~frozen, 20)]
    assert torch.equal(found[:, :, frozen], x[:, None, frozen].expand(-1, 20, -1))  # there are enough who do
    weighed = (x[0] - pool.x).double() * torch.where(frozen, IMMUTABLE_WEIGHT, 1.0)
    nearest = weighed.square().sum(dim=1).argsort()[:20]
    assert set(map(tuple, found[0].tolist())) == set(map(tuple, pool.x[nearest].tolist()))


@pytest.mark.parametrize("closeness", [0.0, 0.6])
def test_the_best_whole_people_have_the_smallest_objective_and_agree_on_what_cannot_change(scene, closeness):
    """The second route: the objective of every accepted person, with the noise that people have."""
    task, x, goals = scene
    frozen = task.space.mask(["housing"])
    task, pool, objective = (
        replace(task, mutable=~frozen),
        ExemplarPool.of(task, goals.kinds[0]),
        objective_of(scene),
    )
    agree = (pool.x[:, frozen] == x[3, frozen]).all(dim=1).nonzero().squeeze(1)
    own = Objective(task, make_query(task, pool.x, goals), Noise(pool.x, 0), objective.y[:1].expand(len(pool.x)))
    energy = own.energy(pool.x[agree], agree)
    total = objective.total(objective.cost(pool.x[agree], torch.full_like(agree, 3)), energy, closeness)
    found = pool.best(task, objective, torch.tensor([3]), 10, closeness)[0]
    assert set(map(tuple, pool.x[found].tolist())) == set(map(tuple, pool.x[agree[total.argsort()[:10]]].tolist()))
    among_others = pool.best(task, objective, torch.arange(8), 10, closeness)[3]
    assert torch.equal(among_others, found)


def test_people_are_weighed_as_members_of_each_rows_class(scene):
    task, _, goals = scene
    task = replace(task, memo={})
    pool = ExemplarPool.of(task, goals.kinds[0])
    no, yes, again = pool.errors(task, torch.tensor([0, 1, 0]))
    assert torch.equal(no, again)
    assert no.mean() > yes.mean()  # they are accepted


def test_the_effect_of_a_value_is_the_mean_margin_of_refused_people_who_have_it(scene):
    """The second route: one category and one number, by the model's probabilities in float64."""
    task, _, goals = scene
    values = ValueEffects.of(task, goals.kinds[0])
    refused = task.synthetic[task.oracle.predict(task.encoder.unembed(task.synthetic)) == 0][:EFFECT_SAMPLE].clone()
    for name in ("housing", "debt"):
        columns = list(task.space.places[name])
        of = list(task.encoder.schema.names).index(name)
        v = int((values.feature == of).nonzero()[1])
        changed = refused.clone()
        changed[:, columns] = values.rows[v, columns]
        p = task.oracle.score(task.encoder.unembed(changed))[:, 1].numpy()
        assert values.effect[v].item() == pytest.approx(
            np.log(p / (1 - p)).clip(-MAX_MARGIN, MAX_MARGIN).mean(), abs=1e-4
        )
        mine = refused[:4].clone()
        mine[:, columns] = values.rows[v, columns]
        assert (
            values.effects(task.space, mine)[:, of].tolist() == [pytest.approx(values.effect[v].item(), abs=1e-5)] * 4
        )


def test_a_number_that_may_be_missing_is_measured_where_it_is_there():
    encoder = Encoder.fit(pd.DataFrame({"n": [0.0, 1.0, 2.0, np.nan]}))
    task = toys.task(encoder, lambda x: torch.stack([torch.zeros(len(x)), x[:, 0]], dim=1), torch.zeros(1, 3))
    people = torch.tensor([[1.0, 1, 0], [2.0, 1, 0], [-1.0, 1, 0], [0.0, 0, 1]])
    values = ValueEffects.of(replace(task, synthetic=people), Class(1))
    assert values.rows[:, 1:].tolist() == [[1, 0]] * 7  # present, at each of seven quantiles


def test_a_margin_beyond_ten_counts_as_ten():
    """99 a + 500 b - 300: of someone with -1 and -1, a = 1 makes -701 and b = 1 makes 101."""

    def classify(x: Tensor) -> Tensor:
        return torch.stack([torch.zeros(len(x)), 99 * x[:, 0] + 500 * x[:, 1] - 300], dim=1)

    task = toys.task(toys.encoder("ab"), classify, torch.zeros(1, 2))
    values = ValueEffects.of(replace(task, synthetic=torch.tensor([[1.0, 1.0], [-1.0, -1.0]])), Class(1))
    assert values.effect.tolist() == [-MAX_MARGIN, MAX_MARGIN]  # one accepted person, so one value of each


def test_between_two_measured_numbers_the_effect_is_in_between(scene):
    task, x, goals = scene
    values = ValueEffects.of(task, goals.kinds[0])
    known = values.rows[values.feature == 0, 0]
    middle = x[:1].clone()
    middle[0, 0] = (known[2] + known[3]) / 2
    effect = values.effect[values.feature == 0]
    assert values.effects(task.space, middle)[0, 0].item() == pytest.approx(
        (effect[2] + effect[3]).item() / 2, abs=1e-5
    )


# Candidates


class Listed:
    """An objective that is what a candidate says in its first column."""

    def __init__(self, task: Task) -> None:
        self.space, self.follows = task.space, task.follows

    def cost(self, x: Tensor, at: Tensor) -> Tensor:
        return x[:, 1]

    def energy(self, x: Tensor, at: Tensor) -> Tensor:
        return x[:, 0]

    def total(self, cost: Tensor, energy: Tensor, closeness: float, shortfall: Tensor) -> Tensor:
        return energy


def listed(scene, *rows: tuple[int, float, float, int]) -> Candidates:
    """Candidates of a query of two rows at 9, 9, the first category: row, total, cost, category."""
    task, _, _ = scene
    own = torch.zeros(2, task.space.width)
    own[:, :2], own[:, 3] = 9.0, 1.0
    made = Candidates(task, SimpleNamespace(x=own, safety=0.0), Listed(task))
    x = own[torch.tensor([row[0] for row in rows])].clone()
    for i, (_, total, cost, category) in enumerate(rows):
        x[i, 0], x[i, 1] = total, cost
        x[i, 3:6] = torch.eye(3)[category]
    made.add(x, torch.tensor([row[0] for row in rows]), torch.ones(len(rows)))
    return made


def test_the_best_and_the_cheapest_of_each_row_each_once(scene):
    made = listed(
        scene, (1, 5, 1, 0), (0, 3, 2, 0), (0, 2, 4, 0), (0, 2, 4, 0), (0, 7, 1, 0), (1, 4, 3, 0), (1, 4, 3, 0)
    )
    best = made.top(made.total(0.5), 2)
    assert best.x[:, 0].tolist() == [2, 3, 4, 5]
    assert best.at.tolist() == [0, 0, 1, 1]
    assert made.cheapest(1).x[:, 0].tolist() == [7, 5]
    assert made.answer(0.5)[:, 0].tolist() == [2, 4]
    assert made.best(0.5).tolist() == [2, 5]
    assert made.leading(0.5, 1).tolist() == [2, 5]
    assert not made.unsolved().any()
    assert listed(scene, (1, 5, 1, 0)).unsolved().tolist() == [True, False]


def test_a_row_without_a_candidate_gets_the_nearest_miss(scene):
    task, x, goals = scene
    made = Candidates(task, make_query(task, x, goals), objective_of(scene))
    margin = torch.tensor([[-3.0], [-1.0], [-2.0], [MIN_MARGIN / 2]], dtype=torch.double)
    reply = SimpleNamespace(x=x[:4, None] + 1, margin=margin, met=margin >= 0)
    good = made.screen(reply, torch.tensor([0, 0, 0, 1]))
    assert not good.any()  # the last is met, but on the edge
    assert torch.equal(made.answer(0.5)[:2], x[[1, 3]] + 1)
    assert torch.equal(made.answer(0.5)[2:], x[2:])


def test_of_two_searches_joined_the_nearer_miss_is_kept(scene):
    one, other = listed(scene, (0, 1, 1, 0)), listed(scene, (0, 2, 1, 0))
    one.miss_margin, other.miss_margin = torch.tensor([-1.0, -3.0]).double(), torch.tensor([-2.0, -1.0]).double()
    one.nearest_miss, other.nearest_miss = one.nearest_miss + 1, other.nearest_miss + 2
    both = one.union(other)
    assert both.x[:, 0].tolist() == [1, 2]
    assert both.miss_margin.tolist() == [-1, -1]
    assert both.nearest_miss[:, 0].tolist() == [10, 11]


def test_nothing_is_asked_about_candidates_that_are_settled(scene):
    task, x, goals = scene
    query = make_query(task, x, goals)
    near = Candidates(task, query, objective_of(scene))
    people = ExemplarPool.of(task, goals.kinds[0]).x
    near.add(torch.cat([people[:2], people[:2]]), torch.tensor([0, 1, 2, 3]), torch.ones(4))
    near.settled[:2] = True
    ask = next(DiffusionSearch().fit(task).settle(query, near, lambda near: torch.arange(4)))
    assert set(ask.at.tolist()) == {2, 3}
    assert near.settled.all()
    near.minimal[:] = True
    with pytest.raises(StopIteration):
        next(DiffusionSearch().fit(task).settle(query, near, lambda near: torch.arange(4)))
    assert len(near.at) == 4


def test_a_further_option_is_good_and_about_other_features(scene):
    """Totals 1, 1.5 and 1.8: the second changes what the first does, the third another feature and is taken. The other
    row has one candidate."""
    made = listed(scene, (0, 9, 8, 0), (0, 1, 9, 0), (0, 1.5, 9, 0), (0, 1, 9, 0), (1, 5, 9, 0))
    made._energy = torch.tensor([1.8, 1.0, 1.5, 1.0, 5.0])
    answers = made.answers(4, made.answer(0.5), 0.5)
    # never twice before there is nothing else
    assert answers[0, :, :2].tolist() == [[1, 9], [9, 8], [1.5, 9], [1.5, 9]]
    assert answers[1, :, :2].tolist() == [[5, 9]] * 4


def test_how_alike_two_sets_of_features_are():
    """Of three features one is in both; of two, none; of none, none."""
    one = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])
    other = torch.tensor([[False, True, True], [False, True, False], [False, False, False]])
    assert _overlap(one, other).tolist() == pytest.approx([1 / 3, 0, 0])


# What is asked about


ROW, PERSON, OTHER = [0.0] * 5, [1.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 0.0]


def five() -> Task:
    """a, b, c and d raise the log odds of yes by 4, 2, 1 and 10 each, e does nothing, and d cannot change. One person
    has all but d, another d alone; both are there twice."""

    def classify(x: Tensor) -> Tensor:
        yes = x @ torch.tensor([4.0, 2.0, 1.0, 10.0, 0.0]) - 5
        return torch.stack([torch.zeros_like(yes), yes, torch.full_like(yes, -99.0)], dim=1)

    mutable = [True, True, True, False, True]
    task = toys.task(toys.encoder("abcde"), classify, torch.tensor([ROW]), mutable, classes=(0, 1, 2))
    return replace(task, synthetic=torch.tensor([PERSON, OTHER, PERSON, OTHER, ROW]))


def parts_for(task: Task, x: Tensor, goals: Goals, margin: list[float], count: int) -> Search:
    """What is tried for rows that have these margins."""
    query = make_query(task, x, goals)
    query = replace(query, decision=query.decision._replace(margin=torch.tensor(margin)))
    return DiffusionSearch().fit(task).parts(query, Candidates(task, query, None), torch.arange(len(x)), slice(count))


def test_what_a_persons_values_gain_and_cost():
    task = five()
    pool = ExemplarPool.of(task, Class(1))
    gain, cost = pool.compare(task, torch.tensor([ROW]), torch.tensor([[0]]), pool.compared(task))
    assert gain[0, 0].tolist() == pytest.approx([4, 2, 1, -torch.inf, 0], abs=1e-4)
    of_range = task.encoder.range_share(torch.tensor([[0.0] * 5, [1.0] * 5])).diff(dim=0)[0, 0].item()
    passed = (erf(1 / sqrt(2)) / 2 + of_range) / 2
    change = FIXED_COST + (1 - FIXED_COST) * passed
    assert cost[0, 0].tolist() == pytest.approx([change, change, change, 0, change])


def test_where_nobody_is_refused_no_value_has_an_effect():
    task = replace(five(), synthetic=torch.tensor([PERSON, OTHER]))
    assert ExemplarPool.of(task, Class(1)).effect.tolist() == [[0] * 5] * 2


def test_of_a_person_the_features_that_should_be_enough_one_fewer_one_more_and_the_first_alone():
    """One row lacks 5, so that a and b are enough, one lacks more than there is, and nobody is what the first wants."""
    task, x, goals = five(), torch.tensor([ROW] * 3), Goals.of([Class(2), Class(1), Class(1)])
    ask = next(parts_for(task, x, goals, [-9.0, -5.0, -9.0], 8))
    a, ab, abc = [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]
    assert ask.at.tolist() == [1] * 8 + [2] * 8
    assert ask.x[::2, 0].tolist() == [a, ab, abc, a, abc, abc, abc, a]  # of either twin the same
    assert torch.equal(ask.x[::2], ask.x[1::2])


def test_parts_are_the_same_however_many_rows_are_compared_at_a_time(scene, monkeypatch):
    task, x, goals = scene
    query = make_query(task, x, goals)

    def asked() -> Tensor:
        ask = next(
            DiffusionSearch().fit(task).parts(query, Candidates(task, query, None), torch.arange(len(x)), slice(8))
        )
        return torch.cat([ask.x[:, 0], ask.at[:, None]], dim=1)

    at_once = asked()
    monkeypatch.setattr("tdce.methods.search.PARTS_BATCH_ROWS", 5)
    assert torch.equal(asked(), at_once)
    assert len(at_once) > 64


def test_the_person_is_chosen_of_whom_the_least_should_be_enough():
    """For a row that lacks 5: a = 2 alone, before two changes, and before a c of 5 that goes further."""
    far = [0.0, 0.0, 5.0, 1.0, 0.0]
    task = replace(five(), synthetic=torch.tensor([PERSON, far, [2.0, 0.0, 0.0, 0.0, 0.0], ROW]))
    x = torch.tensor([ROW])
    ask = next(parts_for(task, x, class_goals(1, x), [-5.0], 1))
    assert ask.x[:, 0].tolist() == [[2, 0, 0, 0, 0]] * 3  # enough, one more, the first alone


def test_numbers_are_halved_towards_the_row_for_as_long_as_the_verdict_holds():
    """a from 1 to 9 where more than 3 is needed: 5 is, 3 is not; then, by itself, 3 is not, 4 is, 3.5 and 3.25 are.
    Nothing is asked about the candidate whose numbers are the row's."""
    encoder = toys.encoder("ab", c=2)
    task = toys.task(encoder, lambda x: torch.stack([torch.full((len(x),), 3.0), x[:, 0]], dim=1), torch.zeros(1, 4))
    x = torch.tensor([[1.0, 0.3, 1.0, 0.0]])
    query = make_query(task, x, class_goals(1, x))
    near = Candidates(task, query, None)
    near.add(torch.tensor([[9.0, 0.3, 0.0, 1.0], [1.0, 0.3, 0.0, 1.0]]), torch.tensor([0, 0]), torch.ones(2))
    method = DiffusionSearch().fit(task)
    run_dialogue(method.bisect(query, near, torch.arange(2)), task, x, class_goals(1, x))
    assert torch.equal(near.x[2:], torch.tensor([[5.0, 0.3, 0.0, 1.0]]))  # b to the last bit
    run_dialogue(method.bisect_each(query, near, torch.tensor([2])), task, x, class_goals(1, x))
    assert torch.equal(near.x[3:], torch.tensor([[3.25, 0.3, 0.0, 1.0]]))
    assert near.line.tolist() == [0, 1, 0, 0]


def test_what_is_accepted_with_a_change_less_is_tried_further_for_as_long_as_it_is_the_best():
    """a says how bad a candidate is, and b above 3 is needed: a goes back, then nothing can."""
    task = toys.task(toys.encoder("ab"), lambda x: torch.stack([x[:, 1] * 0 + 3, x[:, 1]], dim=1), torch.zeros(1, 2))
    x = torch.tensor([[1.0, 0.0]])
    query = make_query(task, x, class_goals(1, x))
    near = Candidates(task, query, Listed(task))
    near.add(torch.tensor([[4.0, 5.0]]), torch.tensor([0]), torch.ones(1))
    settle = DiffusionSearch().fit(task).settle(query, near, lambda near: near.best(0.5))
    run_dialogue(settle, task, x, class_goals(1, x))
    assert near.x.tolist() == [[4, 5], [1, 5]]
    assert near.answer(0.5).tolist() == [[1, 5]]
    assert near.settled.tolist() == near.minimal.tolist()[1:] * 2 == [True, True]
    assert near.line.tolist() == [0, 0]


def test_at_every_position_the_best_is_as_safe_as_at_the_standard_one(scene):
    """Cost and energy of three: cheap and unsafe, dear and safe, dearer still. The standard position takes the safe
    one, so that none takes the unsafe one."""
    task, x, goals = scene
    made = Candidates(task, make_query(task, x[:1], goals.take(torch.tensor([0]))), objective_of(scene))
    made.add(x[1:4], torch.zeros(3, dtype=torch.long), torch.ones(3))
    made._cost, made._energy = torch.tensor([0.1, 1.0, 2.0]), torch.tensor([1.0, 1.0, 0.1])
    made._changes, made.shortfall = torch.ones(3), torch.tensor([0.5, 0.0, 0.0])
    assert [made.best(each).item() for each in (0.0, 0.75, 1.0)] == [2, 1, 1]
    made.fix_safety()
    made.shortfall = torch.tensor([0.5, 0.6, 0.0])  # what comes later does not change what is asked of safety
    assert [made.best(each).item() for each in (0.0, 0.75, 1.0)] == [2, 2, 2]


# The method as a whole


@pytest.mark.parametrize("safety", [0.0, DEFAULT_SAFETY])
def test_no_change_can_be_undone_with_a_better_objective(explainer, scene, safety):
    """By force: every answer with one of its changes given back."""
    task, _, _ = scene
    people = lending.refused(explainer, 100)
    x, everyone = task.encoder.encode(people).float(), torch.arange(100)
    query = make_query(task, x, class_goals(1, x), safety=safety)
    objective = Objective(task, query, Noise(x, 0), torch.ones(100, dtype=torch.long))

    def rate(x_cf: Tensor) -> tuple[Tensor, Tensor]:
        margin = task.oracle(task.encoder.unembed(x_cf), query.goals).margin
        lacking = safety_shortfall(task, query, x_cf, margin, everyone)
        cost, energy = objective.cost(x_cf, everyone), objective.energy(x_cf, everyone)
        return objective.total(cost, energy, DiffusionSearch().closeness, lacking), margin

    raw = explainer.explain(people, n=3, safety=safety).explanation.raw
    several = 0
    for option in range(3):
        x_cf = task.encoder.embed(raw[:, option]).float()
        moved, (before, _) = task.space.moved(x, x_cf), rate(x_cf)
        for feature, members in enumerate(task.space.members):
            after, margin = rate(torch.where(members, x, x_cf))
            tried = moved[:, feature] & (moved.sum(dim=1) > 1)
            assert not (tried & (margin >= MIN_MARGIN) & (after < before - 1e-5)).any()
            several += int(tried.sum())
    assert several > 50


def test_one_answer_is_the_first_of_three(explainer):
    people = lending.refused(explainer, 100)
    one, three = explainer.explain(people).to_frame(), explainer.explain(people, n=3).to_frame()
    first = three[three["option"] == 0]
    pd.testing.assert_frame_equal(one.drop(columns="note"), first.drop(columns="note"), check_exact=True)


def test_a_model_without_gradients_gets_the_same_answers(scene):
    task, x, goals = scene
    blind = replace(task, guide=None, memo={})
    one, two = (
        run_dialogue(DiffusionSearch().fit(each).search(make_query(each, x, goals), Noise(x, 3)), each, x, goals)
        for each in (task, blind)
    )
    assert torch.equal(one, two)


def test_where_there_are_no_exemplars_the_features_are_searched_without_what_cannot_change(scene):
    """There is nobody to take over from, and income and debt are fixed; an owner with these is accepted."""
    task, x, _ = scene
    owner = torch.zeros(task.space.width)
    owner[task.space.places["housing"][task.encoder.schema["housing"].categories.index("own")]] = 1.0
    able = meets_goals(task, torch.where(task.space.mask(["housing"]), owner, x), class_goals(1, x))
    assert able.sum() > 0
    rows = x[able][torch.arange(64) % int(able.sum())]
    frozen = task.space.mask(["income", "debt"])
    lone = replace(task, synthetic=task.synthetic[:0], mutable=~frozen, memo={})
    goals = class_goals(1, rows)
    found = run_dialogue(
        DiffusionSearch().fit(lone).search(make_query(lone, rows, goals), Noise(rows, 0)), lone, rows, goals
    )
    assert meets_goals(lone, found, goals).float().mean() > 0.7
    assert torch.equal(found[:, frozen], rows[:, frozen])


def test_where_nobody_nearer_will_do_people_further_away_are_asked_about(scene):
    task, x, goals = scene[0], scene[1][:4], scene[2].take(torch.arange(4))
    query = make_query(task, x, goals)
    asked = Candidates(task, query, Objective(task, query, Noise(x, 0), torch.ones(4, dtype=torch.long)))
    run_dialogue(DiffusionSearch().fit(task).last_resort(query, asked.unsolved(), asked), task, x, goals)
    assert not asked.unsolved().any()


def test_an_answer_is_found_wherever_one_accepted_row_agrees_on_what_cannot_change(explainer):
    learned = lending.table().assign(said=explainer.predict(lending.table()).to_numpy())
    agreeing = learned.loc[learned["said"] == "yes", ["age", "housing"]].drop_duplicates()
    people = lending.refused(explainer, 200)
    answer = explainer.explain(people, immutable=["age", "housing"]).to_frame()
    lucky = people.merge(agreeing, on=["age", "housing"], how="left", indicator=True)["_merge"].to_numpy() == "both"
    assert lucky.sum() > 50
    assert (answer["status"].to_numpy()[lucky] == "valid").all()


def test_where_the_model_accepts_nobody_the_rows_are_best_effort(explainer):
    assert (explainer.predict_proba(lending.table(2000, seed=3))["yes"] < 0.9999).all()
    frame = explainer.explain(lending.refused(explainer, 5), threshold=0.999998).to_frame()
    assert (frame["status"] == "best_effort").all()
    assert (frame["score_before"] < 0.5).all()
    assert frame["score_after"].between(0.9, 0.999998, inclusive="neither").all()  # as near as it goes
    assert frame["note"].str.startswith("no change was found that the model accepts, only one that raises").all()


def test_candidates_are_judged_inside_each_rows_own_limits():
    """Debt may only grow and income only within a range: what is called valid is valid as it is returned."""
    frame = lending.table()
    schema = Schema.infer(frame, "decision").change("debt", direction="increase").change("income", low=1000, high=5000)
    made = tdce.Explainer(hidden=64, steps=400, progress="silent").fit(
        frame, label="decision", favourable="yes", schema=schema
    )
    people = lending.refused(made, 60)
    answer = made.explain(people).to_frame()
    assert (answer["debt"].to_numpy() >= people["debt"].to_numpy()).all()
    moved = answer["income"].to_numpy() != people["income"].to_numpy()
    assert answer.loc[moved, "income"].between(1000, 5000).all()
    possible = people.assign(income=5000, housing="own")  # the most that these rules allow
    able = (made.predict(possible) == "yes").to_numpy()
    assert (answer["status"].to_numpy()[able] == "valid").mean() > 0.9


def test_a_missing_category_is_never_proposed_and_leaves_the_block_whole():
    frame = lending.table()
    frame.loc[frame.index[::7], "housing"] = None
    made = tdce.Explainer(hidden=64, steps=200, progress="silent").fit(frame, label="decision", favourable="yes")
    fitted = made.fitted_
    task = fitted.task()
    x = fitted.encoder.encode(lending.refused(made, 64)).float()
    proposal = x.clone()
    block = list(task.space.places["housing"])
    proposal[:, block] = torch.eye(len(block))[-1]  # the last weight means missing
    settled = task.encoder.embed(feasible_set(task, x).snap(proposal)).float()[:, block]
    assert torch.equal(settled.sum(dim=1), torch.ones(64))
    assert torch.equal(settled[:, -1], x[:, block[-1]])


@pytest.mark.parametrize(
    "wrong", [{"closeness": 2.0}, {"exemplars": 0}, {"exemplars": 2.5}, {"beam": 0}, {"beam": True}]
)
def test_a_setting_that_makes_no_sense_is_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        DiffusionSearch(**wrong)


# Synthetic people


def test_rows_are_drawn_of_the_class_that_is_told(scene):
    task = scene[0]
    found = task.diffusion.sample(GeneratorDraws(256, torch.Generator().manual_seed(0)), 30, y=torch.arange(256) % 2)
    said = task.oracle.predict(task.encoder.unembed(found))
    assert (said == torch.arange(256) % 2).float().mean() > 0.8


class Answers(nn.Module):
    """In place of a network: 0 to everything; remembers what it was asked."""

    def forward(self, x: Tensor, t: Tensor, rows: Tensor) -> Tensor:
        self.asked = x
        return torch.zeros(len(x), 4)


def test_the_errors_of_a_network_that_says_nothing_by_hand():
    """eps^2 for a number and log K for a category; it was asked about the row as `noised` noises it."""
    space = Encoder.fit(pd.DataFrame({"n": [0.0, 1.0, 2.0], "c": ["a", "b", "c"]})).space
    model = TabularDiffusion(space, hidden=8, blocks=1, classes=2)
    model.network = Answers()
    x = torch.tensor([[0.5, 1.0, 0, 0], [0.5, 0, 0, 1.0]])
    noise = Noise(x, 5)
    gumbel, normal = noise.gumbel(3), noise.normal(1)  # in the order of `noised`
    found = model.errors(x, 300, normal, gumbel, y=torch.tensor([1, -1]))
    assert found.tolist() == [[pytest.approx(n.item() ** 2), pytest.approx(np.log(3))] for n in normal]
    asked = model.network.asked[:2]  # the rest fills up
    assert torch.equal(asked[:, :4], model.add_noise(x, 300, Noise(x, 5)))
    assert asked[:, 4:].tolist() == [[0, 1], [0, 0]]  # told the class, and not


def test_errors_at_several_times_are_those_at_each_to_the_bit():
    space = Encoder.fit(pd.DataFrame({"n": [0.0, 1.0, 2.0], "c": ["a", "b", "c"]})).space
    model = TabularDiffusion(space, hidden=8, blocks=2, classes=2).requires_grad_(False)
    people = torch.tensor([[0.5, 1.0, 0, 0], [-1.5, 0, 0, 1.0], [0.1, 0, 1.0, 0]])
    x, y = people[pad_rows(torch.arange(3))], torch.zeros(64, dtype=torch.long)
    stream, times = Noise(x, 5), (200, 700, 200)
    noise = [(stream.normal(1), stream.gumbel(3)) for _ in times]
    together = model.errors_at(x, times, noise, y, rows=3)
    for t, draw, found in zip(times, noise, together, strict=True):
        assert torch.equal(found, model.errors(x, t, *draw, y))


def test_energies_beyond_those_of_nearly_all_people_and_of_the_row_count_four_times(monkeypatch):
    """Of nine in ten people of class 1 the energy is below 90, of class 0 below 45."""
    quantiles = torch.stack([torch.linspace(0, 50, 101), torch.linspace(0, 100, 101)]).double()
    task = replace(toys.task(toys.encoder("a"), lambda x: x, torch.zeros(1, 1)), energy_quantiles=quantiles)
    x = torch.zeros(2, 1)
    query = SimpleNamespace(x=x, costs=torch.ones(()))
    own = torch.tensor([20.0, 20.0])
    monkeypatch.setattr(Objective, "errors", lambda self, x_cf, at: own[at])
    objective = Objective(task, query, Noise(x, 0), torch.tensor([0, 1]))
    rows = torch.tensor([0, 1, 1, 1])
    found = objective.weigh(torch.tensor([50.0, 50.0, 90.0, 100.0]), rows)
    assert found.tolist() == pytest.approx([50 + 3 * 5, 50, 90, 100 + 3 * 10])
    both = objective.weigh(torch.tensor([[50.0, 40.0], [50.0, 100.0]]), torch.tensor([0, 1]))
    assert both.tolist() == [pytest.approx([65, 40]), pytest.approx([50, 130])]
    own = torch.tensor([48.0, 20.0])  # the first row is less typical than nine in ten
    unusual = Objective(task, query, Noise(x, 0), torch.tensor([0, 1]))
    assert unusual.weigh(torch.tensor([48.0, 50.0, 50.0]), torch.tensor([0, 0, 1])).tolist() == [48, 50 + 3 * 2, 50]
    unmeasured = Objective(replace(task, energy_quantiles=torch.zeros(0, 0)), query, Noise(x, 0), rows[:2])
    assert unmeasured.weigh(torch.tensor([1e6, 5.0]), torch.tensor([0, 1])).tolist() == [1e6, 5]
