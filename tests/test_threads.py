"""The number of threads is tried out, kept to, and given back."""

import time

import pytest
import torch

from tdce.threads import Threads, one_thread


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
def test_the_faster_number_goes_on(two, seconds, best):
    counts = used(Threads(20), 20, seconds)
    assert counts[:5] == [2, 2, 1, 2, 1]
    assert set(counts[5:]) == {best}
    assert torch.get_num_threads() == 2


def test_a_short_piece_of_work_is_left_alone(two):
    assert used(Threads(3), 3, {1: 0.0, 2: 0.0}) == [2, 2, 2]


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
