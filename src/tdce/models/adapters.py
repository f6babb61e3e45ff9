"""Adapters: any model that takes data frames, under one interface."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, Value, convert_frame, listing, plain, show
from tdce.models.endpoint import Endpoint, hide_secrets
from tdce.models.one_by_one import OneByOne, ask_one_by_one

URL = re.compile(r"https?://", re.IGNORECASE)
SUPPORTED_MODELS = (
    "an object with predict_proba or predict, a function of data frames, a torch module, the path of an ONNX file, the "
    "address of an endpoint (or an Endpoint), or a dictionary of such models by the names of their outputs"
)


class HasPredictProba(Protocol):
    """A fitted classifier or pipeline with scikit-learn's method."""

    def predict_proba(self, frame: Any, /) -> Any: ...


class HasPredict(Protocol):
    """A fitted estimator or pipeline; `predict_proba` is preferred where it exists."""

    def predict(self, frame: Any, /) -> Any: ...


SingleModel = HasPredictProba | HasPredict | Callable[..., Any] | str | PathLike[str]
"""An estimator, a function of data frames, a torch module on encoded rows (which is callable), the path of an ONNX
file, or the address of an endpoint."""

ModelLike = SingleModel | Mapping[str, SingleModel]
"""A model to explain, or one per output."""


@dataclass(frozen=True, eq=False)
class ModelAdapter:
    """A user's model as a function of data frames, and what is known about it.

    `scores` returns probabilities (n, classes), a number or the probability of the second class for each row (n,), or
    class labels (n,).
    """

    kind: str  # sklearn, xgboost, …, function, onnx, http
    name: str  # of its class or file, or its address without secrets
    scores: Callable[[pd.DataFrame], Any]
    classes: tuple[Value, ...] = ()  # if it names them
    labels: Callable[[pd.DataFrame], Any] | None = None  # the predicted classes, if `scores` gives probabilities
    columns: tuple[Name, ...] | None = None  # columns that it requires by name; None: all, in the table's order
    width: int | None = None  # number of columns that it was trained on
    number: bool | None = None  # whether it predicts a number; None: not known yet
    digest: str = ""  # of its file
    versions: Mapping[str, str] = field(default_factory=dict)
    model: Any = field(default=None, repr=False)  # the user's object
    scores_now: Callable[[pd.DataFrame], Any] | None = None  # `scores` of the user's object, if those are of a copy
    any_frame: bool = False  # whether it takes frames as they are, perhaps of another library
    library: str = "pandas"  # library whose frames it is given
    company: pd.DataFrame | None = None  # rows before each row, which it gets one at a time; None: many rows at once

    def query_scores(self, frame: pd.DataFrame) -> Any:
        """The result of `scores` for the columns that the model requires."""
        return self._query(self.scores, frame)

    def query_labels(self, frame: pd.DataFrame) -> Any:
        """(n,) the classes that the model itself chooses; None if it returns only scores."""
        return None if self.labels is None else self._query(self.labels, frame)

    def as_it_is_now(self) -> ModelAdapter:
        """The model in its present state, where `scores` are of a copy made earlier."""
        return self if self.scores_now is None else replace(self, scores=self.scores_now)

    def _query(self, ask: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> Any:
        try:
            given = self._select(frame)
            if self.company is not None:
                return ask_one_by_one(self._with_library(ask), given, self.company, self.name)
            return self._with_library(ask)(given)
        except InputError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {show(error, 300, str)}"
            kind = "" if self.library == "pandas" else f"{self.library} "
            raise InputError(f"the model {self.name} fails: {what}; it gets {kind}data frames with the columns and "
                             "dtypes of the table given to fit") from error  # fmt: skip

    def _with_library(self, ask: Callable[[Any], Any]) -> Callable[[pd.DataFrame], Any]:
        return ask if self.library == "pandas" else lambda frame: ask(convert_frame(frame, self.library))

    def _select(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame if self.columns is None else frame[list(self.columns)]


def adapt(model: Any) -> ModelAdapter:
    """Make the adapter for a user's model."""
    if isinstance(model, ModelAdapter):
        return model
    if isinstance(model, str | PathLike):
        return _from_text(str(model))
    if isinstance(model, Endpoint):
        return ModelAdapter("http", model.name, model, model=model)
    if isinstance(model, OneByOne):
        return replace(adapt(model.model), company=pd.DataFrame() if model.company is None else model.company)
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}; give a trained object of it")
    package = type(model).__module__.partition(".")[0]
    if package == "xgboost" and type(model).__name__ == "Booster":
        return _xgboost(model)
    if callable(getattr(model, "predict_proba", None)) or callable(getattr(model, "predict", None)):
        return _estimator(model, package)
    if package == "torch" or _is_module(model):
        return ModelAdapter("torch", type(model).__name__, _not_on_frames, versions=_versions("torch"), model=model)
    if callable(model):
        name = getattr(model, "__name__", type(model).__name__)
        return ModelAdapter("function", name, model, model=model, any_frame=True)
    raise InputError(f"model is {show(model)}; it must be {SUPPORTED_MODELS}")


def _is_module(model: Any) -> bool:
    from torch import nn

    return isinstance(model, nn.Module)


def _not_on_frames(frame: pd.DataFrame) -> Any:
    raise AssertionError("a torch module is queried on encoded rows")


def _from_text(where: str) -> ModelAdapter:
    if URL.match(where):
        return adapt(Endpoint(where))
    path = Path(where)
    if path.suffix.lower() != ".onnx":
        raise InputError(f"model {show(hide_secrets(where))} is neither an ONNX file (.onnx) nor an address "
                         "(http://…); pass other models as Python objects: Explainer(model=…)")  # fmt: skip
    if not path.is_file():
        raise InputError(f"there is no model file {hide_secrets(where)}")
    from tdce.models.onnx import OnnxModel

    model = OnnxModel(path)
    return ModelAdapter(
        "onnx", path.name, model, columns=model.columns, digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        versions=_versions("onnxruntime"), model=model,
    )  # fmt: skip


def _estimator(model: Any, package: str) -> ModelAdapter:
    """The adapter for a model with scikit-learn's methods. A model trained on an array is given arrays; one trained on
    a frame is given that frame's columns, in their order."""
    columns, width = _feature_names(model), _feature_count(model)
    proba, predict = getattr(model, "predict_proba", None), getattr(model, "predict", None)
    distance = getattr(model, "decision_function", None)
    scores = proba if proba is not None else predict
    classes = tuple(plain(c) for c in np.asarray(getattr(model, "classes_", ())).tolist())
    number = None
    if proba is None and classes and callable(distance):
        scores = lambda frame: _probabilities(distance(frame))  # noqa: E731
    elif proba is None and not classes and _is_regressor(model):
        number = True

    def on_frames(method: Any) -> Callable[[pd.DataFrame], Any]:
        return method if columns is not None or width is None else lambda frame: method(array(frame))

    return ModelAdapter(
        package, type(model).__name__, on_frames(scores), () if number else classes,
        on_frames(predict) if classes and predict is not None and scores is not predict else None,
        columns, width, number, versions=_versions(package), model=model,
        any_frame=columns is not None or width is None,
    )  # fmt: skip


def _feature_names(model: Any) -> tuple[Name, ...] | None:
    """The names of the columns that a model was trained on."""
    for name in ("feature_names_in_", "feature_names_", "feature_name_"):
        try:
            known = getattr(model, name, None)
        except Exception:  # errors differ between libraries
            continue
        if known is not None and len(known):
            names = [plain(each) for each in known]
            if not all(re.fullmatch(r"(Column_)?[0-9]+", str(each)) for each in names):
                return tuple(names)
    return None


def _feature_count(model: Any) -> int | None:
    try:
        return getattr(model, "n_features_in_", None)
    except Exception:  # as above
        return None


def _is_regressor(model: Any) -> bool:
    tags = getattr(model, "__sklearn_tags__", None)
    try:
        kind = tags().estimator_type if callable(tags) else getattr(model, "_estimator_type", None)
    except Exception:  # as above
        kind = getattr(model, "_estimator_type", None)
    return kind == "regressor"


def array(frame: pd.DataFrame) -> Any:
    """An array of numbers if all columns are numeric, else of objects."""
    numbers = all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)
    return frame.to_numpy(dtype=np.float64 if numbers else object)


