"""The package as it is installed: light to import, whole, drawn and described as it is."""

import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

import api
import lending
import pytest
import rooms

import tdce
from tdce import InputError

ROOT = Path(__file__).parents[1]


def python(code: str, *words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, as a command if there are words."""
    argv = f"import sys; sys.argv[1:] = {[str(word) for word in words]!r}\n"
    return subprocess.run([sys.executable, "-c", argv + code], cwd=cwd, capture_output=True, text=True, check=False)


COMMAND = """
import atexit
atexit.register(lambda: print("loaded:", *sorted(sys.modules.keys() & {"torch", "matplotlib", "sklearn"})))
from tdce.cli import main
main()
"""


def test_importing_tdce_waits_for_no_library():
    done = python("import tdce; print(sorted(sys.modules.keys() & {'torch', 'pandas', 'numpy', 'rich', 'typer'}))")
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("words", [["data"], ["schema", "t.csv"]], ids=" ".join)  # help needs no more than these
def test_a_command_that_needs_no_torch_does_not_load_it(words, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,u\n2,v\n", encoding="utf-8")
    done = python(COMMAND, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["loaded:"]


FITTED = """
import tdce
print(tdce.methods.METHODS["face"].__name__)
tdce.Explainer
print(*sys.modules)
import pandas
tdce.Explainer(hidden=8, steps=1).fit(pandas.DataFrame({"a": [1, 2], "y": ["u", "v"]}), label="y")
print(*sys.modules)
"""


def test_an_explainer_waits_for_no_library_of_the_paper_for_no_statistics_and_for_no_compiler():
    """And a module is there without being imported by name."""
    done = python(FITTED)
    found, *modules = done.stdout.splitlines()
    assert found == "FACE"
    loaded, fitted = (set(line.split()) for line in modules)
    assert "torch" in loaded
    assert not loaded & {"scipy.stats", "scipy.optimize", "matplotlib", "sklearn", "rich", "jinja2"}
    assert not fitted & {
        "torch._dynamo",
        "sympy",
    }  # torch's compiler, which takes two seconds to import, and a part of it


@pytest.mark.parametrize(
    ("words", "hidden", "library"),
    [
        (["bench", "--data", "german"], "sklearn", "scikit-learn"),
        (["figures", "--only", "kl"], "matplotlib", "matplotlib"),
        (["figures", "--only", "kl"], "sklearn", "scikit-learn"),
    ],
)
def test_a_command_that_needs_the_extra_says_how_to_get_it(words, hidden, library, tmp_path):
    done = python(f"sys.modules[{hidden!r}] = None\n" + COMMAND, *words, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"tdce: tdce {words[0]} needs {library}; install it with `pip install 'tdce[paper]'`\n"
    assert not list(tmp_path.iterdir())


def test_the_studio_says_how_to_get_what_it_needs(tmp_path):
    done = python("sys.modules['uvicorn'] = None\n" + COMMAND, "serve", "no.tdce", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "tdce: tdce serve needs uvicorn; install it with `pip install 'tdce[studio]'`\n"


def test_face_says_how_to_get_what_it_needs(monkeypatch):
    explainer = tdce.Explainer("face", hidden=8, steps=5, progress="silent")
    explainer.fit(lending.table(60), label="decision", favourable="yes")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match=r"FACE needs scikit-learn; install it with `pip install 'tdce\[paper\]'`"):
        explainer.explain(lending.table(5))


def test_every_public_name_is_there_and_known_to_editors():
    things = [name for name in tdce.__all__ if name not in api.TYPES]
    assert {name: getattr(tdce, name).__name__ for name in things} == {name: name for name in things}
    assert tdce.__version__ == version("tdce")
    with pytest.raises(AttributeError, match="module 'tdce' has no attribute 'explane'"):
        tdce.explane  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'explane'"):
        exec("from tdce import explane")


def test_the_package_is_a_command():
    done = subprocess.run([sys.executable, "-m", "tdce", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Usage: python -m tdce" in done.stdout


def test_the_table_of_rooms_is_that_of_the_code():
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert page == rooms.renewed(page), "run `make docs`"


def test_the_api_page_is_that_of_the_code(monkeypatch):
    init = tdce.Explainer.__init__
    monkeypatch.setattr(init, "__kwdefaults__", init.__kwdefaults__ | {"plans": None})  # not the tests' short ones
    assert sorted((*api.NAMES, *api.TYPES)) == sorted(tdce.__all__)
    assert api.PAGE.read_text(encoding="utf-8") == api.page(), "run `make docs`"


@pytest.mark.slow
def test_the_wheel_has_all_files_and_says_their_licences(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(command, check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        meta = Parser().parsestr(wheel.read(f"tdce-{tdce.__version__}.dist-info/METADATA").decode())
    for path in (ROOT / "src").rglob("*"):
        assert path.is_dir() or path.suffix == ".pyc" or str(path.relative_to(ROOT / "src")) in names
    assert meta["License-Expression"] == "Apache-2.0 AND CC-BY-4.0 AND MIT"
    theirs = ["src/tdce/datasets/LICENCE.txt", "src/tdce/serving/static/vendor/uplot.LICENSE.txt"]
    assert meta.get_all("License-File") == ["LICENSE", *theirs]
    assert all(f"tdce-{tdce.__version__}.dist-info/licenses/{name}" in names for name in meta.get_all("License-File"))
    assert set(meta.get_all("Provides-Extra")) == {"evidence", "onnx", "paper", "ray", "spark", "studio"}
