"""The rooms of the package: imports between them go one way, and each says what it is for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tdce

ROOT = Path(__file__).parent.parent
ROOMS = sorted(path.parent.name for path in (ROOT / "src" / "tdce").glob("*/__init__.pyi"))


LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def test_imports_between_rooms_keep_the_contract_of_pyproject() -> None:
    """In a process of its own: import-linter switches other loggers off."""
    done = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Contracts: 2 kept, 0 broken." in done.stdout


def test_every_module_is_in_a_room_or_a_door() -> None:
    alone = {path.stem for path in (ROOT / "src" / "tdce").glob("*.py")} - {"__init__", "__main__"}
    assert alone == {"demo", "metrics", "mlflow"}
    named = {"_core", "schema", "datasets", "models", "diffusion", "methods", "explainer", "report", "audit", "batch"}
    assert set(ROOMS) == named | {"serving"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_exports_what_exists(room: str) -> None:
    package = getattr(tdce, room)
    assert package.__doc__ is not None
    assert len(package.__doc__.split()) >= 10
    assert package.__all__
    for name in package.__all__:
        if (room, name) != ("batch", "explain_parquet"):  # which needs Ray
            assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        package.nothing_of_that_name  # noqa: B018


@pytest.mark.parametrize("room", ROOMS)
def test_other_rooms_import_from_the_room_and_not_from_its_modules(room: str) -> None:
    inside = ROOT / "src" / "tdce" / room
    for path in (ROOT / "src").rglob("*.py"):
        if inside in path.parents or path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"tdce.{room}."):
                modules = {f"{node.module}.{alias.name}".replace(".", "/") for alias in node.names}
                assert all((ROOT / "src" / f"{module}.py").exists() for module in modules), (path, node.module)
