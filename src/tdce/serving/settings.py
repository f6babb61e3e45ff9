"""Settings of a server: where it listens, who may send requests, and its limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from tdce._core import InputError, check_integer, show

MIN_TOKEN_LENGTH = 16  # characters of a token


@dataclass(frozen=True)
class ServerLimits:
    """Limits of what a client may send and request; beyond them the response is 408, 413, 429 or 503."""

    body_bytes: int = 2_000_000  # of a JSON body
    file_bytes: int = 100_000_000  # of a file of rows
    rows: int = 1_000  # times options, per request
    file_rows: int = 200_000
    answer_cells: int = 20_000_000  # of an answer to a file: rows, options and columns multiplied
    queued_rows: int = 4_096
    active_requests: int = 2_048
    answer_seconds: float = 120.0
    header_seconds: float = 10.0  # for the first line and the headers to arrive
    body_seconds: float = 10.0  # for a JSON body to arrive; a file may take as long as an answer
    rate: float = 200.0  # requests per second from one client
    burst: float = 2_000.0  # requests at once from one client
    jobs: int = 8
    job_seconds: float = 3_600.0  # that a job is kept


@dataclass(frozen=True)
class ServerSettings:
    """Where to listen, whom to answer, and the limits."""

    host: str = "127.0.0.1"
    port: int = 8484
    names: tuple[str, ...] = ()  # host names that clients may use besides the address
    token: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    log_values: bool = False
    limits: ServerLimits = ServerLimits()
    framed_by: tuple[str, ...] = ()  # pages that may show the studio in a frame, as frame-ancestors sources

    def __post_init__(self) -> None:
        check_integer("--port", self.port, 0, 65_535)
        if self.token is not None and (len(self.token) < MIN_TOKEN_LENGTH or not self.token.isascii()):
            raise InputError(
                f"the token must have at least {MIN_TOKEN_LENGTH} ASCII characters, so that it cannot be guessed"
            )
        if (self.certificate is None) != (self.key is None):
            raise InputError("--tls-cert and --tls-key go together; give both files or neither")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise InputError(f"there is no file {path}")
        if self.is_local:
            return
        if self.token is None:
            raise InputError(
                f"--host {show(self.host)} accepts requests from other machines: give a token, --token or TDCE_TOKEN"
            )
        if self.certificate is None and not self.insecure:
            raise InputError(f"--host {show(self.host)} accepts requests from other machines: give --tls-cert and "
                             "--tls-key, or --insecure if something else encrypts the connection")  # fmt: skip

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def accepts_host(self, host: str) -> bool:
        """Whether a client may use this host name (without port); foreign names that resolve here (DNS rebinding) are
        refused."""
        name = host.lower()
        accepted = {each.lower() for each in (self.host, *self.names)}
        return name in accepted or (self.is_local and is_loopback(name))


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
