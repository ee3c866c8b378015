# Every target sets up what it needs by itself, once. `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
# An environment whose Python is gone (moved checkout, upgraded system) is made anew.
BROKEN := $(shell [ -x $(PY) ] || echo broken)
# Some images tell Python to keep nothing that it compiled: each of hundreds of processes would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
# Tests wait on a cluster as much as they compute. Two fast cores were idle for a third of the time with four workers
# and for a quarter with six, which took 6 min 57 s instead of 9 min 33 s; two half as fast, busy all the time, took
# an eighth more processor time with six than with four (one run of each).
WORKERS ?= 6
# They share those cores with each other's control planes, so each waits longer before it gives up.
test coverage integration e2e campaigns: export SPOTSHIFT_PATIENCE ?= 3
PYTEST := $(PY) -m pytest
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-compile
# A worker that is done takes tests from one that is not: the slow ones start whole control planes.
PARALLEL := -n $(WORKERS) --dist loadscope --no-loadscope-reorder
CLUSTER := tests --ignore=tests/unit
DIR ?= .testbed/dev
NODES ?= 3
BIN ?= $(HOME)/.local/bin
SPOT ?= 3
BENCH ?=
# Types are checked by what has changed since, also where that was in another folder.
MYPY_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/spotshift/mypy
# Of a run under random misfortune.
MINUTES ?= 40
SEED ?= 1
# How many times more than `make test` tries of what is generated.
EFFORT ?= 20
# What is installed, where from, and with which tools: those of the user, by their own rules.
OVERLAY ?= production
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE ?= spotshift:$(VERSION)
BASE ?=
DOCKER ?= docker
KUBECTL ?= kubectl
KIND_CLUSTER ?= spotshift

# One of these programs, else its package, else what is missing without it.
installed = command -v $(1) >/dev/null \
	  || { echo "installing $(2)"; apt-get install -y --no-install-recommends $(2) >/dev/null 2>&1; } \
	  || { apt-get update >/dev/null 2>&1 && apt-get install -y --no-install-recommends $(2) >/dev/null; } \
	  || { echo "$(3) on PATH (Debian: apt-get install $(2))" >&2; exit 1; }

.PHONY: audit rights help test coverage check unit properties integration e2e demo up down plugin bench browser wrk campaigns chaos mutants fmt docs lock binaries clean manifests chart image kind-load uninstall

help:  ## Print every target with one sentence.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: $(READY) browser binaries  ## Run everything: checks, unit, integration and end-to-end tests (what CI runs).
	@# Beside the tests that wait for a cluster, types are checked, and one process runs thousands of unit tests:
	@# every worker would have to find them, be handed each and tell of it. It has a session of its own, for Linux deals
	@# the processors out by session. First the tests of the cluster are compiled once, which every worker
	@# would do for itself.
	@rm -f .pytest_cache/v/cache/lastfailed .pytest_cache/unit/v/cache/lastfailed; \
	  $(MAKE) check > $(VENV)/check.log 2>&1 & checks=$$!; \
	  setsid -w $(PYTEST) tests/unit -q -m "not campaign" -o cache_dir=.pytest_cache/unit > $(VENV)/unit.log 2>&1 & \
	  logic=$$!; ran=0; told=0; failed=0; \
	  trap 'kill $$logic $$checks 2>/dev/null || true' EXIT; trap 'exit 130' INT; \
	  $(PYTEST) $(CLUSTER) --collect-only -q -p no:cacheprovider >/dev/null 2>&1 || true; \
	  $(PYTEST) $(CLUSTER) $(PARALLEL) -m "not campaign" || ran=$$?; \
	  wait $$logic || told=$$?; cat $(VENV)/unit.log; \
	  case $$ran$$told in 00) ;; 01|10|11) $(PY) -m tests.again --add-rights || failed=$$?;; *) failed=1;; esac; \
	  $(PY) -m testbed rights > $(VENV)/rights.md || failed=$$?; \
	  wait $$checks || failed=$$?; cat $(VENV)/check.log; exit $$failed

