"""The studio's guard, in front of an app of a few lines: what reaches the app, what is answered, logged and counted."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tdce.serving import middleware
from tdce.serving.middleware import HttpError, RateLimiter, SecurityMiddleware, result_or_disconnect
from tdce.serving.prometheus import ServerMetrics
from tdce.serving.settings import ServerLimits, ServerSettings

TOKEN = "a-token-that-nobody-guesses"
JSON = {"content-type": "application/json"}


@dataclass
class Reply:
    """What a client sees: nothing of it is set if it was not answered."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def detail(self) -> str:
        return json.loads(self.body)["detail"]


class Studio:
    """A guard with these limits, around an app that answers with the body it was given."""

    def __init__(self, *, app: Callable[..., Any] | None = None, **limits: float) -> None:
        others = {name: limits.pop(name) for name in ("token", "log_values") if name in limits}
        self.asked: list[tuple[str, str]] = []  # method and path of what reached the app
        self.metrics, self.app = ServerMetrics(), app or self.echo
        settings = ServerSettings(**others, limits=ServerLimits(**limits))
        self.guard = SecurityMiddleware(self.run, settings, self.metrics)

    async def run(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            self.asked.append((scope["method"], scope["path"]))
        await self.app(scope, receive, send)

    async def echo(self, scope, receive, send) -> None:
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await answer(send, b"")
            return
        content = b""
        async for part in parts(receive):
            content += part
        await answer(send, content)

    def ask(self, method: str = "GET", path: str = "/people", headers: Any = (), **more: Any) -> Reply:
        return asyncio.run(self.asking(method, path, headers, **more))

    async def asking(
        self,
        method: str = "GET",
        path: str = "/people",
        headers: Any = (),
        body: Iterable[Any] = (b"",),  # in parts, or as messages; None: the client hangs up
        client: tuple[str, int] | None = ("192.0.2.1", 1),
        **more: Any,
    ) -> Reply:
        given = {"host": "127.0.0.1:8484"} | dict(headers)
        scope = {
            "type": "http", "method": method, "path": path, "query_string": b"", "client": client,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()], **more,
        }  # fmt: skip
        content, reply = list(body), Reply()

        async def receive():
            if not content or (part := content.pop(0)) is None:
                return {"type": "http.disconnect"}
            if isinstance(part, dict):
                return part
            return {"type": "http.request", "body": part, "more_body": bool(content)}

        async def send(message) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                reply.body += message["body"]

        await self.guard(scope, receive, send)
        return reply

    def counted(self) -> dict[tuple[str, ...], float]:
        """Requests by method, route and status."""
        (family,) = self.metrics.requests.collect()
        return {tuple(s.labels.values()): s.value for s in family.samples if s.name.endswith("_total")}


