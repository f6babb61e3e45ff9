"""The default method: each of its parts by a second route, and what it promises as a whole."""

from dataclasses import replace

import lending
import numpy as np
import pandas as pd
import pytest
import torch
from asking import accepted, driven, limits_of, proposed, query_of, towards
from sklearn.metrics import roc_auc_score
from torch import Tensor

import tdce
from tdce.diffusion import gaussian
from tdce.encoder import Encoder
from tdce.errors import InputError
from tdce.goal import AtLeast, Class, Goals
from tdce.judge import Judge
from tdce.methods import TDCE, Task
from tdce.methods import tdce as default
from tdce.methods.neighbours import Typical, crowd, drawn, main_directions, nearest_accepted, pool_of, separation
from tdce.methods.tdce import Aim
from tdce.models.model import OnEncoded
from tdce.noise import Noise
from tdce.schema import Schema


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def scene(explainer) -> tuple[Task, Tensor, Goals]:
    """A task, encoded refused rows (64, width) and their goals."""
    fitted = explainer.fitted_
    x = fitted.encoder.encode(lending.refused(explainer, 64)).float()
    return fitted.task(), x, towards(fitted.classes.index("yes"), x)


def p_of(task: Task, x: Tensor, k: int) -> Tensor:
    with torch.no_grad():
        return task.guide(x).softmax(dim=1)[:, k]


def judged_by(task: Task, classify, **others) -> Task:
    """The same task with another model, which also leads."""
    judge = Judge(OnEncoded(classify, task.encoder.embed, task.judge.model.classes))
    return replace(task, judge=judge, guide=classify, memo={}, **others)


def halves() -> Tensor:
    """(64, 1) of which neighbour the categories are."""
    return torch.full((64, 1), 0.5)


def test_the_typical_row_has_the_mean_numbers_of_the_nearest_confident_rows_and_the_categories_of_one(scene):
    """The second route: numpy, one query after another."""
    task, x, goals = scene
    found = Typical(20, 0.8, 0.0, None, 1.5).rows(task, x, goals, halves())
    p = p_of(task, task.x, goals.goal(0).of).numpy()
    rows, num = task.x.numpy()[p >= 0.8], task.space.num
    assert len(rows) > 100
    for i in range(5):
        near = np.sort(np.square(rows - x[i].numpy()).sum(axis=1).argsort()[:20])
        centre, mean = rows.mean(axis=0)[:num], rows[near].mean(axis=0)[:num]
        np.testing.assert_allclose(found[i, :num].numpy(), centre + 1.5 * (mean - centre), atol=1e-4)
        np.testing.assert_array_equal(found[i, num:].numpy(), rows[near[10], num:])


@pytest.mark.parametrize("width", [7, 108])
def test_the_typical_row_is_the_same_to_the_bit_with_one_thread_and_two(scene, width):
    """On tables as large as real ones: sums over thousands of rows are where a second thread changes bits."""
    task, _, _ = scene
    rows = torch.randn(6000, width, generator=torch.Generator().manual_seed(0))
    encoder = Encoder.fit(pd.DataFrame({str(i): [-1.5, 0.0, 1.5] for i in range(width)}))
    large = replace(
        judged_by(task, lambda x: torch.stack([-x[:, 0], x[:, 0] + x[:, 1]], dim=1)), encoder=encoder, x=rows
    )
    found, threads = [], torch.get_num_threads()
    goals, u = towards(1, rows[:256]), torch.full((256, 1), 0.5)
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            large.memo.clear()
            found.append(Typical(200, 0.6, 0.5, 2, 1.5).rows(large, rows[:256], goals, u))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


def test_each_neighbour_is_drawn_as_often_as_the_others():
    near = torch.tensor([[0.0, 1.0, 1.0, 0.0, 1.0, 0.0]]).expand(3000, -1)
    u = (torch.arange(3000)[:, None] + 0.5) / 3000
    assert torch.bincount(drawn(near, u), minlength=6).tolist() == [0, 1000, 1000, 0, 1000, 0]
    ends = torch.tensor([[1e-12], [1 - 1e-12]], dtype=torch.double)
    assert drawn(near[:2], ends).tolist() == [1, 4]


