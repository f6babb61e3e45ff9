"""Security around the app: hosts, sites, tokens, rates, sizes, times, the log, and response headers."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tdce.serving.prometheus import ServerMetrics
from tdce.serving.settings import ServerSettings

LOG = logging.getLogger("tdce.serving")

OPEN_PATHS = ("/", "/docs", "/words", "/health", "/favicon.ico")  # need no token: they hold no data about anybody
STATIC_PREFIX = "/static/"
MAX_TRACKED_CLIENTS = 10_000  # whose request rates are tracked
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "img-src 'self' data:; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def security_headers(settings: ServerSettings) -> dict[str, str]:
    """The headers of every response; a studio inside a notebook may be framed by it."""
    if not settings.framed_by:
        return SECURITY_HEADERS
    headers = {name: value for name, value in SECURITY_HEADERS.items() if name != "x-frame-options"}
    policy = "content-security-policy"
    allowed = f"frame-ancestors {' '.join(settings.framed_by)}"
    return headers | {policy: headers[policy].replace("frame-ancestors 'none'", allowed)}


class HttpError(Exception):
    """An error response: its status, its message and possibly the seconds until a retry; `case` and `facts` are those
    of an `InputError`."""

    def __init__(self, status: int, message: str, retry_after: int | None = None, case: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
        self.case, self.facts = case, facts

    def response(self) -> JSONResponse:
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(error_body(self.message, self.case, self.facts), self.status, headers)


def error_body(message: str, case: str, facts: dict[str, Any]) -> dict[str, Any]:
    """An error for JSON: a message for programmers and, if it has one, its case with the facts, for the pages."""
    return {"detail": message} | ({"case": case, "facts": facts} if case else {})


class SecurityMiddleware:
    """Check every request before the app sees it, and complete every response."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        metrics: ServerMetrics,
        seconds_left: Callable[[], int] = lambda: 1,  # until the present requests should be answered
    ) -> None:
        self.app, self.settings, self.metrics, self.seconds_left = app, settings, metrics, seconds_left
        self.active = 0
        self.rates = RateLimiter(settings.limits.rate, settings.limits.burst)
        self.headers = security_headers(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        response = _ResponseRecorder(scope, send, self.headers)
        self.active += 1
        try:
            self._check_request(scope)
            receive_body = await self._read_body(scope, receive)
            await self.app(scope, receive_body, response)
        except HttpError as error:
            if not response.status:
                await error.response()(scope, receive, response)
        except Exception as error:
            LOG.error("%s %s failed: %s", scope["method"], _path(scope), type(error).__name__)
            if not response.status:
                message = "internal server error; the request was not answered"
                await HttpError(500, message).response()(scope, receive, response)
        finally:
            self.active -= 1
            self._log(scope, response)

    def _check_request(self, scope: Scope) -> None:
        """Check the first line and the headers of a request, and refuse bad ones."""
        settings, headers, path = self.settings, Headers(scope=scope), scope["path"]
        if self.active > settings.limits.active_requests:
            raise HttpError(503, "too many requests are being answered", self.seconds_left(), "busy")
        if len(headers.getlist("host")) != 1 or not settings.accepts_host(_hostname(headers["host"])):
            raise HttpError(421, "this server does not answer to that host name; add it with --name if it should")
        public = scope["method"] in SAFE_METHODS and (path in OPEN_PATHS or path.startswith(STATIC_PREFIX))
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != f"{settings.scheme}://{headers['host']}":
            raise HttpError(403, "the request comes from another site")
        if not public and site not in (None, "same-origin", "none"):
            raise HttpError(403, "the request comes from another site")
        client = scope["client"][0] if scope.get("client") else ""
        if (wait := self.rates.wait(client)) > 0:
            raise HttpError(429, "too many requests from this client; try again later", ceil(wait), "busy")
        if settings.token is not None and not public and not _has_token(headers.get("authorization"), settings.token):
            raise HttpError(401, "this server needs its token: Authorization: Bearer TOKEN", case="token")

    async def _read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body whole, within its limits, and return a source of it; a file is left to its reader and counted
        on the way."""
        limits, headers = self.settings.limits, Headers(scope=scope)
        if scope["method"] in SAFE_METHODS:
            return receive
        is_file = scope["method"] == "PUT"
        size, seconds = (
            (limits.file_bytes, limits.answer_seconds) if is_file else (limits.body_bytes, limits.body_seconds)
        )
        if _exceeds(headers.get("content-length", ""), size):
            raise _too_large(size)
        if is_file:
            return _limit_body(receive, size, seconds)
        if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise HttpError(415, "the body must be JSON: Content-Type: application/json")
        limited, parts = _limit_body(receive, size, seconds), list[bytes]()
        while True:
            message = await limited()
            if message["type"] == "http.disconnect":
                raise HttpError(499, "the client has disconnected")
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        body, delivered = b"".join(parts), False
        if self.settings.log_values:
            LOG.info("%s %s %s", scope["method"], _path(scope), body.decode(errors="replace"))

        async def receive_body() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()  # only a disconnect can follow
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}

        return receive_body

    def _log(self, scope: Scope, response: _ResponseRecorder) -> None:
        """Log method, path, status and time, never the content of a request."""
        seconds, route = time.monotonic() - response.began, getattr(scope.get("route"), "path", "")
        self.metrics.count_request(scope["method"], route or "other", response.status or 499, seconds)
        LOG.info("%s %s %s %.0f ms", scope["method"], _path(scope), response.status or 499, 1000 * seconds)


class RateLimiter:
    """Token buckets, one per client: filled at `rate` per second up to `burst`; each request takes a token."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float | None = None) -> float:
        """Seconds until the client may send a request; 0 if it may now, which counts this request."""
        now = time.monotonic() if now is None else now
        left, then = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        allowed = left >= 1
        self._left[client] = left - allowed, now
        if len(self._left) > MAX_TRACKED_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.rate


class _ResponseRecorder:
    """Sends a response with the security headers, and records its status."""

    def __init__(self, scope: Scope, send: Send, headers: dict[str, str]) -> None:
        self.path, self.send, self.headers = scope["path"], send, headers
        self.status, self.began = 0, time.monotonic()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in self.headers.items():
                headers[name] = value
            static = self.path.startswith(STATIC_PREFIX) or self.path in ("/", "/docs")
            headers["cache-control"] = "no-cache" if static else "no-store"
        await self.send(message)


def _limit_body(receive: Receive, limit: int, seconds: float) -> Receive:
    """Pass the body on; raise an error when it is too large or takes too long."""
    size, end = 0, time.monotonic() + seconds

    async def part() -> Message:
        nonlocal size
        try:
            message = await asyncio.wait_for(receive(), max(0.0, end - time.monotonic()))
        except TimeoutError:
            raise HttpError(408, f"the body did not arrive within {seconds:g} seconds") from None
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large(limit)
        return message

    return part


def _exceeds(length: str, limit: int) -> bool:
    """Whether a `Content-Length` is a number above the limit (otherwise the body is counted). Compared as text, because
    `int` refuses thousands of digits."""
    digits = length.lstrip("0")
    return digits.isascii() and digits.isdecimal() and (len(digits), digits) > (len(str(limit)), str(limit))


def _too_large(limit: int) -> HttpError:
    message = f"the body is larger than {limit:,} bytes; send fewer rows, or a file to /jobs"
    return HttpError(413, message, case="too_large", megabytes=limit / 1e6)


def _hostname(host: str) -> str:
    """The name in a `Host` header, without the port; empty if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.username is not None or parts.path else parts.hostname or ""
    except ValueError:
        return ""


def _has_token(authorization: str | None, token: str) -> bool:
    """Whether a header holds the token; compared in constant time, which does not reveal how much was right."""
    kind, _, given = (authorization or "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _path(scope: Scope) -> str:
    """The path for the log: without the query, and without the id of a job, which is a secret."""
    route = getattr(scope.get("route"), "path", None)
    return route or (scope["path"] if scope["path"].isprintable() else "?")


async def result_or_disconnect(
    receive: Receive,
    result: Awaitable[Any],
    drop: Callable[[], Any],
    seconds: float,
    seconds_left: Callable[[], int],  # until the others' requests should be answered
) -> Any:
    """Wait for the result; drop the work if the client disconnects or time runs out."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    work, leaving = asyncio.ensure_future(result), asyncio.ensure_future(disconnected())
    try:
        done, _ = await asyncio.wait({work, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if work in done:
            return work.result()
        drop()
        if leaving in done:
            raise HttpError(499, "the client has disconnected")
        message = f"there was no answer within {seconds:g} seconds; ask for fewer rows or options"
        raise HttpError(503, message, seconds_left(), "no_answer", seconds=seconds)
    finally:
        leaving.cancel()
        work.cancel()
