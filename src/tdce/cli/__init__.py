"""The command line: each command reads files, calls one public function and writes whole files.

One file per command. A command imports what it needs when it runs, so that help and shell completion answer at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tdce._core import InputError
from tdce.cli import (
    check,
    data,
    demo,
    evaluate,
    evidence,
    explain,
    fit,
    inspect,
    letters,
    monitor,
    report,
    reproduction,
    schema,
    segments,
    serve,
)


class Command(TyperCommand):
    """A command whose usage line shows required arguments plainly: ROWS, not {ROWS}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


app = typer.Typer(
    pretty_exceptions_enable=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
)
COMMANDS = (
    demo.demo, fit.fit, explain.explain, report.report, letters.letters, segments.segments, evaluate.evaluate,
    schema.schema, serve.serve, evidence.verify, evidence.keys, inspect.inspect, monitor.monitor, data.data,
    check.check, reproduction.bench, reproduction.figures,
)  # fmt: skip
for command in COMMANDS:
    app.command(cls=Command)(command)

STOPPED = (130, 143)  # the exit codes after Ctrl-C (SIGINT) and after SIGTERM


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"tdce {version('tdce')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Counterfactual explanations for tables: what would have to be different for a yes."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


def main() -> None:
    """Run a command; wrong input, or a file that cannot be read or written, ends it with a message and exit code 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED[1]))
    code, message = _run()
    if message:
        print(f"tdce: {message}", file=sys.stderr)
    sys.exit(code)


def _run() -> tuple[Any, str]:
    """Run a command; return its exit code and its last message."""
    try:
        try:
            code = app(standalone_mode=False) or 0
        finally:
            _flush()
    except typer.TyperException as error:  # a wrong command, option or value
        return 2, _usage_message(error)
    except InputError as error:
        return 2, str(error)
    except BrokenPipeError:  # the reader has gone, as in `tdce data | head -1`
        return 1, ""
    except (FloatingPointError, ChildProcessError) as error:
        return 1, str(error)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return 2, f"{str(error.filename)[:200]}… cannot be used: {error.strerror}; choose a shorter one"
        return 2, f"{error.filename or 'standard output'}: {error.strerror}"
    except typer.Abort:
        return 1, "aborted"
    except SystemExit as end:
        code = end.code
    return code, "stopped; nothing is half-written" if code in STOPPED else ""


def _usage_message(error: typer.TyperException) -> str:
    """One line: `no such option: --outt; did you mean --out? See tdce fit --help`."""
    text, context = error.format_message().replace(". Did you mean", "; did you mean"), getattr(error, "ctx", None)
    if matches := getattr(error, "possibilities", None):
        text = f"{error.message}; did you mean {matches[0]}?"
    text = f"{text[:1].lower()}{text[1:]}".rstrip(".")
    if context is None:
        return text
    return f"{text}{' See' if text.endswith('?') else '; see'} `{context.command_path} --help`"


def _flush() -> None:
    """Flush the output while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest is lost: Python must not try again
        raise
