"""Settings of all tests: the same examples on every run and machine, and one folder of fitted explainers per run."""

import os
import shutil
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"  # test processes run side by side; before torch is imported, and for subprocesses

import pytest
from hypothesis import settings

settings.register_profile("search", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=2000)  # pytest --hypothesis-profile=thorough
settings.load_profile("search")

if "MUTANT_UNDER_TEST" in os.environ:  # mutmut 3.8 reads a private name that pytest 9 no longer has
    pytest.Item._nodeid = property(lambda item: item.nodeid)

FITS = "TDCE_FITS"
LONG = (
    "cli", "models", "figures", "methods", "benchmark", "theory", "selftest", "kept", "explainer", "readme",
    "algorithm1", "inputs", "awkward", "search", "package", "company", "goals_matrix", "diffusion", "artefact",
    "latent", "threads", "refine", "oracle",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """The process that starts all others makes the folder, and they find it in their environment."""
    if FITS not in os.environ:
        os.environ[FITS] = tempfile.mkdtemp(prefix="tdce-fits-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(FITS), ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: a file's tests go to one worker, so that its fixtures are made once."""
    order = {f"test_{name}.py": i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))


@pytest.fixture(scope="session", autouse=True)
def short_training() -> None:
    from fits import short_training  # here: the process that starts the workers need not import torch

    short_training()
