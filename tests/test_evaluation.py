"""What counterfactuals are measured against: all metrics of two rows worked by hand."""

from dataclasses import replace
from types import SimpleNamespace

import lending
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from tdce._core.errors import InputError
from tdce._core.training import TrainingPlan
from tdce.explainer import evaluation
from tdce.explainer.evaluation import PAPER, MetricReference
from tdce.methods.explanation import Explanation
from tdce.metrics import MEANING
from tdce.schema.encoder import Encoder

OWN, RENT = 0.0, 1.0  # housing
TRAINED = np.array(  # amount, housing; mean 20 and deviation 10
    [[10, OWN], [10, OWN], [10, OWN], [10, RENT], [30, RENT], [30, RENT], [30, RENT], [30, OWN]]
)  # fmt: skip
TARGET = np.array([False] * 4 + [True] * 4)
HELD = np.array([[20, RENT], [30, RENT], [40, RENT], [10, OWN]])  # not learned
HELD_TARGET = np.array([True, True, True, False])


class Mean:
    """For an autoencoder: it gives back the mean row of what it learned, whatever it is asked."""

    def __init__(self, width: int, bottleneck: int, seed: int) -> None:
        self.width, self.bottleneck, self.seeds = width, bottleneck, [seed]

    def fit(self, rows: Tensor, seed: int, plan: TrainingPlan) -> None:
        self.mean = rows.mean(dim=0)
        self.seeds.append(seed)

    def __call__(self, x: Tensor) -> Tensor:
        return self.mean.expand(len(x), -1)


@pytest.fixture
def yardstick(monkeypatch) -> MetricReference:
    monkeypatch.setattr("tdce.explainer.metric_reference.Autoencoder", Mean)
    frame = pd.DataFrame({"amount": TRAINED[:, 0], "housing": np.where(TRAINED[:, 1] == RENT, "rent", "own")})
    return MetricReference.fit(Encoder.fit(frame), TRAINED, TARGET, 0, HELD, HELD_TARGET)


def explained(raw: list[list[list[float]]], *status: str) -> Explanation:
    cells = np.array(raw, dtype=np.float64)
    one = np.zeros(cells.shape[:2])
    return Explanation(
        cells[:, 0],
        cells,
        np.array([status]).T.repeat(cells.shape[1], axis=1),
        one[:, 0],
        one,
        one + 0.25,
        one.astype(object),
    )


def measured(yardstick: MetricReference, own, found: Explanation, near, found_near: Explanation) -> dict[str, float]:
    feasible = SimpleNamespace(own=np.array(own, dtype=np.float64), contains=lambda raw: raw[:, 0] <= 30)
    return yardstick.measure(feasible, found, np.array(near, dtype=np.float64), found_near)


def test_each_autoencoder_learns_its_own_rows(yardstick):
    x = yardstick.encoder.embed(TRAINED).float()
    for learned, rows in ((yardstick.of_target, x[4:]), (yardstick.of_origin, x[:4]), (yardstick.of_all, x)):
        torch.testing.assert_close(learned(x[:1])[0], rows.mean(dim=0))
        assert (learned.width, learned.bottleneck, learned.seeds) == (3, 1, [0, 0])


@pytest.mark.parametrize(("features", "bottleneck"), [(1, 1), (2, 1), (3, 1), (6, 3)])
def test_the_bottleneck_is_half_of_the_features(monkeypatch, features, bottleneck):
    monkeypatch.setattr("tdce.explainer.metric_reference.Autoencoder", Mean)
    raw = np.arange(8.0)[:, None] + np.arange(features)
    frame = pd.DataFrame(raw, columns=[f"n{i}" for i in range(features)])
    found = MetricReference.fit(Encoder.fit(frame), raw, TARGET, seed=7)
    for learned in (found.of_target, found.of_origin, found.of_all):
        assert (learned.width, learned.bottleneck, learned.seeds) == (features, bottleneck, [7, 7])
        assert isinstance(learned.bottleneck, int)


def test_each_number_is_standardised_by_itself_and_ends_where_the_encoding_does():
    """Amounts of mean 20 and deviation 10, rates of mean 0.5 and deviation 0.1, and a constant."""
    raw = np.array([[10, 0.4, 5], [30, 0.6, 5]] * 4)
    encoder = Encoder.fit(pd.DataFrame(raw, columns=["amount", "rate", "constant"]))
    yardstick = MetricReference(encoder, raw, TARGET, *[None] * 3)
    found = yardstick.standardised(np.array([[20, 0.7, 6], [10, np.nan, 5]]))
    np.testing.assert_allclose(found, [[0, 2, 1], [-1, 0, 0]], atol=1e-9)
    far, further = (yardstick.standardised(np.array([[v, 0.5, 5], [-v, 0.5, 5]]))[:, 0] for v in (1e6, 1e9))
    assert torch.equal(far, further)
    assert far[0] > 5
    assert far[1] < -5


