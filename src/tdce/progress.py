"""Progress of long work: a bar on a terminal, plain lines in a log, nothing when nobody asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol, get_args

from tdce.errors import one_of

Mode = Literal["auto", "bar", "lines", "silent"]


class Bar(Protocol):
    def advance(self, text: str = "") -> None: ...


class Progress:
    """`auto`: a bar where standard error is a terminal, otherwise silent."""

    def __init__(self, mode: Mode = "auto") -> None:
        mode = one_of("progress", mode, get_args(Mode))
        if mode == "auto":
            mode = "bar" if sys.stderr.isatty() else "silent"
        self.mode = mode

    def say(self, text: str) -> None:
        if self.mode != "silent":
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Bar]:
        if self.mode == "bar":
            from rich import console, progress  # only here: only a bar needs them

            text = progress.TextColumn
            with progress.Progress(
                text("{task.description:<28}"), progress.BarColumn(), text("{task.percentage:>3.0f}%"),
                progress.TimeElapsedColumn(), text("{task.fields[text]}"), console=console.Console(stderr=True),
            ) as rich:  # fmt: skip
                task = rich.add_task(title, total=total, text="")
                yield _RichBar(rich, task)
                rich.update(task, completed=total)
        elif self.mode == "lines":
            bar = _Lines(title, total)
            yield bar
            bar.finish()
        else:
            yield _Silent()


class _Silent:
    def advance(self, text: str = "") -> None:
        pass


class _RichBar:
    def __init__(self, rich: Any, task: object) -> None:
        self.rich, self.task = rich, task

    def advance(self, text: str = "") -> None:
        self.rich.update(self.task, advance=1, text=text)


class _Lines:
    """A line at each quarter of the way."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done, self.text = title, total, 0, ""
        self.began = time.monotonic()

    def advance(self, text: str = "") -> None:
        self.done, self.text = self.done + 1, text
        quarter = max(self.total // 4, 1)
        if self.done % quarter == 0 and self.done < self.total:
            self._line(f"{100 * self.done // self.total}%")

    def finish(self) -> None:
        self._line("done")

    def _line(self, state: str) -> None:
        seconds = time.monotonic() - self.began
        text = f", {self.text}" if self.text else ""
        print(f"{self.title}: {state} ({seconds:.0f} s{text})", file=sys.stderr, flush=True)
