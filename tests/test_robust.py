"""Models that are trained again: how many still accept an answer, and answers that nearly all of them accept."""

import lending
import numpy as np
import pandas as pd
import pytest
import torch
import toys
import user_models
from asking import class_goals, feasible_set

import tdce
from tdce._core.progress import Progress
from tdce._core.values import Floats
from tdce.explainer.evaluation import UNSEEN_SEED
from tdce.methods.question import Question
from tdce.methods.robustness import explain_robustly, lower_bound
from tdce.models.ensemble import Ensemble
from tdce.models.goals import Class, Goals
from tdce.models.outputs import Output

MODELS = 5


class Said:
    """A model that says the same chance of a yes about every row."""

    outputs = (Output(classes=("no", "yes")),)

    def __init__(self, chance: float) -> None:
        self.chance = chance

    def score(self, raw: Floats) -> Floats:
        return np.tile([1 - self.chance, self.chance], (len(raw), 1))


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def people(explainer) -> pd.DataFrame:
    return lending.refused(explainer, 40)


@pytest.fixture(scope="module")
def ensemble(explainer) -> Ensemble:
    return explainer.retrain(lending.table(), models=MODELS)


@pytest.fixture(scope="module")
def robust(explainer, people, ensemble) -> tdce.Answer:
    return explainer.explain(people, robust=ensemble, safety=0)


def test_the_margin_of_a_committee_is_the_one_that_nine_of_ten_reach():
    chances = [0.9, 0.8, 0.95, 0.7, 0.6, 0.85, 0.75, 0.65, 0.99, 0.1]  # the ninth is 0.6: log(0.6 / 0.4)
    ten, goals = Ensemble(tuple(map(Said, chances))), Goals.all(Class(1), 3)
    assert ten.required_votes == 9
    assert torch.allclose(ten.margin(np.zeros((3, 2)), goals), torch.full((3,), np.log(1.5), dtype=torch.double))
    assert ten.votes(np.zeros((3, 2)), goals).tolist() == [9, 9, 9]


@pytest.mark.parametrize(("models", "needed"), [(1, 1), (2, 2), (5, 5), (10, 9), (20, 18), (21, 19)])
def test_nearly_all_are_nine_in_ten_rounded_up(models, needed):
    assert Ensemble((Said(0.5),) * models).required_votes == needed


def test_the_same_seed_trains_the_same_models_and_another_one_others(explainer, ensemble, people):
    raw = explainer.fitted_.encoder.read(people)
    scores = [model.score(raw) for model in ensemble.models]
    again = explainer.retrain(lending.table(), models=2)
    assert (again.models[0].score(raw) == scores[0]).all()
    assert (explainer.retrain(lending.table(), models=1, seed=2).models[0].score(raw) == scores[1]).all()
    assert (scores[0] != scores[1]).any()


def test_robust_answers_are_accepted_by_nearly_all_and_hold_more_often_with_models_that_nobody_asked(
    explainer, people, ensemble, robust
):
    """So do those that are only asked to be safe."""
    unseen = explainer.retrain(lending.table(), models=MODELS, seed=UNSEEN_SEED)
    usual, safe, shares = explainer.explain(people, safety=0), explainer.explain(people), []
    for answer in (usual, robust, safe):
        assert answer.counts() == {"valid": len(people)}
        shares.append(unseen.votes(answer.explanation.raw[:, 0], answer.goals).double().mean() / MODELS)
    assert (ensemble.votes(robust.explanation.raw[:, 0], robust.goals) >= ensemble.required_votes).double().mean() > 0.9
    assert shares[1] > shares[0] + 0.04
    assert shares[2] > shares[0] + 0.04
    assert (explainer.predict(robust.to_frame()[list(people.columns)]) == "yes").all()


def test_what_so_many_acceptances_prove_by_a_second_route():
    """With a share of just the bound, as many acceptances or more have a chance of 5 %."""
    from scipy.stats import binom

    for count, models in ((9, 10), (10, 10), (29, 29), (1, 10)):
        assert binom.sf(count - 1, models, lower_bound(count, models)) == pytest.approx(0.05, abs=1e-9)
    assert lower_bound(9, 10) == pytest.approx(0.606, abs=1e-3)
    assert lower_bound(29, 29) > 0.9 > lower_bound(28, 28)
    assert lower_bound(0, 10) == 0


def test_the_note_says_how_many_accept_it(ensemble, robust):
    counts = ensemble.votes(robust.explanation.raw[:, 0], robust.goals)
    for note, count in zip(robust.to_frame()["note"], counts.tolist(), strict=True):
        assert f"{count} of {MODELS} retrained models accept it as well: with 95 % confidence, at least " in note
    line = robust.lines[0][0]
    assert robust.speaker("de").note(line).endswith(" aller")


def test_where_no_answer_convinces_them_there_is_the_one_of_the_model_alone(explainer, people):
    nobody = Ensemble((Said(0.2),))
    answer, usual = explainer.explain(people, n=2, robust=nobody), explainer.explain(people, n=2)
    assert answer.written.equals(usual.written)
    assert answer.counts() == usual.counts()
    assert answer.to_frame()["note"].str.contains("0 of 1 retrained models").all()


