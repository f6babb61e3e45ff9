"""Fair turns: no request waits for the whole of another one, no answer depends on them, and `Retry-After` is true."""

import threading
import time

import lending
import pandas as pd
import pytest
import studio

import tdce
from tdce._core import let_others_go_first, taking_turns
from tdce.methods import Question
from tdce.serving import queue as queue_module
from tdce.serving.json_rows import json_to_frame
from tdce.serving.queue import ExplainQueue, Pace, QueueFullError
from tdce.serving.settings import ServerLimits, ServerSettings

STEP = 0.02  # seconds between two queries of a model


class Slow:
    """Takes a step per row, and lets others go first between two steps, as a search does."""

    def __init__(self) -> None:
        self.finished = list[int]()  # rows of each call, in the order of their ends
        self.steps = 0

    def ask(self, rows: pd.DataFrame, question: Question) -> int:
        for _ in range(len(rows)):
            let_others_go_first()
            self.steps += 1
            time.sleep(STEP)
        self.finished.append(len(rows))
        return len(rows)


def rows(count: int) -> pd.DataFrame:
    return pd.DataFrame({"x": range(count)})


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def queue(slow):
    made = ExplainQueue(slow, 10_000)  # type: ignore[arg-type]
    yield made
    made.close()


def test_a_light_request_does_not_wait_behind_heavy_ones(queue, slow):
    heavy = [queue.explain(rows(40), Question(n=20, seed=i)) for i in range(3)]  # 2.4 seconds in all
    time.sleep(5 * STEP)
    began = time.monotonic()
    queue.explain(rows(1), Question()).result(10)
    assert time.monotonic() - began < 15 * STEP
    assert not any(result.done() for result in heavy)
    assert [result.result(30) for result in heavy] == [40, 40, 40]


def test_heavy_requests_take_turns(queue, slow):
    first = queue.explain(rows(60), Question(n=20))
    second = queue.explain(rows(30), Question(n=20, seed=1))
    assert (second.result(30), first.done()) == (30, False)  # it came later, and is shorter
    assert first.result(30) == 60


def test_heavy_requests_are_not_starved_by_light_ones(queue, slow):
    heavy, light = queue.explain(rows(10), Question(n=20)), 0
    while not heavy.done():
        queue.explain(rows(2), Question(seed=light)).result(10)
        light += 1
    assert light <= 15


def test_what_nobody_waits_for_any_more_stops_between_two_queries(queue, slow):
    dropped = queue.explain(rows(1000), Question(n=20))
    time.sleep(3 * STEP)
    assert dropped.cancel()
    assert queue.explain(rows(1), Question()).result(10) == 1
    assert slow.finished == [1]
    assert slow.steps < 30


def test_small_requests_have_one_call_if_they_ask_the_same_and_large_ones_their_own(slow):
    calls = list[tuple[int, int]]()
    queue = ExplainQueue(slow, 10_000, lambda requests, rows: calls.append((requests, rows)))  # type: ignore[arg-type]
    held = threading.Event()
    queue.run(held.wait)
    sent = [queue.explain(rows(13), Question()) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_module, "split_answer", lambda answer, frames: [len(frame) for frame in frames])
        sent += [queue.explain(rows(3), Question()) for _ in range(3)]
        held.set()
        assert [each.result(30) for each in sent] == [13, 13, 3, 3, 3]
    queue.close()
    assert sorted(calls) == [(1, 13), (1, 13), (3, 9)]


def test_a_block_of_a_job_gives_way_and_is_done_all_the_same(queue, slow):
    block = queue.explain_block(rows(60), Question(n=3))
    time.sleep(2 * STEP)
    assert queue.explain(rows(20), Question(n=3)).result(10) == 20
    assert not block.done()
    assert block.result(30) == 60


def test_closing_gives_up_what_has_begun(slow):
    queue = ExplainQueue(slow, 10_000)  # type: ignore[arg-type]
    begun = [queue.explain(rows(500), Question(n=20, seed=i)) for i in range(2)]
    time.sleep(3 * STEP)
    queue.close()
    assert all(each.cancelled() for each in begun)
    with pytest.raises(QueueFullError):
        queue.explain(rows(1), Question())


