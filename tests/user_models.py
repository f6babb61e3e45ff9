"""Models of the lending table, one of each kind that a user may bring."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import lending
import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import tdce
from tdce.schema.encoder import Encoder
from tdce.schema.schema import Schema

NUMBERS = ["income", "debt", "age"]


@cache
def table() -> pd.DataFrame:
    return lending.table(800)


def rows(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="decision")


def pipeline(estimator: Any, frame: pd.DataFrame | None = None) -> Any:
    """With encoders of its own."""
    frame = table() if frame is None else frame
    encode = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["housing"]))
    return make_pipeline(encode, estimator).fit(rows(frame), frame["decision"])


def logistic() -> Any:
    return pipeline(LogisticRegression())


def forest() -> Any:
    return pipeline(RandomForestClassifier(20, max_depth=6, random_state=0))


def svm() -> Any:
    """Without probabilities."""
    return pipeline(SVC())


def histogram() -> Any:
    return HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype").fit(
        coded(rows(table())), table()["decision"]
    )


def array() -> Any:
    """Trained on an array."""
    return GradientBoostingClassifier(n_estimators=10).fit(rows(table())[NUMBERS].to_numpy(), table()["decision"])


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"housing": pd.CategoricalDtype(["own", "rent", "with parents"])})


def yes(table: pd.DataFrame) -> pd.Series:
    return (table["decision"] == "yes").astype(int)


def xgboost() -> Any:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=10, enable_categorical=True, n_jobs=1)
    return model.fit(coded(rows(table())), yes(table()))


def booster() -> Any:
    return xgboost().get_booster()


def lightgbm() -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(coded(rows(table())), table()["decision"])


def catboost() -> Any:
    import catboost

    model = catboost.CatBoostClassifier(30, verbose=False, allow_writing_files=False, thread_count=1)
    return model.fit(rows(table()).astype({"housing": object}), table()["decision"], cat_features=["housing"])


def rule(frame: pd.DataFrame) -> Any:
    """A function: the probability of a yes."""
    margin = frame["income"] - frame["debt"] - 1000 + 400 * (frame["housing"] == "own")
    return 1 / (1 + np.exp(-margin.to_numpy(dtype=float) / 100))


class Strict:
    """An object that says a label and nothing else."""

    def predict(self, frame: pd.DataFrame) -> list[str]:
        return ["yes" if p > 0.5 else "no" for p in rule(frame)]


@cache
def encoder() -> Encoder:
    return Encoder.fit(rows(table()), Schema.infer(table(), "decision"))


def module() -> torch.nn.Module:
    """On encoded rows."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(encoder().space.width, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    x, y = encoder().encode(rows(table())).float(), torch.tensor(yes(table()).tolist())
    adam = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        adam.step()
    return model


def onnx_file(path: Path) -> str:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    kinds = [
        (name, StringTensorType([None, 1]) if name == "housing" else FloatTensorType([None, 1]))
        for name in rows(table())
    ]
    path.write_bytes(to_onnx(logistic(), initial_types=kinds, options={"zipmap": False}).SerializeToString())
    return str(path)


@contextmanager
def served(score: Callable[[pd.DataFrame], Any], failing: int = 0) -> Iterator[tuple[str, list[int]]]:
    """The address of a model, whose first answers fail, and how many rows each request had."""
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(len(body["rows"]))
            if len(asked) <= failing:
                self.send_error(503)
                return
            answer = json.dumps({"scores": np.asarray(score(pd.DataFrame(body["rows"]))).tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/score", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


KINDS = {
    "logistic": (logistic, None),
    "forest": (forest, None),
    "svm": (svm, None),
    "histogram": (histogram, coded),
    "array": (array, None),
    "xgboost": (xgboost, coded),
    "booster": (booster, coded),
    "lightgbm": (lightgbm, coded),
    "catboost": (catboost, None),
    "function": (lambda: rule, None),
    "labels only": (Strict, None),
    "torch": (module, None),
}
"""How each is made, and in which form it wants the table; None: as it is."""


def learned(model: Any, frame: pd.DataFrame | None = None, **more: Any) -> tdce.Explainer:
    """A small explainer of the model."""
    made = tdce.Explainer(model=model, hidden=32, steps=80, progress="silent")
    return made.fit(table() if frame is None else frame, **{"label": "decision", "favourable": "yes"} | more)
