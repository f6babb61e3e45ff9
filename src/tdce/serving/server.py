"""Run a server: read the explainer, take the port, answer until it is told to stop."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from errno import EACCES, EADDRINUSE

import pandas as pd
import torch
import uvicorn

from tdce._core import InputError
from tdce.explainer import Explainer
from tdce.serving.app import app_of
from tdce.serving.middleware import LOG, SecurityMiddleware
from tdce.serving.settings import ServerSettings
from tdce.serving.timeouts import protocol_with_timeout

GRACE = 5  # seconds for answers on their way when the server stops
BACKLOG = 2_048  # connections that wait to be taken


def serve(
    explainer: Explainer,
    setting: ServerSettings,
    rows: pd.DataFrame | None = None,
    threads: int = 1,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Answer until the process is told to stop; `ready` is told the address when it can be asked."""
    with bound(setting) as place:
        torch.set_num_threads(threads)
        _log()
        config = config_of(app_of(explainer, setting, rows), setting)
        _Server(config, lambda: ready(address_of(setting, place.getsockname()[1]))).run(sockets=[place])


def config_of(app: SecurityMiddleware, setting: ServerSettings) -> uvicorn.Config:
    """How the app is served."""
    bounds = setting.bounds
    return uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, proxy_headers=False, backlog=BACKLOG,
        limit_concurrency=2 * bounds.clients, timeout_graceful_shutdown=GRACE, ws="none",
        ssl_certfile=setting.certificate, ssl_keyfile=setting.key, http=protocol_with_timeout(bounds.header_seconds),
    )  # fmt: skip


class _Server(uvicorn.Server):
    """Says when it can be asked."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()


def address_of(setting: ServerSettings, port: int) -> str:
    host = f"[{setting.host}]" if ":" in setting.host else setting.host
    return f"{setting.scheme}://{host}:{port}/"


def bound(setting: ServerSettings) -> socket.socket:
    """The port, taken before anything is said about it. The protocol has its name: only of such sockets asyncio lets
    the parts of an answer go out at once, and no client waits 40 ms for the second."""
    family = socket.AF_INET6 if ":" in setting.host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((setting.host, setting.port))
    except OSError as error:
        place.close()
        way_out = "name another one with --port" if error.errno in (EADDRINUSE, EACCES) else "name another --host"
        raise InputError(
            f"the server cannot listen on {setting.host}, port {setting.port}: {error.strerror}; {way_out}"
        ) from None
    place.set_inheritable(True)
    return place


def _log() -> None:
    """One line per request on standard error: method, path, status, time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.handlers, LOG.propagate = [handler], False
    LOG.setLevel(logging.INFO)
