"""Rows that something is tested on take no part in its training: found by their content, not by their numbers."""

import lending
import numpy as np
import pytest
import torch

import tdce
from tdce.cli.inspect import _print_facts
from tdce.diffusion.model import TabularDiffusion
from tdce.explainer import evaluation, fitting
from tdce.explainer.explainer import Explainer
from tdce.models.classifier import Classifier
from tdce_reproduction.benchmark.cell import Bench


@pytest.fixture
def seen(monkeypatch) -> dict[str, list[set[bytes]]]:
    """The encoded rows that each part of a fit is given, by its name; a row is its bytes."""
    found: dict[str, list[set[bytes]]] = {"trained": [], "stopped": [], "tested": []}

    def rows(x: torch.Tensor) -> set[bytes]:
        return {row.tobytes() for row in x.numpy()}

    def watched(kind, held_out: int):
        usual = kind.fit

        def fit(self, x, *others):
            found["trained"].append(rows(x))
            found["stopped"].append(rows(others[held_out]))
            return usual(self, x, *others)

        monkeypatch.setattr(kind, "fit", fit)

    watched(Classifier, 1)
    watched(TabularDiffusion, 0)
    usual = fitting._quality
    monkeypatch.setattr(fitting, "_quality", lambda c, x, y: found["tested"].append(rows(x)) or usual(c, x, y))
    return found


def small(seed: int = 0) -> Explainer:
    return Explainer(hidden=8, steps=5, seed=seed, progress="silent")


def test_the_accuracy_is_measured_on_rows_that_nothing_was_trained_on(seen):
    frame = lending.table(300)
    made = small().fit(frame, label="decision")
    encoder = made.fitted_.encoder
    raw = encoder.nearest_known(encoder.read(frame))  # as they are learned
    everyone = {row.tobytes() for row in encoder.embed(raw).float().numpy()}
    assert len(everyone) == 300  # no row twice, or content would prove nothing
    ((tested,), trained, stopped) = seen["tested"], seen["trained"], seen["stopped"]
    assert len(tested) == made.report["test_rows"] == 30
    assert len(trained) == len(stopped) == 2  # the classifier's and the diffusion model's
    for learned, checked in zip(trained, stopped, strict=True):
        assert (len(learned), len(checked)) == (240, 30)
        assert not learned & tested
        assert not checked & tested
        assert not learned & checked
        assert learned | checked | tested == everyone
    kept = {row.tobytes() for row in made.fitted_.x.numpy()}
    assert kept == trained[0]  # what methods search among


def test_a_tiny_table_serves_for_all_three_and_a_large_one_holds_no_more_back_than_it_needs():
    assert [len(part) for part in fitting.split_rows(49, 0)] == [49, 49, 49]
    assert [len(part) for part in fitting.split_rows(50, 0)] == [40, 5, 5]
    assert [len(part) for part in fitting.split_rows(100_000, 0)] == [96_000, 2_000, 2_000]
    for rows in (50, 1234, 100_000):
        assert torch.cat(fitting.split_rows(rows, 3)).sort().values.equal(torch.arange(rows))
    assert not torch.equal(fitting.split_rows(1234, 3)[2], fitting.split_rows(1234, 4)[2])


@pytest.mark.parametrize("part", ["test", "validation"])
def test_the_benchmark_asks_about_rows_that_nothing_was_fitted_to(monkeypatch, part):
    fitted, usual = [], Explainer.fit
    monkeypatch.setattr(Bench, "explainer", property(lambda self: small(self.seed)))
    monkeypatch.setattr(
        Explainer, "fit", lambda self, frame, **others: fitted.append(frame) or usual(self, frame, **others)
    )
    bench = Bench("german", 1, 500, part=part)
    names, raw = list(bench.data.schema.names), {row.tobytes() for row in bench.fitted.raw}
    (frame,) = fitted
    queries, learned, held_out = (
        set(rows[names].itertuples(index=False, name=None)) for rows in (bench.queries, frame, bench.data.part(part))
    )
    assert len(queries) >= 10
    assert len(learned) > 500
    assert queries <= held_out
    assert not learned & held_out
    assert not any(row.tobytes() in raw for row in bench.fitted.encoder.read(bench.queries))


@pytest.mark.parametrize("name", ["german", "adult"])
def test_the_parts_of_a_data_set_are_apart_and_together_all_rows(name):
    data = tdce.load(name, seed=2)
    assert np.array_equal(np.sort(np.concatenate(data.splits)), np.arange(len(data.frame)))
    assert data.part("test").index.tolist() == data.splits.test.tolist()


def test_an_accuracy_is_called_that_of_unseen_rows_only_if_they_are(tmp_path, capsys):
    """Kept from training, learned by a table that is too small to keep any, or perhaps known to a model that was given:
    in `report`, on the report page and in `tdce inspect` (tests/test_models.py: in `tdce fit`)."""
    kept = small().fit(lending.table(300), label="decision")
    tiny = small().fit(lending.table(40), label="decision")
    given = Explainer(model=lambda frame: (frame["income"] > 2500).to_numpy(), hidden=8, steps=5, progress="silent")
    given.fit(lending.table(300).assign(decision=lambda t: t["income"] > 2500), label="decision")
    said = {"unseen": "on 30 unseen rows", "learned": "on the 40 rows that it learned",
            "given": "of 30 rows, which the model may have learned"}  # fmt: skip
    for made, rows in ((kept, "unseen"), (tiny, "learned"), (given, "given")):
        assert made.report["accuracy_rows"] == made.inspect()["accuracy"]["accuracy_rows"] == rows
        _print_facts(made.inspect() | {"file": {"name": "a.tdce", "bytes": 0, "written": "today"}})
        printed = " ".join(capsys.readouterr().out.split())
        assert said[rows].removeprefix("on ").removeprefix("of ").removeprefix("the ") in printed
        made.explain(lending.table(5).drop(columns="decision")).to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert said[rows] in page
        assert ("unseen rows" in page) == (rows == "unseen")
        assert ("Agrees with the label" in page) == (rows == "given") == ("Accuracy" not in page)
    again = Explainer.load(saved(given, tmp_path), model=given.model, progress="silent")
    assert again.report["accuracy_rows"] == "given"


def saved(explainer: Explainer, folder):
    explainer.save(folder / "a.tdce")
    return folder / "a.tdce"


def test_no_row_of_a_tiny_table_is_held_out():
    made = small().fit(lending.table(40), label="decision")
    rows = evaluation._rows_of(made, lending.table(40))
    assert (len(rows.raw), len(rows.held)) == (40, 0)