def test_a_model_that_fails_fails_only_its_own_request(queue, slow):
    def fail() -> None:
        raise RuntimeError("no")

    wrong, right = queue.run(fail), queue.explain(rows(2), Question())
    with pytest.raises(RuntimeError, match="no"):
        wrong.result(10)
    assert right.result(10) == 2


def test_a_pause_is_that_of_its_thread_and_ends_with_it():
    calls = list[str]()
    with taking_turns(lambda: calls.append("here")):
        let_others_go_first()
        other = threading.Thread(target=let_others_go_first)
        other.start()
        other.join()
    let_others_go_first()
    assert calls == ["here"]


def test_interleaved_answers_are_those_that_each_gets_alone():
    explainer = lending.explainer()
    table, encoder = studio.people(explainer, 9), explainer.fitted.encoder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_module, "TURN_SECONDS", 0.0)  # they give way at every query
        patch.setattr(queue_module, "SMALL_TURN_SECONDS", 0.0)
        queue = ExplainQueue(explainer, 10_000)
        asked = [(table[:4], Question(n=2)), (table[4:8], Question(n=2, seed=1)), (table[8:], Question())]
        results = [queue.explain(json_to_frame(some, encoder), question) for some, question in asked]
        found = [result.result(60) for result in results]
        queue.close()
    for (some, question), answer in zip(asked, found, strict=True):
        alone = tdce.Explainer.ask(explainer, json_to_frame(some, encoder), question)
        pd.testing.assert_frame_equal(answer.to_frame(), alone.to_frame(), check_exact=True)


# when to try again


def test_the_pace_is_what_was_measured():
    pace = Pace()
    for _ in range(20):
        pace.learn(1, 0.25)
        pace.learn(1000, 5.0)
    assert pace.seconds(3) == pytest.approx(0.25, rel=1e-3)
    assert pace.seconds(400) == pytest.approx(2.0, rel=1e-3)


def test_retry_after_is_the_time_that_the_others_take(slow):
    queue = ExplainQueue(slow, 200)  # type: ignore[arg-type]
    for i in range(3):
        queue.explain(rows(20), Question(n=10, seed=i)).result(30)  # so that the pace is known: 0.4 seconds each
    held = threading.Event()
    queue.run(held.wait)
    time.sleep(3 * STEP)
    sent = [queue.explain(rows(100), Question(n=10, seed=i)) for i in range(2)]  # 2 seconds each
    with pytest.raises(QueueFullError) as full:
        queue.explain(rows(1), Question())
    held.set()
    began = time.monotonic()
    for each in sent:
        each.result(30)
    queue.close()
    assert full.value.seconds == pytest.approx(time.monotonic() - began, abs=2.0)
    assert full.value.seconds >= 3


def test_when_all_jobs_are_needed_the_client_is_told_when_the_first_expires(tmp_path):
    explainer = lending.explainer()
    limits = ServerLimits(jobs=2, job_seconds=90.0)
    with studio.connect(explainer, ServerSettings(limits=limits)) as client:
        names = [client.post("/jobs", json={}).json()["id"] for _ in range(2)]
        full = client.post("/jobs", json={})
        assert (full.status_code, full.json()["case"]) == (503, "jobs_full")
        assert 85 <= int(full.headers["retry-after"]) <= 90
        content = lending.table(3).to_csv(index=False).encode()
        client.put(f"/jobs/{names[0]}/rows", content=content, headers={"content-type": "text/csv"})
        while client.get(f"/jobs/{names[0]}").json()["state"] != "done":
            time.sleep(0.02)
        assert client.post("/jobs", json={}).status_code == 503  # nobody has its results yet
        assert client.get(f"/jobs/{names[0]}/answer.csv").status_code == 200
        assert client.post("/jobs", json={}).status_code == 201  # in its place
        assert client.get(f"/jobs/{names[0]}").status_code == 404
        assert client.get(f"/jobs/{names[1]}").status_code == 200


def test_a_job_to_which_nobody_sends_rows_is_deleted():
    limits = ServerLimits(answer_seconds=0.2)
    with studio.connect(lending.explainer(), ServerSettings(limits=limits)) as client:
        name = client.post("/jobs", json={}).json()["id"]
        time.sleep(0.5)
        assert client.get(f"/jobs/{name}").status_code == 404
