"""MLflow: an explainer with its model as one logged model (`pip install 'tdce[mlflow]'`).

The artefact is stored as `tdce fit` writes it. A model that the user brought is stored beside it the way MLflow stores
models of its kind, which for most means a pickle: load only what you trust, as with every MLflow model. As a `pyfunc`
model, `predict(rows)` returns the answers as a frame.
"""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tdce._core import InputError, check_type, require_extra, show
from tdce.explainer import Explainer
from tdce.models import AdaptedModel, ModelAdapter, OneByOne

FLAVOUR = "tdce"
ARTEFACT, MODEL = "explainer.tdce", "model"
FLAVOURS = ("sklearn", "lightgbm", "xgboost", "catboost", "pytorch")
"""Modules of mlflow that store an estimator, by the package of its class; `pytorch` is that of torch."""


def log_explainer(explainer: Explainer, name: str = "explainer", **options: Any) -> Any:
    """Log a fitted explainer, with its model, to the active run (or a new one).

    Parameters
    ----------
    explainer : Explainer
        A fitted explainer. If the model is yours, its estimator, ONNX file or address is stored, too.
    name : str, default "explainer"
        The name of the logged model.
    **options
        Further arguments of `mlflow.models.Model.log`, e.g. `registered_model_name="credit"`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is the argument of `load_explainer`.
    """
    _require()
    from mlflow.models import Model

    import tdce.mlflow

    return Model.log(name=name, artifact_path=None, flavor=tdce.mlflow, explainer=explainer, **options)


def save_explainer(explainer: Explainer, path: str | Path, mlflow_model: Any = None) -> None:
    """Save a fitted explainer, with its model, as a folder in MLflow's format.

    Parameters
    ----------
    explainer : Explainer
        A fitted explainer.
    path : str or path
        The folder, which must not exist yet.
    mlflow_model : mlflow.models.Model, optional
        MLflow's description of the model, to be extended.
    """
    _require()
    from mlflow import pyfunc
    from mlflow.models import Model

    check_type("explainer", explainer, Explainer, "it must be a fitted Explainer")
    folder = Path(path)
    if folder.exists():
        raise InputError(f"{folder} is there already; name a folder that is not")
    with TemporaryDirectory(prefix="tdce-") as drafts:
        draft = Path(drafts) / "model"
        draft.mkdir()
        explainer.save(draft / ARTEFACT)
        stored = _store_model(explainer, draft)
        described = Model() if mlflow_model is None else mlflow_model
        described.add_flavor(FLAVOUR, tdce_version=version("tdce"), artefact=ARTEFACT, model=stored)
        pyfunc.add_to_model(described, loader_module="tdce.mlflow")
        described.save(str(draft / "MLmodel"))
        (draft / "requirements.txt").write_text(f"tdce=={version('tdce')}\n", encoding="utf-8")
        shutil.copytree(draft, folder)


def load_explainer(uri: str, **options: Any) -> Explainer:
    """Load an explainer, with its model, that `log_explainer` logged or `save_explainer` saved.

    Parameters
    ----------
    uri : str
        `models:/NAME/VERSION`, `runs:/RUN/explainer`, the `model_uri` of a logged model, or a folder.
    **options
        Further arguments of `Explainer.load`: `model`, in place of the stored one, `progress`, `device`.

    Returns
    -------
    Explainer
        The fitted explainer; a model that answers differently than in `fit` is refused.
    """
    _require()
    from mlflow.artifacts import download_artifacts

    return _load(Path(download_artifacts(artifact_uri=str(uri))), **options)


def save_model(path: str, explainer: Explainer, mlflow_model: Any = None, **_: Any) -> None:
    """Save for MLflow, which calls this to log a model of this flavour; see `save_explainer`."""
    save_explainer(explainer, path, mlflow_model)


class Answering:
    """An explainer as MLflow's generic model: rows in, answers out."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> Any:
        """The answers as a frame; `params` are arguments of `Explainer.explain`."""
        return self.explainer.explain(rows, **(params or {})).to_frame()


def _load_pyfunc(path: str) -> Answering:
    """Load for MLflow, which calls this for its generic model."""
    return Answering(_load(Path(path)))


def _require() -> None:
    require_extra("tdce.mlflow", "mlflow", "mlflow")


def _load(path: Path, **options: Any) -> Explainer:
    from mlflow.models import Model

    try:
        flavour = Model.load(str(path)).flavors[FLAVOUR]
    except Exception as error:  # many kinds: no such file, another flavour, a damaged description
        raise InputError(f"{path} is not an explainer that tdce.mlflow stored ({show(error, 120, str)})") from None
    if flavour.get("model") and "model" not in options:
        options["model"] = _stored_model(path, flavour["model"])
    return Explainer.load(path / ARTEFACT, **options)


def _store_model(explainer: Explainer, folder: Path) -> dict[str, Any] | None:
    """Store the user's model as an MLflow flavour, an ONNX file or an address; None if the model is our own."""
    decides = explainer.fitted.model
    if not isinstance(decides, AdaptedModel):
        return None
    if len(decides.models) > 1:
        raise InputError("an explainer of several outputs cannot be logged with its models; log each with MLflow, "
                         "save the artefact, and load it with Explainer.load(path, model={…})")  # fmt: skip
    adapter = decides.models[0]
    stored = _store(adapter, explainer, folder)
    if adapter.company is None:
        return stored
    if len(adapter.company):
        adapter.company.to_parquet(folder / "company.parquet")
    return {**stored, "one_by_one": True, "company": bool(len(adapter.company))}


def _store(adapter: ModelAdapter, explainer: Explainer, folder: Path) -> dict[str, Any]:
    import mlflow

    if adapter.kind == "http":
        return {"kind": "http", "address": adapter.name}
    if adapter.kind == "onnx" and isinstance(explainer.model, str | Path):
        shutil.copy(explainer.model, folder / "model.onnx")
        return {"kind": "onnx"}
    kind = "pytorch" if adapter.kind == "torch" else adapter.kind
    if kind not in FLAVOURS or adapter.model is None:
        raise InputError(f"the model {adapter.name} ({adapter.kind}) cannot be stored: MLflow stores estimators of "
                         f"{', '.join(FLAVOURS)}, ONNX files and addresses; log it yourself, save the artefact, and "
                         "load it with Explainer.load(path, model=…)")  # fmt: skip
    getattr(mlflow, kind).save_model(adapter.model, str(folder / MODEL))
    return {"kind": kind}


def _stored_model(path: Path, stored: dict[str, Any]) -> Any:
    import mlflow

    kind, model = stored.get("kind"), None
    if kind == "http":
        model = stored["address"]
    elif kind == "onnx":
        model = path / "model.onnx"
    elif kind in FLAVOURS:
        model = getattr(mlflow, kind).load_model(str(path / MODEL))
    else:
        raise InputError(f"{path} has a model of an unknown kind, {show(kind)}")
    if not stored.get("one_by_one"):
        return model
    import pandas as pd

    return OneByOne(model, pd.read_parquet(path / "company.parquet") if stored.get("company") else None)
