"""The command line: each command reads files, calls one public function and writes whole files.

One file per command. What needs torch is imported by the command that needs it, so that the others answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import typer

from tdce._core import InputError
from tdce.cli import check, data, demo, evaluate, evidence, explain, fit, report, schema, serve
from tdce.cli import reproduction as paper

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="What would have to be different for a yes: counterfactual explanations for tables.",
)  # fmt: skip
COMMANDS = (
    demo.demo, fit.fit, explain.explain, report.report, evaluate.evaluate, serve.serve, paper.bench, paper.figures,
    schema.schema, evidence.verify, evidence.keys, data.data, check.check,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)

STOPPED = (130, 143)  # the exit codes after Ctrl-C (typer's) and after a request to end (SIGTERM)


def main() -> None:
    """Run a command; a wrong input, or a file that cannot be read or written, ends it with one line and exit code 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED[1]))
    code, words = _run()
    if words:
        print(f"tdce: {words}", file=sys.stderr)
    sys.exit(code)


def _run() -> tuple[Any, str]:
    """The command's exit code, and its last message."""
    try:
        try:
            app()
        finally:
            _flush()
    except InputError as error:
        return 2, str(error)
    except BrokenPipeError:  # the reader has gone, as in `tdce data | head -1`
        return 1, ""
    except (FloatingPointError, ChildProcessError) as error:
        return 1, str(error)
    except OSError as error:
        return 2, f"{error.filename or 'standard output'}: {error.strerror}"
    except SystemExit as end:
        return end.code, "stopped; nothing is half-written" if end.code in STOPPED else ""
    return 0, ""


def _flush() -> None:
    """Write out what was printed while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is left is lost: Python must not try again
        if isinstance(error, BrokenPipeError):
            raise
        raise InputError(f"standard output cannot be written: {error.strerror}") from None