def _probabilities(distance: Any) -> Any:
    """Probabilities from a decision function's distances: in the same order, and equal at 0."""
    z = np.asarray(distance, dtype=np.float64)
    z = np.column_stack([-z / 2, z / 2]) if z.ndim == 1 else z
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _xgboost(model: Any) -> ModelAdapter:
    from xgboost import DMatrix

    names = tuple(model.feature_names) if model.feature_names else None
    return ModelAdapter(
        "xgboost", "Booster", lambda frame: model.predict(DMatrix(frame, enable_categorical=True)),
        columns=names, versions=_versions("xgboost"), model=model,
    )  # fmt: skip


def _versions(package: str) -> dict[str, str]:
    names = {"sklearn": "scikit-learn", "xgboost": ("xgboost", "xgboost-cpu")}.get(package, package)
    for name in (names,) if isinstance(names, str) else names:
        try:
            return {package: version(name)}
        except PackageNotFoundError:
            continue
    return {}


def check_columns(model: ModelAdapter, features: tuple[Name, ...], label: Name | None) -> None:
    """Check that the table has the columns that the model requires."""
    if label is not None and label in (model.columns or ()):
        raise InputError(f"the model {model.name} needs the column {label!r}, which is the label")
    missing = [name for name in model.columns or () if name not in features]
    if missing:
        raise InputError(f"the model {model.name} needs {listing(missing)}, which is not among the features: "
                         f"{listing(features)}")  # fmt: skip
    if model.columns is None and model.width not in (None, len(features)):
        raise InputError(
            f"the model {model.name} was trained on an array of {model.width} columns, but there are {len(features)} "
            f"features: {listing(features)}; give a table with exactly its columns, in their order"
        )
