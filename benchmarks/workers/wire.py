"""Arrays through a pipe, between packages.py and a package in an environment of its own; it needs only numpy."""

import io
import signal
import struct
import sys
import time
from os import dup, dup2, fdopen

import numpy as np

HEAD = struct.Struct("<cQ")
TASK, ASK, SCORES, READY, DONE = b"t", b"a", b"s", b"r", b"d"


def send(pipe, kind, **arrays):
    body = io.BytesIO()
    np.savez(body, **arrays)
    pipe.write(HEAD.pack(kind, body.tell()))
    pipe.write(body.getbuffer())
    pipe.flush()


def receive(pipe):
    """The kind and the arrays of the next message."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError("the other end has stopped")
    kind, size = HEAD.unpack(head)
    return kind, dict(np.load(io.BytesIO(pipe.read(size)), allow_pickle=False))


class Worker:
    """A package's end of the pipe: its task, the model's scores, and its own processor time without communication."""

    def __init__(self):
        self.pipe_in, self.pipe_out = sys.stdin.buffer, fdopen(dup(1), "wb")
        dup2(2, 1)  # what a peer prints goes to standard error
        _, self.task = receive(self.pipe_in)
        self.began, self.talked = time.process_time(), 0.0

    def scores(self, rows):
        """(n, features) -> (n, 2)"""
        began = time.process_time()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # no alarm between a question and its answer
        send(self.pipe_out, ASK, rows=np.asarray(rows, dtype=np.float64))
        _, answer = receive(self.pipe_in)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        self.talked += time.process_time() - began
        return answer["scores"]

    def ready(self):
        """Preparation is over: the time from here on is that of answering."""
        send(self.pipe_out, READY, seconds=time.process_time() - self.began - self.talked)
        self.began, self.talked = time.process_time(), 0.0

    def done(self, answers):
        """(people, options, features), missing where there is none."""
        seconds = time.process_time() - self.began - self.talked
        send(self.pipe_out, DONE, answers=np.asarray(answers, dtype=np.float64), seconds=seconds)
