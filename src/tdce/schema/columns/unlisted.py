"""Categories that a column does not list: codes that are the same in every process, and names that no file holds."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock

from tdce._core import Value

RARE = "(rare)"  # in place of the name of a rare category that is nobody's, as in synthetic rows
MAX_NAMES = 100_000  # that are remembered; the oldest are forgotten first

_names: OrderedDict[float, Value] = OrderedDict()
_lock = Lock()


def unlisted_code(value: Value) -> float:
    """A whole number for a category, 0 for RARE; its name is remembered for `unlisted_name`."""
    if value == RARE:
        return 0.0
    digest = hashlib.sha256(f"{type(value).__name__} {value}".encode()).digest()
    code = float(1 + int.from_bytes(digest[:6], "big"))  # exact in a float, also after a sum with a position
    with _lock:
        _names[code] = value
        _names.move_to_end(code)
        if len(_names) > MAX_NAMES:
            _names.popitem(last=False)
    return code


def unlisted_name(code: float) -> Value:
    """The category that has this code."""
    return RARE if code == 0 else _names.get(code, RARE)