def test_the_crowd_counts_ties_and_is_everyone_where_there_are_too_few():
    pool = torch.tensor([[0.0], [1.0], [-1.0], [5.0]])
    assert crowd(torch.zeros(1, 1), pool, 2).tolist() == [[1, 1, 1, 0]]
    assert crowd(torch.zeros(1, 1), pool, 9).tolist() == [[1, 1, 1, 1]]


def test_separation_is_the_gini_of_each_number(scene):
    """The second route: scikit-learn's AUC."""
    task, _, goals = scene
    goal = goals.goal(0)
    with torch.no_grad():
        inside = (task.guide(task.x).argmax(dim=1) == goal.of).numpy()
    gini = [abs(2 * roc_auc_score(inside, task.x[:, j].numpy()) - 1) for j in range(task.space.num)]
    np.testing.assert_allclose(separation(task, goal).numpy(), np.array(gini) / max(gini), rtol=1e-5)


def test_where_nothing_separates_the_classes_nothing_is_kept(scene):
    task, _, goals = scene
    always = judged_by(task, lambda rows: torch.tensor([[0.0, 1.0]]).expand(len(rows), -1))
    assert torch.equal(separation(always, Class(1)), torch.ones(task.space.num))  # the model accepts everyone
    assert torch.equal(separation(always, Class(0)), torch.ones(task.space.num))  # or nobody
    flat = replace(task, x=task.x[:1].expand(50, -1))
    assert torch.equal(separation(flat, goals.goal(0)), torch.ones(task.space.num))


def test_a_number_keeps_the_more_of_its_own_value_the_less_it_separates(scene):
    task, x, goals = scene
    u, num = halves(), task.space.num
    apart = separation(task, goals.goal(0))
    plain, kept = (Typical(20, 0.8, own, None, 1.0).rows(task, x, goals, u)[:, :num] for own in (0.0, 0.6))
    torch.testing.assert_close(kept, plain + 0.6 * (1 - apart) * (x[:, :num] - plain), atol=1e-5, rtol=0)
    assert torch.equal(kept[:, apart == 1], plain[:, apart == 1])


def test_the_main_directions_are_those_of_the_singular_vectors(scene):
    """The second route: a singular value decomposition of the rows, instead of their covariance's eigenvectors."""
    task, x, goals = scene
    goal, num = goals.goal(0), task.space.num
    pool = pool_of(task, goal, 0.8)
    centre = pool.mean(dim=0)
    axes = torch.linalg.svd(pool - centre, full_matrices=False).Vh[:2]
    plain = Typical(20, 0.8, 0.0, None, 1.0).rows(task, x, goals, halves())
    mean = (crowd(x, pool, 20) @ pool) / 20
    away = mean - centre
    along = away @ axes.T @ axes
    found = Typical(20, 0.8, 0.0, 2, 3.0).rows(task, x, goals, halves())
    torch.testing.assert_close(
        found[:, :num], (centre + 3.0 * (along + 0.5 * (away - along)))[:, :num], atol=1e-3, rtol=0
    )
    assert torch.equal(found[:, num:], plain[:, num:])
    whole = main_directions(task, goal, 0.8, task.space.width)
    torch.testing.assert_close(whole, torch.eye(task.space.width), atol=1e-6, rtol=0)


def test_a_pool_that_is_too_small_takes_the_likeliest_rows(scene):
    task, _, goals = scene
    goal = goals.goal(0)
    pool = pool_of(task, goal, 0.999999999)
    assert len(pool) == 100
    p = p_of(task, task.x, goal.of)
    assert p_of(task, pool, goal.of).min() >= p.sort(descending=True).values[100]


def test_the_nearest_rows_agree_on_what_cannot_change(scene):
    task, x, goals = scene
    frozen = task.space.mask(["housing"])
    rows = nearest_accepted(replace(task, mutable=~frozen), x, goals, 30)
    assert torch.equal(rows[:, :, frozen], x[:, None, frozen].expand(-1, 30, -1))
    away = (rows - x[:, None]).square().sum(dim=2)
    assert (away.diff(dim=1) >= -1e-4).all()


