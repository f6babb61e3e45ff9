"""Amortised answers: a network proposes, the model decides, and rows it cannot solve fall back to the search."""

import copy
from dataclasses import replace

import lending
import numpy as np
import pytest
import torch
from asking import feasible_set, make_query, run_dialogue
from fits import SHORT, kept
from torch.nn.functional import cross_entropy

import tdce
from tdce._core.progress import Progress
from tdce._core.training import TrainingPlan
from tdce.explainer import amortise as distilling
from tdce.explainer import artefact
from tdce.explainer.sealed_file import open_sealed, seal, tensors_of
from tdce.methods import amortised
from tdce.methods.amortised import Amortised, amortised_pass
from tdce.methods.proposer import Proposer
from tdce.methods.question import Question
from tdce.methods.search import DiffusionSearch
from tdce.models.goals import Class, Goals


def distilled() -> tdce.Explainer:
    """The lending explainer with a network for one pass."""
    made = lending.explainer()
    plans = replace(SHORT, amortised=replace(SHORT.amortised, steps=500), amortised_answers=600)
    made.fitted_ = distilling.amortise(made.fitted, DiffusionSearch(), 0, plans, Progress("silent"))
    made.fast = True
    return made


@pytest.fixture
def fast() -> tdce.Explainer:
    return kept("lending-fast", distilled)


@pytest.fixture
def slow(fast) -> tdce.Explainer:
    other = copy.copy(fast)
    other.fast = False
    return other


def same(one: tdce.Answer, other: tdce.Answer) -> bool:
    return one.to_frame().equals(other.to_frame())


def test_nearly_everybody_is_answered_for_a_tenth_of_the_models_rows_with_much_the_same_changes(fast, slow):
    people = lending.refused(fast, 300)
    quick, usual = fast.explain(people), slow.explain(people)
    assert set(quick.explanation.status[:, 0]) == {"valid"}
    assert quick.model_rows < usual.model_rows / 10
    changed = [(found.raw[:, 0] != found.own).sum(axis=1) for found in (quick.explanation, usual.explanation)]
    assert abs(changed[0].mean() - changed[1].mean()) < 0.3
    assert (changed[0] == changed[1]).mean() > 0.7


def test_limits_rules_and_immutable_features_are_kept(fast):
    people = lending.refused(fast, 100)
    answer = fast.explain(people, immutable=["debt"], rules=["income <= 4000"])
    found = answer.explanation
    names = list(fast.schema.names)
    assert (found.raw[:, 0, names.index("debt")] == found.own[:, names.index("debt")]).all()
    changed = found.raw[:, 0, names.index("income")] != found.own[:, names.index("income")]
    assert changed.any()
    assert (found.raw[changed, 0, names.index("income")] <= 4000).all()


def test_whom_one_pass_does_not_help_gets_the_answer_of_the_search(fast, slow):
    people = lending.refused(fast, 40)
    network = copy.deepcopy(fast.fitted.proposer)
    with torch.no_grad():
        network.what.outputs.weight.zero_()  # nothing that it proposes changes a number
        network.what.outputs.bias.zero_()
    deaf = copy.copy(fast)
    deaf.fitted_ = replace(fast.fitted, proposer=network, memo={})
    assert same(deaf.explain(people), slow.explain(people))


def test_a_set_with_an_immutable_feature_is_never_proposed(fast):
    proposals = fast.fitted.proposals
    free = torch.tensor([name != "income" for name in fast.schema.names])
    sets = proposals.rank_sets(fast.fitted.x_synthetic[:64], free, 4)
    assert not proposals.network.sets[sets][:, :, ~free].any()
    assert not proposals.rank_sets(fast.fitted.x_synthetic[:64], torch.zeros(4, dtype=torch.bool), 4).numel()


@pytest.mark.parametrize(
    "question",
    [
        {"closeness": 0.5},
        {"target": "no"},
        {"threshold": 0.8},
        {"costs": {"age": 3}},
        {"max_model_rows": 4000},
    ],
    ids=str,
)
def test_any_other_question_goes_the_long_way(fast, slow, question):
    people = lending.table(60, seed=3).drop(columns="decision")
    assert same(fast.explain(people, **question), slow.explain(people, **question))