def test_a_class_that_is_everybody_or_nobody_cannot_be_measured(yardstick):
    for target, word in ((np.ones(8, dtype=bool), "all"), (np.zeros(8, dtype=bool), "none")):
        with pytest.raises(InputError, match=f"{word} of the 8 rows"):
            MetricReference.fit(yardstick.encoder, TRAINED, target)


def test_whole_rows_are_standardised_numbers_and_hard_categories(yardstick):
    found = yardstick.whole(np.array([[20, OWN], [40, RENT], [np.nan, RENT]]))
    numbers = yardstick.standardised(np.array([[20, OWN], [40, RENT], [np.nan, RENT]]))
    assert torch.equal(found[:, :1], numbers)
    assert found[:, 1:].tolist() == [[1, 0], [0, 1], [0, 1]]
    assert numbers[[0, 2], 0].tolist() == [0, 0]
    assert yardstick.standardised(TRAINED)[:, 0].tolist() == [-1] * 4 + [1] * 4


def test_the_metrics_of_two_rows_by_hand(yardstick):
    """Both were refused at amount 10; a third one was accepted already, and is left out; a fourth one stayed refused,
    beyond the limits: it counts in the validity and the violations alone."""
    own = [[10, OWN], [10, RENT], [30, RENT], [10, RENT]]
    found = explained(
        [[[30, OWN]], [[20, RENT]], [[30, RENT]], [[99, OWN]]], "valid", "valid", "already", "best_effort"
    )
    near = [[10, OWN], [20, RENT], [30, RENT], [10, RENT]]
    found_near = explained([[[30, OWN]], [[30, RENT]], [[30, RENT]], [[-9, OWN]]], "valid", "valid", "already", "valid")
    values = measured(yardstick, own, found, near, found_near)
    assert list(values) == [
        name for name in MEANING if name not in ("option_spread", "two_sample", "retrained")
    ]  # of 20 rows
    assert list(values)[: len(PAPER)] == list(PAPER)

    assert values["l2"] == pytest.approx((2**2 + 1**2) / 2)  # 10 -> 30 is two deviations, 10 -> 20 one
    assert values["diversity"] == pytest.approx(1 / 2)  # one deviation apart, over N (N - 1) = 2
    assert values["instability"] == pytest.approx((0 / 1 + 1 / 2) / 2)  # the second is 1 off, and so is its answer
    assert values["validity"] == pytest.approx(2 / 3)
    assert values["sparsity"] == 1  # the amount alone, both times
    assert values["gower"] == pytest.approx((1 + 0.5) / 4)  # amounts span 20; over two rows and two features
    assert values["violations"] == pytest.approx(1 / 3)
    assert values["copies"] == 1 / 2  # (30, own) was learned, (20, rent) was not

    # One owns and one rents; of the target class one in four owns: JS of (1/2, 1/2) and (1/4, 3/4) in bits
    middle = np.array([3 / 8, 5 / 8])
    bits = [(p * np.log2(p / middle)).sum() for p in (np.array([1 / 2, 1 / 2]), np.array([1 / 4, 3 / 4]))]
    assert values["js"] == pytest.approx(sum(bits) / 2)

    # (30, own) is a row of the class; the nearest to (20, rent) is (30, rent), one deviation away
    assert values["realism"] == pytest.approx((0 + 1) / 2)

    # Held-out people of the class rent at 20, 30 and 40, where the encoding ends (no amount was above 30)
    end = yardstick.standardised(np.array([[40.0, RENT]])).item()
    to_owner = np.array([np.sqrt(1 + 2), np.sqrt(2), np.sqrt((end - 1) ** 2 + 2)]).mean()
    to_renter = np.array([0, 1, end]).mean()
    assert values["held_out_distance"] == pytest.approx((to_owner + to_renter) / 2)
    assert values["coherence"] == pytest.approx(1)  # the amount tells who owns: eta 1; among the others nobody does: 0

    # Squared errors of the mean rows, categories (1/4, 3/4) of the target, (3/4, 1/4) of the others, (1/2, 1/2) of all
    top, bottom, middle = (yardstick.encoder.embed(np.array([[v, OWN]]))[0, 0].item() for v in (30.0, 10.0, 20.0))
    first = (0 + 2 * 0.75**2) / ((top - bottom) ** 2 + 2 * 0.25**2)
    second = ((middle - top) ** 2 + 2 * 0.25**2) / ((middle - bottom) ** 2 + 2 * 0.75**2)
    assert values["im1"] == pytest.approx((first + second) / 2, rel=1e-4)
    assert values["im1_median"] == pytest.approx(min(first, second), rel=1e-4)  # the lower one of two
    gap = (top - (top + bottom) / 2) ** 2 + 2 * 0.25**2
    im2 = gap / (abs(top) + 1), gap / (abs(middle) + 1)  # over |x|_1
    assert values["im2"] == pytest.approx(sum(im2) / 2, rel=1e-4)
    assert values["im2_median"] == pytest.approx(min(im2), rel=1e-4)


