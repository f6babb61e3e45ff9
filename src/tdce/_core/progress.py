"""Progress of long work: a bar on a terminal, plain lines in a log, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol, get_args

from tdce._core.arguments import check_choice

Mode = Literal["auto", "bar", "lines", "silent"]


SECONDS_BETWEEN_LINES = 10.0


class Bar(Protocol):
    def advance(self, text: str = "") -> None: ...


class RowBar(Protocol):
    def advance(self, rows: int) -> None: ...


class Progress:
    """Progress of long work; `auto` is a bar where standard error is a terminal, else silent."""

    def __init__(self, mode: Mode = "auto") -> None:
        mode = check_choice("progress", mode, get_args(Mode))
        if mode == "auto":
            mode = "bar" if sys.stderr.isatty() else "silent"
        self.mode = mode

    def say(self, text: str) -> None:
        if self.mode != "silent":
            print(text, file=sys.stderr, flush=True)

    def throttled(self, text: str) -> Callable[[int], None]:
        """A function that prints this text with a number in it, at most once every ten seconds."""
        last = time.monotonic()

        def say_number(number: int) -> None:
            nonlocal last
            if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                self.say(text.format(number))

        return say_number

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Bar]:
        if self.mode == "bar":
            from rich import console, progress  # imported here, since only a bar needs them

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

    @contextmanager
    def rows(self, title: str, total: int, done: int = 0) -> Iterator[RowBar]:
        """Show the rate and the time left of long work counted in rows, some of which may be done already."""
        rate = Rate(total, done)
        if self.mode == "bar":
            from rich import console, progress

            text = progress.TextColumn
            with progress.Progress(
                text("{task.description:<28}"), progress.BarColumn(), text("{task.fields[text]}"),
                console=console.Console(stderr=True),
            ) as rich:  # fmt: skip
                task = rich.add_task(title, total=total, completed=done, text="")
                yield _RowBar(rate, lambda: rich.update(task, completed=rate.done, text=str(rate)))
        elif self.mode == "lines":
            yield _RowBar(rate, lambda: self.say(f"{title}: {rate}"), SECONDS_BETWEEN_LINES)
            self.say(f"{title}: done ({rate})")
        else:
            yield _RowBar(rate, lambda: None)


class Rate:
    """Rows per second of this run, and the time left at this rate."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self.first = total, done, done
        self.began = time.monotonic()

    def __str__(self) -> str:
        seconds = max(time.monotonic() - self.began, 1e-9)
        per_second = (self.done - self.first) / seconds
        text = f"{self.done:,} of {self.total:,} rows"
        if self.done > self.first:
            text += f", {per_second:,.0f} rows/s" if per_second >= 10 else f", {per_second:.1f} rows/s"
        if self.first < self.done < self.total:
            text += f", {duration((self.total - self.done) / per_second)} left"
        return text


def duration(seconds: float) -> str:
    """A duration in its two largest units, e.g. 2 h 5 min."""
    whole = max(0, round(seconds))
    for unit, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole} s"


class _RowBar:
    def __init__(self, rate: Rate, show: Callable[[], None], every: float = 0.0) -> None:
        self.rate, self.show, self.every, self.shown = rate, show, every, time.monotonic()

    def advance(self, rows: int) -> None:
        self.rate.done += rows
        now, over = time.monotonic(), self.rate.done >= self.rate.total
        if not self.every or (now - self.shown >= self.every and not over):
            self.shown = now
            self.show()


class _Silent:
    def advance(self, text: str = "") -> None:
        pass


class _RichBar:
    def __init__(self, rich: Any, task: object) -> None:
        self.rich, self.task = rich, task

    def advance(self, text: str = "") -> None:
        self.rich.update(self.task, advance=1, text=text)


class _Lines:
    """A line after each quarter of the work."""

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
