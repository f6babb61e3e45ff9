"""A model behind an address, which may fail in every way that a server can: each is one error of ours, in time."""

import json
import logging
import os
import pickle
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
from fits import small
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner
from user_models import learned, rows, rule, served, table

import tdce
from tdce import Endpoint, InputError
from tdce.cli import app
from tdce.models import http_client
from tdce.models.endpoint import hide_secrets

FRAME = rows(table()).head(5)
SECRET = "s3cret-0123456789abcdef"


def answer(request, body, status=200, **headers):
    request.send_response(status)
    for name, value in {"Content_Length": len(body), **headers}.items():
        request.send_header(name.replace("_", "-"), str(value))
    request.end_headers()
    request.wfile.write(body)


def scored(request, frame):
    answer(request, json.dumps({"scores": rule(frame).tolist()}).encode())


def cut(request, frame):
    """Less than it promises."""
    body = json.dumps({"scores": rule(frame).tolist()}).encode()
    answer(request, body[: len(body) // 2], Content_Length=len(body))


def cut_unmarked(request, frame):
    """Without a length: only the JSON shows that something is missing."""
    request.send_response(200)
    request.end_headers()
    request.wfile.write(b'{"scores": [0.1, 0.')


def hang_up(request, frame):
    request.connection.shutdown(socket.SHUT_RDWR)


def status(code, body=b"", **headers):
    return lambda request, frame: answer(request, body, code, **headers)


def body(text):
    return lambda request, frame: answer(request, text.encode())


def drip_body(request, frame):
    request.send_response(200)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    drip(request, b" ")


def drip_headers(request, frame):
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    drip(request, b"x")


def drip(request, byte):
    try:
        for _ in range(400):
            request.wfile.write(byte)
            request.wfile.flush()
            time.sleep(0.02)
    except OSError:  # hung up on
        pass


@contextmanager
def serving(*replies):
    """The address of a server that gives these replies, the last one from then on, and what it was sent."""
    sent = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            content = self.rfile.read(length)
            reply = replies[min(len(sent), len(replies) - 1)]
            sent.append((self.path, dict(self.headers), content))
            self.close_connection = True
            reply(self, pd.DataFrame(json.loads(content)["rows"]))

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/score", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def quick(address, **more):
    return Endpoint(address, **{"pause": 0.001, "timeout": 5} | more)


# what may pass


@pytest.mark.parametrize(
    "fault",
    [cut, cut_unmarked, hang_up, status(429), status(502), status(503, b"busy"), status(504)],
    ids=["cut", "cut without length", "hung up", "429", "502", "503", "504"],
)
def test_what_may_pass_is_tried_again(fault):
    with serving(fault, fault, scored) as (address, sent):
        assert quick(address)(FRAME) == pytest.approx(rule(FRAME))
    assert len(sent) == 3
    assert len({content for _, _, content in sent}) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (cut, "breaks off: peer closed connection"),
        (cut_unmarked, "does not answer with JSON"),
        (hang_up, "breaks off"),
        (status(503, b"busy"), "answers 503: 'busy'"),
    ],
    ids=["cut", "cut without length", "hung up", "503"],
)
def test_what_does_not_pass_is_named_after_a_few_attempts(fault, words):
    told = f" {words}.*, after 3 attempts"
    with serving(fault) as (address, sent), pytest.raises(InputError, match=f"at {address}{told}"):
        quick(address, tries=3)(FRAME)
    assert len(sent) == 3


def test_a_server_says_when_to_come_back():
    with serving(status(429, Retry_After="1"), scored) as (address, sent):
        began = time.monotonic()
        assert quick(address)(FRAME) == pytest.approx(rule(FRAME))
        assert time.monotonic() - began >= 1
    assert len(sent) == 2


def test_a_server_that_asks_for_an_hour_is_not_waited_for():
    with serving(status(503, Retry_After="3600")) as (address, sent):
        began = time.monotonic()
        with pytest.raises(InputError, match=r"answers 503; another attempt in 3600 s would exceed 4 times 5 s"):
            quick(address)(FRAME)
        assert time.monotonic() - began < 2
    assert len(sent) == 1