def test_two_targets_in_one_batch_each_get_their_own_rows(scene):
    task, x, goals = scene
    k = goals.goal(0).of
    mixed, other = Goals((Class(k), Class(1 - k)), (torch.arange(64) + 1) % 2), towards(1 - k, x)
    typical, u = Typical(20, 0.7, 0.5, 3, 1.0), halves()
    both = typical.rows(task, x, mixed, u)
    torch.testing.assert_close(both[1::2], typical.rows(task, x, goals, u)[1::2])
    torch.testing.assert_close(both[::2], typical.rows(task, x, other, u)[::2])


@pytest.mark.parametrize(("share", "weight"), [(0.0, 0.0), (0.4, 0.4), (1.0, 1.0)])
def test_the_aim_lies_between_the_typical_row_and_the_query(scene, share, weight):
    task, x, goals = scene
    method = TDCE().fit(task)
    noise = Noise(x, 0)
    u = noise.field(5, method.length).uniform(1)
    middle = Typical(method.neighbours, method.confidence, 0.0, None, 1.0).rows(task, x, goals, u)
    num, cat = task.space.split((1 - weight) * middle + weight * x)
    query = query_of(task, x, goals)
    aim = method.aim(query, share, noise)
    torch.testing.assert_close(aim.num, num.clamp(query.reach.low, query.reach.high))
    torch.testing.assert_close(aim.log_prior.exp(), cat.clamp_min(1e-3))


def test_the_gradient_is_the_slope_of_log_p_and_nothing_where_nothing_is_needed(scene):
    task, x, goals = scene
    method = TDCE(confidence=0.9).fit(task)

    def free(x: Tensor) -> Aim:
        return Aim(
            x, x, torch.full((64, task.space.num), -9.0), torch.full((64, task.space.num), 9.0), torch.ones_like(x)
        )

    k = goals.goal(0).of
    g, p = method.gradient(x, goals, free(x)), p_of(task, x, k)
    step = 1e-2
    for column in range(task.space.num):  # against differences of log p
        moved = torch.zeros(task.space.width).index_fill(0, torch.tensor(column), step)
        slope = (p_of(task, x + moved, k).log() - p_of(task, x - moved, k).log()).double() / (2 * step)
        ratio = g[:, column].double() / slope
        if column == 0:
            first = ratio
        torch.testing.assert_close(ratio[slope.abs() > 0.2], first[slope.abs() > 0.2], rtol=0.05, atol=1e-3)
    length = g[:, : task.space.num].norm(dim=1)
    torch.testing.assert_close(length, (1 - p / 0.9).clamp_min(0), atol=1e-5, rtol=0)
    sure = pool_of(task, goals.goal(0), 0.95)[:64]
    assert torch.equal(method.gradient(sure, goals, free(sure)), torch.zeros_like(sure))


def test_nothing_is_propagated_back_through_the_denoiser(scene, monkeypatch):
    task, x, goals = scene
    seen = []
    real = task.diffusion.denoised
    monkeypatch.setattr(task.diffusion, "denoised", lambda *a: seen.append(torch.is_grad_enabled()) or real(*a))
    proposed(TDCE().fit(task), x, goals)
    assert seen
    assert not any(seen)


def test_the_estimate_is_drawn_to_the_aim_and_all_the_way_with_a_pull_of_one(scene):
    task, x, goals = scene
    num, cat = task.space.split(task.x[:64])
    aim = Aim(num, task.space.softmax(cat).log(), num - 9, num + 9, torch.ones_like(x))
    guided = TDCE(pull=1.0, guidance=0.0, cat_guidance=0.0).fit(task).guided(x, goals, aim, 1.0)
    torch.testing.assert_close(guided, task.space.join(num, task.space.softmax(cat)))
    still = TDCE(pull=0.0, guidance=0.0, cat_guidance=0.0).fit(task).guided(x, goals, aim, 1.0)
    torch.testing.assert_close(still, x)