coverage: binaries browser  ## Run everything under coverage, which takes half as long again, and show what no test reaches.
	$(PYTEST) tests $(PARALLEL) -m "not campaign" --cov --cov-report=term:skip-covered

check: $(READY)  ## Check format, lint, types and import contracts; change nothing.
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --cache-dir "$(MYPY_CACHE)"
	$(VENV)/bin/lint-imports

unit: $(READY)  ## Run the unit tests: logic only, no cluster, seconds.
	$(PYTEST) tests/unit

properties: $(READY)  ## Try twenty times as many generated examples in the unit tests, new ones each time where hypothesis makes them (EFFORT=).
	SPOTSHIFT_EFFORT=$(EFFORT) $(PYTEST) tests/unit -n $(WORKERS) -m "not campaign"

integration: binaries browser  ## Run the tests against a real control plane.
	$(PYTEST) tests/integration $(PARALLEL)

e2e: binaries  ## Run the tests of the whole product, commands and demo included.
	$(PYTEST) tests/e2e $(PARALLEL)

demo: $(READY)  ## Show the main job on a control plane of its own, then remove it.
	$(PY) -m testbed demo

up: $(READY)  ## Start a control plane and leave it running (DIR=, NODES=, SPOT=); prints its KUBECONFIG.
	@$(PY) -m testbed up --dir "$(DIR)" "--nodes=$(NODES)" "--spot=$(SPOT)"

down: $(READY)  ## Stop the control plane that `make up` started and remove what it left.
	@$(PY) -m testbed down --dir "$(DIR)"

plugin: $(READY)  ## Put `kubectl spotshift` into BIN= (~/.local/bin), run from this folder.
	@mkdir -p "$(BIN)"
	@write() { printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -P -m console%s "$$@"\n' "$(CURDIR)" "$(CURDIR)/$(PY)" "$$2" \
	    > "$(BIN)/$$1" && chmod 755 "$(BIN)/$$1"; }; \
	  write kubectl-spotshift "" && write kubectl_complete-spotshift " __complete"
	@echo "kubectl-spotshift is in $(BIN)"
	@case ":$$PATH:" in *":$(BIN):"*) ;; *) echo "put $(BIN) on your PATH: kubectl looks for plugins there";; esac

bench: binaries wrk  ## Run every benchmark and write the report in bench/results (BENCH="--large", "--only plan quality").
	$(PY) -m bench $(BENCH)

campaigns: binaries browser  ## Run the long campaigns: hundreds of random faults on reflector and lease, fit against the scheduler, moves.
	$(PY) -m tests.integration.cluster.reflector_campaign --schedules 200 --seed 1
	$(PY) -m tests.integration.cluster.lease_campaign --schedules 100 --seed 1
	$(PY) -m tests.integration.descheduler.fit_campaign --pairs 3360 --seed 1
	$(PY) -m tests.integration.descheduler.crash_campaign --seed 1 --parallel 3
	$(PY) -m tests.integration.descheduler.fault_campaign --schedules 50 --seed 1 --parallel 3
	$(PYTEST) tests $(PARALLEL) -m campaign

chaos: binaries  ## Run the whole product under random misfortune and check what must hold (MINUTES=, SEED=).
	$(PY) -m tests.chaos --minutes $(MINUTES) --seed $(SEED)

mutants: binaries  ## Show that builds broken on purpose are caught (about ten minutes).
	$(PY) -m tests.chaos.mutants

fmt: $(READY)  ## Format the code and apply the safe fixes of the linter.
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

docs: $(READY)  ## Write the generated pages of docs/ anew.
	$(PY) -m policy > docs/configuration.md
	$(PY) -m policy --into README.md
	$(PY) -m telemetry docs
	$(PY) -m descheduler.reasons_doc > docs/reasons.md
	$(PY) -m bench.report.quoted

