"""A model in an ONNX file, run by onnxruntime, with one input per column or one array of all columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, listing

INPUT_TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_, "tensor(string)": object,
}  # fmt: skip


class OnnxModel:
    """An ONNX model as a function of data frames, on one thread."""

    def __init__(self, path: Path) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise InputError("an ONNX model needs onnxruntime: pip install 'tdce[onnx]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class for each kind of failure
            raise InputError(f"{path} cannot be read as an ONNX model: {error}") from None
        self.inputs = {each.name: each.type for each in self.session.get_inputs()}
        unknown = [f"{name} ({kind})" for name, kind in self.inputs.items() if kind not in INPUT_TYPES]
        if unknown:
            raise InputError(f"{path} has inputs of types that a table cannot supply: {listing(unknown)}")

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The names of the inputs, if there are several."""
        return tuple(self.inputs) if len(self.inputs) > 1 else None

    def __call__(self, frame: pd.DataFrame) -> Any:
        if len(self.inputs) > 1:
            inputs = {name: _cells(frame[name], kind)[:, None] for name, kind in self.inputs.items()}
        else:
            ((name, kind),) = self.inputs.items()
            inputs = {name: np.column_stack([_cells(frame[column], kind) for column in frame.columns])}
        return _scores(self.session.run(None, inputs))


def _cells(series: pd.Series[Any], kind: str) -> Any:
    """A column as an array of an input's type; missing text is empty, a missing number is NaN."""
    dtype = INPUT_TYPES[kind]
    if dtype is object:
        return np.array(
            ["" if cell is None or cell != cell or cell is pd.NA else str(cell) for cell in series.tolist()],
            dtype=object,
        )
    try:
        return series.to_numpy(dtype=np.float64, na_value=np.nan).astype(dtype)
    except (TypeError, ValueError):
        raise InputError(f"the model needs numbers ({kind}) in {series.name!r}, which holds text") from None


def _scores(outputs: list[Any]) -> Any:
    """The last output: the probabilities if there are any; in some files they are a list of dictionaries."""
    last = outputs[-1]
    if isinstance(last, list) and last and isinstance(last[0], dict):
        return np.array([list(each.values()) for each in last])
    return np.asarray(last)
