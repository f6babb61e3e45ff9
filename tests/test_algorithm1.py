"""Algorithm 1: what its parts do, and what it must give back at its limits."""

from copy import copy, deepcopy
from dataclasses import fields, replace

import lending
import numpy as np
import pytest
import torch
from asking import class_goals, feasible_set, make_query, meets_goals, run_method
from torch import Tensor

import tdce
from tdce._core.errors import InputError
from tdce._core.noise import Noise
from tdce.diffusion import multinomial
from tdce.methods.algorithm1 import GUIDED, GUIDED_LITERAL, INDEPENDENT, SHARED, Guided, GuidedLiteral, last_of, unit
from tdce.methods.guided import GuidedSearch
from tdce.methods.objective import Objective
from tdce.methods.protocol import Task
from tdce.methods.refine import Refined
from tdce.methods.registry import METHODS
from tdce.methods.search import DiffusionSearch
from tdce.models.goals import Goals

PLAIN = {"start": 0.5, "guidance": 1.0, "tau": None, "cat_scale": "norm", "noise_length": INDEPENDENT}


def reading(**settings: object) -> Guided:
    """The equations, with the norm of log pi: easier to follow than the settings that were chosen."""
    return Guided(**PLAIN | settings)


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def scene(explainer) -> tuple[Task, Tensor, Goals]:
    """A task, encoded refused rows (256, width) and their goals."""
    fitted = explainer.fitted_
    x = fitted.encoder.encode(lending.refused(explainer, 256)).float()
    assert len(x) == 256
    task = fitted.task()
    assert torch.equal(feasible_set(task, x).x, x)  # the rows that `proposed` asks about, to the bit
    return task, x, class_goals(fitted.classes.index("yes"), x)


def log_p(task: Task, x: Tensor, goals: Goals) -> Tensor:
    (goal,) = goals.kinds
    return task.guide(x).log_softmax(dim=1)[:, goal.of]


def log_odds(task: Task, x: Tensor, goals: Goals) -> Tensor:
    """Unlike the probability, not all but 1 wherever the walk ends."""
    log_prob = log_p(task, x, goals).double()
    return log_prob - (-torch.expm1(log_prob)).clamp_min(1e-300).log()


def test_without_guidance_and_distance_it_is_the_unguided_walk(scene):
    """The second route: the reverse walk written out without any gradient, from the same noise."""
    task, x, goals = scene
    space, diffusion = task.space, task.diffusion
    walked = run_method(reading(guidance=0.0, proximity=0.0, steps=12).fit(task), x, goals)

    source = Noise(x, 0)
    with torch.no_grad():
        x_t = diffusion.add_noise(x, 500, source)
        for t, s in diffusion.schedule.walk(0.5, 12):
            mu, var, log_pi = diffusion.transition(x_t, diffusion.denoise(x_t, t), t, s)
            if s > 0:
                mu = mu + var**0.5 * source.normal(space.num)
                soft = multinomial.gumbel_softmax(log_pi, source.gumbel(space.cat), diffusion.temperature(s), space)
            else:
                soft = log_pi.exp()
            x_t = space.join(mu, soft)
        expected = space.join(x_t[:, : space.num], space.one_hot(x_t[:, space.num :]))
    torch.testing.assert_close(walked, expected)


def test_a_walk_yields_every_step_and_returns_its_end(scene):
    """From T / 2 in four steps: the times, what the denoiser sees and says at each, and what is returned at the end."""
    task, x, goals = scene
    method, end = reading(steps=4).fit(task), []

    def walk():
        end.append((yield from method.walk(x, goals, Noise(x, 0), 0.5)))

    steps = list(walk())
    assert [t for t, _, _ in steps] == [500, 375, 250, 125, 0]
    for t, x_t, x_0 in steps[:-1]:
        torch.testing.assert_close(x_0, task.diffusion.denoise(x_t, t).detach())
    _, last, same = steps[-1]
    assert torch.equal(last, same)
    num, cat = task.space.split(last)
    assert torch.equal(end[0], task.space.join(num, task.space.one_hot(cat)))
    assert torch.equal(end[0], run_method(method, x, goals))


