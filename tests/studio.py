"""A studio to ask: in this process, or a server of its own on a free port."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import lawful
import lending
import numpy as np
import pandas as pd
import uvicorn
from fits import SMALL, kept

import tdce
from tdce.serving.app import make_app
from tdce.serving.server import bind_socket, make_config
from tdce.serving.settings import ServerSettings


@contextmanager
def connect(
    explainer: tdce.Explainer, settings: ServerSettings | None = None, rows: pd.DataFrame | None = None
) -> Iterator[httpx.Client]:
    """A client of a server in a thread of this process, which ends with it; `client.app` is the app."""
    app = make_app(explainer, settings, rows)
    with bind_socket(ServerSettings(port=0)) as listener:
        server = uvicorn.Server(make_config(app, settings or ServerSettings()))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.005)
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                client.app = app  # type: ignore[attr-defined]
                yield client
        finally:
            server.should_exit = True
            thread.join(30)


def people(explainer: tdce.Explainer, count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Refused ones, as JSON."""
    return json.loads(lending.refused(explainer, count, seed).to_json(orient="records"))


def lawful_explainer() -> tdce.Explainer:
    """Of a table in which total_paid follows months and price."""

    def learned() -> tdce.Explainer:
        made = tdce.Explainer(**SMALL, progress="silent")
        return made.fit(lawful.months(rows=800).frame, label="label", favourable="yes")

    return kept("months", learned)


def insured_explainer() -> tdce.Explainer:
    """Of a table with laws of several kinds: an equation, an order with exceptions, an equivalence, ranges within a
    category."""

    def learned() -> tdce.Explainer:
        rng, frame = np.random.default_rng(0), lawful.conditional_range(rows=800).frame
        frame.insert(2, "yearly", (12 * frame.premium).round(1))
        frame.insert(4, "claims_paid", np.minimum(frame.claims, rng.poisson(0.8, len(frame))))
        frame.loc[::200, "claims_paid"] = frame.claims + 1
        frame.insert(5, "garage", rng.choice(["none", "shared", "own"], len(frame), p=[0.4, 0.3, 0.3]))
        rent = np.where(frame.garage == "none", 0, 10 * rng.integers(3, 20, len(frame)))
        frame.insert(6, "garage_rent", rent)
        return tdce.Explainer(**SMALL, progress="silent").fit(frame, label="label", favourable="yes")

    return kept("insured", learned)


@contextmanager
def start_server(path: Path, *words: str, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a process of its own, stopped at the end."""
    access = () if {"--token", "--no-token"} & {*words} else ("--no-token",)
    command = [sys.executable, "-m", "tdce", "serve", str(path), "--port", "0", *access, *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"} | env
    )
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert " at http" in said, process.communicate()[1]
        yield said.split(" at ")[1].split()[0], process
    finally:
        process.terminate()
        process.communicate(timeout=30)
