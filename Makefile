# Every target works in a fresh clone: each one sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := src tests benchmarks tools examples

.PHONY: run test setup check lint types test-slow bench clean

run: setup  ## train ILDE on the bundled demonstration and film it beside the demonstrator
	$(BIN)/python examples/quickstart.py

test: setup  ## the tests, in minutes
	$(BIN)/python -m pytest -n 2

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

check: lint types  ## what CI runs
	$(MAKE) test

lint: setup
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types: setup
	$(BIN)/mypy

test-slow: setup  ## learning runs, long fuzzing, kill tests
	$(BIN)/python -m pytest -m slow
	$(BIN)/python tools/kill_test.py --env HalfCheetah-v5 --kills 40
	$(BIN)/python tools/kill_test.py --env ALE/Breakout-v5 --kills 40

bench: setup  ## what bounds the speed of this machine
	$(BIN)/ilde bench

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
