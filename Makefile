# Every target makes .venv first, from the package registry alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: test lint bench demo docs clean

test: lint
	$(BIN)/python -m pytest -W error

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks.bench_models

demo: $(STAMP)
	$(BIN)/python -m benchmarks.demo

# The documentation's examples and the notebooks, run.
docs: $(STAMP)
	$(BIN)/python -m pytest -W error tests/test_readme.py tests/test_notebooks.py

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench,dev,demo]'
	touch $@

clean:
	rm -rf $(VENV) build out *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