def test_when_to_come_back_may_be_a_date():
    assert http_client._retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert http_client._retry_after("Wed, 21 Oct 2199 07:28:00 GMT") > 10**9
    assert http_client._retry_after("7") == 7
    for text in ("", "-1", "soon", "9" * 5000, "Wed, 99 Oct 2015"):
        assert http_client._retry_after(text) is None


def test_pauses_double_and_differ():
    endpoint = Endpoint("http://127.0.0.1/", pause=1)
    for attempt in (1, 2, 3):
        pauses = [endpoint._pause(attempt) for _ in range(50)]
        assert 0.5 * 2 ** (attempt - 1) <= min(pauses) < max(pauses) <= 1.5 * 2 ** (attempt - 1)
    assert endpoint._pause(60) <= 15


# what takes too long


@pytest.mark.parametrize("fault", [drip_body, drip_headers, lambda request, frame: time.sleep(3)])
def test_a_server_that_drips_or_hangs_is_left_in_time(fault):
    with serving(fault) as (address, sent):
        began = time.monotonic()
        with pytest.raises(InputError, match=r"has not answered in full within 0\.(3|2\d*) s, after 2 attempts"):
            quick(address, timeout=0.3, tries=2)(FRAME)
        assert time.monotonic() - began < 1.5
    assert len(sent) == 2


def test_a_huge_reply_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(http_client, "MAX_REPLY_BYTES", 2**20)
    read = []

    def huge(request, frame):
        request.send_response(200)
        request.end_headers()
        try:
            for _ in range(10_000):
                request.wfile.write(b"0" * 2**16)
                read.append(2**16)
        except OSError:
            pass

    with serving(huge) as (address, sent), pytest.raises(InputError, match="answers with more than 1 MB"):
        quick(address)(FRAME)
    assert len(sent) == 1
    assert sum(read) < 100 * 2**20


# what makes no sense


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (body("<html>welcome</html>"), "does not answer with JSON: '<html>welcome</html>'"),
        (body(""), "does not answer with JSON"),
        (body("[" * 100_000), "does not answer with JSON"),
        (body('{"score": [1]}'), r'must answer {"scores": \[…\]}, not'),
        (body("null"), r'must answer {"scores": \[…\]}, not None'),
        (body('{"scores": [0.1]}'), "returned 1 scores for 5 rows"),
        (status(404, b"no such page"), "answers 404: 'no such page'"),
        (status(401), "answers 401; set TDCE_ENDPOINT_TOKEN, or headers="),
    ],
)
def test_a_reply_that_makes_no_sense_is_named_at_once(reply, words):
    with serving(reply) as (address, sent), pytest.raises(InputError, match=words):
        quick(address)(FRAME)
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([0.1, 0.2, float("nan"), 0.1, 0.1], "not finite"),
        ([0.1, 0.2, None, 0.1, 0.1], "not finite"),
        ([0.1, 0.2, "0.3", 0.1, 0.1], "must return numbers"),
        ([0.1, 0.2, [0.3], 0.1, 0.1], "1 values for|is no array"),
        ([[0.1, 0.9], [0.2, 0.8], [0.3], [0.1, 0.9], [0.1, 0.9]], "2 values for one row and 1 for another"),
        ([[0.1, 0.3, 0.6]] * 5, r"shape \(32, 3\) for 32 rows; it must return one value for each row, as in fit"),
        ([10**400] * 5, "too large"),
        ([{}] * 5, "must return numbers"),
        ([[[0.1]]] * 5, r"shape \(32, 1, 1\)"),
        ([[]] * 5, r"shape \(32, 0\)"),
    ],
    ids=["nan", "null", "text", "nested", "ragged", "wider", "large", "object", "cube", "empty"],
)
def test_a_later_reply_of_another_kind_is_one_error(scores, words, explainer_and_switch):
    explainer, switch = explainer_and_switch

    def repeated(request, frame):
        answer(request, json.dumps({"scores": (scores * len(frame))[: len(frame)]}).encode())

    with switch(repeated), pytest.raises(InputError, match=words) as caught:
        explainer.explain(FRAME)
    assert "\n" not in str(caught.value)
    assert set(explainer.explain(FRAME).to_frame()["status"]) <= {"valid", "already"}


