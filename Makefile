# Everything runs in a virtual environment of its own; the first target that needs it makes it.

VENV := .venv
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY := $(VENV)/ready
REPORT := table

.DEFAULT_GOAL := help
.PHONY: help demo test attack mutants lint bench e2e outcome fidelity schema example clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## a dry run over an example cluster: what would move, and why
	@echo "rebalancer run --policy demo --snapshot examples/cluster.json"
	@$(VENV)/bin/rebalancer run --policy demo --snapshot examples/cluster.json --output $(REPORT)

test: $(READY) lint ## check style, types and layers, then run the tests
	@$(VENV)/bin/python -m pytest -q -n auto

attack: $(READY) ## the tests of random and hostile input alone, ten times as long as in `make test`
	@REBALANCER_ATTACK=$${REBALANCER_ATTACK:-10} $(VENV)/bin/python -m pytest -q -n auto tests/attack

mutants: $(READY) ## change the program a little, 200 times, and print the changes that no test notices (hours)
	@$(VENV)/bin/python tests/mutants/mutants.py $(OPTIONS)

lint: $(READY) ## check style, types and layers
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/lint-imports --no-logo > $(VENV)/lint-imports.txt || { cat $(VENV)/lint-imports.txt; exit 1; }
	@echo "Style, types and layers are in order."

bench: $(READY) ## measure the speed of whole commands
	@$(VENV)/bin/python tests/bench/bench.py

e2e: $(READY) ## run the tests against a real control plane (builds it first; needs Go or the network)
	@$(VENV)/bin/python tests/e2e/binaries.py
	@$(VENV)/bin/python -m pytest -q tests/e2e

outcome: $(READY) ## measure whether a real cluster gets better and rests, an hour or so (needs what e2e needs)
	@$(VENV)/bin/python tests/e2e/binaries.py
	@$(VENV)/bin/python tests/outcome/outcome.py $(OPTIONS)

fidelity: $(READY) ## hold the simulated scheduler against the real one, 25 minutes or so (needs what e2e needs)
	@$(VENV)/bin/python tests/e2e/binaries.py
	@$(VENV)/bin/python tests/fidelity/fidelity.py $(OPTIONS)

schema: $(READY) ## write the JSON schemas in policies/schema anew
	@$(VENV)/bin/rebalancer schema > policies/schema/v1alpha2.json

example: $(READY) ## write the example cluster anew
	@$(VENV)/bin/python examples/make_cluster.py > examples/cluster.json

clean: ## remove the virtual environment and what tools left behind
	@rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "rebalancer needs Python 3.11 or newer and finds none; set PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "rebalancer needs Python 3.11 or newer, and $(PYTHON) is none"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) lacks the venv module (on Debian: apt-get install python3-venv)"; exit 1; }
	@echo "Setting up $(VENV); this happens once and takes about a minute."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation --editable '.[test]'
	@touch $@
