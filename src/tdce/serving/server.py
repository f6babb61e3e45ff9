"""Run a server: bind the port, answer until the process is stopped."""

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
from tdce.serving.app import make_app
from tdce.serving.middleware import LOG, SecurityMiddleware
from tdce.serving.settings import ServerSettings
from tdce.serving.timeouts import protocol_with_timeout

SHUTDOWN_SECONDS = 5  # for answers in progress when the server stops
BACKLOG = 2_048  # connections that wait to be accepted


def serve(
    explainer: Explainer,
    settings: ServerSettings,
    rows: pd.DataFrame | None = None,
    threads: int = 1,
    ready: Callable[[str], None] = lambda address: None,
    id_column: str | None = None,
) -> None:
    """Serve until the process is stopped; `ready` is called with the address once the server accepts requests.
    `id_column` is the column of `rows` that identifies people."""
    with bind_socket(settings) as listener:
        torch.set_num_threads(threads)
        _set_up_log()
        config = make_config(make_app(explainer, settings, rows, id_column), settings)
        _Server(config, lambda: ready(server_address(settings, listener.getsockname()[1]))).run(sockets=[listener])


def make_config(app: SecurityMiddleware, settings: ServerSettings) -> uvicorn.Config:
    """The settings of uvicorn."""
    limits = settings.limits
    return uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, proxy_headers=False, backlog=BACKLOG,
        limit_concurrency=2 * limits.active_requests, timeout_graceful_shutdown=SHUTDOWN_SECONDS, ws="none",
        ssl_certfile=settings.certificate, ssl_keyfile=settings.key, http=protocol_with_timeout(limits.header_seconds),
    )  # fmt: skip


class _Server(uvicorn.Server):
    """A server that calls `ready` once it accepts requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()


def server_address(settings: ServerSettings, port: int) -> str:
    """The URL of the studio."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{settings.scheme}://{host}:{port}/"


def bind_socket(settings: ServerSettings) -> socket.socket:
    """Bind a socket to the port. It names its protocol, because only then does asyncio set TCP_NODELAY, without which a
    client waits 40 ms for the second part of a response."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        way_out = "name another one with --port" if error.errno in (EADDRINUSE, EACCES) else "name another --host"
        raise InputError(
            f"the server cannot listen on {settings.host}, port {settings.port}: {error.strerror}; {way_out}"
        ) from None
    listener.set_inheritable(True)
    return listener


def _set_up_log() -> None:
    """Log one line per request on standard error: method, path, status, time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.handlers, LOG.propagate = [handler], False
    LOG.setLevel(logging.INFO)
