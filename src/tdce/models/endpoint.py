"""A model behind an HTTP endpoint: rows go in as JSON, scores come out.

POST {"rows": [{"age": 34, "job": "clerk"}, …]}  ->  {"scores": [0.31, …]} or {"scores": [[0.69, 0.31], …]}

Credentials come from the environment; neither they nor a query string are stored, printed or logged.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import ItemsView, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from random import SystemRandom
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import pandas as pd
from pandas.api.types import is_float_dtype

from tdce._core import InputError, as_numbers, check_integer, check_number, plain, require_extra, show

TOKEN_VARIABLE = "TDCE_ENDPOINT_TOKEN"
HEADERS_WAY_OUT = f'set {TOKEN_VARIABLE}, or headers={{"NAME": "env:VARIABLE"}} (--header "NAME: env:VARIABLE")'
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9-]* )?env:(?P<variable>[A-Za-z_][A-Za-z0-9_]*)")
OWN_HEADERS = ("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding")
SECRET_NAME = re.compile(
    r"token|secret|passw|signature|credential|(api|access)[-_.]?key"
    r"|(^|[-_.])(key|sig|pass|pwd|pw|auth|code|jwt|session|ticket)($|[-_.])",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile(
    r"(?=[A-Za-z+/=]*[0-9])[A-Za-z0-9+/=]{20,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)
MAX_QUOTED = 2_000  # characters of a reply that are searched for credentials
LONGEST_PAUSE = 10.0  # seconds, unless the endpoint asks for more


@dataclass(frozen=True, repr=False)
class Endpoint:
    """A model behind an HTTP endpoint, as a function of data frames.

    Parameters
    ----------
    address : str
        `https://HOST/PATH`. An address with a user name, a password or a key is refused.
    headers : mapping of str to str, optional
        Headers whose values come from the environment: `{"X-Api-Key": "env:SCORE_KEY"}`, `{"Authorization": "Basic
        env:SCORE_LOGIN"}`. If TDCE_ENDPOINT_TOKEN is set and there is no other Authorization, it is sent as `Bearer`.
    batch : int, default 2000
        Maximum number of rows per request.
    timeout : float, default 60
        Maximum seconds per attempt, from the connection to the last byte of the reply.
    tries : int, default 4
        Maximum number of attempts. With the pauses between them, they take at most `tries` times `timeout` seconds.
    pause : float, default 0.2
        Average seconds before the second attempt; the pause doubles with each further attempt.
    """

    address: str
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    batch: int = 2_000
    timeout: float = 60.0
    tries: int = 4
    pause: float = 0.2

    def __post_init__(self) -> None:
        require_extra("a model behind an address", "endpoint", "httpx")
        _check_address(self.address)
        object.__setattr__(self, "headers", tuple(sorted(_check_header(*pair) for pair in _pairs(self.headers))))
        check_integer("batch", self.batch, 1)
        check_number("timeout", self.timeout, 0, 86_400, above=True)
        check_integer("tries", self.tries, 1, 100)
        check_number("pause", self.pause, 0, 3_600)

    @property
    def name(self) -> str:
        """The address without its query, for storing and printing."""
        return hide_secrets(self.address)

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def __call__(self, frame: pd.DataFrame) -> Any:
        records, credentials = _records(frame), self._credentials()
        scores: list[Any] = []
        for i in range(0, len(records), self.batch):
            batch = records[i : i + self.batch]
            reply = self._scores(_encode(batch), credentials)
            if len(reply) != len(batch):
                raise InputError(f"the model at {self.name} returned {len(reply)} scores for {len(batch)} rows")
            scores += reply
        return scores

    def _scores(self, body: bytes, credentials: Mapping[str, str]) -> list[Any]:
        """The scores of a batch, after as many attempts as needed and allowed."""
        from tdce.models.http_client import PassingError, post  # here, since asyncio and httpx are slow to import

        end, attempt = time.monotonic() + self.tries * self.timeout, 0
        while True:
            attempt += 1
            try:
                seconds = min(self.timeout, end - time.monotonic())
                reply = post(self.address, body, {**credentials}, seconds)
                return self._read(reply.content, credentials, maybe_cut=not reply.delimited)
            except PassingError as error:
                pause = error.wait if error.wait is not None else self._pause(attempt)
                what = redact(str(error), credentials)
                if attempt >= self.tries:
                    raise InputError(f"the model at {self.name} {what}, after {attempt} attempts") from None
                if time.monotonic() + pause >= end:
                    raise InputError(f"the model at {self.name} {what}; another attempt in {pause:.0f} s would exceed "
                                     f"{self.tries} times {self.timeout:g} s") from None  # fmt: skip
            except InputError as error:
                raise InputError(f"the model at {self.name} {redact(str(error), credentials)}") from None
            time.sleep(pause)

    def _pause(self, attempt: int) -> float:
        """Seconds before the next attempt, with jitter, so that many workers do not retry at the same moment."""
        return min(LONGEST_PAUSE, self.pause * 2.0 ** (attempt - 1)) * SystemRandom().uniform(0.5, 1.5)

    def _credentials(self) -> dict[str, str]:
        """Headers with their values from the environment."""
        found = {}
        for name, value in dict(self.headers).items():
            match = HEADER_VALUE.fullmatch(value)
            assert match is not None
            found[name] = (match["scheme"] or "") + _variable(match["variable"], f"header {name}")
        if TOKEN_VARIABLE in os.environ and not any(name.lower() == "authorization" for name in found):
            found["Authorization"] = f"Bearer {_variable(TOKEN_VARIABLE, 'token')}"
        if found and urlsplit(self.address).scheme.lower() == "http" and not _is_loopback(urlsplit(self.address)):
            raise InputError(f"credentials would travel unencrypted to {self.name}; use its https:// address, or unset "
                             f"{TOKEN_VARIABLE} and leave headers out if it needs none")  # fmt: skip
        return found

    def _read(self, body: bytes, credentials: Mapping[str, str], maybe_cut: bool) -> list[Any]:
        from tdce.models.http_client import PassingError

        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            problem = f"does not answer with JSON: {show(redact(body.decode(errors='replace'), credentials))}"
            raise (PassingError if maybe_cut else InputError)(problem) from None
        scores = reply.get("scores") if isinstance(reply, dict) else reply
        if not isinstance(scores, list):
            quoted = redact(show(reply, most=MAX_QUOTED), credentials)
            raise InputError(f'must answer {{"scores": […]}}, not {show(quoted, spell=str)}')
        return scores


def hide_secrets(text: str) -> str:
    """An address, even a malformed one, without user name, password, query and fragment."""
    shown = re.split(r"[?#]", text.strip(), maxsplit=1)[0]
    try:
        parts = urlsplit(shown)
        whole = parts.hostname is not None and parts.port != 0
    except ValueError:
        whole = False
    return re.sub(r"//[^/]*@", "//", shown, count=1) if whole else re.sub(r"^.*:.*@", "…@", shown)


def redact(text: str, credentials: Mapping[str, str]) -> str:
    """A text from the endpoint, which may quote the request, without the credentials."""
    for value in credentials.values():
        for part in (value, value.partition(" ")[2]):
            text = text.replace(part, "…") if part else text
    return text


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        usable = False
    if not isinstance(address, str) or not usable or not address.isprintable() or re.search(r"\s|\\", address):
        shown = show(hide_secrets(address)) if isinstance(address, str) else show(address)
        raise InputError(f"{shown} is not the address of an endpoint; write http://HOST/PATH or https://HOST/PATH")
    if "@" in parts.netloc:
        raise InputError(f"the address {hide_secrets(address)} has a user name or a password in it, which files and "
                         f"logs would keep; leave it out, and {HEADERS_WAY_OUT}")  # fmt: skip
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if SECRET_NAME.search(name) or SECRET_VALUE.search(value) or SECRET_VALUE.search(name):
            raise InputError(f"the query of {hide_secrets(address)} has {show(name, 20)}, which looks like a secret; "
                             f"leave it out, and {HEADERS_WAY_OUT}")  # fmt: skip


def _pairs(headers: Any) -> list[tuple[Any, Any]]:
    """Names and values; errors show neither, because they may be secret."""
    given = headers.items() if isinstance(headers, Mapping) else headers
    pairs: list[Any] = list(given) if isinstance(given, list | tuple | ItemsView) else [None]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise InputError('headers must be a mapping from names to values: {"X-Api-Key": "env:SCORE_KEY"}')
    return [(name, value) for name, value in pairs]


def _check_header(name: Any, value: Any) -> tuple[str, str]:
    if not isinstance(name, str) or not HEADER_NAME.fullmatch(name) or name.lower() in OWN_HEADERS:
        raise InputError("headers has a name that is not one of a header, or that tdce sets itself; give one such as "
                         "Authorization or X-Api-Key")  # fmt: skip
    if not isinstance(value, str) or not HEADER_VALUE.fullmatch(value):  # which may be a secret
        raise InputError(f'the value of the header {name} must name a variable of the environment: "env:VARIABLE", or '
                         '"Bearer env:VARIABLE"')  # fmt: skip
    return name, value


def _variable(name: str, what: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError(f"the {what} comes from the environment, but {name} is not set; set it")
    if not (value.isascii() and value.isprintable()):
        raise InputError(f"the {what} comes from the environment, but {name} has characters that no header may have")
    return value


def _is_loopback(parts: SplitResult) -> bool:
    try:
        return parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def _encode(records: list[dict[str, Any]]) -> bytes:
    try:
        return json.dumps({"rows": records}, allow_nan=False).encode()
    except (TypeError, ValueError):
        for record in records:
            for name, cell in record.items():
                if not (cell is None or isinstance(cell, str | bool | int) or math.isfinite(cell)):
                    raise InputError(f"{name!r} has {show(cell)}, which JSON cannot hold") from None
        raise


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One object per row; a missing cell is None."""
    cells = {name: frame[name] for name in frame.columns}
    wide = {name: pd.Series(as_numbers(each)) if is_float_dtype(each.dtype) else each for name, each in cells.items()}
    columns = {str(name): [_cell(name, cell) for cell in each.tolist()] for name, each in wide.items()}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _cell(name: Any, cell: Any) -> Any:
    cell = plain(cell)
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float | Decimal) and math.isnan(cell)):
        return None
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, str | bool | int | float):
        return cell
    raise InputError(f"{name!r} holds {type(cell).__name__} ({show(cell, spell=str)}), which cannot be sent to an "
                     "endpoint; give text, numbers or True/False")  # fmt: skip
