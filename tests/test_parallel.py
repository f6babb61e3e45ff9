"""Work in several processes. A worker imports this file, so it imports little."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tdce._core.errors import InputError
from tdce_reproduction.parallel import stream


def squares(first: int, count: int) -> Iterator[int]:
    for i in range(first, first + count):
        if i == 13:
            raise InputError("13 is not for us")
        yield i * i


def vanishing(code: int) -> Iterator[int]:
    sys.exit(code)
    yield 0


def test_every_item_of_every_job_arrives():
    assert sorted(stream(squares, [(0, 3), (3, 0), (3, 2)], workers=2)) == [0, 1, 4, 9, 16]


def test_an_error_in_a_job_ends_all_and_is_the_one_that_was_raised():
    with pytest.raises(InputError, match="13 is not for us"):
        list(stream(squares, [(12, 3)], workers=1))


def test_a_process_that_dies_is_noticed_and_the_way_out_is_named():
    for code in (3, 0):
        with pytest.raises(ChildProcessError, match=rf"died \(exit code {code}\).*run the command again"):
            list(stream(vanishing, [(code,)], workers=1))


def sleeping(started: str) -> Iterator[int]:
    """Says that it has started, and would go on for an hour."""
    Path(started).write_text(str(os.getpid()))
    time.sleep(3600)
    yield 0


PARENT = """
import sys
from test_parallel import sleeping
from tdce_reproduction.parallel import stream
if __name__ == "__main__":
    list(stream(sleeping, [(sys.argv[1],)], workers=1))
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_does_not_outlive_the_process_that_started_it(tmp_path, sent):
    (tmp_path / "parent.py").write_text(PARENT)
    started = tmp_path / "started"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py", started], env=environment)
    wait_until(lambda: started.exists() and started.read_text())
    parent.send_signal(sent)
    assert parent.wait(60) == -sent
    wait_until(lambda: not Path("/proc", started.read_text()).exists())


def wait_until(so, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < until
        time.sleep(0.05)
