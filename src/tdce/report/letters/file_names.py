"""File names from the ids of people: safe on every system, and distinct for distinct ids."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from tdce._core import InputError

MAX_LENGTH = 80  # characters, which are at most 240 bytes
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # on Windows
HASH_DIGITS = 8


def file_names(ids: Sequence[str]) -> list[str]:
    """A name for each id: the id itself if it is safe, else its safe characters and a hash.

    Names differ even where case does not matter.
    """
    names = [(each, _safe(each)) for each in ids]
    alike = Counter(name.casefold() for each, name in names if each == name)
    found = [name if each == name and alike[name.casefold()] == 1 else f"{name}-{_hash(each)}" for each, name in names]
    if len({name.casefold() for name in found}) < len(found):
        raise InputError("two ids give the same name of a file; name another column of ids")
    return found


def _safe(id: str) -> str:
    """Letters, digits, `_`, `-` and `.` of an id; other runs become one `-`, and no name begins or ends with a mark."""
    kept = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", id))[:MAX_LENGTH].strip("-.")
    return f"id-{kept}".rstrip("-") if not kept or RESERVED.fullmatch(kept) else kept


def _hash(id: str) -> str:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]
