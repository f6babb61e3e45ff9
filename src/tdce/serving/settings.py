"""How a server is to run: where it listens, who may ask, and how much."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from tdce._core import InputError, check_integer, show

SHORTEST = 16  # characters of a token


@dataclass(frozen=True)
class ServerLimits:
    """What a client may ask for; beyond it the answer is 413, 408, 429 or 503, never a fall."""

    body: int = 2_000_000  # bytes of a JSON body
    file: int = 100_000_000  # bytes of a file of rows
    rows: int = 1_000  # of one request
    file_rows: int = 200_000
    cells: int = 20_000_000  # of an answer to a file: rows, options and columns multiplied
    waiting: int = 4_096  # rows in the queue
    clients: int = 2_048  # requests in flight
    seconds: float = 120.0  # for an answer
    header_seconds: float = 10.0  # for the first line and the headers to arrive
    body_seconds: float = 10.0  # for a JSON body to arrive; a file may take as long as an answer
    rate: float = 200.0  # requests per second of one client,
    burst: float = 2_000.0  # and how many at once
    jobs: int = 8
    job_seconds: float = 3_600.0  # that a job is kept


@dataclass(frozen=True)
class ServerSettings:
    """Where to listen, and to whom."""

    host: str = "127.0.0.1"
    port: int = 8484
    names: tuple[str, ...] = ()  # by which clients may call this host, besides its address
    token: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    log_values: bool = False
    bounds: ServerLimits = ServerLimits()

    def __post_init__(self) -> None:
        check_integer("--port", self.port, 0, 65_535)
        if self.token is not None and (len(self.token) < SHORTEST or not self.token.isascii()):
            raise InputError(f"the token must have at least {SHORTEST} plain characters, so that it cannot be guessed")
        if (self.certificate is None) != (self.key is None):
            raise InputError("--tls-cert and --tls-key go together; give both files or neither")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise InputError(f"there is no file {path}")
        if self.alone:
            return
        if self.token is None:
            raise InputError(f"--host {show(self.host)} lets other machines ask: give a token, --token or TDCE_TOKEN")
        if self.certificate is None and not self.insecure:
            raise InputError(f"--host {show(self.host)} lets other machines ask: give --tls-cert and --tls-key, or "
                             "--insecure if something else encrypts what is sent")  # fmt: skip

    @property
    def alone(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def known(self, host: str) -> bool:
        """Whether a client may call the server by this name, without the port: a foreign name that leads here
        (DNS rebinding) is not known."""
        name = host.lower()
        own = {each.lower() for each in (self.host, *self.names)}
        return name in own or (self.alone and is_loopback(name))


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
