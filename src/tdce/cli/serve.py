"""`tdce serve`."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

import tdce
from tdce._core import InputError, require_extra
from tdce.cli.shared import ArtefactPath, Decimal, Headers, ModelSource, Sep, model_of

TOKEN_BYTES = 24  # of a random token


def serve(
    artefact: ArtefactPath,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; beyond this machine, needs TLS"),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="Port; 0 takes any free one")] = 8484,
    rows: Annotated[
        Path | None, typer.Option(metavar="ROWS", help="People to choose from (default: synthetic ones)")
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column of ROWS by which people are named (default: the first id)"),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host name that clients use; may be repeated")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TDCE_TOKEN",
            show_envvar=True,
            metavar="TOKEN",
            help="The token that clients must send (default: a new one, which is printed)",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="TDCE_TOKEN_FILE",
            show_envvar=True,
            metavar="FILE",
            help="A file with the token: a container's secret",
        ),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Answer every user of this machine, whoever they are")
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the studio in a browser")] = False,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate, .pem")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate, .pem")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow other machines to connect without TLS")] = False,
    log_values: Annotated[bool, typer.Option("--log-values", help="Log questions with people's values")] = False,
    model: ModelSource = None,
    header: Headers = None,
    threads: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Threads per answer")] = 1,
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Start the studio: pages for people, an HTTP API for programs."""
    require_extra("tdce serve", "studio", "fastapi", "uvicorn", "prometheus_client")
    from tdce.datasets import Dialect, read_table
    from tdce.serving import ServerSettings
    from tdce.serving import serve as run_server

    token = _token(token, token_file)
    if no_token and token is not None:
        raise InputError("--no-token and a token (--token, TDCE_TOKEN) exclude each other; leave one out")
    if id_column is not None and rows is None:
        raise InputError("--id names a column of the rows; give them too: --rows FILE")
    token = None if no_token else token or secrets.token_urlsafe(TOKEN_BYTES)
    settings = ServerSettings(host, port, tuple(name or ()), token, tls_cert, tls_key, insecure, log_values)
    explainer = tdce.Explainer.load(artefact, progress="silent", model=model_of(model, header))
    people = None if rows is None else read_table(rows, explainer.schema, Dialect(sep, decimal))

    with TemporaryDirectory(prefix="tdce-studio-") as folder:

        def announce(address: str) -> None:
            whole = address if token is None else f"{address}#token={token}"
            print(f"The studio is at {whole} (Ctrl-C stops it)", flush=True)
            if settings.is_local and not no_browser:
                open_browser(whole, Path(folder))

        run_server(explainer, settings, people, threads, announce, id_column)


def open_browser(address: str, folder: Path) -> None:
    """Open the studio in a browser if it was started on a terminal. The address contains the token, and other users can
    read a process's arguments; so the browser is given a page that only this user can read and that redirects."""
    has_screen = sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not sys.stdout.isatty() or not has_screen:
        return
    import webbrowser

    page = folder / "studio.html"  # the folder has mode 0700
    page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">', encoding="utf-8")
    with suppress(webbrowser.Error):
        webbrowser.open(page.as_uri())


def _token(given: str | None, file: Path | None) -> str | None:
    """The token as given, or from a file, without the line end that editors add."""
    if file is None:
        return given
    if given is not None:
        raise InputError("there are two tokens, --token (TDCE_TOKEN) and --token-file (TDCE_TOKEN_FILE): give one")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(
            f"the token's file {file} cannot be read: {why}; mount the secret there, or name another file"
        ) from None