@pytest.fixture(scope="module")
def explainer_and_switch():
    """An explainer of a model behind an address, and a way to make the server reply otherwise."""
    now = [scored]
    with serving(lambda request, frame: now[0](request, frame)) as (address, _):

        @contextmanager
        def switch(reply):
            now[0] = reply
            try:
                yield
            finally:
                now[0] = scored

        yield learned(quick(address, tries=2, timeout=2)), switch


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(["scores", "rows", "a"]), inner, max_size=2)
    ),
    max_leaves=30,
)


CODES = [200, 200, 200, 201, 204, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 418, 500, 503, 599, 999]
NAMES = [
    "Content_Length",
    "Transfer_Encoding",
    "Content_Encoding",
    "Location",
    "Content_Type",
    "Retry_After",
    "Set_Cookie",
]
VALUES = ["0", "7", "-1", "999999", "chunked", "gzip", "deflate", "br", "x", "/score", "//other.test/", "http://[::1"]
VALUES += ["https://u:p@h/", "text/html; charset=no-such", "", "\xff"]


LINES = st.integers(0, 3).flatmap(lambda width: st.lists(st.floats(0, 1), min_size=width, max_size=width))
SCORES = st.one_of(  # of five rows: numbers, whole and ragged lists, what is too large for a float
    st.lists(st.floats(0, 1), min_size=5, max_size=5),
    LINES.map(lambda line: [line] * 5),
    st.lists(LINES, min_size=5, max_size=5),
    st.just([10**400] * 5),
)


@given(
    content=st.binary(max_size=200)
    | JSONS.map(json.dumps).map(str.encode)
    | st.lists(JSONS, min_size=5, max_size=5).map(lambda scores: json.dumps({"scores": scores}).encode())
    | SCORES.map(lambda scores: json.dumps({"scores": scores}).encode()),
    code=st.sampled_from(CODES),
    headers=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=2),
    raw=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_whatever_a_server_replies_there_are_scores_or_one_error(content, code, headers, raw, explainer_and_switch):
    explainer, switch = explainer_and_switch

    def mess(request, frame):
        if raw:
            request.wfile.write(content)
            return
        answer(request, content, code, **headers)

    model = explainer.fitted_.decides
    problem, found = "", np.zeros((5, 2))
    with switch(mess):
        try:
            model.models[0].scores(FRAME)  # without the net that is spread under every model
            found = model.score_frame(FRAME)
        except InputError as error:
            problem = str(error)
    assert found.shape == (5, 2)
    assert np.isfinite(found).all()
    assert "\n" not in problem
    assert len(problem) < 700


# where the rows go


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_to_another_host_is_refused_by_name(code):
    with serving(scored) as (other, asked):
        for there in (
            other,
            other.replace("127.0.0.1", "localhost"),
            f"{other}?api_key={SECRET}",
            "https://127.0.0.1/score",
        ):
            with serving(status(code, Location=there)) as (address, sent):
                with pytest.raises(
                    InputError, match=r"redirects to another host, http.*/score, which is not asked"
                ) as caught:
                    quick(address)(FRAME)
                assert SECRET not in str(caught.value)
                assert len(sent) == 1
    assert asked == []


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_to_the_same_origin_is_followed(code):
    with serving(status(code, Location="/score/"), scored) as (address, sent):
        assert quick(address)(FRAME) == pytest.approx(rule(FRAME))
    assert [path for path, _, _ in sent] == ["/score", "/score/"]
    assert sent[0][2] == sent[1][2]


def test_redirects_end():
    with (
        serving(status(307, Location="/score")) as (address, sent),
        pytest.raises(InputError, match="more than 3 times"),
    ):
        quick(address)(FRAME)
    assert len(sent) == 4


# secrets


@pytest.mark.parametrize(
    "address",
    [
        f"https://model.test/score?api_key={SECRET}",
        f"https://model.test/score?version=2&X-Amz-Signature={SECRET}",
        f"https://model.test/score?code={SECRET}",
        "https://model.test/score?sig=hunter2",
        "https://model.test/score?v=0123456789abcdef0123456789abcdef",
        f"https://user:{SECRET}@model.test/score",
        f"https://{SECRET}@model.test/score",
        f"htps://user:{SECRET}@model.test/score",
        f"https://user:a/{SECRET}@model.test/score",
        f"https:/user:{SECRET}@model.test/score.onnx",
    ],
)
def test_an_address_with_a_secret_is_refused_with_the_way_out(address):
    with pytest.raises(InputError) as caught:
        tdce.Explainer(model=address, progress="silent").fit(table(), label="decision")
    for part in (SECRET, "hunter2", "0123456789abcdef"):
        assert part not in str(caught.value)


