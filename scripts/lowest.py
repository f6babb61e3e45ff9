"""Print constraints for `make test-lowest`: the lowest versions that pyproject.toml allows, torch and tools pinned."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("paper", "studio", "evidence", "endpoint", "onnx")
GO_WITH = {"polars": "polars==1.33.1"}  # the tests' own; the lowest scikit-learn takes no columns from a newer one
FREE = {"import-linter", "starlette", "pydantic"}  # pip finds those that go with the lowest ones


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *(bound for extra in EXTRAS for bound in extras[extra])]
    lowest = {_name(bound): bound.replace(">=", "==") for bound in bounds if _name(bound) != "torch"}
    pinned = {_name(line): line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]}
    print(*({name: line for name, line in pinned.items() if name not in FREE} | lowest | GO_WITH).values(), sep="\n")


def _name(requirement: str) -> str:
    return re.split("[=>]", requirement)[0]


if __name__ == "__main__":
    main()
