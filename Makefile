# Every target sets up what it needs in .venv on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all lint clean

demo: $(STAMP)
	$(BIN)/tdce demo --out demo

test: lint
	$(BIN)/pytest -n 2 --dist loadfile  # a file's fixtures are made once

test-all: lint
	$(BIN)/pytest -m "slow or not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt "pip>=25.1"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --group dev -e .
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache
