"""MLflow, against a real tracking store in a temporary folder; `make test-mlflow` installs it."""

import lending
import pandas as pd
import pytest
from fits import small
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import tdce
from tdce import InputError

mlflow = pytest.importorskip("mlflow", reason="`make test-mlflow` installs MLflow")

import tdce.mlflow  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'runs.db'}")
    experiment = mlflow.create_experiment("lending", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment(experiment_id=experiment)
    return folder


@pytest.fixture(scope="module")
def rows():
    return lending.refused(lending.explainer(), 4)


def pipeline():
    table = lending.table(200)
    encode = make_column_transformer((OneHotEncoder(), ["housing"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(
        table.drop(columns="decision"), table["decision"]
    )
    return model, table


def test_an_explainer_is_logged_and_loaded(store, rows):
    explainer = lending.explainer()
    with mlflow.start_run() as run:
        logged = tdce.mlflow.log_explainer(explainer, registered_model_name="lending")
    expected = explainer.explain(rows).to_frame()
    for uri in (logged.model_uri, "models:/lending/1", f"runs:/{run.info.run_id}/explainer"):
        loaded = tdce.mlflow.load_explainer(uri, progress="silent")
        assert loaded.explain(rows).to_frame().equals(expected), uri
    assert loaded.provenance.artefact == explainer.provenance.artefact


def test_as_a_generic_model_it_answers(store, rows):
    explainer = lending.explainer()
    with mlflow.start_run():
        logged = tdce.mlflow.log_explainer(explainer)
    generic = mlflow.pyfunc.load_model(logged.model_uri)
    pd.testing.assert_frame_equal(generic.predict(rows), explainer.explain(rows).to_frame())


def test_a_model_of_the_users_goes_with_it(store, rows, monkeypatch):
    small(monkeypatch)
    model, table = pipeline()
    explainer = tdce.Explainer(model=model, progress="silent").fit(table, label="decision", favourable="yes")
    with mlflow.start_run():
        logged = tdce.mlflow.log_explainer(explainer)
    loaded = tdce.mlflow.load_explainer(logged.model_uri)
    assert loaded.explain(rows).to_frame().equals(explainer.explain(rows).to_frame())
    other, _ = pipeline()
    other[-1].coef_ = -other[-1].coef_
    with pytest.raises(InputError, match="was made for another model"):
        tdce.mlflow.load_explainer(logged.model_uri, model=other)


def test_a_folder_is_saved_and_loaded(tmp_path, rows):
    tdce.mlflow.save_explainer(lending.explainer(), tmp_path / "saved")
    assert tdce.mlflow.load_explainer(str(tmp_path / "saved")).explain(rows).counts()
    with pytest.raises(InputError, match="is there already"):
        tdce.mlflow.save_explainer(lending.explainer(), tmp_path / "saved")


def test_what_cannot_be_stored_or_loaded_is_named(tmp_path, monkeypatch):
    small(monkeypatch)

    def score(frame):
        return frame["income"].to_numpy(dtype=float)

    explainer = tdce.Explainer(model=score, progress="silent")
    explainer.fit(lending.table(120).drop(columns="decision"), favourable=tdce.Range(low=3000))
    with pytest.raises(InputError, match=r"the model score \(function\) cannot be stored: MLflow stores estimators"):
        tdce.mlflow.save_explainer(explainer, tmp_path / "function")
    assert not (tmp_path / "function").exists()
    with pytest.raises(InputError, match="it must be a fitted Explainer"):
        tdce.mlflow.save_explainer("explainer", tmp_path / "text")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is not an explainer that tdce\.mlflow stored"):
        tdce.mlflow.load_explainer(str(tmp_path / "empty"))