@pytest.mark.parametrize(
    ("found", "after", "accepting"),
    [
        ((10, 6), (10, 6), (1, 0)),  # the first option counts
        ((6, 10), (5, 7), (0, 0)),
        ((8, 9), (8, 9), (1, 1)),  # just as many as must accept it
        ((3, 10), (5, 7), (0, 0)),  # which not even the model accepts
    ],
)
def test_by_hand_answers_that_too_few_accept_are_those_of_the_model_alone(found, after, accepting):
    """The model says yes from 4 on, the only one of its ensemble from 8 on."""
    x, encoder = torch.tensor([[0.0, 1.0], [4.0, 1.0], [0.0, 2.0]]), toys.encoder("ab")
    task, stricter = (toys.task(encoder, toys.above(limit), x) for limit in (4, 8))
    ensemble, feasible = Ensemble((stricter.oracle.model,)), feasible_set(task, x)
    answer = explain_robustly(
        toys.Jump(found).fit(task), toys.Jump((5, 7)).fit(task), ensemble, feasible, class_goals(1, x), Question(n=2),
        Progress("silent"),
    )  # fmt: skip
    assert answer.status.tolist() == [["valid"] * 2, ["already"] * 2, ["valid"] * 2]
    assert answer.raw[:, :, 0].tolist() == [list(after), [4, 4], list(after)]
    notes = [[note.values["count"] for notes in row for note in notes if note.key == "held"] for row in answer.notes]
    assert notes == [list(accepting), [], list(accepting)]
    assert answer.loss is not None
    np.testing.assert_allclose(answer.loss[[0, 2], :, 0], [after] * 2, rtol=1e-4)  # each step to the right is worth 1
    assert np.isnan(answer.loss[1]).all()


def test_whom_the_model_accepts_already_is_left_alone(explainer):
    accepted = lending.table(60, 7).drop(columns="decision")
    accepted = accepted[(explainer.predict(accepted) == "yes").to_numpy()].head(8)
    assert explainer.explain(accepted, robust=Ensemble((Said(0.2),))).counts() == {"already": 8}


def test_a_robust_answer_does_not_depend_on_its_company(explainer, people, ensemble, robust):
    turned = explainer.explain(people.iloc[::-1], robust=ensemble, safety=0)
    assert turned.to_frame().iloc[::-1].equals(robust.to_frame())
    assert explainer.explain(people.iloc[[5]], robust=ensemble, safety=0).to_frame().equals(robust.to_frame().iloc[[5]])


def test_the_share_that_still_accepts_is_measured_by_models_that_no_answer_was_asked_to_convince(explainer, people):
    answer = explainer.explain(people)
    found = explainer.evaluate(answer, lending.table(), retrain=2)
    by_hand = []
    for model in explainer.retrain(lending.table(), models=2, seed=UNSEEN_SEED).models:
        score = model.score(explainer.fitted_.encoder.read(answer.to_frame()))
        by_hand.append((score[:, 1] > score[:, 0]).mean())
    assert found["retrained"] == pytest.approx(np.mean(by_hand))
    assert explainer.evaluate(answer, lending.table(), retrain=2) == found
    with pytest.raises(tdce.InputError, match="takes the table that was learned"):
        explainer.evaluate(answer, retrain=2)


def test_an_estimator_is_cloned_and_trained_again_with_its_own_encoders():
    own = user_models.learned(user_models.forest())
    people = lending.refused(own, 12)
    ensemble = own.retrain(user_models.table(), models=3)
    assert len({model.score(own.fitted_.encoder.read(people)).tobytes() for model in ensemble.models}) == 3
    answer = own.explain(people, robust=ensemble)
    assert (answer.explanation.status == "valid").all()
    given = own.explain(people, robust=[model.models[0].model for model in ensemble.models])
    assert given.to_frame().equals(answer.to_frame())


def test_what_cannot_be_trained_again_is_named(explainer, people):
    function = user_models.learned(lambda frame: (frame["income"] - frame["debt"] > 1000).to_numpy())
    with pytest.raises(tdce.InputError, match="cannot be retrained here"):
        function.retrain(user_models.table(), models=2)
    with pytest.raises(tdce.InputError, match="robust is 7"):
        explainer.explain(people, robust=7)
    with pytest.raises(tdce.InputError, match="needs an explained model of your own"):
        explainer.explain(people, robust=[user_models.forest()])
    with pytest.raises(tdce.InputError, match="robust is an empty list"):
        function.explain(people, robust=[])
    with pytest.raises(tdce.InputError, match=r"model is \{"):
        function.explain(people, robust=[{"approve": user_models.forest()}])
    with pytest.raises(tdce.InputError, match="no label column 'decision'"):
        explainer.retrain(people, models=1)
    with pytest.raises(tdce.InputError, match="max_model_rows does not go with robust"):
        explainer.explain(people, robust=Ensemble((Said(0.5),)), max_model_rows=10_000)
