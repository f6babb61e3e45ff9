"""Print constraints for `make test-lowest`: the lowest versions that pyproject.toml allows, torch and tools pinned."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *extras["paper"], *extras["studio"], *extras["evidence"]]
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in pinned if line.startswith(("torch=", "pytest", "hypothesis"))]
    print("\n".join(kept + [bound.replace(">=", "==") for bound in bounds if not bound.startswith("torch")]))


if __name__ == "__main__":
    main()