def test_a_start_at_zero_gives_the_row_back_and_a_low_start_nearly_so(scene):
    task, x, goals = scene
    back = run_method(reading(start=0.0).fit(task), x, goals)
    assert torch.equal(back, x)
    for settings in ({"sigma": "variance", "cat_scale": "lambda"}, {"cat_scale": "lambda"}):
        moved = {
            start: (run_method(reading(start=start, **settings).fit(task), x, goals) - x).square().sum(dim=1).mean()
            for start in (0.01, 0.3, 0.8)
        }
        assert moved[0.01] < 0.1 < moved[0.3] < moved[0.8]


def test_by_the_norm_of_log_pi_categories_change_even_from_a_low_start_and_numbers_do_not(scene):
    """The surer the posterior is of a category, the longer log pi is, and the more the gradient weighs."""
    task, x, goals = scene
    x_cf = run_method(reading(start=0.01).fit(task), x, goals)
    num, cat = task.space.split((x_cf - x).square())
    assert num.sum(dim=1).mean() < 0.05 < cat.sum(dim=1).mean()
    sure, unsure = (torch.tensor([[p, 1 - p]]).log() for p in (0.999, 0.6))
    assert reading().norm_cat(sure) > 5 > reading().norm_cat(unsure)
    assert reading(cat_scale="norm_pi").norm_cat(sure) == pytest.approx((0.999**2 + 0.001**2) ** 0.5)


def test_guidance_raises_the_probability_of_the_target(scene):
    task, x, goals = scene
    means = [
        log_odds(task, run_method(reading(guidance=g, proximity=0.0).fit(task), x, goals), goals).mean().item()
        for g in (0.0, 1.0, 5.0)
    ]
    assert means[0] + 1 < min(means[1:])  # beyond a guidance of 1 there is nothing left to gain here
    assert min(means[1:]) > log_odds(task, x, goals).mean().item() + 1


def test_the_distance_weight_keeps_the_row_near(scene):
    task, x, goals = scene
    far, near = (
        (run_method(reading(guidance=3.0, proximity=p).fit(task), x, goals) - x)[:, : task.space.num]
        .square().sum(dim=1).mean().item()
        for p in (0.0, 3.0)
    )  # fmt: skip
    assert near < 0.8 * far


def test_immutable_columns_come_back_and_the_others_still_move(scene):
    task, x, goals = scene
    frozen = task.space.mask(["income", "housing"])
    for blend in ("noised", "exact"):
        method = reading(blend=blend, guidance=3.0).fit(replace(task, mutable=~frozen))
        x_cf = run_method(method, x, goals)
        assert torch.equal(x_cf[:, frozen], x[:, frozen])
        assert (x_cf[:, ~frozen] != x[:, ~frozen]).any(dim=1).all()


def test_blending_shows_the_walk_the_noised_original_at_the_level_entered(scene, monkeypatch):
    """What the denoiser sees in an immutable column has the law of q(x_t | x): mean sqrt(a) x, variance 1 - a."""
    task, x, goals = scene
    frozen = task.space.mask(["income"])
    seen = {}
    denoise = task.diffusion.denoise
    monkeypatch.setattr(
        task.diffusion, "denoise", lambda x_t, t: (seen.setdefault(t, x_t[:, 0].detach().clone()), denoise(x_t, t))[1]
    )
    run_method(reading(steps=5).fit(replace(task, mutable=~frozen)), x, goals)
    for t, column in seen.items():
        a = task.diffusion.schedule.alpha_bar[t]
        residual = (column - a**0.5 * x[:, 0]) / (1 - a) ** 0.5
        assert residual.mean().item() == pytest.approx(0, abs=0.25)
        assert residual.std().item() == pytest.approx(1, abs=0.2)


