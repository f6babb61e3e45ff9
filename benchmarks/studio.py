"""How fast `tdce serve` answers on german, for one person and for many clients at once, and the size of its pages.

    python benchmarks/studio.py [NAME.tdce] [--clients 1,10,100,1000]

It starts a local server and stops it at the end; every client asks about one person. Without NAME.tdce an explainer is
fitted first. Prints the tables of docs/studio.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import tdce
from tdce.report import languages
from tdce.serving.i18n import page_words

STATIC = Path(tdce.__file__).parent / "serving/static"
PEOPLE = 20  # distinct
REQUESTS = 20  # of each kind, one after the other
HEAVY, HEAVY_ROWS, HEAVY_OPTIONS = 3, 50, 20  # requests that keep the server busy
TIMEOUT = 300  # seconds for any answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artefact", nargs="?", type=Path)
    parser.add_argument("--clients", default="1,10,100,1000")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        artefact = given.artefact or fitted(Path(folder) / "german.tdce")
        with served(artefact) as address:
            rows = refused(address)
            print("\n| request | p50 | longest |\n|---|---|---|")
            for name, path, body in single(rows):
                with httpx.Client(base_url=address, timeout=TIMEOUT, trust_env=False) as client:
                    seconds = [timed(client, path, body(i)) for i in range(REQUESTS)]
                print(f"| {name} | {1000 * statistics.median(seconds):.0f} ms | {1000 * max(seconds):.0f} ms |")
            print("\n| one option, `/explain` | p50 | longest |\n|---|---|---|")
            for name, seconds in behind(address, rows):
                print(f"| {name} | {1000 * statistics.median(seconds):.0f} ms | {1000 * max(seconds):.0f} ms |")
            print("\n| clients at once | requests/s | p50 | p99 | errors |\n|---|---|---|---|---|")
            for clients in map(int, given.clients.split(",")):
                took, seconds, errors = asyncio.run(pool(address, rows, clients))
                p50, p99 = np.quantile(seconds, [0.5, 0.99]) if seconds else (float("nan"),) * 2
                print(f"| {clients:,} | {clients / took:.1f} | {p50:.2f} s | {p99:.2f} s | {errors} |")
    print("\n| page weight | bytes | packed |\n|---|---|---|")
    weights()


def fitted(path: Path) -> Path:
    data = tdce.load("german")
    explainer = tdce.Explainer(progress="lines")
    explainer.fit(data.frame, label=data.label, favourable=data.favourable, schema=data.schema).save(path)
    return path


@contextmanager
def served(artefact: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tdce", "serve", str(artefact), "--port", "0", "--no-token"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split(" at ")[1].split()[0]
        finally:
            process.terminate()


def refused(address: str) -> list[dict[str, Any]]:
    found = httpx.get(f"{address}people", params={"met": "false", "count": PEOPLE}, trust_env=False).json()
    return [person["values"] for person in found["people"]]


def single(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """The requests of a person at a desk: name, path and body."""

    def row(i: int) -> dict[str, Any]:
        return rows[i % len(rows)]

    yield "the decision, `/predict`", "predict", lambda i: {"rows": [row(i)]}
    yield "a value changed by hand, `/check`", "check", lambda i: {"row": row(i), "values": row(i) | {"age": 30}}
    yield "one option, `/explain`", "explain", lambda i: {"rows": [row(i)]}
    yield "three options, `/explain`", "explain", lambda i: {"rows": [row(i)], "n": 3}
    yield "the walk, `/walk`", "walk", lambda i: {"row": row(i)}


def timed(client: httpx.Client, path: str, body: dict[str, Any]) -> float:
    began = time.perf_counter()
    client.post(path, json=body).raise_for_status()
    return time.perf_counter() - began


def behind(address: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[float]]]:
    """A light request alone, and as long as three heavy ones are being answered."""
    with httpx.Client(base_url=address, timeout=TIMEOUT, trust_env=False) as client:
        yield "alone", [timed(client, "explain", {"rows": [rows[i % len(rows)]]}) for i in range(REQUESTS)]
        many = (rows * HEAVY_ROWS)[:HEAVY_ROWS]
        heavy = [
            threading.Thread(target=httpx.post, args=(f"{address}explain",), kwargs={
                "json": {"rows": many, "n": HEAVY_OPTIONS, "seed": seed}, "timeout": TIMEOUT, "trust_env": False,
            })
            for seed in range(HEAVY)
        ]  # fmt: skip
        for thread in heavy:
            thread.start()
        time.sleep(0.3)  # until they have come
        seconds = []
        while any(thread.is_alive() for thread in heavy):
            seconds.append(timed(client, "explain", {"rows": [rows[len(seconds) % len(rows)]]}))
        yield f"behind {HEAVY} requests of {HEAVY_ROWS} rows and {HEAVY_OPTIONS} options", seconds


async def pool(address: str, rows: list[dict[str, Any]], clients: int) -> tuple[float, list[float], int]:
    """Total seconds, seconds of each answered request, and the number of failures; a connection for each client."""
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits, trust_env=False) as client:

        async def ask(i: int) -> float | None:
            began = time.perf_counter()
            try:
                found = await client.post(f"{address}explain", json={"rows": [rows[i % len(rows)]]})
                return time.perf_counter() - began if found.is_success else None
            except httpx.HTTPError:
                return None

        began = time.perf_counter()
        found = await asyncio.gather(*(ask(i) for i in range(clients)))
    seconds = [each for each in found if each is not None]
    return time.perf_counter() - began, seconds, clients - len(seconds)


def weights() -> None:
    """What a browser loads for the pages, by kind."""
    modules = sorted(STATIC.glob("*.js"))
    kinds = {
        "HTML, icon and style": [STATIC.parent / "page.html", STATIC / "icon.svg", STATIC / "studio.css"],
        f"scripts of the pages, {len(modules)} modules": modules,
        "uPlot": [path for path in sorted((STATIC / "vendor").iterdir()) if path.suffix != ".txt"],
    }
    sizes = {kind: np.sum([_sizes(path.read_bytes()) for path in paths], axis=0) for kind, paths in kinds.items()}
    for language in languages():
        sizes[f"words, {language}"] = _sizes(json.dumps(page_words(language), ensure_ascii=False).encode())
    for kind, (plain, packed) in sizes.items():
        print(f"| {kind} | {plain:,} | {packed:,} |")
    plain, packed = np.sum([*sizes.values()], axis=0) - np.sum(
        [sizes[f"words, {each}"] for each in languages()[1:]], axis=0
    )
    print(f"| **all, with the words of one language** | **{plain:,}** | **{packed:,}** |")


def _sizes(content: bytes) -> np.ndarray:
    """As they are, and packed."""
    return np.array([len(content), len(gzip.compress(content))])


if __name__ == "__main__":
    main()
