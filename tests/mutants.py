"""Mutants of a small artefact and the result of loading them; shared by the tests and benchmarks/fuzz_artefact.py."""

import copy
import hashlib
import json
import random
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load as from_bytes

import tdce
from tdce import InputError
from tdce.explainer.sealed_file import BEFORE, BLANK, DIGEST, seal
from tdce.methods.search import DiffusionSearch

TIMEOUT = 10.0  # seconds for one mutant

NESTED, SURROGATE, AGAIN = "@nested@", "@surrogate@", "@again@"  # placeholders for text that json.dumps never writes
RAW = {NESTED: "[" * 20_000 + "]" * 20_000, SURROGATE: '"\\ud800"'} | {
    f"@{number}@": number for number in ("NaN", "Infinity", "-Infinity", "1e999", "-0.0", "1" * 5_000)
}
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 50, 51, 2**31, 2**63, 2**64, 10**30, -(10**30), 10**400, 0.5, -0.5, 1e-320,
    1e-30, 1e30, 1e150, 1e300, "", "a", "no", "yes", "x" * 10_000, "\u0000", "search", "guided", "any", "numeric",
    [], [[]], [1], [0.5, 0.2], ["a", "a"], [True, 1], {}, {"a": 1}, [10**30] * 3, *RAW,
]  # fmt: skip


