"""The studio in a notebook: a server in a thread, for this machine only and with a token, shown in a frame."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING
from weakref import finalize

from tdce._core import AnyFrame, InputError, as_pandas
from tdce.serving.settings import ServerSettings

if TYPE_CHECKING:
    import uvicorn

    from tdce.explainer import Explainer

FRAMED_BY = (
    "http://localhost:*",
    "http://127.0.0.1:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "vscode-webview:",
)
"""Notebooks of this machine: Jupyter, and those of editors."""

START_SECONDS = 30.0
STOP_SECONDS = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class Studio:
    """A running studio, which a notebook shows in a frame."""

    address: str  # without the token
    token: str = field(repr=False)
    height: int  # of the frame, in pixels
    _server: uvicorn.Server
    _thread: threading.Thread

    @property
    def url(self) -> str:
        """The address with the token, for a browser on this machine."""
        return f"{self.address}#token={self.token}"

    def stop(self) -> None:
        """Stop the server; stopping it again does nothing."""
        _stop(self._server, self._thread)

    @property
    def running(self) -> bool:
        """Whether the server is running."""
        return self._thread.is_alive() and not self._server.should_exit

    def __repr__(self) -> str:
        return f"<Studio at {self.address}, {'running' if self.running else 'stopped'}>"

    def _repr_html_(self) -> str:
        if not self.running:
            return f"<p>{escape(repr(self))}</p>"
        frame = f'src="{escape(self.url)}" title="tdce studio" width="100%" height="{self.height}"'
        return f'<iframe {frame} style="border:1px solid rgba(127,127,127,.5)"></iframe>'


def open_studio(explainer: Explainer, rows: AnyFrame | None, height: int) -> Studio:
    """Start a server on a free port of 127.0.0.1, which runs until it is stopped or the process ends."""
    import uvicorn  # imported here: the class exists without the studio installed

    from tdce.serving.app import make_app
    from tdce.serving.server import bind_socket, make_config, server_address

    settings = ServerSettings(port=0, token=secrets.token_urlsafe(24), framed_by=FRAMED_BY)
    assert settings.token is not None
    app = make_app(explainer, settings, None if rows is None else as_pandas(rows, "rows"))
    listener = bind_socket(settings)
    server = uvicorn.Server(make_config(app, settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="tdce studio", daemon=True)
    thread.start()
    end = time.monotonic() + START_SECONDS
    while not server.started and thread.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    if not server.started:
        _stop(server, thread)
        raise InputError("the studio did not start; `tdce serve NAME.tdce` says why")
    studio = Studio(server_address(settings, listener.getsockname()[1]), settings.token, height, server, thread)
    finalize(studio, _stop, server, thread)
    return studio


def _stop(server: uvicorn.Server, thread: threading.Thread) -> None:
    server.should_exit = True
    if thread is not threading.current_thread():
        thread.join(STOP_SECONDS)