def test_only_rows_that_are_not_valid_yet_go_on_and_with_more_strength(scene, monkeypatch):
    task, x, goals = scene
    walks = []

    def walk(self, x, goals, aim, noise, start, strength):
        walks.append((len(x), start, strength))
        return usual(self, x, goals, aim, noise, start, strength)

    usual = TDCE.walk
    monkeypatch.setattr(TDCE, "walk", walk)
    weak = TDCE(guidance=0.02, ladder=(0.1, 0.2, 0.3, 0.5)).fit(task)
    twice = torch.cat([x] * 4)  # 256 rows, so that fewer than all can go on
    noise, query = Noise(twice, 0), query_of(task, twice, towards(goals.goal(0).of, twice))
    driven(weak.climb(query, weak.aim(query, 1.0, noise), noise), task, twice, query.goals)
    sizes, starts, strengths = zip(*walks, strict=True)
    assert sizes[0] == 256
    assert list(sizes) == sorted(sizes, reverse=True)
    assert sizes[-1] < 256
    assert starts == (0.1, 0.2, 0.3, 0.5)[: len(starts)]
    assert list(strengths) == sorted(strengths)


def test_where_no_walk_arrives_the_last_rung_starts_from_a_real_row(scene):
    task, x, goals = scene
    lame = TDCE(guidance=0.0, cat_guidance=0.0, ladder=(0.01,), closeness=0.5).fit(task)
    noise, query = Noise(x, 0), query_of(task, x, goals)
    _, left = driven(lame.climb(query, lame.aim(query, 1.0, noise), noise), task, x, goals)
    assert left.all()
    x_cf = proposed(lame, x, goals)
    assert accepted(task, x_cf, goals).all()
    copied = (torch.cdist(x_cf, task.x) < 1e-6).any(dim=1).float().mean()
    assert copied < 0.5  # noised and denoised where the verdict allows it


def test_where_the_model_accepts_nobody_the_rows_are_best_effort(explainer):
    assert (explainer.predict_proba(lending.table(2000, seed=3))["yes"] < 0.9999).all()
    frame = explainer.explain(lending.refused(explainer, 5), threshold=0.999998).to_frame()
    assert (frame["status"] == "best_effort").all()
    assert (frame["score_before"] < 0.5).all()
    assert frame["score_after"].between(0.9, 0.999998, inclusive="neither").all()  # as near as it goes
    assert frame["note"].str.startswith("no change was found that the model accepts, only one that raises").all()


def test_a_stride_keeps_the_noise_that_the_numbers_have(scene):
    """The second route: if the estimate is the clean row, x_s is the clean row noised to s with the same noise."""
    task, x, _ = scene
    diffusion, num = task.diffusion, task.space.num
    eps = torch.randn(64, num, generator=torch.Generator().manual_seed(0))
    a_t, a_s = diffusion.schedule.alpha_bar[600], diffusion.schedule.alpha_bar[300]
    x_t = torch.cat([gaussian.noised(x[:, :num], a_t, eps), x[:, num:]], dim=1)
    x_s = diffusion.stride(x_t, x, 600, 300, Noise(x, 0))
    torch.testing.assert_close(x_s[:, :num], gaussian.noised(x[:, :num], a_s, eps), atol=1e-4, rtol=1e-4)
    last = diffusion.stride(x_t, x, 600, 0, Noise(x, 0))
    torch.testing.assert_close(last[:, :num], x[:, :num], atol=1e-5, rtol=0)
    assert torch.equal(task.space.one_hot(last[:, num:]), x[:, num:])


def test_the_dial_goes_from_typical_to_close(explainer):
    people = lending.refused(explainer, 100)
    found = [tdce.evaluate(explainer, explainer.explain(people, closeness=c)) for c in (0.0, 0.5, 1.0)]
    assert found[0]["l2"] > found[1]["l2"] > found[2]["l2"]
    assert found[0]["realism"] < found[2]["realism"]
    assert found[0]["sparsity"] > found[2]["sparsity"]
    assert all(f["validity"] == 1 for f in found)
    for wrong in (-0.1, float("nan"), "high"):
        with pytest.raises(InputError, match="closeness"):
            explainer.explain(people, closeness=wrong)


