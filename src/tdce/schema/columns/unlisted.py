"""Categories that a column does not list: the same code in every process, a name that is in no file."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock

from tdce._core import Value

RARE = "(rare)"  # shown where a rare category has no name, as in synthetic rows
MAX_NAMES = 100_000  # to remember; the oldest are forgotten first

_names: OrderedDict[float, Value] = OrderedDict()
_lock = Lock()


def unlisted_code(value: Value) -> float:
    """Map a category to a whole number, 0 for RARE, and remember its name for `unlisted_name`."""
    if value == RARE:
        return 0.0
    digest = hashlib.sha256(f"{type(value).__name__} {value}".encode()).digest()
    code = float(1 + int.from_bytes(digest[:6], "big"))  # exact in a float, also with a position added
    with _lock:
        _names[code] = value
        _names.move_to_end(code)
        if len(_names) > MAX_NAMES:
            _names.popitem(last=False)
    return code


def unlisted_name(code: float) -> Value:
    """The category with this code; RARE if its name is not remembered."""
    return RARE if code == 0 else _names.get(code, RARE)
