"""Plausibility: a share of real people, calibrated, lower for what does not go together, the same in any company."""

import copy

import lending
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kstest

import tdce
from tdce._core.noise import Noise
from tdce._core.progress import Progress
from tdce._core.values import Floats
from tdce.diffusion import plausibility
from tdce.diffusion import synthetic as people
from tdce.explainer.fitting import split_rows
from tdce.methods.driver import explain
from tdce.methods.question import Question
from tdce.models.goals import AtLeast, Class, Goals, Not
from tdce.schema.feasible import FeasibleSet

SILENT = Progress("silent")
NO, YES = 0, 1


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


def real(explainer: tdce.Explainer, label: str, count: int, seed: int) -> Floats:
    """Raw rows of people who are not in the table that was learned."""
    frame = lending.table(4 * count, seed)
    return explainer.fitted.encoder.read(frame[frame["decision"] == label].head(count))


def plausible(explainer: tdce.Explainer, raw: Floats, k: int = YES, typical: torch.Tensor | None = None) -> Floats:
    fitted = explainer.fitted
    known = fitted.energy_quantiles if typical is None else typical
    return plausibility.rate_plausibility(fitted.encoder, fitted.diffusion, known, raw, torch.full((len(raw),), k))


def energies(explainer: tdce.Explainer, raw: Floats, k: int = YES) -> Floats:
    fitted = explainer.fitted
    return plausibility.energies(fitted.encoder, fitted.diffusion, raw, torch.full((len(raw),), k)).numpy()


# ---- what it means


@pytest.mark.parametrize(("k", "label"), [(NO, "no"), (YES, "yes")])
def test_it_is_uniform_on_real_people_of_the_class(explainer, k, label):
    """The Kolmogorov-Smirnov distance of 300 people, beside that of the reference, exceeds this once in a thousand."""
    fresh, fitted = real(explainer, label, 300, seed=21), explainer.fitted
    _, held_out, _ = split_rows(1200, 0)
    used = int((lending.table()["decision"].iloc[held_out.numpy()] == label).sum())
    assert kstest(plausible(explainer, fresh, k), "uniform").statistic < 1.95 * (1 / 300 + 1 / used) ** 0.5
    others = real(explainer, label, 1500, seed=22)
    large = plausibility.measure_energy_quantiles(
        fitted.encoder, fitted.diffusion, others, torch.full((len(others),), k), 2, 0, SILENT
    )  # fmt: skip
    assert kstest(plausible(explainer, fresh, k, large), "uniform").statistic < 1.95 * (1 / 300 + 1 / 1500) ** 0.5


def test_it_is_the_share_of_people_with_more_energy_counted_by_hand(explainer):
    others, some, fitted = real(explainer, "yes", 1500, 22), real(explainer, "yes", 60, 23), explainer.fitted
    large = plausibility.measure_energy_quantiles(
        fitted.encoder, fitted.diffusion, others, torch.ones(1500).long(), 2, 0, SILENT
    )
    theirs, own = energies(explainer, others), energies(explainer, some)
    counted = [sum(other > energy for other in theirs.tolist()) / 1500 for energy in own.tolist()]
    np.testing.assert_allclose(plausible(explainer, some, YES, large), counted, atol=1 / 128)


def test_the_energy_is_the_mean_denoising_error_written_out(explainer):
    fitted, raw = explainer.fitted, real(explainer, "yes", 64, 24)
    diffusion, space, x = fitted.diffusion, fitted.encoder.space, fitted.encoder.embed(raw).float()
    noise, total = Noise(x, plausibility.NOISE_SEED), torch.zeros(64)
    for t in (300, 300, 500, 500, 700, 700):
        normal, gumbel, a = noise.normal(space.num), noise.gumbel(space.cat), diffusion.schedule.alpha_bar[t]
        num = a**0.5 * x[:, : space.num] + (1 - a) ** 0.5 * normal
        cat = ((a * x[:, space.num :] + (1 - a) / 3).log() + gumbel) / diffusion.temperature(
            t
        )  # three kinds of housing
        told = torch.tensor([[0.0, 1.0]]).expand(64, 2)
        out = diffusion.network(torch.cat([num, cat.softmax(dim=1), told], dim=1), torch.tensor([t]))
        total += (out[:, : space.num] - normal).square().sum(dim=1)
        total -= (x[:, space.num :] * out[:, space.num :].log_softmax(dim=1)).sum(dim=1)
    np.testing.assert_allclose(energies(explainer, raw), total / 6, rtol=1e-4)


def test_a_cell_from_someone_else_makes_a_row_less_plausible(explainer):
    accepted, refused = real(explainer, "yes", 300, 25), real(explainer, "no", 300, 25)
    debt = list(explainer.schema.names).index("debt")
    swapped = accepted.copy()
    swapped[:, debt] = refused[:, debt]  # a refused person's debt
    before, after = plausible(explainer, accepted), plausible(explainer, swapped)
    assert after.mean() < before.mean() - 0.15
    assert plausible(explainer, refused).mean() < before.mean() - 0.2
    assert plausible(explainer, refused, NO).mean() > 0.4


def test_below_the_lowest_energy_it_is_one_and_above_the_highest_nothing():
    knots = np.linspace(2.0, 4.0, plausibility.ENERGY_QUANTILES)
    found = plausibility._distribution(knots, np.array([-9.0, 1.9, 2.0, 2.5, 3.0, 4.0, 4.1, 99.0]))
    np.testing.assert_allclose(found, [0, 0, 0, 0.25, 0.5, 1, 1, 1], atol=1e-12)