@pytest.mark.parametrize(
    ("closeness", "option", "aim", "back"),
    [
        (0.0, 0, 0.0, None), (0.025, 0, 0.05, None), (0.35, 0, 0.7, None), (0.5, 0, 0.7, 0.3 / 1.3),
        (0.9, 0, 0.7, 1.1 / 1.3), (1.0, 0, 0.7, 1.0), (0.025, 1, 0.05, None), (0.9, 1, 1.0, 1.1 / 1.3),
    ],
)  # fmt: skip
def test_the_dial_moves_the_aim_first_and_then_the_way_back(scene, monkeypatch, closeness, option, aim, back):
    task, x, goals = scene
    seen = {}
    usual_aim, usual_back = TDCE.aim, default.come_back

    def aimed(self, query, share, noise, likes):
        seen["aim"] = share
        return usual_aim(self, query, share, noise, likes)

    def come_back(query, space, x_cf, share, order_of):
        seen["back"] = share
        return usual_back(query, space, x_cf, share, order_of)

    monkeypatch.setattr(TDCE, "aim", aimed)
    monkeypatch.setattr(default, "come_back", come_back)
    proposed(TDCE().fit(task), x, goals, option=option, closeness=closeness)
    assert seen["aim"] == pytest.approx(aim)
    assert seen.get("back") == (None if back is None else pytest.approx(back))


def test_a_typical_answer_is_the_same_to_the_bit_in_any_company(explainer):
    made = tdce.Explainer(TDCE(closeness=0.025, own_share=0.5, factors=2, spread=1.5), progress="silent")
    made.fitted_ = explainer.fitted_
    people = lending.refused(explainer, 300)
    whole = made.explain(people, n=2).to_frame()
    for part in (people.iloc[[7]], people.iloc[100:163], people.iloc[::-1]):
        some = made.explain(part, n=2).to_frame()
        pd.testing.assert_frame_equal(some, whole.loc[part.index], check_exact=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"closeness": 2.0}, {"ladder": ()}, {"ladder": (0.0, 0.5)}, {"steps": 0}, {"steps": 6.5}, {"neighbours": 0},
        {"neighbours": 2.5}, {"own_share": -0.5}, {"factors": 0}, {"factors": 2.5}, {"factors": True},
    ],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        TDCE(**wrong)


def test_candidates_are_judged_inside_each_rows_own_limits():
    """Debt may only grow and income only within a range: what is called valid is valid as it is returned."""
    frame = lending.table()
    schema = Schema.infer(frame, "decision").change("debt", direction="increase").change("income", low=1000, high=5000)
    made = tdce.Explainer(hidden=64, steps=400, progress="silent").fit(frame, "decision", "yes", schema)
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
    made = tdce.Explainer(hidden=64, steps=200, progress="silent").fit(frame, "decision", "yes")
    fitted = made.fitted_
    task = fitted.task()
    x = fitted.encoder.encode(lending.refused(made, 64)).float()
    proposal = x.clone()
    block = list(task.space.places["housing"])
    proposal[:, block] = torch.eye(len(block))[-1]  # the last weight means missing
    settled = task.encoder.embed(limits_of(task, x).snap(proposal)).float()[:, block]
    assert torch.equal(settled.sum(dim=1), torch.ones(64))
    assert torch.equal(settled[:, -1], x[:, block[-1]])


def test_a_number_at_its_end_leaves_the_push_to_the_others(scene):
    task, x, goals = scene
    method, num = TDCE().fit(task), task.space.num
    wide = Aim(x, x, torch.full((64, num), -9.0), torch.full((64, num), 9.0), torch.ones_like(x))
    g = method.gradient(x, goals, wide)[:, :num]
    strongest = g.abs().argmax(dim=1, keepdim=True)
    here = torch.zeros(64, num, dtype=torch.bool).scatter_(1, strongest, True)
    walled = wide._replace(low=torch.where(here, x[:, :num], -9.0), high=torch.where(here, x[:, :num], 9.0))
    held = method.gradient(x, goals, walled)[:, :num]
    assert (held.gather(1, strongest) == 0).all()
    torch.testing.assert_close(held.norm(dim=1), g.norm(dim=1))  # all the push, in what can still move


