# Every target builds .venv itself when it is missing or older than pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint bench table1 table2 beyond reproduce clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

$(STAMP): pyproject.toml
	@echo "building .venv (a minute or two, once)" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

demo: $(STAMP)  ## see a classifier follow a changing class mix
	@$(BIN)/priorshift demo

test: lint  ## everything that has to be green before a change goes in
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

slow: $(STAMP)  ## the long tests: 100,000 rounds of every learner, Table 2 by the tracker
	$(BIN)/python -m pytest -q -n 2 -m slow

lint: $(STAMP)  ## format, lint and types, without changing a file
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP)  ## time of the learners, as ratios; some 7 minutes
	$(BIN)/python -m benchmarks

table1: $(STAMP)  ## the paper's Table 1: synthetic data, every shift and learner
	$(BIN)/priorshift reproduce table1

table2: $(STAMP)  ## the paper's Table 2: the hints of ATLAS-ADA, small and large batches
	$(BIN)/priorshift reproduce table2

beyond: $(STAMP)  ## what goes beyond the paper, with verdicts; results are stored in beyond.db
	$(BIN)/python -m benchmarks.beyond --store beyond.db

reproduce: $(STAMP)  ## the paper's tables and figures in full, and a report; about an hour on 2 cores
	$(BIN)/priorshift reproduce all

clean:  ## remove .venv and everything else that was built
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