def test_the_distance_to_the_class_counts_the_categories(yardstick):
    """Nobody of the class at amount 10: the nearest to (10, own) is (30, own), to (30, own) itself."""
    found = explained([[[10, OWN]], [[30, OWN]]], "valid", "valid")
    own = [[10, RENT], [10, RENT]]
    values = measured(yardstick, own, found, own, found)
    assert values["realism"] == pytest.approx((2 + 0) / 2)
    # All own, of the class one in four: JS of (1, 0) and (1/4, 3/4), whose middle is (5/8, 3/8)
    bits = np.log2(8 / 5), 1 / 4 * np.log2(2 / 5) + 3 / 4 * np.log2(2)
    assert values["js"] == pytest.approx(sum(bits) / 2)
    by_hand = explained([[[10, RENT]], [[30, RENT]]], "valid", "valid")
    alone = MetricReference(yardstick.encoder, TRAINED, np.arange(8) == 7, *[yardstick.of_all] * 3)  # (30, own) alone
    values = measured(alone, own, by_hand, own, by_hand)
    assert values["realism"] == pytest.approx((np.sqrt(2**2 + 2) + np.sqrt(2)) / 2)  # another category: sqrt(2)


def test_a_rule_that_is_broken_shows_and_several_options_have_a_spread(yardstick):
    found = explained([[[40, OWN], [10, RENT]], [[30, RENT], [30, RENT]]], "valid", "valid")
    own = [[10, OWN], [10, RENT]]
    values = measured(yardstick, own, found, own, found)
    assert values["validity"] == 1
    assert values["violations"] == 1 / 2  # of the first options
    assert values["option_spread"] == (1 + 0) / 2  # other features, then the same
    assert measured(yardstick, own[:1], explained([[[10, OWN]]], "already"), own[:1], found) == {}


def test_where_nothing_is_valid_only_the_validity_and_the_violations_are_left(yardstick):
    found = explained([[[40, OWN]], [[30, RENT]]], "best_effort", "infeasible")
    own = [[10, OWN], [10, RENT]]
    assert measured(yardstick, own, found, own, found) == {"validity": 0, "violations": 1 / 2}


def test_twenty_rows_of_each_side_make_a_two_sample_test(yardstick):
    people = np.array([[10 + i % 3, OWN] for i in range(20)])
    held = np.array([[30 - i % 3, RENT] for i in range(25)])
    found = explained([[row] for row in people.tolist()], *["valid"] * 20)
    for some, there in ((25, True), (20, True), (19, False)):
        ready = replace(yardstick, held=held[:some], held_target=np.ones(some, dtype=bool))
        values = measured(ready, people, found, people, found)
        assert ("two_sample" in values) == there
        assert values.get("two_sample", 1) == 1
    nobody = replace(yardstick, held_target=np.zeros(len(HELD), dtype=bool))
    assert "coherence" not in measured(nobody, people, found, people, found)


def test_the_neighbour_is_of_the_same_verdict_and_another_row_and_categories_count(yardstick):
    oracle = SimpleNamespace(predict=lambda raw: torch.from_numpy(raw[:, 0] > 20))  # a yes above the middle amount

    asked = np.array([[10, RENT], [12, OWN], [22, OWN], [30, OWN]], dtype=np.float64)
    found = yardstick.neighbours(asked, oracle)
    # The only other (10, .) rows own; amount 12 is nearest to (10, own); 22 is a yes, hence nearest to (30, own);
    # (30, own) was learned itself and is the only one: the next renters
    assert found.tolist() == [[10, OWN], [10, OWN], [30, OWN], [30, RENT]]

    assert yardstick.frame(found)["housing"].tolist() == ["own", "own", "own", "rent"]
    only = MetricReference(yardstick.encoder, TRAINED[4:], TARGET[4:], *[yardstick.of_all] * 3)
    lonely = only.neighbours(np.array([[10, OWN], [22, OWN]], dtype=np.float64), oracle)
    assert lonely.tolist() == [[10, OWN], [30, OWN]]  # nobody is of the first one's verdict: itself
    apart = MetricReference(yardstick.encoder, np.array([[10, OWN], [12, OWN], [16, OWN]]), TARGET[:3], *[None] * 3)
    assert apart.neighbours(np.array([[10.0, OWN]]), oracle).tolist() == [[12, OWN]]  # the next, not the last
    single = MetricReference(yardstick.encoder, np.array([[10.0, OWN]]), TARGET[:1], *[None] * 3)
    assert single.neighbours(np.array([[10.0, OWN]]), oracle).tolist() == [[10, OWN]]  # there is no other