def test_an_answer_is_found_wherever_one_accepted_row_agrees_on_what_cannot_change(explainer):
    """All but income and debt fixed, a method that cannot walk: the last rung alone decides."""
    lame = tdce.Explainer(TDCE(guidance=0.0, cat_guidance=0.0, ladder=(0.01,)), progress="silent")
    lame.fitted_ = explainer.fitted_
    learned = lending.table().assign(said=explainer.predict(lending.table()).to_numpy())
    agreeing = learned.loc[learned["said"] == "yes", ["age", "housing"]].drop_duplicates()
    people = lending.refused(explainer, 200)
    answer = lame.explain(people, immutable=["age", "housing"]).to_frame()
    lucky = people.merge(agreeing, on=["age", "housing"], how="left", indicator=True)["_merge"].to_numpy() == "both"
    assert lucky.sum() > 50
    assert (answer["status"].to_numpy()[lucky] == "valid").all()


def test_the_guidance_goes_on_beyond_a_wanted_probability(scene):
    """The second route by hand: at p = 0.85 a walk that wants 0.75 has nothing to do, but one towards at least 0.9 has
    1 - 0.85 / (0.9 + 0.1 * 0.1) of its strength left."""
    task, _, goals = scene
    k = goals.goal(0).of

    def classify(x: Tensor) -> Tensor:
        odds = torch.logit(torch.tensor(0.85)) + 0.0 * x.sum(dim=1) + x[:, 0] - x[:, 0].detach()
        return torch.stack([torch.zeros(len(x)), odds] if k else [odds, torch.zeros(len(x))], dim=1)

    rows = task.x[:64]
    method = TDCE(confidence=0.75).fit(judged_by(task, classify))
    wide = Aim(
        rows, rows, torch.full((64, task.space.num), -9.0), torch.full((64, task.space.num), 9.0), torch.ones_like(rows)
    )
    assert torch.equal(method.gradient(rows, towards(k, rows), wide), torch.zeros_like(rows))
    pushed = method.gradient(rows, Goals.all(AtLeast(k, 0.9), 64), wide)
    torch.testing.assert_close(pushed[:, 0], torch.full((64,), 1 - 0.85 / 0.91), atol=1e-5, rtol=0)


def test_categories_are_led_to_what_raises_the_probability(scene):
    """By hand: a model that likes the last category of housing, a row that leaves all of them open."""
    task, x, goals = scene
    k, block = goals.goal(0).of, list(task.space.places["housing"])

    def classify(x: Tensor) -> Tensor:
        return torch.stack(
            [torch.zeros(len(x)), x[:, block[-1]]] if k else [x[:, block[-1]], torch.zeros(len(x))], dim=1
        )

    rows = x.clone()
    rows[:, block] = 1 / len(block)
    log_prior = rows[:, task.space.num :].clamp_min(1e-3).log()
    aim = Aim(
        rows[:, : task.space.num],
        log_prior,
        rows[:, : task.space.num] - 9,
        rows[:, : task.space.num] + 9,
        torch.ones_like(x),
    )
    found = TDCE(pull=0.0, guidance=0.0).fit(judged_by(task, classify)).guided(rows, goals, aim, 1.0)[:, block]
    assert (found[:, -1] > 1 / len(block) + 0.1).all()
    assert (found[:, :-1] < 1 / len(block)).all()


def test_a_later_option_likes_what_no_other_has_changed(scene):
    """By hand: of two otherwise equal draws of liking, the feature that was changed before is liked less by exactly
    one, however often that was."""
    task, x, goals = scene
    method, changed = TDCE().fit(task), torch.zeros(64, len(task.space.members))
    changed[:, 1], changed[:, 2] = 1.0, 3.0
    fresh, later = (
        method.likes(query_of(task, x, goals, 1, changed=c), Noise(x, 0, 1))
        for c in (torch.zeros_like(changed), changed)
    )
    torch.testing.assert_close(fresh - later, changed.clamp(max=1.0), atol=1e-6, rtol=0)
