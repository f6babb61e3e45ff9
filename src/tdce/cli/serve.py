"""`tdce serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tdce
from tdce._core import InputError, require_extra
from tdce.cli.shared import ArtefactPath, Decimal, Headers, ModelSource, Sep, model_of


def serve(
    artefact: ArtefactPath,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; beyond this machine, needs a token and TLS"),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="Port; 0 takes any free one")] = 8484,
    rows: Annotated[
        Path | None, typer.Option(metavar="ROWS", help="People to choose from (default: synthetic ones)")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host name that clients use; may be repeated")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="TDCE_TOKEN", show_envvar=True, metavar="TOKEN", help="The token that clients must send"),
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
    settings = ServerSettings(host, port, tuple(name or ()), token, tls_cert, tls_key, insecure, log_values)
    explainer = tdce.Explainer.load(artefact, progress="silent", model=model_of(model, header))
    people = None if rows is None else read_table(rows, explainer.schema, Dialect(sep, decimal))

    def announce(address: str) -> None:
        print(f"The studio is at {address} (Ctrl-C stops it)", flush=True)

    run_server(explainer, settings, people, threads, announce)


def _token(given: str | None, file: Path | None) -> str | None:
    """The token as it was given, or the one in a file, without the line end that editors add."""
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