@pytest.fixture(scope="module")
def frozen(scene) -> tuple[Task, Tensor, Goals]:
    """The same, but nobody's age may change."""
    task, x, goals = scene
    return replace(task, mutable=~task.space.mask(["age"])), x, goals


@pytest.fixture(scope="module")
def plain(frozen) -> Tensor:
    task, x, goals = frozen
    return run_method(reading().fit(task), x, goals)


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": None, "start": 0.1},
        {"through_denoiser": False},
        {"cat_gradient": "noisy"},
        {"soft_posterior": True},
        {"last_noise": True, "start": 0.9, "steps": 3},
        {"tau": (2.0, 0.5)},
        {"blend": "exact"},
        {"sigma": "variance"},
        {"cat_scale": "lambda"},
        {"cat_scale": "norm_pi"},
        {"loop_noise": False},
    ],
    ids=str,
)
def test_every_reading_of_the_paper_makes_a_difference_and_valid_rows(frozen, plain, settings):
    task, x, goals = frozen
    x_cf = run_method(reading(**settings).fit(task), x, goals)
    usual = {k: v for k, v in settings.items() if k == "start" or (k == "steps" and v)}
    plain = run_method(reading(**usual).fit(task), x, goals) if usual else plain
    assert torch.isfinite(x_cf).all()
    _, cat = task.space.split(x_cf)
    assert torch.equal(cat, task.space.one_hot(cat))
    assert not torch.equal(x_cf, plain)


@pytest.mark.parametrize("through", [True, False])
def test_the_guided_direction_is_the_gradient_by_central_differences(scene, through):
    """Of log p(y | f_dn(x_t)): with f_dn differentiated too, or with its estimate moved along with x_t."""
    task, x, goals = scene
    task = replace(task, diffusion=deepcopy(task.diffusion).double(), guide=deepcopy(task.guide).double())
    x, goals, num, h = x[:16].double(), goals.take(torch.arange(16)), task.space.num, 1e-5
    x_t = task.diffusion.add_noise(x, 300, Noise(x, 0)).double()

    def value(column: int, h: float) -> Tensor:
        step = torch.zeros_like(x_t)
        step[:, column] = h
        estimate = task.diffusion.denoise(x_t + step if through else x_t, 300)
        return log_p(task, estimate if through else estimate + step, goals)

    slope = torch.stack([(value(i, h) - value(i, -h)) / (2 * h) for i in range(num)], dim=1)
    found = reading(through_denoiser=through, proximity=0.0).fit(task).gradients(x_t, 300, x, goals)
    torch.testing.assert_close(found.num, unit(slope), atol=1e-4, rtol=1e-3)


def test_unit_keeps_the_direction_and_leaves_zero_alone():
    g = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(unit(g), [[0.6, 0.8], [0.0, 0.0]])


def test_closeness_sets_the_start(explainer, scene):
    task, x, goals = scene
    dialled, set_up = reading(steps=5).fit(task), reading(start=0.25, steps=5).fit(task)
    assert torch.equal(run_method(dialled, x, goals, closeness=0.75), run_method(set_up, x, goals))
    assert not torch.equal(run_method(dialled, x, goals), run_method(set_up, x, goals))
    with pytest.raises(InputError, match="closeness"):
        explainer.explain(lending.table(5).drop(columns="decision"), closeness=1.5)


def test_the_registry_knows_both_readings_by_name():
    assert METHODS["guided"]() == GuidedSearch()
    assert METHODS["guided_literal"]() == GuidedLiteral() == GUIDED_LITERAL
    assert Guided() == GUIDED != GUIDED_LITERAL
    own = {f.name: getattr(GuidedSearch(), f.name) for f in fields(Guided)}
    assert own == {f.name: getattr(GUIDED, f.name) for f in fields(Guided)}  # the same reading