@pytest.mark.parametrize("n", [2, 3])
def test_the_first_of_several_options_is_the_one_that_a_single_option_is(fast, slow, n):
    people = lending.table(80, seed=3).drop(columns="decision")
    one, several, searched = fast.explain(people), fast.explain(people, n=n), slow.explain(people, n=n)
    frame = several.to_frame()
    first = frame[frame["option"] == 0]
    assert first.drop(columns="note").equals(one.to_frame().drop(columns="note"))
    assert (several.explanation.status[:, 0] == one.explanation.status[:, 0]).all()
    refused = one.explanation.status[:, 0] != "already"
    raw, usual = several.explanation.raw[refused], searched.explanation.raw[refused]
    assert (raw[:, 0] != usual[:, 0]).any()  # the network's, not the search's
    for mine, theirs in zip(raw, usual, strict=True):
        assert len({row.tobytes() for row in mine}) >= len({row.tobytes() for row in theirs})
        assert {row.tobytes() for row in mine[1:]} <= {row.tobytes() for row in theirs}


def test_several_options_are_the_same_alone_and_among_others(fast):
    people = lending.refused(fast, 70)
    whole = fast.explain(people, n=3).to_frame()
    for i in (0, 33, 69):
        alone = fast.explain(people.iloc[[i]], n=3).to_frame()
        assert alone.equals(whole.iloc[3 * i : 3 * i + 3].set_axis(alone.index))


def test_the_usual_question_in_other_words_goes_one_pass(fast):
    people = lending.refused(fast, 20)
    assert same(fast.explain(people, target="yes", closeness=0.75, seed=3), fast.explain(people))


def test_another_method_or_closeness_of_the_method_goes_the_long_way(fast):
    goals = Goals.all(fast.fitted.goal, 1)
    task = fast.fitted.task()
    for method in (DiffusionSearch(closeness=0.7), tdce.methods.NICE()):
        assert amortised_pass(method.fit(task), Question(), goals) is None
    assert amortised_pass(DiffusionSearch().fit(task), Question(), goals) == Amortised(task)


def test_a_row_gets_the_same_answer_alone_and_among_others(fast):
    people = lending.refused(fast, 70)
    whole = fast.explain(people).to_frame()
    for i in (0, 33, 69):
        alone = fast.explain(people.iloc[[i]]).to_frame()
        assert alone.equals(whole.iloc[[i]].set_axis(alone.index))


def test_a_file_keeps_the_network_and_one_without_it_is_that_of_the_usual_explainer(fast, slow, tmp_path):
    people = lending.refused(fast, 20)
    fast.save(tmp_path / "fast.tdce")
    slow.save(tmp_path / "slow.tdce")
    loaded, usual = (tdce.Explainer.load(tmp_path / f"{name}.tdce") for name in ("fast", "slow"))
    assert loaded.fast
    assert not usual.fast
    assert usual.fitted.proposer is None
    assert same(loaded.explain(people), fast.explain(people))
    assert loaded.provenance.artefact != usual.provenance.artefact
    loaded.fast = False
    assert loaded.provenance.artefact == usual.provenance.artefact


def test_with_another_method_the_file_is_that_of_the_usual_explainer(fast, tmp_path):
    fast.method = "nice"
    fast.save(tmp_path / "nice.tdce")
    loaded = tdce.Explainer.load(tmp_path / "nice.tdce")
    assert not loaded.fast
    assert isinstance(loaded.chosen_method, tdce.methods.NICE)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda tensors: tensors["proposer.sets"].fill_(0.5), "not 0 or 1"),
        (lambda tensors: tensors["proposer.sets"].fill_(0.0), "a set without a feature"),
        (lambda tensors: tensors["proposer.closeness"].fill_(2.0), "closeness 2"),
        (lambda tensors: tensors["proposer.which.inputs.weight"].fill_(torch.nan), "not a number"),
        (lambda tensors: tensors.pop("proposer.which.inputs.weight"), "proposer.which.inputs.weight"),
    ],
)
def test_a_damaged_network_is_refused(fast, tmp_path, damage, words):
    fast.save(tmp_path / "fast.tdce")
    whole = (tmp_path / "fast.tdce").read_bytes()
    content, _ = open_sealed(whole)
    tensors = {name: tensor.clone() for name, tensor in tensors_of(whole).items()}
    damage(tensors)
    with pytest.raises(tdce.InputError, match=words):
        artefact._read(seal(content, tensors))