manifests: binaries  ## Write what `kubectl apply -k` would install as one file, dist/install.yaml (OVERLAY=).
	@mkdir -p dist
	@$(PY) -m testbed render manifests/overlays/$(OVERLAY) > dist/install.yaml.new || { rm dist/install.yaml.new; exit 1; }
	@mv dist/install.yaml.new dist/install.yaml
	@echo "dist/install.yaml: $$(grep -c '^kind:' dist/install.yaml) objects of the overlay $(OVERLAY)"

chart: binaries  ## Write the Helm chart in manifests/chart anew from the kustomize manifests.
	@$(PY) -m testbed chart

image: Dockerfile .dockerignore requirements.txt  ## Build the image of all programs (IMAGE=, BASE=, DOCKER=).
	$(DOCKER) build $(if $(BASE),--build-arg BASE=$(BASE)) -t $(IMAGE) .

kind-load: image  ## Build the image and bring it into a kind cluster (KIND_CLUSTER=).
	kind load docker-image $(IMAGE) --name $(KIND_CLUSTER)

uninstall: $(READY)  ## Take the product off the current cluster of kubectl: end moves, take back every mark, delete (OVERLAY=).
	@$(KUBECTL) kustomize manifests/overlays/$(OVERLAY) > /dev/null  # before anything is taken back
	$(PY) -m descheduler cleanup
	$(KUBECTL) delete -k manifests/overlays/$(OVERLAY) --ignore-not-found

lock: $(READY)  ## Pin requirements*.txt again from requirements*.in.
	@for name in requirements requirements-dev; do \
	  $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --custom-compile-command 'make lock' $$name.in -o $$name.txt; done

audit: $(READY)  ## Audit what we depend on: hashes, licences, withdrawn files and known holes, as far as the index tells.
	@$(PY) -m testbed audit

rights: $(READY)  ## Print which rights of each ServiceAccount the last run of the tests used; fail if one is never used.
	@$(PY) -m testbed rights

browser:  ## Find Chromium for the tests of the dashboard, or install it (Debian, as root).
	@$(call installed,chromium chromium-browser google-chrome,chromium,the tests of the dashboard need Chromium)

wrk:  ## Find wrk for the benchmark of the webhook, or install it (Debian, as root).
	@$(call installed,wrk,wrk,the benchmark of the webhook needs wrk)

binaries: $(READY)  ## Find or build the control plane's binaries (about ten minutes the first time).
	@$(PY) -m testbed binaries

clean:  ## Remove what the other targets made in this folder (the binary cache stays).
	@if [ -n "$$(ls -d .testbed/*/ 2>/dev/null)" ]; then $(MAKE) $(READY) && $(PY) -m testbed down --all; fi
	rm -rf $(VENV) .testbed .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: broken
broken:

$(READY): requirements-dev.txt requirements.txt $(BROKEN)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "spotshift needs Python 3.11 or newer; set PYTHON=")'
	@[ ! -L $(VENV) ] || { echo "$(VENV) is a link to somebody else's environment: bring that up to date where it lives" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { echo "cannot create $(VENV): install the venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "installing the pinned Python packages into $(VENV)"
	@# Everything is pinned, so nothing is left to resolve: a release of tomorrow cannot get into it. The check says if a
	@# pin is missing. What is used is compiled when it is: most of the Kubernetes client never is.
	@# uv is among the pins and takes a few seconds; it knows nothing of pip's own settings, so pip has the last word.
	@awk '/^uv==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements-dev.txt > $(VENV)/uv.txt
	@$(PIP) -r $(VENV)/uv.txt
	@$(VENV)/bin/uv pip install --quiet --python $(PY) --require-hashes --no-deps -r requirements-dev.txt 2>/dev/null \
	  || $(PIP) -r requirements-dev.txt
	@said=$$($(PY) -m pip check --disable-pip-version-check) || { echo "$$said" >&2; exit 1; }
	@touch $@