def test_of_people_with_the_same_energy_half_count_as_less_typical():
    knots = np.array([1.0, 2.0, 2.0, 2.0, 3.0])  # levels 0, 1/4, 1/2, 3/4, 1
    np.testing.assert_allclose(
        plausibility._distribution(knots, np.array([1.0, 1.5, 2.0, 2.5, 3.0])), [0, 0.25, 0.5, 0.75, 1]
    )
    alike = plausibility._distribution(np.ones(5), np.array([0.5, 1.0, 1.5]))
    np.testing.assert_allclose(alike, [0, 0.5, 1])


# ---- the reference


def test_the_reference_is_the_pooled_quantiles_of_the_held_out_people(explainer):
    fitted, frame, levels = explainer.fitted, lending.table(), np.linspace(0, 1, 129)
    held = frame.iloc[split_rows(1200, 0)[1].numpy()]
    for k, label in ((NO, "no"), (YES, "yes")):
        known = fitted.encoder.nearest_known(fitted.encoder.read(held[held["decision"] == label]))
        fives = np.array_split(np.sort(energies(explainer, known, k)), len(known) // 5)
        at, means = (np.arange(len(fives)) + 0.5) / len(fives), [five.mean() for five in fives]
        inner = (levels >= at[0]) & (levels <= at[-1])
        np.testing.assert_allclose(fitted.energy_quantiles[k][inner], np.interp(levels[inner], at, means))
        assert fitted.energy_quantiles[k][0] < means[0] < means[-1] < fitted.energy_quantiles[k][-1]
    assert fitted.energy_quantiles.shape == (2, 129)
    assert fitted.energy_quantiles.dtype == torch.float64


def test_a_class_with_few_held_out_people_is_compared_with_synthetic_ones(explainer):
    fitted, few = explainer.fitted, real(explainer, "yes", plausibility.MIN_REFERENCE_ROWS - 1, 26)
    yes = torch.ones(len(few), dtype=torch.long)
    found = plausibility.measure_energy_quantiles(fitted.encoder, fitted.diffusion, few, yes, 2, 3, SILENT)
    for k in (NO, YES):
        theirs = people.draw_synthetic(fitted.encoder, fitted.diffusion, torch.full((256,), k), 3, SILENT)
        np.testing.assert_array_equal(found[k], np.quantile(energies(explainer, theirs, k), np.linspace(0, 1, 129)))


# ---- in answers


def test_a_row_has_the_same_bits_alone_shuffled_and_in_parts(explainer):
    raw = real(explainer, "no", 1100, 27)
    whole, order = energies(explainer, raw), np.random.default_rng(0).permutation(len(raw))
    for at in (order, order[:1], order[:63], order[64:129], np.arange(1025)):
        np.testing.assert_array_equal(energies(explainer, raw[at]), whole[at])


def test_every_line_has_that_of_its_own_values_in_the_class_that_was_wanted(explainer):
    rows = lending.table(40, seed=28).drop(columns="decision")
    wanted = ["yes", "no", Not("yes"), AtLeast("yes", 0.9)] * 10
    frame = explainer.explain(rows, target=wanted, immutable=["age"]).to_frame()
    assert list(frame)[-4:] == ["score_after", "plausibility", "safety", "note"]
    assert set(frame["status"]) >= {"valid", "already"}
    by_hand = [
        plausible(explainer, explainer.fitted.encoder.read(frame.iloc[[i]]), k)[0]
        for i, k in enumerate([YES, NO, NO, YES] * 10)
    ]
    assert frame["plausibility"].tolist() == by_hand
    assert [line.plausibility for (line,) in explainer.explain(rows, target=wanted, immutable=["age"]).lines] == by_hand


def test_a_saved_explainer_says_the_same(explainer, tmp_path):
    rows = lending.refused(explainer, 30)
    explainer.save(tmp_path / "a.tdce")
    back = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent")
    here, there = (made.explain(rows).to_frame() for made in (explainer, back))
    pd.testing.assert_frame_equal(here, there, check_exact=True)
    assert here["plausibility"].between(0, 1).all()


def test_where_nothing_is_known_of_people_it_is_not_a_number(explainer):
    rows = lending.refused(explainer, 3)
    task = explainer.fitted.task()
    blank = type(task)(**vars(task) | {"energy_quantiles": torch.zeros(0, 0)})
    feasible = FeasibleSet.of(explainer.fitted.encoder, rows)
    found = explain(explainer.chosen_method.fit(blank), feasible, Goals.all(Class(YES), 3), Question())
    assert np.isnan(found.plausibility).all()


def test_evaluate_takes_the_mean_over_valid_rows(explainer):
    answer = explainer.explain(lending.refused(explainer, 40))
    frame = answer.to_frame()
    mean = frame.loc[frame["status"] == "valid", "plausibility"].mean()
    assert explainer.evaluate(answer)["plausibility"] == pytest.approx(mean)


def test_other_weights_are_other_energies(explainer):
    fitted, y = explainer.fitted, torch.zeros(3, dtype=torch.long)
    raw, model = fitted.encoder.read(lending.table(3)), copy.deepcopy(fitted.diffusion)
    before = plausibility.energies(fitted.encoder, model, raw, y)
    assert torch.equal(before, plausibility.energies(fitted.encoder, fitted.diffusion, raw, y))
    with torch.no_grad():
        model.network.outputs.weight.mul_(2)  # in place: a copy that was kept would not know
    assert not torch.equal(before, plausibility.energies(fitted.encoder, model, raw, y))
