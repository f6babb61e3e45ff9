"""A model that the user brings: anything that takes frames, under one interface."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, Value, listing, plain, show

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
KNOWN = "an object with predict_proba or predict, a function of data frames, a torch module, the path of an ONNX file, "
KNOWN += "the address of an endpoint, or a dictionary of such models by the names of their outputs"


@dataclass(frozen=True, eq=False)
class ModelAdapter:
    """What it says about a frame, and what it is called.

    `says` gives probabilities (n, classes), a number or the probability of the second class for each row (n,), or
    class labels (n,).
    """

    kind: str  # sklearn, xgboost, …, function, onnx, http
    name: str  # of its class, of its file, its address
    says: Callable[[pd.DataFrame], Any]
    classes: tuple[Value, ...] = ()  # if it names them
    decides: Callable[[pd.DataFrame], Any] | None = None  # the labels, where `says` gives probabilities
    columns: tuple[Name, ...] | None = None  # that it asks for by name; None: all, in the table's order
    width: int | None = None  # how many it was trained on
    number: bool | None = None  # whether it predicts a number; None: to be seen
    digest: str = ""  # of its file
    versions: Mapping[str, str] = field(default_factory=dict)
    own: Any = field(default=None, repr=False)  # the object

    def about(self, frame: pd.DataFrame) -> Any:
        """What it says of the columns that it asks for."""
        try:
            return self.says(self._wanted(frame))
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"the model {self.name} fails: {type(error).__name__}: {error}; it gets data frames with "
                             "the columns and dtypes of the table given to fit") from error  # fmt: skip

    def decided(self, frame: pd.DataFrame) -> Any:
        return None if self.decides is None else self.decides(self._wanted(frame))

    def _wanted(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame if self.columns is None else frame[list(self.columns)]


def adapt(model: Any) -> ModelAdapter:
    """The user's model under one interface; what can be none is refused."""
    if isinstance(model, ModelAdapter):
        return model
    if isinstance(model, str | PathLike):
        return _at(str(model))
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}; give a trained object of it")
    package = type(model).__module__.partition(".")[0]
    if package == "xgboost" and type(model).__name__ == "Booster":
        return _xgboost(model)
    if callable(getattr(model, "predict_proba", None)) or callable(getattr(model, "predict", None)):
        return _estimator(model, package)
    if package == "torch" or _is_module(model):
        return ModelAdapter("torch", type(model).__name__, _unready, versions=_versions("torch"), own=model)
    if callable(model):
        return ModelAdapter("function", getattr(model, "__name__", type(model).__name__), model, own=model)
    raise InputError(f"model is {show(model)}; it must be {KNOWN}")


def _is_module(model: Any) -> bool:
    from torch import nn

    return isinstance(model, nn.Module)


def _unready(frame: pd.DataFrame) -> Any:
    raise AssertionError("a torch module is asked on encoded rows")


def _at(where: str) -> ModelAdapter:
    if ADDRESS.match(where):
        from tdce.models.endpoint import Endpoint

        endpoint = Endpoint(where)
        return ModelAdapter("http", where, endpoint, own=endpoint)
    path = Path(where)
    if path.suffix.lower() != ".onnx":
        raise InputError(f"model {where!r} is neither an ONNX file (.onnx) nor an address (http://…); other models are "
                         "given as Python objects: Explainer(model=…)")  # fmt: skip
    if not path.is_file():
        raise InputError(f"there is no model file {where}")
    from tdce.models.onnx import OnnxModel

    model = OnnxModel(path)
    return ModelAdapter(
        "onnx", path.name, model, columns=model.columns, digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        versions=_versions("onnxruntime"), own=model,
    )  # fmt: skip


def _estimator(model: Any, package: str) -> ModelAdapter:
    """With scikit-learn's methods. One that was trained on an array gets an array; one that was trained on a frame
    gets its columns in their order."""
    columns, width = _columns(model), _width(model)
    proba, predict = getattr(model, "predict_proba", None), getattr(model, "predict", None)
    distance = getattr(model, "decision_function", None)
    says = proba if proba is not None else predict
    classes = tuple(plain(c) for c in np.asarray(getattr(model, "classes_", ())).tolist())
    number = None
    if proba is None and classes and callable(distance):
        says = lambda frame: _chances(distance(frame))  # noqa: E731
    elif proba is None and not classes and _regresses(model):
        number = True

    def asked(method: Any) -> Callable[[pd.DataFrame], Any]:
        return method if columns is not None or width is None else lambda frame: method(array(frame))

    return ModelAdapter(
        package, type(model).__name__, asked(says), () if number else classes,
        asked(predict) if classes and predict is not None and says is not predict else None,
        columns, width, number, versions=_versions(package), own=model,
    )  # fmt: skip


def _columns(model: Any) -> tuple[Name, ...] | None:
    """The names of the columns that it was trained on."""
    for name in ("feature_names_in_", "feature_names_", "feature_name_"):
        try:
            found = getattr(model, name, None)
        except Exception:  # some libraries raise here what they like
            continue
        if found is not None and len(found):
            names = [plain(each) for each in found]
            if not all(re.fullmatch(r"(Column_)?[0-9]+", str(each)) for each in names):
                return tuple(names)
    return None


def _width(model: Any) -> int | None:
    try:
        return getattr(model, "n_features_in_", None)
    except Exception:  # as above
        return None


def _regresses(model: Any) -> bool:
    tags = getattr(model, "__sklearn_tags__", None)
    try:
        kind = tags().estimator_type if callable(tags) else getattr(model, "_estimator_type", None)
    except Exception:  # as above
        kind = getattr(model, "_estimator_type", None)
    return kind == "regressor"


def array(frame: pd.DataFrame) -> Any:
    """All numbers as one array of numbers, else of objects."""
    numbers = all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)
    return frame.to_numpy(dtype=np.float64 if numbers else object)


def _chances(distance: Any) -> Any:
    """Probabilities that are in the order of distances from a border, and equal on it."""
    z = np.asarray(distance, dtype=np.float64)
    z = np.column_stack([-z / 2, z / 2]) if z.ndim == 1 else z
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _xgboost(model: Any) -> ModelAdapter:
    from xgboost import DMatrix

    names = tuple(model.feature_names) if model.feature_names else None
    return ModelAdapter(
        "xgboost", "Booster", lambda frame: model.predict(DMatrix(frame, enable_categorical=True)),
        columns=names, versions=_versions("xgboost"), own=model,
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
    """That what the model asks for is what the table has."""
    if label is not None and label in (model.columns or ()):
        raise InputError(f"the model {model.name} asks for the column {label!r}, which is said to be the label")
    lacking = [name for name in model.columns or () if name not in features]
    if lacking:
        raise InputError(f"the model {model.name} asks for {listing(lacking)}, which is not among the features; these "
                         f"are: {listing(features)}")  # fmt: skip
    if model.columns is None and model.width not in (None, len(features)):
        raise InputError(
            f"the model {model.name} was trained on an array of {model.width} columns, but there are {len(features)} "
            f"features: {listing(features)}; give a table with exactly its columns, in their order"
        )
