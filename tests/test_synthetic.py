"""Synthetic rows: as many as the table asks for, of the table's kind, the same ones every time."""

import lending
import mutants
import numpy as np
import pytest
import torch

import tdce
from tdce._core.progress import Progress
from tdce.diffusion import synthetic
from tdce.explainer.fitting import fit

SILENT = Progress("silent")


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.mark.parametrize(("rows", "count"), [(10, 1024), (512, 1024), (513, 2048), (3000, 6144), (10**5, 8192)])
def test_there_are_two_for_each_row_in_whole_batches(rows, count):
    y = (torch.arange(rows) % 10 == 0).long()
    drawn = synthetic.classes_to_draw(y, 0)
    assert len(drawn) == count
    assert abs(drawn.float().mean().item() - y.float().mean().item()) < 4 * (0.09 / count) ** 0.5  # four deviations
    assert torch.equal(drawn, synthetic.classes_to_draw(y, 0))
    assert not torch.equal(drawn, synthetic.classes_to_draw(y, 1))


def test_their_values_are_on_the_grid_and_known_to_the_columns(explainer):
    fitted = explainer.fitted
    assert fitted.synthetic.shape == (512, 4)
    for learned, values in zip(fitted.encoder.columns, fitted.synthetic.T, strict=True):
        assert learned.knows(values).all()
    frame = fitted.encoder.write(fitted.synthetic, lending.table(512).drop(columns="decision"))
    assert (frame["income"] % 10 == 0).all()
    np.testing.assert_array_equal(frame["debt"], frame["debt"].round(2))
    torch.testing.assert_close(fitted.task().synthetic, fitted.encoder.embed(fitted.synthetic).float(), rtol=0, atol=0)


@pytest.mark.parametrize("step", [None, 1000.0])
def test_nobody_is_beyond_the_data_whether_a_number_has_a_grid_or_none(step):
    frame = lending.table(200)
    frame["debt"] = frame["debt"] * np.pi if step is None else frame["debt"]
    schema = tdce.Schema.infer(frame, "decision").change("debt", step=step)
    made = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(frame, label="decision", schema=schema).fitted
    debt = made.synthetic[:, list(made.encoder.schema.names).index("debt")]
    assert frame["debt"].min() <= debt.min() < debt.max() <= frame["debt"].max()
    if step is not None:
        assert ((debt % step == 0) | np.isin(debt, [frame["debt"].min(), frame["debt"].max()])).all()


def test_they_may_have_missing_cells_where_the_table_has_and_nowhere_else():
    made = mutants.explainer().fitted
    missing = np.isnan(made.synthetic).any(axis=0).tolist()
    assert not missing[0]  # income is never missing
    assert not missing[3]
    for learned, values in zip(made.encoder.columns, made.synthetic.T, strict=True):
        assert learned.knows(values[~np.isnan(values)]).all()


def test_they_look_like_the_table(explainer):
    frame, raw = lending.table(), explainer.fitted.synthetic
    income, debt = raw[:, 0], raw[:, 1]
    assert abs(income.mean() - frame["income"].mean()) < 0.3 * frame["income"].std()
    assert abs(debt.mean() - frame["debt"].mean()) < 0.3 * frame["debt"].std()
    said = explainer.fitted.model.score(raw).argmax(axis=1)
    assert abs(said.mean() - (frame["decision"] == "yes").mean()) < 0.15


def test_they_are_of_the_class_that_is_asked_for(explainer):
    fitted = explainer.fitted
    for k in (0, 1):
        raw = synthetic.draw_synthetic(fitted.encoder, fitted.diffusion, torch.full((256,), k), 0, SILENT)
        assert (fitted.model.score(raw).argmax(axis=1) == k).mean() > 0.8


def test_the_seed_decides_and_the_number_of_threads_does_not(explainer):
    fitted, y, threads = explainer.fitted, torch.arange(256) % 2, torch.get_num_threads()

    def drawn(seed: int) -> np.ndarray:
        return synthetic.draw_synthetic(fitted.encoder, fitted.diffusion, y, seed, SILENT)

    try:
        one = drawn(0)
        torch.set_num_threads(2)
        np.testing.assert_array_equal(drawn(0), one)
    finally:
        torch.set_num_threads(threads)
    assert not np.array_equal(drawn(1), one)


def test_fit_says_that_it_draws_them(capsys):
    fit(lending.table(60), "decision", None, None, (), 8, (0.5, 0.2), 5, 0, tdce.TrainingPlans(), Progress("lines"))
    assert "synthetic rows: done" in capsys.readouterr().err
