"""The number of threads is one, or chosen by trial for long work, and restored afterwards."""

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import lending
import numpy as np
import pandas as pd
import pytest
import torch

import tdce
from tdce._core.threads import Threads, few_threads, one_thread, usual_threads
from tdce.models.model import NetworkModel


@pytest.fixture
def two():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def used(threads: Threads, blocks: int, seconds: dict[int, float]) -> list[int]:
    counts = []
    for _ in range(blocks):
        with threads.block():
            counts.append(torch.get_num_threads())
            time.sleep(seconds[counts[-1]])
    return counts


@pytest.mark.parametrize(("seconds", "best"), [({1: 0.001, 2: 0.02}, 1), ({1: 0.02, 2: 0.001}, 2)])
def test_the_faster_number_is_kept(two, seconds, best):
    counts = used(Threads(20), 20, seconds)
    assert counts[:5] == [2, 2, 1, 2, 1]
    assert set(counts[5:]) == {best}
    assert torch.get_num_threads() == 2


def test_more_threads_that_save_little_are_not_worth_their_processor_time(two):
    assert set(used(Threads(20), 20, {1: 0.021, 2: 0.02})[5:]) == {1}


def test_a_short_piece_of_work_has_one_thread(two):
    assert used(Threads(3), 3, {1: 0.0, 2: 0.0}) == [1, 1, 1]


def test_a_whole_call_has_one_thread_but_for_long_work_inside_and_the_users_model(two):
    with few_threads():
        assert torch.get_num_threads() == 1
        assert used(Threads(20), 20, {1: 0.02, 2: 0.001})[-1] == 2
        assert torch.get_num_threads() == 1
        with few_threads(), usual_threads():
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_the_number_that_long_work_has_chosen_holds_for_all_calls_inside(two):
    counts = []
    threads = Threads(20)
    for _ in range(20):
        with threads.block(), few_threads():
            counts += used(Threads(1), 1, {1: 0.02, 2: 0.001})
    assert set(counts[5:]) == {2}


def test_the_usual_number_comes_back_after_an_error(two):
    threads = Threads(20)
    used(threads, 2, {1: 0.0, 2: 0.0})
    with pytest.raises(ZeroDivisionError), threads.block():
        _ = 1 / 0
    assert torch.get_num_threads() == 2


def test_one_thread_is_one_and_the_others_come_back_even_after_an_error(two):
    counts = []

    def fail() -> None:
        with one_thread():
            counts.append(torch.get_num_threads())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert counts == [1]
    assert torch.get_num_threads() == 2


def test_another_thread_than_the_main_one_leaves_the_number_alone(two):
    counts: list[int] = []
    server = threading.Thread(target=lambda: counts.extend(used(Threads(20), 20, {1: 0.0, 2: 0.0})))
    server.start()
    server.join()
    assert set(counts) == {2}


def test_one_thread_here_does_not_affect_other_threads(two):
    """As in a server: while one thread trains, another one explains."""
    seen, ready, go = [], threading.Event(), threading.Event()

    def other() -> None:
        seen.append(torch.get_num_threads())
        ready.set()
        go.wait(60)
        seen.append(torch.get_num_threads())

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(60)
    with one_thread():
        go.set()
        thread.join()
    assert seen == [2, 2]


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    made = tdce.Explainer(hidden=32, steps=50, progress="silent")
    return made.fit(lending.table(300), label="decision", favourable="yes")


def test_every_call_has_one_thread_and_gives_the_users_number_back(two, explainer, monkeypatch):
    """Threads that wait for each other are busy: beside other work, two take several times the CPU time of one."""
    people, counts = lending.refused(explainer, 5), []
    score = NetworkModel.score
    monkeypatch.setattr(NetworkModel, "score", lambda *args: counts.append(torch.get_num_threads()) or score(*args))
    answer = explainer.explain(people)
    for call in (explainer.predict, explainer.predict_proba, explainer.plausibility, explainer.population):
        call(people)
    explainer.evaluate(answer)
    with pytest.raises(tdce.InputError):
        explainer.explain(people.drop(columns="income"))
    assert set(counts) == {1}
    assert torch.get_num_threads() == 2


def test_a_model_of_the_users_has_the_users_number_of_threads(two):
    counts = []

    def richer(frame: pd.DataFrame) -> np.ndarray:
        counts.append(torch.get_num_threads())
        return np.where(frame["income"] > 3000, 0.9, 0.1)

    made = tdce.Explainer(hidden=8, steps=5, progress="silent", model=richer).fit(lending.table(60), label="decision")
    counts.clear()
    made.explain(lending.table(5).drop(columns="decision"))
    assert set(counts) == {2}


def test_several_threads_at_once_get_the_answers_of_one(two, explainer):
    people = lending.refused(explainer, 100)
    parts = [people.iloc[i::4] for i in range(4)]
    expected = [explainer.explain(part).to_frame() for part in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: explainer.explain(part).to_frame(), parts))
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_process_answers_after_the_parent_used_two_threads(two, explainer):
    """A fork has none of its parent's threads, and would wait for them for ever."""
    people = lending.refused(explainer, 100)
    expected = explainer.explain(people).to_frame()
    torch.ones(600, 600) @ torch.ones(600, 600)  # two threads have worked
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(explainer.explain(people).to_frame()), daemon=True)
    child.start()
    child.join(timeout=120)
    hung = child.is_alive()
    child.kill()
    assert not hung
    pd.testing.assert_frame_equal(queue.get(), expected, check_exact=True)


@pytest.mark.parametrize("rows", [40, 700])
def test_one_thread_and_two_learn_the_same_weights(two, rows):
    """700 rows: enough that torch shares the work of one product or sum between two threads."""
    learned = []
    for count in (1, 2):
        torch.set_num_threads(count)
        made = tdce.Explainer(hidden=128, steps=12, progress="silent").fit(lending.table(rows), label="decision")
        learned.append(made.fitted_)
    for module in ("classifier", "diffusion"):
        one, other = (getattr(each, module).state_dict() for each in learned)
        assert all(torch.equal(one[k], other[k]) for k in one)
    untimed = [each.report | {"seconds": 0, "fitted": ""} for each in learned]
    np.testing.assert_equal(*untimed)
