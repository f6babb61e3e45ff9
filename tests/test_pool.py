"""A pool of processes of which any may die. A worker imports this file, so it imports little."""

import os
import signal
import time
from pathlib import Path

import pytest

from tdce._core.errors import InputError
from tdce.batch.pool import WorkerPool


class Square:
    """A job that kills its process the first time, or every time, that it meets a number."""

    def __init__(self, mark: Path, always: bool) -> None:
        self.mark, self.always = mark, always

    def __call__(self, number: int) -> int:
        if number == 3 and (self.always or not self.mark.exists()):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 13:
            raise InputError("13 is not for us")
        return number * number


def test_a_worker_that_dies_is_replaced_and_its_block_is_retried(tmp_path):
    pool = WorkerPool(Square, (tmp_path / "died", False), 2)
    assert sorted(pool.results((i,) for i in range(8))) == [i * i for i in range(8)]
    assert (tmp_path / "died").exists()


def test_a_block_that_kills_every_worker_ends_the_run_with_the_way_out(tmp_path):
    with pytest.raises(ChildProcessError, match=r"died 3 times \(exit code -9\).*run the command again"):
        list(WorkerPool(Square, (tmp_path / "died", True), 1).results([(1,), (3,)]))


def test_an_error_in_a_block_or_in_reading_ends_the_run(tmp_path):
    with pytest.raises(InputError, match="13 is not for us"):
        list(WorkerPool(Square, (tmp_path, False), 1).results([(1,), (13,)]))

    def unreadable():
        yield (1,)
        raise InputError("the rest is torn")

    with pytest.raises(InputError, match="the rest is torn"):
        list(WorkerPool(Square, (tmp_path, False), 1).results(unreadable()))


def marking(folder):
    """A job that says that it has begun."""

    def work(number):
        (folder / str(number)).touch()
        return number

    return work


def test_no_worker_is_ahead_of_what_has_been_dealt_with(tmp_path):
    jobs = ((number,) for number in range(12))
    for dealt, _ in enumerate(WorkerPool(marking, (tmp_path,), 2).results(jobs)):
        time.sleep(0.05)  # in which an eager worker would begin another job
        assert len(list(tmp_path.iterdir())) <= dealt + 2
    assert len(list(tmp_path.iterdir())) == 12