async def answer(send, content: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": content})


async def parts(receive) -> AsyncIterator[bytes]:
    """The body, part by part, as an app reads it."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        yield message["body"]
        if not message["more_body"]:
            return


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
def test_a_body_reaches_the_app_whole_however_it_arrives(method):
    for content in ([b""], [b"ab"], [b"a", b"", b"b", b"c"]):
        found = Studio().ask(method, "/predict", JSON, body=content)
        assert (found.status, found.body) == (200, b"".join(content))


def test_after_the_body_the_app_hears_the_client_hang_up():
    heard = []

    async def app(scope, receive, send) -> None:
        heard.extend([await receive(), await receive()])
        await answer(send, b"")

    Studio(app=app).ask("POST", "/explain", JSON, body=[b"a", b"b"])
    assert heard == [{"type": "http.request", "body": b"ab", "more_body": False}, {"type": "http.disconnect"}]


def test_what_only_reads_is_handed_on_as_it_came():
    """Its body, which means nothing, is neither read nor limited, and the app hears the client hang up."""
    heard = []

    async def app(scope, receive, send) -> None:
        heard.append(await receive())
        await answer(send, b"")

    for method in ("GET", "HEAD", "OPTIONS"):
        studio = Studio(app=app, body_bytes=10)
        assert studio.ask(method, headers={"content-length": "11"}, body=[None]).status == 200
    assert heard == [{"type": "http.disconnect"}] * 3


def test_a_message_that_names_no_further_part_is_the_last():
    assert Studio().ask("POST", "/predict", JSON, body=[{"type": "http.request"}]).status == 200
    found = Studio().ask("POST", "/predict", JSON, body=[{"type": "http.request", "body": b"ab"}])
    assert (found.status, found.body) == (200, b"ab")


def test_a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_not():
    for method, limit in (("POST", {"body_bytes": 10}), ("DELETE", {"body_bytes": 10}), ("PUT", {"file_bytes": 10})):
        for size in (10, 11):
            for headers in (JSON, JSON | {"content-length": str(size)}):
                studio = Studio(**limit)
                found = studio.ask(method, "/x", headers, body=[b"x" * 6, b"x" * (size - 6)])
                assert (found.status, len(found.body) == 10) == ((200, True) if size == 10 else (413, False))
    assert found.detail == "the body is larger than 10 bytes; send fewer rows, or a file to /jobs"


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_length_beyond_the_limit_is_refused_before_the_app_is_asked(method):
    studio = Studio(body_bytes=10, file_bytes=10)
    found = studio.ask(method, "/x", JSON | {"content-length": "11"}, body=[b"x"])
    assert (found.status, studio.asked) == (413, [])
    assert studio.ask(method, "/x", JSON | {"content-length": "1e9"}, body=[b"x"]).status == 200  # no number: counted


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
def test_any_length_is_answered_and_only_a_number_above_the_limit_is_refused(method):
    """Whatever a client writes there: digits of no number, numbers of thousands of digits, nothing."""
    above = ["11", "100", "0011", "9" * 5000, "0" * 5000 + "11"]
    others = ["", "0", "1", "9", "10", "010", "0" * 5000, "0" * 5000 + "9", "²", "1²", "11²", "³" * 20, "¹", "¼", "-11"]
    others += ["+11", "1_1", "11.0", "1e9", "0x1f", "11,11", "11 ", " ", "\xa011", "\x00", "inf"]
    others += [chr(code) for code in range(256) if chr(code) not in "0123456789"]
    for length in (*above, *others):
        studio = Studio(body_bytes=10, file_bytes=10, burst=1e6)
        found = studio.ask(method, "/x", JSON | {"content-length": length}, body=[b"x"])
        expected = (413, 0) if length in above else (200, 1)
        assert (found.status, len(studio.asked)) == expected, length[:20]


def test_a_file_is_given_on_part_by_part():
    seen = []

    async def app(scope, receive, send) -> None:
        async for part in parts(receive):
            seen.append(part)
        await answer(send, b"")

    assert Studio(app=app).ask("PUT", "/jobs/a/rows", body=[b"a", b"b"]).status == 200
    assert seen == [b"a", b"b"]


@pytest.mark.parametrize(("method", "limit"), [("POST", "body_seconds"), ("PUT", "answer_seconds")])
def test_a_body_that_comes_in_drops_wins_no_time(method, limit):
    """Each part in time, all of them too late; what arrives in time is read."""
    studio = Studio(**{limit: 0.2})

    async def drip(count: int) -> Reply:
        reply, left = Reply(), count

        async def receive():
            nonlocal left
            left -= 1
            await asyncio.sleep(0.05)
            return {"type": "http.request", "body": b"x", "more_body": left > 0}

        async def send(message) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
            else:
                reply.body += message["body"]

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": "/x", "headers": headers, "client": ("192.0.2.1", 1)}
        await studio.guard(scope, receive, send)
        return reply

    slow = asyncio.run(drip(20))
    assert (slow.status, slow.detail) == (408, "the body did not arrive within 0.2 seconds")
    assert asyncio.run(drip(2)).status == 200


def test_a_client_that_hangs_up_within_its_body_is_not_answered_by_the_app(caplog):
    caplog.set_level(logging.INFO, "tdce.serving")
    studio = Studio()
    assert studio.ask("POST", "/explain", JSON, body=[b'{"rows"', None]).status == 499
    assert studio.asked == []
    assert studio.counted() == {("POST", "other", "499"): 1}
    assert "POST /explain 499" in caplog.text


def test_what_nobody_answered_is_logged_as_a_client_that_hung_up(caplog):
    async def app(scope, receive, send) -> None:
        pass

    caplog.set_level(logging.INFO, "tdce.serving")
    studio = Studio(app=app)
    assert studio.ask().status == 0
    assert studio.counted() == {("GET", "other", "499"): 1}
    assert "GET /people 499" in caplog.text


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200), ("application/json; charset=utf-8", 200), (" application/json ;x", 200),
        ("text/plain", 415), ("text/plain; application/json", 415), ("application/json-patch", 415), (None, 415),
    ],
)  # fmt: skip
def test_only_a_post_must_say_that_it_is_json(kind, status):
    headers = {} if kind is None else {"content-type": kind}
    assert Studio().ask("POST", "/predict", headers).status == status
    for method in ("DELETE", "PUT", "GET"):
        assert Studio().ask(method, "/predict", headers).status == 200


def test_no_more_requests_are_answered_at_once_than_the_limit():
    async def together(studio: Studio, count: int) -> list[int]:
        replies = await asyncio.gather(*(studio.asking() for _ in range(count)))
        return sorted(reply.status for reply in replies)

    async def app(scope, receive, send) -> None:
        await asyncio.sleep(0.05)
        await answer(send, b"")

    studio = Studio(app=app, active_requests=2)
    assert asyncio.run(together(studio, 2)) == [200, 200]
    assert asyncio.run(together(studio, 3)) == [200, 200, 503]
    assert asyncio.run(together(studio, 2)) == [200, 200]  # those who were refused count no longer

    async def one_too_many() -> Reply:
        replies = await asyncio.gather(*(studio.asking() for _ in range(3)))
        return replies[-1]

    refused = asyncio.run(one_too_many())
    assert refused.headers["retry-after"] == "1"
    assert refused.detail == "too many requests are being answered"


def test_each_client_has_a_rate_of_its_own_and_those_without_address_share_one():
    studio = Studio(rate=0.4, burst=1)
    assert [studio.ask(client=("192.0.2.1", port)).status for port in (1, 2)] == [200, 429]
    assert [studio.ask(client=("192.0.2.2", port)).status for port in (1, 2)] == [200, 429]
    assert [studio.ask(client=None).status for _ in range(2)] == [200, 429]
    assert studio.asked == [("GET", "/people")] * 3


def test_a_wait_is_told_in_whole_seconds_rounded_up():
    for rate, told in ((1.4, "1"), (0.3, "4"), (0.01, "100")):
        studio = Studio(rate=rate, burst=1)
        assert studio.ask().status == 200
        refused = studio.ask()
        assert (refused.status, refused.headers["retry-after"]) == (429, told)
        assert refused.detail == "too many requests from this client; try again later"


def test_a_bucket_fills_at_its_rate_and_no_higher_than_its_burst():
    rates = RateLimiter(rate=2, burst=3)
    assert [rates.wait("a", now=0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert rates.wait("a", now=0.25) == 0.25  # a refusal takes nothing
    assert [rates.wait("a", now=1.0) for _ in range(3)] == [0, 0, 0.5]
    assert [rates.wait("a", now=99) for _ in range(4)] == [0, 0, 0, 0.5]


def test_only_so_many_clients_are_remembered_and_the_one_unseen_for_longest_goes_first(monkeypatch):
    monkeypatch.setattr(middleware, "MAX_TRACKED_CLIENTS", 2)
    rates = RateLimiter(rate=1, burst=1)
    assert [rates.wait(name, now=0) for name in ("a", "b", "a")] == [0, 0, 1]
    assert rates.wait("c", now=0) == 0  # b is forgotten, which was unseen for longest
    assert rates.wait("a", now=0) == 1
    assert rates.wait("b", now=0) == 0


@pytest.mark.parametrize("path", ["/", "/words", "/health", "/favicon.ico", "/static/studio.js"])
def test_what_holds_no_data_is_open_to_links_and_without_token_but_only_to_read(path):
    there = {"sec-fetch-site": "cross-site"}
    for method, status in (("GET", 200), ("HEAD", 200), ("OPTIONS", 200), ("POST", 401), ("DELETE", 401)):
        assert Studio(token=TOKEN).ask(method, path, JSON).status == status
        assert Studio().ask(method, path, JSON | there).status == (200 if status == 200 else 403)


@pytest.mark.parametrize("path", ["/people", "/metrics", "/static", "/x/static/", "/health/", "/openapi.json"])
def test_everything_else_needs_the_token_and_no_other_site_may_ask(path):
    for method in ("GET", "HEAD", "OPTIONS", "POST"):
        studio = Studio(token=TOKEN)
        refused = studio.ask(method, path, JSON)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert studio.asked == []
        assert studio.ask(method, path, JSON | {"authorization": f"bEARER  {TOKEN} "}).status == 200
        assert Studio().ask(method, path, JSON | {"sec-fetch-site": "cross-site"}).status == 403


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer é"]
)
def test_another_token_is_none(given):
    assert Studio(token=TOKEN).ask(headers={"authorization": given}).status == 401


@pytest.mark.parametrize("path", ["/", "/static/studio.js", "/people"])
def test_a_page_of_another_origin_is_refused_even_what_is_open(path):
    for origin, status in (
        ("http://127.0.0.1:8484", 200), ("https://127.0.0.1:8484", 403), ("http://127.0.0.1", 403), ("null", 403),
    ):  # fmt: skip
        assert Studio().ask(path=path, headers={"origin": origin}).status == status


@pytest.mark.parametrize(
    "hosts", [("127.0.0.1", "evil.example"), ("evil.example", "127.0.0.1"), ("127.0.0.1",) * 2, ()]
)
def test_a_request_has_one_host(hosts):
    studio, sent = Studio(), list[dict]()
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", each.encode()) for each in hosts]}

    async def send(message) -> None:
        sent.append(message)

    asyncio.run(studio.guard(scope, send, send))
    assert (sent[0]["status"], studio.asked) == (421, [])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("localhost:1", 200), ("[::1]:8484", 200), ("evil.example", 421), ("", 421),
        ("@127.0.0.1", 421), ("me@127.0.0.1", 421), ("127.0.0.1/x", 421), ("[::1", 421), (":8484", 421),
    ],
)  # fmt: skip
def test_a_host_is_a_name_of_this_machine_and_nothing_around_it(host, status):
    studio = Studio()
    assert studio.ask(path="/", headers={"host": host}).status == status
    assert len(studio.asked) == (status == 200)


def test_no_other_protocol_reaches_the_app_but_the_start_of_the_server_does():
    seen = []

    async def app(scope, receive, send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> None:
        pytest.fail("nobody answers")

    studio = Studio(app=app)
    for kind in ("websocket", "lifespan"):
        asyncio.run(studio.guard({"type": kind, "path": "/", "headers": []}, nothing, nothing))
    assert seen == ["lifespan"]
    assert studio.counted() == {}


def test_every_answer_has_all_headers_and_only_pages_are_kept():
    studio = Studio(token=TOKEN)
    for path, status, kept in (
        ("/", 200, "no-cache"), ("/static/studio.js", 200, "no-cache"), ("/health", 200, "no-store"),
        ("/people", 401, "no-store"),
    ):  # fmt: skip
        found = studio.ask(path=path)
        assert found.status == status
        assert found.headers["cache-control"] == kept
        assert found.headers.items() >= middleware.SECURITY_HEADERS.items()


def test_an_error_of_the_app_is_answered_and_logged_without_its_text(caplog):
    async def app(scope, receive, send) -> None:
        if scope["path"] == "/late":
            await answer(send, b"first")
        raise RuntimeError("the salary of Eve")

    studio = Studio(app=app)
    found = studio.ask()
    assert (found.status, found.detail) == (500, "internal server error; the request was not answered")
    late = studio.ask(path="/late")
    assert (late.status, late.body) == (200, b"first")  # and nothing after it
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "GET /people failed: RuntimeError", "GET /late failed: RuntimeError",
    ]  # fmt: skip
    assert "Eve" not in caplog.text
    assert studio.counted() == {("GET", "other", "500"): 1, ("GET", "other", "200"): 1}
    assert studio.guard.active == 0


def test_a_refusal_by_the_app_is_answered_unless_an_answer_has_begun():
    async def app(scope, receive, send) -> None:
        if scope["path"] == "/late":
            await answer(send, b"first")
        raise HttpError(409, "it was there before", 7)

    found = Studio(app=app).ask()
    assert (found.status, found.detail, found.headers["retry-after"]) == (409, "it was there before", "7")
    assert "www-authenticate" not in found.headers
    late = Studio(app=app).ask(path="/late")
    assert (late.status, late.body) == (200, b"first")
    assert str(HttpError(409, "it was there before")) == "it was there before"
    assert "retry-after" not in HttpError(409, "it was there before").response().headers


def test_the_log_has_the_route_in_place_of_the_path_and_neither_query_nor_values(caplog):
    caplog.set_level(logging.INFO, "tdce.serving")
    studio, route = Studio(), SimpleNamespace(path="/jobs/{id}")
    studio.ask("DELETE", "/jobs/secret-id", route=route, query_string=b"who=Eve", body=[b"Eve"])
    studio.ask(path="/\x1b[2Jpeople")
    said = [record.getMessage().rsplit(" ", 2) for record in caplog.records]
    assert [message for message, _, _ in said] == ["DELETE /jobs/{id} 200", "GET ? 200"]
    assert all(0 <= float(milliseconds) < 5000 and unit == "ms" for _, milliseconds, unit in said)
    assert studio.counted() == {("DELETE", "/jobs/{id}", "200"): 1, ("GET", "other", "200"): 1}


def test_values_are_logged_only_where_they_were_asked_for(caplog):
    caplog.set_level(logging.INFO, "tdce.serving")
    for log_values in (False, True):
        Studio(log_values=log_values).ask("POST", "/predict", JSON, body=[b'{"name": "Eve\xff"}'])
        assert ("Eve\ufffd" in caplog.text) == log_values


def test_the_time_of_a_request_is_measured(caplog):
    async def app(scope, receive, send) -> None:
        await asyncio.sleep(0.1)
        await answer(send, b"")

    caplog.set_level(logging.INFO, "tdce.serving")
    studio = Studio(app=app)
    studio.ask()
    assert 100 <= float(caplog.records[-1].getMessage().split()[-2]) < 5000
    (family,) = studio.metrics.seconds.collect()
    (total,) = (sample.value for sample in family.samples if sample.name.endswith("_sum"))
    assert 0.1 <= total < 5


# an answer that is waited for


def wait_for(seconds: float, work: float, leave: float | None) -> tuple[Any, list[str]]:
    """What comes of work that takes this long, if the client leaves then; and what was dropped or cancelled."""
    events = list[str]()

    async def run() -> Any:
        messages = [{"type": "http.request"}]

        async def receive():
            if messages:
                return messages.pop()
            await asyncio.sleep(60 if leave is None else leave)
            return {"type": "http.disconnect"}

        async def compute() -> str:
            try:
                await asyncio.sleep(work)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise
            return "result"

        try:
            found = await result_or_disconnect(receive, compute(), lambda: events.append("dropped"), seconds, lambda: 5)
        except HttpError as error:
            found = error.status, error.message, error.retry_after
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}  # nobody listens or works any longer
        return found

    return asyncio.run(run()), events


def test_an_answer_in_time_is_given_and_nothing_is_dropped():
    began = time.monotonic()
    assert wait_for(30, 0.02, None) == ("result", [])
    assert time.monotonic() - began < 10


def test_work_is_dropped_when_the_client_leaves_or_time_runs_out():
    assert wait_for(5, 5, 0.02) == ((499, "the client has disconnected", None), ["dropped", "cancelled"])
    late = 503, "there was no answer within 0.05 seconds; ask for fewer rows or options", 5
    assert wait_for(0.05, 5, None) == (late, ["dropped", "cancelled"])