def test_the_two_readings_differ_in_these_settings_only():
    differ = {f.name: (getattr(GUIDED, f.name), getattr(GUIDED_LITERAL, f.name)) for f in fields(Guided)}
    assert {name: pair for name, pair in differ.items() if pair[0] != pair[1]} == {
        "start": (0.6, 1.0), "proximity": (1.0, 0.0), "sigma": ("deviation", "variance"), "loop_noise": (True, False),
        "guidance": (1.15, 1.0), "tau": ((5.0, 5.0), None), "cat_scale": ("norm_pi", "norm"),
        "noise_length": (2.0, INDEPENDENT),
        "steps": (50, None), "cat_gradient": ("denoised", "noisy"), "blend": ("noised", "x_t"),
        "soft_posterior": (False, True),
    }  # fmt: skip


def test_the_letter_is_a_paper_method_with_its_settings(scene):
    task, x, goals = scene
    spelt = Guided(
        start=1.0, proximity=0.0, sigma="variance", loop_noise=False, steps=8, cat_gradient="noisy", cat_scale="norm",
        guidance=1.0, cat_guidance=1.0, noise_length=INDEPENDENT, blend="x_t", soft_posterior=True, tau=None,
    )  # fmt: skip
    printed = GuidedLiteral(steps=8).fit(task)
    assert type(printed) is GuidedLiteral
    assert torch.equal(run_method(spelt.fit(task), x, goals), run_method(printed, x, goals))


