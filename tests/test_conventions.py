"""What a user holds follows the conventions of its neighbours: scikit-learn's estimators, numpydoc, completion."""

import doctest
import inspect
import re
import sys

import lending
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks

import tdce

CHECKS = ("parameters_default_constructible", "get_params_invariance", "set_params", "no_attributes_set_in_init")
METHODS = [name for name, value in vars(tdce.Explainer).items() if not name.startswith("_") and callable(value)]
METHODS += ["load"]
FOREIGN = {"Iterable", "Mapping", "Sequence", "Any", "Self", "None", "True", "False", "PathLike"}
FOREIGN |= {"DataFrame", "Series", "Figure", "Name", "Mode"}  # Name: of a column; Mode: of progress


@pytest.fixture
def usual_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the short training of other tests."""
    init = tdce.Explainer.__init__
    monkeypatch.setattr(init, "__kwdefaults__", init.__kwdefaults__ | {"plans": None})


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_that_apply_to_a_constructor_pass(name: str, usual_defaults: None) -> None:
    getattr(estimator_checks, f"check_{name}")("Explainer", tdce.Explainer())


def test_the_constructor_only_stores_and_fit_checks() -> None:
    strange = object()
    explainer = tdce.Explainer(strange, hidden=strange, exact=strange)
    assert explainer.get_params()["hidden"] is explainer.hidden is strange
    with pytest.raises(tdce.InputError, match="method is <object"):
        explainer.fit(lending.table(60), label="decision")


def test_what_was_learned_is_there_only_after_fit() -> None:
    explainer = tdce.Explainer()
    assert [name for name in vars(explainer) if name.endswith("_") or name.startswith("_")] == []
    assert not hasattr(explainer, "schema")  # hasattr asks for an AttributeError
    with pytest.raises(tdce.NotFittedError, match="not fitted"):
        explainer.schema  # noqa: B018
    assert {"fitted_", "usage_"} <= set(vars(lending.explainer()))


def test_a_clone_has_the_same_settings_and_a_model_that_stays_fitted() -> None:
    model = LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    explainer = tdce.Explainer("nice", model=model, seed=3)
    copied = clone(explainer)
    assert copied is not explainer
    assert copied.get_params() == explainer.get_params()
    assert copied.model is model
    assert not hasattr(clone(lending.explainer()), "fitted_")


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(tdce.InputError, match="there is no setting 'hiden'; did you mean 'hidden'\\?"):
        tdce.Explainer().set_params(hiden=3)
    assert tdce.Explainer().set_params(seed=4, exact=True).get_params()["seed"] == 4


def test_completion_shows_the_public_names_and_nothing_else() -> None:
    assert set(dir(tdce)) == {*tdce.__all__, "__version__"}
    assert not [name for name in tdce.__all__ if name.startswith("_")]


def test_whatever_stands_in_a_public_signature_is_public() -> None:
    for method in METHODS:
        text = str(inspect.signature(getattr(tdce.Explainer, method)))
        for name in re.findall(r"\b[A-Z][A-Za-z]+\b", text):
            assert name in tdce.__all__ or name in FOREIGN, (method, name)


@pytest.mark.parametrize("method", ["explain", "fit", "ask", "retrain", "plausibility", "load"])
def test_arguments_after_the_first_are_keywords(method: str) -> None:
    parameters = list(inspect.signature(getattr(tdce.Explainer, method)).parameters.values())
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    assert len(positional) == (3 if method == "ask" else 1)


@pytest.mark.parametrize("method", METHODS)
def test_a_public_method_has_a_docstring_in_the_form_of_numpydoc(method: str) -> None:
    function = getattr(tdce.Explainer, method)
    text = inspect.getdoc(function)
    assert text is not None
    assert text.splitlines()[0].endswith(".")
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "deep")]
    documented = text.split("Parameters\n----------", 1)[-1]
    for name in parameters:
        assert re.search(rf"^(\*\*)?{name} ?[:\n]", documented, re.MULTILINE), (method, name)


@pytest.mark.parametrize("thing", ["Explainer", "Answer"])
def test_the_examples_in_the_docstrings_run(thing: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind = getattr(tdce, thing)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    tests = [test for test in finder.find(kind, thing, module=sys.modules[kind.__module__]) if test.examples]
    for test in tests:
        runner.run(test)
    assert tests
    assert runner.failures == 0, capsys.readouterr().out
