"""The HTTP client of this process: one attempt at a request, within a total time.

httpx limits the time of a single read, so a server that sends byte by byte could hold a request forever. Here each
attempt runs in an event loop, which can stop it at any point. The loop has its own thread and keeps the connections.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

import httpx

from tdce._core import InputError, show
from tdce.models.endpoint import HEADERS_WAY_OUT, hide_secrets, redact

THREAD_NAME = "tdce-endpoint"
RETRY_STATUS = (408, 425, 429, 500, 502, 503, 504)  # a request with such a status is retried
REDIRECT_STATUS = (301, 302, 307, 308)
MAX_REDIRECTS = 3
MAX_REPLY_BYTES = 32 * 2**20
QUOTED_BYTES = 2_000  # of an error reply
CLOSE_SECONDS = 2.0

Result = TypeVar("Result")


class PassingError(Exception):
    """A transient failure: the request is worth another attempt."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait  # seconds that the server asks for


class Reply(NamedTuple):
    """The body of a reply."""

    content: bytes
    delimited: bool  # whether the server gave its length; if not, a truncated reply looks whole


def post(address: str, body: bytes, headers: dict[str, str], seconds: float) -> Reply:
    """Make one attempt of at most this many seconds; a PassingError if it may succeed later, else an InputError."""
    return _client(os.getpid()).run(_attempt(_client(os.getpid()).http, address, body, headers, seconds))


class _Client:
    """An HTTP client, and the event loop that its connections belong to."""

    def __init__(self) -> None:
        refuse = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # no cookies: equal questions, equal requests
        trusted = ssl.create_default_context()  # the system's certificate authorities, and those of SSL_CERT_FILE
        try:
            self.http = httpx.AsyncClient(timeout=None, verify=trusted, cookies=refuse, follow_redirects=False)
        except (ImportError, ValueError) as error:  # its text may have the proxy's password
            raise InputError("the proxy that the environment names (HTTPS_PROXY, ALL_PROXY, …) cannot be used "
                             f"({type(error).__name__}); correct it, or unset it") from None  # fmt: skip
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever, name=THREAD_NAME, daemon=True)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # e.g. Ctrl-C
            future.cancel()
            raise

    def close(self) -> None:
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self.http.aclose(), self.loop).result(CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(CLOSE_SECONDS)
        if not self.thread.is_alive():
            self.loop.close()


_lock = Lock()


def _client(process: int) -> _Client:
    with _lock:
        return _clients(process)


@cache
def _clients(process: int) -> _Client:
    """The client of a process: a forked process can use neither the thread nor the connections of its parent."""
    logging.getLogger("httpx").addFilter(_not_ours)  # it logs whole addresses
    client = _Client()
    atexit.register(lambda: client.close() if os.getpid() == process else None)
    return client


def _not_ours(record: logging.LogRecord) -> bool:
    return record.threadName != THREAD_NAME


async def _attempt(
    client: httpx.AsyncClient, address: str, body: bytes, headers: dict[str, str], seconds: float
) -> Reply:
    headers = {**headers, "Content-Type": "application/json", "Accept": "application/json",
               "Accept-Encoding": "identity"}  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            url = httpx.URL(address)
            for _ in range(MAX_REDIRECTS + 1):
                request = client.build_request("POST", url, content=body, headers=headers)
                response = await client.send(request, stream=True)
                try:
                    if response.status_code not in REDIRECT_STATUS:
                        return await _read(response, headers)
                    url = _redirected(url, response.headers.get("location", ""))
                finally:
                    await response.aclose()
            raise InputError(f"redirects more than {MAX_REDIRECTS} times; give its last address")
    except TimeoutError:
        raise PassingError(f"has not answered in full within {seconds:.3g} s") from None
    except (InputError, PassingError):
        raise
    except httpx.TransportError as error:
        reason = _reason(error)
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            raise InputError(f"has a certificate that is not trusted: {reason}; if a private authority issued it, name "
                             "that authority's file in SSL_CERT_FILE") from None  # fmt: skip
        if isinstance(error, httpx.ConnectError | httpx.ProxyError):
            raise PassingError(f"cannot be reached: {reason} (is it running?)") from None
        raise PassingError(f"breaks off: {reason}") from None
    except Exception as error:  # a reply with a false compression header, an invalid host name
        raise InputError(f"cannot be asked: {type(error).__name__}: {_reason(error)}") from None


async def _read(response: httpx.Response, sent: dict[str, str]) -> Reply:
    """The body of a reply; an error if its status is one, or if it is too long."""
    good, content = response.is_success, bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if not good and len(content) >= QUOTED_BYTES:
            break
        if len(content) > MAX_REPLY_BYTES:
            raise InputError(f"answers with more than {MAX_REPLY_BYTES // 2**20} MB; it must answer with scores only")
    if good:
        chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
        return Reply(bytes(content), chunked or "content-length" in response.headers)
    text = redact(content[:QUOTED_BYTES].decode(errors="replace"), sent).strip()
    problem = f"answers {response.status_code}{f': {show(text)}' if text else ''}"
    if response.status_code in RETRY_STATUS:
        raise PassingError(problem, _retry_after(response.headers.get("retry-after", "")))
    raise InputError(f"{problem}; {HEADERS_WAY_OUT}" if response.status_code in (401, 403, 407) else problem)


def _redirected(url: httpx.URL, location: str) -> httpx.URL:
    """The target of a redirect, if it is of the same origin: rows and credentials are sent nowhere else."""
    try:
        other = url.join(location)
    except Exception:  # httpx.InvalidURL, or a UnicodeError
        other = httpx.URL()
    if not location or not other.host:
        raise InputError(f"redirects to {show(hide_secrets(location))}, which is not an address")
    if (other.scheme, other.host, _port(other)) != (url.scheme, url.host, _port(url)):
        raise InputError(f"redirects to another host, {show(hide_secrets(str(other)), 200, str)}, which is not asked; "
                         "if you trust it, give that address")  # fmt: skip
    return other


def _port(url: httpx.URL) -> int | None:
    return url.port or {"http": 80, "https": 443}.get(url.scheme)


def _retry_after(text: str) -> float | None:
    """The seconds that a server asks to wait, given as a number or as a date."""
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        return float(text)
    with suppress(ValueError, TypeError, OverflowError):
        date = parsedate_to_datetime(text)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    return None


def _reason(error: BaseException) -> str:
    """The operating system's message, or else the library's."""
    found, cause = str(error) or type(error).__name__, error.__cause__ or error.__context__
    for _ in range(10):
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if cause is None:
            break
        if isinstance(cause, OSError) and cause.strerror:
            found = cause.strerror
            if isinstance(cause, ConnectionError) and cause.errno is not None:  # asyncio has its own message
                found = os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return show(found, 200, str)