def table(rows: int = 80, seed: int = 0) -> pd.DataFrame:
    """Whole numbers, decimals, categories and a flag, some of them missing; the label follows a rule."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(10, 90, rows),
            "debt": rng.gamma(2.0, 10.0, rows).round(2),
            "housing": rng.choice(["rent", "own", "free"], rows),
            "phone": rng.integers(0, 2, rows),
        }
    )
    frame["decision"] = np.where(frame["income"] - frame["debt"] > 30, "yes", "no")
    frame.loc[rng.random(rows) < 0.1, "debt"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "housing"] = None
    return frame


def explainer(**settings: Any) -> tdce.Explainer:
    method = DiffusionSearch(exemplars=4, beam=2)  # short searches: thousands of mutants explain rows
    small = tdce.Explainer(method, hidden=16, steps=20, progress="silent", **settings)
    return small.fit(table(), label="decision", favourable="yes")


def refused(fitted: tdce.Explainer) -> pd.DataFrame:
    """Two rows that it refuses, one with a missing value."""
    frame = table(400, seed=1).drop(columns="decision")
    frame = frame[(fitted.predict(frame) == "no").to_numpy()]
    missing = frame["debt"].isna()
    return pd.concat([frame[~missing].head(1), frame[missing].head(1)])


# ---- bytes, with the old checksum


def byte_changed(whole: bytes, rng: random.Random) -> bytes:
    at = rng.choice([rng.randrange(len(whole)), rng.randrange(int.from_bytes(whole[:8], "little") + 8)])
    return whole[:at] + bytes([whole[at] ^ rng.randrange(1, 256)]) + whole[at + 1 :]


def bytes_inserted(whole: bytes, rng: random.Random) -> bytes:
    at = rng.choice([0, 8, len(whole), rng.randrange(len(whole))])
    return whole[:at] + rng.choice([b" ", b"\0", rng.randbytes(rng.randrange(1, 40))]) + whole[at:]


def bytes_deleted(whole: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(whole))
    return whole[:at] + whole[at + rng.randrange(1, 40) :]


def cut_short(whole: bytes, rng: random.Random) -> bytes:
    return whole[: rng.randrange(len(whole))]


def part_copied(whole: bytes, rng: random.Random) -> bytes:
    size, a, b = rng.randrange(1, 200), rng.randrange(len(whole)), rng.randrange(len(whole))
    return whole[:b] + whole[a : a + size] + whole[b + size :]


def classes_swapped(whole: bytes, rng: random.Random) -> bytes:
    return whole.replace(b'[\\"no\\",\\"yes\\"]', b'[\\"yes\\",\\"no\\"]', 1)


def header_edited(whole: bytes, rng: random.Random) -> bytes:
    """The same header to a JSON reader in other bytes: another order, more spaces."""
    content, entries, body = parts(whole)
    names = list(entries)
    turned = {name: entries[name] for name in rng.sample(names, len(names))}
    header = json.dumps({"__metadata__": {"tdce": text_of(content, whole[DIGEST].decode())}, **turned})
    if rng.random() < 0.5:
        header = header.replace("}", " " * rng.randrange(1, 9) + "}", 1)
    return framed(header, body)


# ---- JSON and tensors, with a recomputed checksum


def value_replaced(whole: bytes, rng: random.Random) -> bytes:
    def edit(holder: Any, key: Any, document: Any) -> None:
        other, at = rng.choice(places(document))
        holder[key] = copy.deepcopy(rng.choice([*ODD_VALUES, *([other[at]] * 8)]))

    return edited(whole, rng, edit)


def number_nudged(whole: bytes, rng: random.Random) -> bytes:
    def edit(holder: Any, key: Any, document: Any) -> None:
        if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = rng.choice(
                [holder[key] + 1, holder[key] - 1, -holder[key], holder[key] * 10, holder[key] / 7]
            )

    return edited(whole, rng, edit)


def name_removed(whole: bytes, rng: random.Random) -> bytes:
    def edit(holder: Any, key: Any, document: Any) -> None:
        del holder[key]

    return edited(whole, rng, edit)


def name_added(whole: bytes, rng: random.Random) -> bytes:
    def edit(holder: Any, key: Any, document: Any) -> None:
        odd = copy.deepcopy(rng.choice(ODD_VALUES))
        if isinstance(holder, list):
            holder.insert(key, odd)
        else:
            holder[rng.choice(["", "task_", "x", "name", "__metadata__", "format", "rows", "seconds"])] = odd

    return edited(whole, rng, edit)


def name_doubled(whole: bytes, rng: random.Random) -> bytes:
    """The same name twice in one object; readers differ in which they take."""
    doubled: list[str] = []

    def edit(holder: Any, key: Any, document: Any) -> None:
        if isinstance(holder, dict):
            doubled[:] = [key]
            holder[AGAIN] = rng.choice([holder[key], 1, "a"])

    return edited(whole, rng, edit, lambda text: text.replace(f'"{AGAIN}"', f'"{doubled[0]}"'))


def values_swapped(whole: bytes, rng: random.Random) -> bytes:
    def edit(holder: Any, key: Any, document: Any) -> None:
        other, at = rng.choice(places(document))
        holder[key], other[at] = copy.deepcopy(other[at]), copy.deepcopy(holder[key])

    return edited(whole, rng, edit)


def tensor_changed(whole: bytes, rng: random.Random) -> bytes:
    """Tensors with another dtype or shape, odd numbers, swapped, dropped or added; sometimes two such edits."""
    content, tensors = opened(whole)
    for _ in range(rng.choice([1, 1, 2])):
        a, b = rng.sample(sorted(tensors), 2)
        tensors = TENSOR_EDITS[rng.choice(sorted(TENSOR_EDITS))](tensors, a, b, rng)
    return seal(content, {name: tensor.clone() for name, tensor in tensors.items()})


def body_changed(whole: bytes, rng: random.Random) -> bytes:
    start = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(rng.choice([1, 1, 10, 1000])):
        at = rng.randrange(start, len(whole))
        whole = whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
    return resealed(whole)


def any_bytes_resealed(whole: bytes, rng: random.Random) -> bytes:
    change = rng.choice([byte_changed, bytes_inserted, bytes_deleted, cut_short, part_copied, header_edited])
    return resealed(change(whole, rng))


def _put(tensors: dict[str, torch.Tensor], a: str, value: float) -> dict[str, torch.Tensor]:
    flat = tensors[a].clone().flatten()
    if len(flat):
        flat[len(flat) // 2] = torch.tensor(value, dtype=torch.float64).to(flat.dtype)
    return tensors | {a: flat.view(tensors[a].shape)}


TensorEdit = Callable[[dict[str, torch.Tensor], str, str, random.Random], dict[str, torch.Tensor]]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64, torch.bool]
TENSOR_EDITS: dict[str, TensorEdit] = {
    "dtype": lambda t, a, b, rng: t | {a: t[a].to(rng.choice(DTYPES))},
    "flat": lambda t, a, b, rng: t | {a: t[a].flatten()},
    "deeper": lambda t, a, b, rng: t | {a: t[a][None]},
    "turned": lambda t, a, b, rng: t | {a: t[a].T if t[a].ndim == 2 else t[a].flip(0) if t[a].ndim else t[a] + 1},
    "shorter": lambda t, a, b, rng: t | {a: t[a][:-1] if t[a].ndim else t[a][None][:0]},
    "longer": lambda t, a, b, rng: t | {a: torch.cat([t[a][None].flatten(0, 0), t[a][None]])},
    "empty": lambda t, a, b, rng: t | {a: t[a].flatten()[:0]},
    "not a number": lambda t, a, b, rng: t | {a: t[a] * torch.nan if t[a].is_floating_point() else t[a]},
    "one odd number": lambda t, a, b, rng: _put(
        t, a, rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30, 1e150, 1e-300, -1.0, 0.0, 1e4, 999.0])
    ),
    "scaled": lambda t, a, b, rng: t | {a: t[a] * rng.choice([0, -1, 10, 1_000_000])},
    "scaled by a little": lambda t, a, b, rng: t | {a: (t[a] * rng.choice([1e-30, 0.5, 1.01])).to(t[a].dtype)},
    "every weight large": lambda t, a, b, rng: {k: v.sign() * 1000 if ".network." in k else v for k, v in t.items()},
    "tight scales": lambda t, a, b, rng: {k: v * 1e-30 if k.endswith(".raw") else v for k, v in t.items()},
    "swapped": lambda t, a, b, rng: t | {a: t[b], b: t[a]},
    "dropped": lambda t, a, b, rng: {name: tensor for name, tensor in t.items() if name != a},
    "added": lambda t, a, b, rng: t | {rng.choice(["x", f"{a}.x", "rows.z", ""]): t[b]},
    "without rows": lambda t, a, b, rng: t | {"rows.raw": t["rows.raw"][:0], "rows.y": t["rows.y"][:0]},
    "one row": lambda t, a, b, rng: t | {"rows.raw": t["rows.raw"][:1], "rows.y": t["rows.y"][:1]},
    "nobody": lambda t, a, b, rng: t | {"synthetic.raw": t["synthetic.raw"][:0]},
    "one person": lambda t, a, b, rng: t | {"synthetic.raw": t["synthetic.raw"][:1]},
    "one energy": lambda t, a, b, rng: t | {"energy_quantiles": t["energy_quantiles"] * 0 + 1},
    "one class": lambda t, a, b, rng: t | {"rows.y": t["rows.y"] * 0},
}

UNSEALED: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a byte changed": byte_changed,
    "bytes inserted": bytes_inserted,
    "bytes deleted": bytes_deleted,
    "cut short": cut_short,
    "a part copied over another": part_copied,
    "class names swapped": classes_swapped,
    "header written otherwise": header_edited,
}
RESEALED: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "JSON: a value replaced": value_replaced,
    "JSON: a number nudged": number_nudged,
    "JSON: a name removed": name_removed,
    "JSON: a name added": name_added,
    "JSON: a name twice": name_doubled,
    "JSON: two values swapped": values_swapped,
    "tensors: dtype, shape, NaN, swapped, …": tensor_changed,
    "tensors: bits flipped": body_changed,
    "any bytes": any_bytes_resealed,
}


# ---- loading them


@dataclass
class Tally:
    """The results for one kind of mutant."""

    tries: int = 0
    refused: int = 0  # by load, with an InputError
    loaded: int = 0
    answered: int = 0  # of those loaded; the others were refused by explain, with an InputError
    slowest: float = 0.0  # seconds
    failures: list[str] = field(default_factory=list)  # any other exception


def fuzz(whole: bytes, rows: pd.DataFrame, path: Path, tries: int, seed: int) -> dict[str, Tally]:
    """Make mutants and load each; those that load explain the rows. Warnings count as exceptions."""
    mutations, rng = UNSEALED | RESEALED, random.Random(seed)
    tallies = {name: Tally() for name in mutations}
    for i in range(tries):
        name = list(mutations)[i % len(mutations)]
        mutant = mutations[name](whole, rng)
        while mutant == whole:
            mutant = mutations[name](whole, rng)
        path.write_bytes(mutant)
        _try(tallies[name], path, rows if name in RESEALED else None)
    return tallies


def _try(tally: Tally, path: Path, rows: pd.DataFrame | None) -> None:
    tally.tries += 1
    loaded, began = False, time.monotonic()
    signal.signal(signal.SIGALRM, _raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mutant = tdce.Explainer.load(path, progress="silent")
            loaded = True
            tally.loaded += 1
            if rows is not None:
                mutant.explain(rows).to_frame()
                tally.answered += 1
    except InputError as error:
        tally.refused += not loaded
        if not loaded and str(path) not in str(error):
            tally.failures.append(f"the file is not named: {error}")
    except Exception as error:
        tally.failures.append(f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    tally.slowest = max(tally.slowest, time.monotonic() - began)


def _raise_timeout(*_: object) -> None:
    raise TimeoutError(f"not done after {TIMEOUT} seconds")


# ---- the parts of a file


def parts(whole: bytes) -> tuple[Any, Any, bytes]:
    """The content without its digest, the header's entries, and the tensors' bytes."""
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    content = json.loads(header.pop("__metadata__")["tdce"])
    del content["sha256"]
    return content, header, whole[8 + size :]


def opened(whole: bytes) -> tuple[Any, dict[str, torch.Tensor]]:
    content = parts(whole)[0]
    del content["format"]
    return content, from_bytes(whole)


def text_of(content: Any, digest: str = BLANK) -> str:
    return f'{{"sha256":"{digest}",{json.dumps(content, separators=(",", ":"))[1:]}'


def framed(header: str, body: bytes) -> bytes:
    return len(header.encode()).to_bytes(8, "little") + header.encode() + body


def resealed(whole: bytes) -> bytes:
    """The file with the digest of its present content, if there is still a place for it."""
    if whole[8 : DIGEST.start] != BEFORE or len(whole) < DIGEST.stop:
        return whole
    blank = whole[: DIGEST.start] + BLANK.encode() + whole[DIGEST.stop :]
    return whole[: DIGEST.start] + hashlib.sha256(blank).hexdigest().encode() + whole[DIGEST.stop :]


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every value of a JSON document, as its container and its name or position there."""
    values: list[tuple[Any, Any]] = []
    names = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for name in names:
        values += [(document, name), *places(document[name])]
    return values


def edited(
    whole: bytes, rng: random.Random, edit: Callable[[Any, Any, Any], None], last: Callable[[str], str] = str
) -> bytes:
    """The file with one value of its content, or sometimes of its header, edited and the checksum recomputed."""
    content, entries, body = parts(whole)
    document = entries if rng.random() < 0.15 else content
    before = json.dumps(document)
    while json.dumps(document) == before:  # not every edit suits every place
        edit(*rng.choice(places(document)), document)
    text, tensors = (json.dumps(each, separators=(",", ":")) for each in (content, entries))
    for mark, raw in RAW.items():
        text, tensors = text.replace(f'"{mark}"', raw), tensors.replace(f'"{mark}"', raw)
    text, tensors = last(text), last(tensors)
    metadata = json.dumps(f'{{"sha256":"{BLANK}",{text[1:]}')
    return resealed(framed(f'{{"__metadata__":{{"tdce":{metadata}}},{tensors[1:]}', body))