def test_the_neighbours_are_asked_the_same_question_within_the_same_limits(monkeypatch):
    explainer = lending.explainer()
    answer = explainer.explain(lending.refused(explainer, 20), immutable=["age"], closeness=0.3, seed=4)
    seen, real = [], evaluation.explain

    def explain(method, feasible, goals, question):
        seen.append((feasible.immutable, question.closeness, question.seed, question.n))
        return real(method, feasible, goals, question)

    monkeypatch.setattr(evaluation, "explain", explain)
    assert explainer.evaluate(answer)["violations"] == 0
    assert seen == [(("age",), 0.3, 4, 1)]
    older = answer.explanation.raw.copy()
    older[:, :, answer.features.index("age")] += 1
    broken = replace(answer, explanation=replace(answer.explanation, raw=older))
    assert explainer.evaluate(broken)["violations"] == 1


# ---- which rows an answer is measured against


def test_the_table_that_was_learned_is_parted_again_as_it_was():
    explainer, table = lending.explainer(), lending.table()
    rows = evaluation._rows_of(explainer, table)
    np.testing.assert_array_equal(rows.raw, explainer.fitted.raw)
    np.testing.assert_array_equal(rows.y, explainer.fitted.y)
    assert len(rows.held) == len(rows.held_y) == 240  # a tenth for stopping and a tenth for the report
    everybody = explainer.fitted.encoder.nearest_known(explainer.fitted.encoder.read(table))
    both = np.concatenate([rows.raw, rows.held])
    assert sorted(map(tuple, both)) == sorted(map(tuple, everybody))
    debt = everybody[:, 1]
    said = {d: word == "yes" for d, word in zip(debt, table["decision"], strict=True)}
    assert rows.held_y.tolist() == [said[d] for d in rows.held[:, 1]]


def test_any_other_table_is_learned_and_held_out_at_once():
    explainer, table = lending.explainer(), lending.table(50, seed=3)
    rows = evaluation._rows_of(explainer, table)
    for raw, y in ((rows.raw, rows.y), (rows.held, rows.held_y)):
        np.testing.assert_array_equal(raw, explainer.fitted.encoder.nearest_known(explainer.fitted.encoder.read(table)))
        assert y.tolist() == (table["decision"] == "yes").tolist()


def test_without_a_table_the_rows_of_the_explainer_serve_and_none_is_held_out():
    explainer = lending.explainer()
    rows = evaluation._rows_of(explainer, None)
    assert rows.raw is explainer.fitted.raw
    assert len(rows.held) == len(rows.held_y) == 0


def test_a_table_brings_the_metrics_of_held_out_rows_and_changes_no_other():
    explainer = lending.explainer()
    answer = explainer.explain(lending.refused(explainer, 40))
    without, with_table = (explainer.evaluate(answer, table) for table in (None, lending.table()))
    assert {k: with_table[k] for k in without} == without
    of_held_out = {"held_out_distance", "coherence", "two_sample", "lof_outliers", "low_density"}
    assert set(with_table) - set(without) == of_held_out
    assert 0 <= with_table["coherence"] < 1
    assert 0.3 < with_table["two_sample"] <= 1


def test_metrics_of_several_targets_are_joined_by_the_rows_that_they_were_taken_over():
    """Two rows towards the one class, one of them valid; three towards the other, all valid."""
    one = explained([[[0, 0]]] * 3, "valid", "best_effort", "already"), {"l2": 4.0, "validity": 0.5, "violations": 0.5}
    other = explained([[[0, 0]]] * 3, "valid", "valid", "valid"), {"l2": 8.0, "validity": 1.0, "violations": 0.0}
    found = evaluation._together([one, other, (explained([[[0, 0]]], "already"), {})])
    assert found == pytest.approx({"l2": (4 + 3 * 8) / 4, "validity": 4 / 5, "violations": 1 / 5})
    assert evaluation._together([]) == {}


def test_a_table_without_the_label_or_with_another_label_is_named():
    explainer = lending.explainer()
    answer = explainer.explain(lending.refused(explainer, 2))
    with pytest.raises(InputError, match="there is no label column 'decision'; the table has: income, debt"):
        explainer.evaluate(answer, lending.table(30).drop(columns="decision"))
    with pytest.raises(InputError, match="decision: 'perhaps' is not a value of the label; known: no, yes"):
        explainer.evaluate(answer, lending.table(30).assign(decision="perhaps"))