@pytest.mark.parametrize(
    "query", ["version=3", "api-version=2024-05-01-preview", "model=credit-risk-model&design=b", "keyword=x"]
)
def test_a_query_without_secrets_is_sent_and_neither_stored_nor_printed(query, tmp_path):
    with serving(scored) as (address, sent):
        explainer = learned(f"{address}?{query}") if query == "version=3" else None
        quick(f"{address}?{query}")(FRAME)
        assert {path for path, _, _ in sent} == {f"/score?{query}"}
    if explainer is not None:
        explainer.save(path := tmp_path / "a.tdce")
        assert query.encode() not in path.read_bytes()
        assert address.encode() in path.read_bytes()
    assert repr(Endpoint(f"{address}?{query}")) == f"Endpoint({address!r})"


def test_credentials_come_from_the_environment_and_reach_the_server_only(tmp_path, monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    small(monkeypatch)
    monkeypatch.setenv("TDCE_ENDPOINT_TOKEN", SECRET)
    monkeypatch.setenv("SCORE_KEY", f"key-{SECRET}")
    runner = CliRunner()
    table().to_csv(tmp_path / "table.csv", index=False)
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    saved, out, proof = (str(tmp_path / name) for name in ("a.tdce", "out.csv", "out.jsonl"))
    with serving(scored) as (address, sent):
        source = ["--model", f"{address}?version=7", "--header", "X-Api-Key: env:SCORE_KEY"]
        made = runner.invoke(app, ["fit", str(tmp_path / "table.csv"), "--label", "decision", "--favourable", "yes",
                                   "--out", saved, *source])  # fmt: skip
        assert made.exit_code == 0, made.exception
        found = runner.invoke(
            app, ["explain", saved, str(tmp_path / "rows.csv"), "--out", out, "--evidence", proof, *source]
        )
        assert found.exit_code == 0, found.exception
    for _, headers, _ in sent:
        assert headers["Authorization"] == f"Bearer {SECRET}"
        assert headers["X-Api-Key"] == f"key-{SECRET}"
    printed = capfd.readouterr()
    texts = [made.output, found.output, printed.out, printed.err, caplog.text]
    texts += [path.read_bytes().decode(errors="replace") for path in tmp_path.iterdir()]
    for text in texts:
        assert SECRET not in text
        assert "version=7" not in text


def test_a_server_that_quotes_the_credentials_is_quoted_without_them(monkeypatch):
    monkeypatch.setenv("SCORE_KEY", SECRET)

    def quotes(request, frame):
        answer(request, f"wrong: {request.headers['Authorization']}".encode(), 403)

    for reply in (quotes, lambda request, frame: answer(request, json.dumps(dict(request.headers)).encode()),
                  lambda request, frame: answer(request, request.headers["Authorization"].encode())):  # fmt: skip
        with serving(reply) as (address, _), pytest.raises(InputError) as caught:
            quick(address, headers={"Authorization": "Basic env:SCORE_KEY"})(FRAME)
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(caught.value.__cause__)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Authorization": f"Bearer {SECRET}"}, "header Authorization must name a variable of the environment"),
        ({"Authorization": SECRET}, "must name a variable of the environment"),
        ({f"Bearer {SECRET}": "env:A"}, "not one of a header"),
        ({"Host": "env:A"}, "that tdce sets itself"),
        ({"X-Key": "env:NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE is not set"),
        ({"X-Key": "env:TWO_LINES"}, "TWO_LINES has characters that no header may have"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_values(headers, words, monkeypatch):
    monkeypatch.setenv("TWO_LINES", f"{SECRET}\nX-Other: {SECRET}")
    with pytest.raises(InputError, match=words) as caught:
        Endpoint("http://127.0.0.1:9/", headers)(FRAME)
    assert SECRET not in str(caught.value)


def test_credentials_do_not_travel_unencrypted(monkeypatch):
    monkeypatch.setenv("TDCE_ENDPOINT_TOKEN", SECRET)
    with pytest.raises(InputError, match=r"would travel unencrypted to http://model\.test/score; use its https://"):
        Endpoint("http://model.test/score")(FRAME)


def test_a_header_on_the_command_line_needs_an_address_and_a_colon(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,v\n", encoding="utf-8")
    fit = ["fit", str(tmp_path / "t.csv"), "--label", "y", "--out", str(tmp_path / "a.tdce")]
    wrong = {
        "goes with the address": ["--header", "A: env:B"],
        "must be a name, a colon": ["--model", "http://h/", "--header", f"Bearer {SECRET}"],
    }
    for words, more in wrong.items():
        problem = str(CliRunner().invoke(app, [*fit, *more]).exception)
        assert words in problem
        assert SECRET not in problem


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(tmp_path):
    pytest.importorskip("cryptography")
    import ssl

    cert, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))
    tries = []

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            tries.append(1)
            try:
                context.wrap_socket(connection, server_side=True).close()
            except OSError:
                connection.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    with pytest.raises(InputError, match=r"has a certificate that is not trusted: .*SSL_CERT_FILE"):
        quick(f"https://127.0.0.1:{listener.getsockname()[1]}/")(FRAME)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    assert len(tries) == 1


def self_signed(folder):
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "model.test")]),
    )
    now = datetime.datetime.now(datetime.UTC)
    cert = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
            .sign(key, hashes.SHA256()))  # fmt: skip
    (folder / "cert.pem").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


