# Everything runs in a virtual environment of its own; the first target that needs it makes it.

VENV := .venv
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
READY := $(VENV)/ready
REPORT := table
ATTACKS := tests/attack tests/properties $(wildcard tests/functional/test_cycles_of_*.py)
IMAGE := localhost/kube-rebalancer
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' rebalancer/__init__.py)
ENGINE ?= $(firstword $(foreach engine,docker podman buildah,$(if $(shell command -v $(engine)),$(engine))))
COMPILE := $(VENV)/bin/uv pip compile --quiet --generate-hashes --constraint constraints.txt \
	--python-version 3.11 --python-platform linux --no-annotate --no-header

# Compiled modules are kept with the environment: tests start the program some hundred times.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(abspath $(VENV))/compiled"

# Tests wait for processes and servers for a third of their time: three workers for two cores.
WORKERS = $(shell echo $$(( ($$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))

.DEFAULT_GOAL := help
.PHONY: help demo test attack mutants lint bench e2e trimaran outcome soak fidelity schema pictures demonstration example chart image pins release release-test lowest third-party clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## a dry run over an example cluster: what would move, and why
	@echo "rebalancer run --policy demo --snapshot examples/cluster.json"
	@$(VENV)/bin/rebalancer run --policy demo --snapshot examples/cluster.json --output $(REPORT)

test: $(READY) lint ## check style, types and layers, then run the tests
	@$(COMPILED) $(VENV)/bin/python -m pytest -q -n $(WORKERS)

attack: $(READY) ## the tests of random and hostile input and of played cycles alone, forty times as many as in `make test`, and at random
	@REBALANCER_ATTACK=$${REBALANCER_ATTACK:-40} $(COMPILED) $(VENV)/bin/python -m pytest -q -n $(WORKERS) $(ATTACKS)

mutants: $(READY) ## change the program a little, many times, and print the changes that no test notices (hours)
	@$(PIP) mutmut
	@REBALANCER_CONFORMANCE=$${REBALANCER_CONFORMANCE:-$(abspath ../shared/conformance)} $(VENV)/bin/mutmut run $(OPTIONS)
	@$(VENV)/bin/mutmut results

lint: $(READY) ## check style, types and layers
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/lint-imports --no-logo > $(VENV)/lint-imports.txt || { cat $(VENV)/lint-imports.txt; exit 1; }
	@echo "Style, types and layers are in order."

bench: $(READY) ## measure speed and memory of large clusters, of a loop and of a long history; write docs/measurements
	@$(VENV)/bin/python -m tests.bench.memory
	@$(VENV)/bin/python -m tests.bench.history
	@$(VENV)/bin/python -m tests.bench.performance $(OPTIONS)

e2e: $(READY) ## run the tests against a real control plane (builds it first; needs Go or the network)
	@$(VENV)/bin/python tests/e2e/binaries.py helm
	@$(VENV)/bin/python -m pytest -q --timeout 1800 --numprocesses 2 --dist loadfile tests/e2e tests/chart

trimaran: $(READY) ## run the tests against a real scheduler that knows load, some minutes (builds it first, as e2e)
	@$(VENV)/bin/python tests/e2e/binaries.py trimaran
	@REBALANCER_E2E_TRIMARAN=1 $(VENV)/bin/python -m pytest -q tests/e2e/test_trimaran.py

outcome: $(READY) ## measure whether a real cluster gets better and rests, an hour or so (needs what e2e needs)
	@$(VENV)/bin/python tests/e2e/binaries.py
	@$(VENV)/bin/python -m tests.outcome.outcome $(OPTIONS)

soak: $(READY) ## play two weeks of 30 nodes, beside the descheduler's rules: trust over time, half an hour or so
	@$(VENV)/bin/python -m tests.soak.soak $(OPTIONS)

fidelity: $(READY) ## hold the simulated scheduler against the real one, 25 minutes or so (needs what e2e needs)
	@$(VENV)/bin/python tests/e2e/binaries.py
	@$(VENV)/bin/python -m tests.fidelity.fidelity $(OPTIONS)

schema: $(READY) ## write the JSON schemas of policies anew, in policies/schema and in the chart
	@$(VENV)/bin/rebalancer schema > policies/schema/v1alpha2.json
	@$(VENV)/bin/python -m rebalancer.report.plan > policies/schema/plan-v1.json
	@$(VENV)/bin/python -m rebalancer.marking.rules > policies/schema/marking-rules-v1.json
	@$(VENV)/bin/python -m tests.chart.policy_schema

chart: $(READY) ## write what the chart's templates and values.yaml tell: its README's table, examples/kubernetes
	@$(VENV)/bin/python tests/e2e/binaries.py helm
	@$(VENV)/bin/python -m tests.chart.described

pictures: $(READY) ## draw the README's pictures of the terminal anew
	@$(VENV)/bin/python -m tests.terminal.pictures

demonstration: $(READY) ## play docs/demo anew on a real control plane (and, with Chromium, draw the page)
	@$(VENV)/bin/python -m tests.e2e.demonstration

example: $(READY) ## write the example cluster anew
	@$(VENV)/bin/python examples/make_cluster.py > examples/cluster.json

image: ## build the container image; IMAGE=registry.example/team/kube-rebalancer names it, PUSH=yes pushes it
	@test -n "$(ENGINE)" || { echo "there is no docker, podman or buildah; set ENGINE=/path/to/one"; exit 1; }
	@$(ENGINE) build --tag $(IMAGE):$(VERSION) $(OPTIONS) .
	@$(if $(PUSH),$(ENGINE) push $(IMAGE):$(VERSION),echo "$(IMAGE):$(VERSION) is built.")

pins: $(READY) ## write anew what the image is made of, with hashes
	@$(PIP) uv
	@$(COMPILE) pyproject.toml --extra otel --output-file image/runtime.txt
	@$(COMPILE) image/build.in --output-file image/build.txt
	@$(VENV)/bin/python image/rootfs.py --pin

release: $(READY) ## make all that a release publishes, in dist: VERSION=0.2.0 (the image needs Debian 12 and buildah)
	@$(VENV)/bin/python release/release.py $(VERSION) $(OPTIONS)

release-test: $(READY) ## make a release in a clone, and install and run each of its files
	@$(VENV)/bin/python tests/e2e/binaries.py helm
	@$(VENV)/bin/python -m pytest -q tests/release

lowest: ## run the fast tests with the lowest versions that pyproject.toml allows, in an environment of their own
	@$(PYTHON) -m venv .lowest
	@.lowest/bin/pip install --quiet --disable-pip-version-check uv
	@.lowest/bin/uv pip install --quiet --python .lowest/bin/python --resolution lowest-direct --editable '.[test]'
	@.lowest/bin/python -m pytest -q -n auto tests/unit tests/strategies tests/conformance

third-party: $(READY) ## write THIRD_PARTY.md: what comes along, and under which licences
	@$(VENV)/bin/python release/third_party.py

clean: ## remove the virtual environment and what tools left behind
	@rm -rf $(VENV) .lowest mutants .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "rebalancer needs Python 3.11 or newer and finds none; set PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "rebalancer needs Python 3.11 or newer, and $(PYTHON) is none"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) lacks the venv module (on Debian: apt-get install python3-venv)"; exit 1; }
	@echo "Setting up $(VENV); this happens once and takes about a minute."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation --editable '.[test]'
	@touch $@
