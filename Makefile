# make demo    install and score the photos that come with the package, offline
# make test    install and run every check (10 minutes at most on 2 cores)
# make test-long   the many-kill and cross-validation tests (45 minutes at most)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One thread for the numerics: the tests run side by side, and one thread adds up in one order.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-long lint format bench clean

demo: $(VENV)/.core
	@$(BIN)/healbench demo --out runs/demo || test $$? -eq 1

test: lint $(VENV)/.chromium
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

test-long: $(VENV)/.dev $(VENV)/.chromium
	$(ONE_THREAD) $(BIN)/python -m pytest -m long

lint: $(VENV)/.dev
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.offline_judge
	$(BIN)/python -m benchmarks.large_report

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "HealBench needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing into $(VENV)/, about a minute"
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing into $(VENV)/ with what the tests need, about two minutes"
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.core

# The page tests need a browser; the system's package manager may bring it. Without one they say that they did not run.
$(VENV)/.chromium: | $(VENV)/bin/python
	@sh scripts/chromium.sh
	@touch $@

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