def test_without_noise_in_the_loop_only_line_1_is_random(scene):
    """Nothing is drawn after it, and two seeds differ by what line 1 drew; nor does a last step's noise come back."""
    task, x, goals = scene
    drawn, counts = [], {}

    class Counted(Noise):
        def normal(self, width: int) -> Tensor:
            drawn.append(width)  # for Gumbel noise too, which is made from it
            return super().normal(width)

    for loop, last in ((False, False), (False, True), (True, False), (True, True)):
        drawn.clear()
        method = reading(steps=6, loop_noise=loop, last_noise=last).fit(task)
        last_of(method.walk(x, goals, Counted(x, 0), 0.5))
        counts[loop, last] = len(drawn)
    assert counts == {(False, False): 2, (False, True): 2, (True, False): 12, (True, True): 14}  # two a step
    still = reading(steps=6, loop_noise=False).fit(task)
    one, same, other = (last_of(still.walk(x, goals, Noise(x, seed), 0.5)) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_an_explainer_takes_the_letter_by_name_and_keeps_it(explainer, tmp_path):
    assert tdce.Explainer(method="guided_literal").chosen_method == GUIDED_LITERAL
    made = tdce.Explainer(method=GuidedLiteral(steps=12), progress="silent")
    made.fitted_ = explainer.fitted_
    made.save(tmp_path / "a.tdce")
    again = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent")
    assert again.method == GuidedLiteral(steps=12)
    assert type(again.method) is GuidedLiteral
    people = lending.refused(explainer, 8)
    assert again.explain(people).to_frame().equals(made.explain(people).to_frame())


# ---- g_cat, noise that rows share, and line 8


@pytest.mark.parametrize("kind", ["through", "denoised", "noisy"])
def test_g_cat_is_the_gradient_by_central_differences(scene, kind):
    """Of log p(y | f_dn(x_t)) in x_t, of log p(y | x_0) at x_0 = f_dn(x_t), or of log p(y | x_t) in x_t."""
    task, x, goals = scene
    task = replace(task, diffusion=deepcopy(task.diffusion).double(), guide=deepcopy(task.guide).double())
    x, goals, num, h = x[:16].double(), goals.take(torch.arange(16)), task.space.num, 1e-5
    x_t = task.diffusion.add_noise(x, 300, Noise(x, 0)).double()
    x_0 = task.diffusion.denoise(x_t, 300)

    def value(column: int, h: float) -> Tensor:
        step = torch.zeros_like(x_t)
        step[:, column] = h
        at = {"through": lambda: task.diffusion.denoise(x_t + step, 300), "denoised": lambda: x_0 + step}
        return log_p(task, at.get(kind, lambda: x_t + step)(), goals)

    columns = range(num, task.space.width)
    slope = torch.stack([(value(i, h) - value(i, -h)) / (2 * h) for i in columns], dim=1)
    found = Guided(cat_gradient=kind).fit(task).gradients(x_t, 300, x, goals)
    torch.testing.assert_close(found.cat, slope.detach(), atol=1e-6, rtol=1e-4)


def test_rows_share_their_noise_as_far_as_the_length_says(scene):
    """The same rows but for one that is far off, in another order: shared noise is the same for all of them."""
    task, x, goals = scene
    near = x[:64].clone()
    near[1] = near[0]
    near[1, 0] += 0.05
    gaps = {}
    for length in (INDEPENDENT, 2.0, SHARED):
        method = Guided(noise_length=length, guidance=0.0, proximity=0.0, start=1.0, steps=4).fit(task)
        x_cf = run_method(method, near, goals.take(torch.arange(64)))
        gaps[length] = (x_cf[0] - x_cf[1]).abs().max().item(), x_cf[:, : task.space.num].std(dim=0).max().item()
    assert gaps[INDEPENDENT][0] > 0.2 > gaps[2.0][0]
    assert gaps[SHARED][0] < 0.05
    assert gaps[SHARED][1] < 0.3 * gaps[2.0][1]  # from pure noise, everybody ends at nearly the same place


def test_line_8_as_printed_leaves_immutable_features_as_line_1_noised_them(scene):
    task, x, goals = scene
    frozen = task.space.mask(["income"])
    method = Guided(blend="x_t", steps=4).fit(replace(task, mutable=~frozen))
    steps = list(method.walk(x, goals, Noise(x, 0), 0.5))
    first = steps[0][1][:, frozen]
    assert not torch.equal(first, x[:, frozen])
    assert all(torch.equal(x_t[:, frozen], first) for _, x_t, _ in steps)
    assert torch.equal(run_method(method, x, goals)[:, frozen], x[:, frozen])


# ---- for users: the best of several walks, refined


def test_the_best_of_several_walks_is_no_worse_than_the_best_of_one(explainer, scene):
    """By the objective, over all rows; one walk is what the benchmark's `Refined(Guided())` does."""
    task, x, goals = scene
    x, goals = x[:64], goals.take(torch.arange(64))
    query = make_query(task, x, goals)
    objective = Objective(task, query, Noise(x, 0), torch.ones(64).long())
    total = {}
    for walks in (1, 3):
        x_cf = run_method(GuidedSearch(walks=walks, steps=12).fit(task), x, goals)
        assert meets_goals(task, x_cf, goals).all()
        at = torch.arange(64)
        total[walks] = objective.total(
            objective.cost(x_cf, at), objective.energy(x_cf, at), DiffusionSearch().closeness
        )
    assert total[3].mean() < total[1].mean()
    one = run_method(Refined(Guided(steps=12)).fit(task), x, goals)
    assert torch.equal(one, run_method(GuidedSearch(walks=1, steps=12).fit(task), x, goals))


def test_guided_gives_users_valid_answers_options_and_laws_like_everybody(explainer):
    asking = copy(explainer)
    asking.method = GuidedSearch(walks=2, steps=12)
    people = lending.refused(explainer, 24)
    answer = asking.explain(people, n=3, immutable=["age"], closeness=0.9)
    assert (answer.explanation.status == "valid").all()
    assert (answer.to_frame()["age"].to_numpy() == people["age"].to_numpy().repeat(3)).all()
    options = answer.explanation.raw
    assert (options[:, :1] != options[:, 1:]).any(axis=2).mean() > 0.5  # several, and different ones
    near = asking.trade_off(people, closeness=[0.25, 1.0])
    assert (near[1.0].explanation.distance <= near[0.25].explanation.distance + 1e-6).all()
    assert (near[1.0].explanation.distance < near[0.25].explanation.distance).any()
    with pytest.raises(InputError, match="walks"):
        GuidedSearch(walks=0)
