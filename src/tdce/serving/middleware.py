"""The guard at the door: who may ask, how much, how long; what is noted of it; and the headers of every answer."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tdce.serving.prometheus import ServerMetrics
from tdce.serving.settings import ServerSettings

LOG = logging.getLogger("tdce.serving")

OPEN = ("/", "/words", "/health", "/favicon.ico")  # without a token: they tell nothing of anybody
PAGES = "/static/"
MOST_CLIENTS = 10_000  # whose rates are remembered
SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "img-src 'self' data:; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class HttpError(Exception):
    """A request that is not answered, with the status, the words and perhaps when to come again."""

    def __init__(self, status: int, words: str, again: int | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.again = status, words, again

    def response(self) -> JSONResponse:
        headers = {} if self.again is None else {"Retry-After": str(self.again)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse({"detail": self.words}, self.status, headers)


class SecurityMiddleware:
    """Stands around the whole app."""

    def __init__(self, app: ASGIApp, setting: ServerSettings, metrics: ServerMetrics) -> None:
        self.app, self.setting, self.metrics = app, setting, metrics
        self.inside = 0
        self.rates = RateLimiter(setting.bounds.rate, setting.bounds.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        seen = _Seen(scope, send)
        self.inside += 1
        try:
            self._check(scope)
            taken = await self._body(scope, receive)
            await self.app(scope, taken, seen)
        except HttpError as refusal:
            if not seen.status:
                await refusal.response()(scope, receive, seen)
        except Exception as error:
            LOG.error("%s %s failed: %s", scope["method"], _path(scope), type(error).__name__)
            if not seen.status:
                words = "something went wrong in the server; the request was not answered"
                await HttpError(500, words).response()(scope, receive, seen)
        finally:
            self.inside -= 1
            self._note(scope, seen)

    def _check(self, scope: Scope) -> None:
        """By the first line and the headers alone."""
        setting, headers, path = self.setting, Headers(scope=scope), scope["path"]
        if self.inside > setting.bounds.clients:
            raise HttpError(503, "too many requests are being answered; try again in a second", 1)
        if len(headers.getlist("host")) != 1 or not setting.known(_hostname(headers["host"])):
            raise HttpError(421, "this server is not known by that name; name it with --name if it should be")
        page = scope["method"] in SAFE and (path in OPEN or path.startswith(PAGES))
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != f"{setting.scheme}://{headers['host']}":
            raise HttpError(403, "the request comes from another site")
        if not page and site not in (None, "same-origin", "none"):
            raise HttpError(403, "the request comes from another site")
        client = scope["client"][0] if scope.get("client") else ""
        if (wait := self.rates.wait(client)) > 0:
            raise HttpError(429, "too many requests from this client; try again later", max(1, round(wait + 0.5)))
        if setting.token is not None and not page and not _holds(headers.get("authorization"), setting.token):
            raise HttpError(401, "this server answers to those who hold its token: Authorization: Bearer TOKEN")

    async def _body(self, scope: Scope, receive: Receive) -> Receive:
        """The body, whole and within its bounds; a file is read by the one who takes it, counted on the way."""
        bounds, headers = self.setting.bounds, Headers(scope=scope)
        if scope["method"] in SAFE:
            return receive
        is_file = scope["method"] == "PUT"
        most, seconds = (bounds.file, bounds.seconds) if is_file else (bounds.body, bounds.body_seconds)
        said = headers.get("content-length")
        if said is not None and said.isdigit() and int(said) > most:
            raise _too_large(most)
        if is_file:
            return _counted(receive, most, seconds)
        if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise HttpError(415, "the body must be JSON: Content-Type: application/json")
        counted, parts = _counted(receive, most, seconds), list[bytes]()
        while True:
            message = await counted()
            if message["type"] == "http.disconnect":
                raise HttpError(499, "the client has gone")
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        body, told = b"".join(parts), False
        if self.setting.log_values:
            LOG.info("%s %s %s", scope["method"], _path(scope), body.decode(errors="replace"))

        async def again() -> Message:
            nonlocal told
            if told:
                return await receive()  # only the end of the connection is left to come
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    def _note(self, scope: Scope, seen: _Seen) -> None:
        """Method, path, status and time; never what was asked about whom."""
        seconds, route = time.monotonic() - seen.began, getattr(scope.get("route"), "path", "")
        self.metrics.answered(scope["method"], route or "other", seen.status or 499, seconds)
        LOG.info("%s %s %s %.0f ms", scope["method"], _path(scope), seen.status or 499, 1000 * seconds)


class RateLimiter:
    """How fast each client asks: a bucket that fills at `rate` up to `burst`, and loses one for every request."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float | None = None) -> float:
        """Seconds until the client may ask again; 0: it may now, and that is counted."""
        now = time.monotonic() if now is None else now
        left, then = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        may = left >= 1
        self._left[client] = left - may, now
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if may else (1 - left) / self.rate


class _Seen:
    """What is sent, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.path, self.send = scope["path"], send
        self.status, self.began = 0, time.monotonic()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            static = self.path.startswith(PAGES) or self.path == "/"
            headers["cache-control"] = "no-cache" if static else "no-store"
        await self.send(message)


def _counted(receive: Receive, most: int, seconds: float) -> Receive:
    """The parts of a body, until they are too many or take too long."""
    size, end = 0, time.monotonic() + seconds

    async def part() -> Message:
        nonlocal size
        try:
            message = await asyncio.wait_for(receive(), max(0.0, end - time.monotonic()))
        except TimeoutError:
            raise HttpError(408, f"the body did not arrive within {seconds:g} seconds") from None
        size += len(message.get("body", b""))
        if size > most:
            raise _too_large(most)
        return message

    return part


def _too_large(most: int) -> HttpError:
    return HttpError(413, f"the body is larger than {most:,} bytes; send fewer rows, or a file to /jobs")


def _hostname(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.username is not None or parts.path else parts.hostname or ""
    except ValueError:
        return ""


def _holds(authorization: str | None, token: str) -> bool:
    """In constant time: how long it takes says nothing about how much of it was right."""
    kind, _, given = (authorization or "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _path(scope: Scope) -> str:
    """Without the query, and without the id of a job, which is a secret."""
    route = getattr(scope.get("route"), "path", None)
    return route or (scope["path"] if scope["path"].isprintable() else "?")


async def unless_gone(receive: Receive, result: Awaitable[Any], drop: Callable[[], Any], seconds: float) -> Any:
    """The result; a client that hangs up, or time that runs out, drops the work."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    work, leaving = asyncio.ensure_future(result), asyncio.ensure_future(gone())
    try:
        done, _ = await asyncio.wait({work, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if work in done:
            return work.result()
        drop()
        if leaving in done:
            raise HttpError(499, "the client has gone")
        raise HttpError(503, f"there was no answer within {seconds:g} seconds; ask for fewer rows or options", 5)
    finally:
        leaving.cancel()
        work.cancel()
