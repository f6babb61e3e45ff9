"""Windows and macOS: nothing that tdce imports, and nothing on the usual way, is of one system only."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ELSEWHERE = """
import os, signal, sys
for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "posix_ipc", "syslog", "readline"):
    sys.modules[name] = None  # importing it fails, as on Windows
import asyncio, concurrent.futures, multiprocessing.pool, subprocess, threading  # Python's own may ask for them
import numpy, pandas, torch, pyarrow.parquet, typer, rich.console
for module, names in {
    os: ("fork", "register_at_fork", "sched_getaffinity", "getuid", "geteuid", "getpgid", "killpg", "mkfifo", "chown",
         "O_NONBLOCK", "O_DIRECTORY", "uname", "getloadavg"),
    signal: ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "alarm", "setitimer", "pthread_sigmask", "sigwait", "SIG_BLOCK",
             "SIG_SETMASK"),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""

IMPORTS = """
import importlib, pkgutil, tdce
left_out = []
for found in pkgutil.walk_packages(tdce.__path__, "tdce."):
    if found.name == "tdce.__main__":
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in ("ray", "pyspark", "mlflow"):  # extras that a machine may lack
            raise
        left_out.append(found.name)
print(len([name for name in sys.modules if name.startswith("tdce.")]), "modules")
"""

USES = """
import tempfile
from pathlib import Path
import numpy as np, pandas as pd, tdce
from tdce.cli import main

rng = np.random.default_rng(0)
table = pd.DataFrame({"income": rng.integers(10, 90, 80) * 100, "home": rng.choice(["own", "rent"], 80)})
table["y"] = np.where(table["income"] > 4000, "yes", "no")
with tempfile.TemporaryDirectory() as folder:
    path, rows = Path(folder) / "t.tdce", Path(folder) / "rows.csv"
    explainer = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(table, label="y", favourable="yes")
    explainer.save(path)
    table.head(5).to_csv(rows, index=False)
    loaded = tdce.Explainer.load(path)
    assert loaded.explain(table.head(2)).to_frame().equals(explainer.explain(table.head(2)).to_frame())
    sys.argv = ["tdce", "explain", str(path), str(rows), "--out", str(rows.with_name("out.csv"))]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    assert len(pd.read_csv(rows.with_name("out.csv"))) == 5
print("used")
"""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_imported_without_what_only_unix_has():
    assert int(python(ELSEWHERE + IMPORTS).split()[0]) > 150


def test_an_explainer_is_fitted_saved_loaded_and_asked_without_what_only_unix_has():
    assert python(ELSEWHERE + USES).splitlines()[-1] == "used"


@pytest.mark.parametrize("name", ["fcntl", "resource", "termios", "pwd", "grp"])
def test_what_only_unix_has_is_imported_where_its_absence_is_handled(name):
    """At the top of a module it would end `import tdce` on Windows."""
    for path in (ROOT / "src").rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.startswith((f"import {name}", f"from {name}"))], path