def test_an_artefact_of_an_earlier_version_does_not_show_its_query():
    assert (
        hide_secrets(f"https://u:{SECRET}@model.test:8443/a/b@2?api_key={SECRET}#x") == "https://model.test:8443/a/b@2"
    )


# how it is used


def test_an_endpoint_is_a_value_that_other_processes_get(monkeypatch):
    monkeypatch.setenv("SCORE_KEY", SECRET)
    one = Endpoint("http://127.0.0.1:9/score", {"X-Api-Key": "env:SCORE_KEY"})
    same = pickle.loads(pickle.dumps(one))
    assert one == same
    assert hash(one) == hash(same)
    assert SECRET.encode() not in pickle.dumps(one)


def test_connections_are_kept():
    ports = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            ports.add(self.client_address[1])
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            scored(self, pd.DataFrame(content["rows"]))

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        endpoint = quick(f"http://127.0.0.1:{server.server_port}/", batch=2)
        assert endpoint(FRAME) == pytest.approx(rule(FRAME))
        assert endpoint(FRAME) == pytest.approx(rule(FRAME))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert len(ports) == 1


def test_several_threads_ask_at_once():
    with served(rule) as (address, _):
        endpoint, found = quick(address, batch=50), []
        frame = rows(table())
        threads = [threading.Thread(target=lambda: found.append(endpoint(frame))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 4
    for scores in found:
        assert scores == pytest.approx(rule(frame))


FORKING = """
import os, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
import pandas
from tdce.models.endpoint import Endpoint

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[0.25, 0.5]")
    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/", timeout=5)
frame = pandas.DataFrame({"a": [1, 2]})
first = endpoint(frame)
child = os.fork()
if child == 0:
    os._exit(0 if endpoint(frame) == first == [0.25, 0.5] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), endpoint(frame))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_asks_too():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, check=False)
    assert done.stdout == "0 [0.25, 0.5]\n", done.stderr


def test_without_httpx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("tdce._core.extras.find_spec", lambda module: None)
    with pytest.raises(InputError, match=r"needs httpx; install it with `pip install 'tdce\[endpoint\]'`"):
        Endpoint("https://model.test/score")


@pytest.mark.parametrize(
    "address", ["http://", "https://:80/", "http://[::1", "http://h:99999/", "http://a b/", "http://h\n/", "ftp://h/"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match=r"is not the address of an endpoint|is neither an ONNX file"):
        Endpoint(address)


def test_jitter_does_not_touch_the_random_numbers_of_the_user():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    Endpoint("http://127.0.0.1/")._pause(1)
    assert random.random() == expected
