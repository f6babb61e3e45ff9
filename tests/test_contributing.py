"""The guide's method: one file, added as the guide says, keeps the contract of every method."""

import importlib.util
import re
import textwrap
from pathlib import Path

import lending
import pytest
import test_methods
from asking import class_goals

import tdce
from tdce.methods.registry import METHODS

GUIDE = Path(__file__).parent.parent / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture
def added(tmp_path, monkeypatch) -> str:
    """The method of the guide, in the registry."""
    (code,) = re.findall(r"^   ```python\n(.*?)^   ```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "yours.py").write_text(textwrap.dedent(code), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("yours", tmp_path / "yours.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "yours", module)  # dataclasses look there
    spec.loader.exec_module(module)
    monkeypatch.setitem(METHODS, "yours", module.Yours)
    return "yours"


def test_the_guides_method_answers_and_comes_back_from_a_file(explainer, added, tmp_path):
    made = tdce.Explainer(added, keep_rows=True, progress="silent")
    made.fitted_ = explainer.fitted_
    people = lending.refused(explainer, 50)
    frame = made.explain(people, immutable=["age"]).to_frame()
    assert (frame["status"] == "valid").mean() > 0.8
    assert (frame["age"].to_numpy() == people["age"].to_numpy()).all()
    made.save(tmp_path / "made.tdce")
    back = tdce.Explainer.load(tmp_path / "made.tdce", progress="silent")
    assert back.explain(people, immutable=["age"]).to_frame().equals(frame)
    with pytest.raises(tdce.InputError, match="candidates is 0"):
        METHODS[added](candidates=0)


def test_the_guides_method_keeps_the_contract(explainer, added):
    fitted = explainer.fitted_
    x = fitted.encoder.encode(lending.refused(explainer, 64)).float()
    scene = fitted.task(), x, class_goals(fitted.classes.index("yes"), x)
    method = METHODS[added]().fit(scene[0])
    answered = test_methods.answers(method, scene)
    test_methods.test_rows_come_back_whole_finite_and_one_hot(scene, answered)
    test_methods.test_the_seed_decides(scene, method, added)
    test_methods.test_arguments_are_not_edited(scene, answered)
    test_methods.test_immutable_columns_are_kept(scene, added)
    test_methods.test_a_row_does_not_depend_on_its_neighbours(scene, method, answered)
    test_methods.test_an_easy_task_is_moved_towards_the_target(scene, method, answered)
    test_methods.test_what_it_says_of_itself_is_true(explainer, method, added)
