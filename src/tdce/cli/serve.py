"""`tdce serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tdce
from tdce._core import require_extra
from tdce.cli.shared import Decider, Decimal, ModelPath, Sep
from tdce.datasets import Dialect, read_table


def serve(
    artefact: ModelPath,
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine a token and TLS are needed")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free")] = 8484,
    rows: Annotated[Path | None, typer.Option(help="People to pick from (default: synthetic ones)")] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="A name by which clients call this host; may be repeated")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="TDCE_TOKEN", show_envvar=True, help="What clients must know")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate, .pem")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, .pem")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Beyond this machine without TLS")] = False,
    log_values: Annotated[bool, typer.Option("--log-values", help="Log what was asked, with people's values")] = False,
    model: Decider = None,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads of one answer")] = 1,
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Open the studio and the HTTP API: pages for people, JSON for programs."""
    require_extra("tdce serve", "studio", "fastapi", "uvicorn", "prometheus_client")
    from tdce.serving import ServerSettings
    from tdce.serving import serve as answer

    setting = ServerSettings(host, port, tuple(name or ()), token, tls_cert, tls_key, insecure, log_values)
    explainer = tdce.Explainer.load(artefact, progress="silent", model=model)
    people = None if rows is None else read_table(rows, explainer.schema, Dialect(sep, decimal))

    def ready(address: str) -> None:
        print(f"The studio is at {address} (Ctrl-C stops it)", flush=True)

    answer(explainer, setting, people, threads, ready)
