# Every target sets up what it needs in .venv on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOWEST := .venv-lowest
MLFLOW := .venv-mlflow
unexport PYTHONDONTWRITEBYTECODE  # or every process of the tests compiles all of the package again
PIP := pip install --quiet --disable-pip-version-check
CHROMIUM_THERE = test -n "$$CHROMIUM" || command -v chromium || command -v chromium-browser || command -v google-chrome

.PHONY: demo test test-all test-browser test-engines test-mlflow test-lowest pictures mutate lint docs results site release clean

demo: $(STAMP)
	$(BIN)/tdce demo --out demo

test: lint
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

test-all: lint
	$(BIN)/pytest -m "slow or not slow"

test-browser: $(VENV)/.browser  # the pages, in Chromium; without one they are skipped
	@$(CHROMIUM_THERE) || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium; } \
	|| echo "There is no Chromium; install it, or name one in CHROMIUM"
	$(BIN)/pytest -m browser tests/browser

pictures: $(VENV)/.browser  # of the pages, for README.md
	$(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/pictures_studio.py
test-engines: $(STAMP)  # Ray and Spark on local clusters; Spark needs Java 17
	$(BIN)/$(PIP) -c constraints.txt --group engines
	$(BIN)/pytest -m "slow or not slow" tests/test_engines.py

test-mlflow: $(MLFLOW)/.installed  # against a tracking store in a temporary folder; MLflow needs an older pyarrow
	$(MLFLOW)/bin/pytest -m "slow or not slow" tests/test_mlflow.py

test-lowest: $(LOWEST)/.installed  # with the oldest versions that pyproject.toml admits, torch apart
	$(LOWEST)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder

mutate: $(STAMP)  # which small changes of the code no test notices; it can be stopped, and goes on where it was
	$(BIN)/$(PIP) -c constraints.txt --group mutate
	mkdir -p mutants/fits
	TDCE_FITS=$(CURDIR)/mutants/fits $(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results

docs: $(STAMP)  # what is made from the code: docs/api.md, and the table of rooms in CONTRIBUTING.md
	$(BIN)/python scripts/api.py
	$(BIN)/python scripts/rooms.py

results: $(STAMP)  # all of results/ anew, and the tables of docs/; resumable. SIZE="--scale 0.1 --budget 60" for less
	$(BIN)/python benchmarks/results.py $(SIZE)

site: $(VENV)/.site  # the documentation, with all examples executed; Spark needs Java 17
	rm -rf site $(addprefix docs/,tutorial gallery pitfalls) examples/*/out* examples/*/*.tdce
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs site
	$(BIN)/python scripts/site_links.py site

release: $(VENV)/.release  # dist/ and sbom/: built twice with the same bytes, checked, installed and tried; nothing is published
	$(BIN)/hadolint Dockerfile
	$(BIN)/python scripts/release.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP) -c constraints.txt "pip>=25.1"
	$(BIN)/$(PIP) -c constraints.txt --group dev -e ".[paper,studio,evidence]"
	touch $(STAMP)

$(VENV)/.browser: $(STAMP)
	$(BIN)/$(PIP) -c constraints.txt --group browser
	touch $@

$(VENV)/.site: $(STAMP)
	$(BIN)/$(PIP) -c constraints.txt --group site
	touch $@

$(VENV)/.release: $(STAMP)
	$(BIN)/$(PIP) -c constraints.txt --group release
	touch $@

$(LOWEST)/.installed: pyproject.toml constraints.txt scripts/lowest.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python scripts/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/$(PIP) "pip>=25.1"
	$(LOWEST)/bin/$(PIP) -c $(LOWEST)/constraints.txt --group test -e ".[paper,studio,evidence,endpoint,onnx]"
	touch $@

$(MLFLOW)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(MLFLOW)
	grep -v "^pyarrow==" constraints.txt > $(MLFLOW)/constraints.txt
	$(MLFLOW)/bin/$(PIP) -c $(MLFLOW)/constraints.txt "pip>=25.1"
	$(MLFLOW)/bin/$(PIP) -c $(MLFLOW)/constraints.txt --group test --group mlflow -e ".[paper]"
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(MLFLOW) demo site dist sbom mutants .pytest_cache .mypy_cache .ruff_cache