def test_fast_needs_something_favourable_and_the_method_search():
    wrong = {"fast goes with the method search": {"method": "wachter", "fast": True}, "fast is 'yes'": {"fast": "yes"}}
    for words, settings in wrong.items():
        with pytest.raises(tdce.InputError, match=words):
            tdce.Explainer(**settings).fit(lending.table(50), label="decision", favourable="yes")
    with pytest.raises(tdce.InputError, match="what is favourable"):
        tdce.Explainer(fast=True).fit(lending.table(50), label="decision")


def test_a_table_of_which_nobody_is_refused_has_nothing_to_learn_from():
    made = lending.explainer()
    made.fitted_ = replace(made.fitted, favourable=tdce.AtLeast("yes", 1e-5))
    with pytest.raises(tdce.InputError, match="nothing to learn from"):
        distilling.amortise(made.fitted, DiffusionSearch(), 0, SHORT, Progress("silent"))


def test_the_same_seed_trains_the_same_network():
    space = lending.explainer().fitted.encoder.space
    x = torch.randn(80, space.width, generator=torch.Generator().manual_seed(0))
    x_cf = x.clone()
    x_cf[:, 0] += 1
    one, other = (Proposer.fit(space, x, x_cf, 0.75, 4, Progress("silent"), TrainingPlan(steps=20)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_the_loss_is_that_of_the_set_and_of_the_values_of_its_features_alone(fast):
    network, space = fast.fitted.proposer, fast.fitted.encoder.space
    x, x_cf = fast.fitted.x_synthetic[:1], fast.fitted.x_synthetic[1:2]
    number = torch.tensor([0])
    out = network.what(torch.cat([x, network.sets[:1]], dim=1))[0]
    expected = cross_entropy(network.which(x), number)
    for chosen, columns in zip(network.sets[0].tolist(), space.places.values(), strict=True):
        if not chosen:
            continue
        for column in columns:
            if column < space.num:
                expected += (x[0, column] + out[column] - x_cf[0, column]).abs()
        block = [column for column in columns if column >= space.num]
        if block:
            expected += cross_entropy(out[block][None], x_cf[0, block].argmax()[None])
    assert torch.allclose(network.loss(x, x_cf, number), expected, atol=1e-5)


def test_numbers_come_as_near_as_a_straight_line_says(fast):
    """On a model whose log odds are linear in one encoded number, one step of the regula falsi is exact."""
    task = fast.fitted.task()
    encoder = task.encoder
    x = fast.fitted.x_synthetic[:64].clone()
    column = next(iter(task.space.places["income"]))

    class Straight:
        outputs = fast.fitted.outputs

        def score(self, raw):
            odds = encoder.embed(raw)[:, column].numpy() * 3.0 - 4.5
            p = 1 / (1 + np.exp(-odds))
            return np.stack([1 - p, p], axis=1)

    oracle = copy.copy(task.oracle)
    oracle.model = Straight()
    task = replace(task, oracle=oracle)
    end = x.clone()
    end[:, column] = 4.0
    goals = Goals.all(Class(1), len(x))
    feasible = feasible_set(task, x)
    end = encoder.embed(feasible.snap(end)).float()
    before, after = (3.0 * each[:, column] - 4.5 for each in (x, end))
    good = (before < 0) & (after > amortised.AIMED_MARGIN)
    assert good.sum() > 20
    talk = amortised.interpolate(task, make_query(task, x, goals), end, good, before, after)
    near = run_dialogue(talk, task, x, goals)
    margin = 3.0 * near[good, column] - 4.5
    assert (margin >= 0).all()
    assert (margin < after[good] + 1e-6).all()
    assert margin.median() < 0.2
