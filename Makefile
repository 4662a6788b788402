SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

# The interpreter that makes the environments. Empty: the first one found that is new enough.
PYTHON ?=
# Arguments passed on: make test ARGS="-k cookie", make bench ARGS=canonical.
ARGS ?=
UV_VERSION := 0.13.7

BIN := .venv/bin
CODE := $(wildcard src tests benchmarks checks tools simulation soak plugins)
CORES := $(shell getconf _NPROCESSORS_ONLN)
# Compiled modules and rewritten asserts are kept from one run to the next.
unexport PYTHONDONTWRITEBYTECODE
# The folders below tests whose tests start other processes: commands, servers, Terraform; and those of the docs.
OTHER_PROCESSES := benchmarks cli cluster collector conformance dashboard/browser deployment docs forking scenarios soak terraform

define find_python
for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
    found=$$python; break; \
  fi; \
done; \
if [ -z "$${found:-}" ]; then \
  echo "setpoint needs Python 3.11 or newer, with the venv module; found none as:" \
    "$(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)." >&2; \
  echo "Install one (on Debian also python3-venv), or name it: make PYTHON=path/to/python $(MAKECMDGOALS)" >&2; \
  exit 1; \
fi
endef

# $(call install,ENVIRONMENT,REQUIREMENTS): an environment with exactly the pinned packages. The files pin the whole
# closure, so pip resolves nothing: else a newer release of a package that is also asked for with an extra breaks the install.
define install
@$(find_python); echo "Making $(1) from $(2) with $$found"; "$$found" -m venv --clear $(1)
@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes $(addprefix -r ,$(2))
endef

# $(call install_setpoint,ENVIRONMENT): setpoint itself, straight from the source tree.
define install_setpoint
@$(1)/bin/python -m pip install --quiet --disable-pip-version-check \
  --no-index --no-deps --no-build-isolation -e .
endef

.PHONY: help setup check quick cover test cluster-assets laws contracts recordings soak bench demo dist ci format manifests docs dashboard dashboard-images official-clients collector catalogue lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: .venv/.dev .venv/.setpoint ## Make .venv with everything needed to develop; quick when nothing changed

check: setup ## Format, lint, types, layers, budgets, hygiene: no test is run
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m checks.budgets
	$(BIN)/python -m checks.structure
	$(BIN)/python -m checks.hygiene

quick: setup ## What to run after each edit, in less than a minute: format, lint, tests that need no other process
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	HYPOTHESIS_PROFILE=glance $(BIN)/pytest -n $(CORES) --ignore=plugins $(addprefix --ignore=tests/,$(OTHER_PROCESSES)) \
	  -m "not slow and not needs_cluster" $(ARGS)

# Tracing makes Python several times slower, so it is done for the tests that are about the core and no others.
cover: setup ## The tests of the core, and whether they reach every branch of it
	$(BIN)/pytest --quiet --cov --cov-report=term-missing:skip-covered tests/core

# The checks and the coverage of the core take one core for a while, as long as tests wait for other processes.
# Where there is no API server yet, it is built meanwhile, and the tests on it come last.
# When a few tests fail that are no laws, they are run once more, alone: one that passes then is named as flaky.
test: setup ## Everything: set-up, checks, tests, coverage of the core
	@make --no-print-directory check cover >.venv/.checks.log 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null || true' EXIT; code=0; checked=0; \
	rm -f .pytest_cache/v/cache/lastfailed; \
	$(BIN)/pytest -n auto --ignore=tests/core --durations=100 --durations-min=0.5 $(ARGS) || code=$$?; \
	wait $$checks || checked=$$?; \
	cat .venv/.checks.log; \
	if [ $$code -eq 1 ]; then code=0; $(BIN)/python -m checks.flaky || code=$$?; fi; \
	[ $$checked -eq 0 ] || exit $$checked; exit $$code

cluster-assets: setup ## Find or build the API server that tests run on; make test does so by itself
	$(BIN)/python -m tests.cluster.assets

laws: setup ## The laws alone, with 20,000 examples each; those of worlds and processes with 1,000, of hostile servers with 10,000
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -n auto tests/laws $(ARGS)
	HYPOTHESIS_PROFILE=wide $(BIN)/pytest -n auto -m "(laws or hypothesis) and not needs_cluster" --ignore=tests/laws $(ARGS)

contracts: setup ## The whole lifecycle contract on every kind of the catalogue; on some of them: ARGS="PubSubTopic ComputeDisk"
	$(BIN)/python -m tests.catalogue_kinds $(ARGS)

recordings: setup ## The recordings in ../shared/conformance: all as they are, then those with a flaw corrected, with both sums
	$(BIN)/python -m tests.conformance.replay_all

soak: setup ## Minutes of faults, edits and drift on a real process; with kill -9: ARGS="--kills 50"
	$(BIN)/python -m soak $(ARGS)

bench: .venv-bench/.setpoint ## Measure against the alternatives, in an environment of its own
	.venv-bench/bin/python -m benchmarks $(ARGS)

demo: .venv/.runtime .venv/.setpoint ## Show what setpoint does, on this machine alone
	$(BIN)/setpoint demo $(ARGS)

dist: setup ## Build what a release consists of into dist/: wheel, source distribution, Helm chart
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	$(BIN)/helm package --destination dist deploy/helm/setpoint

ci: test ## The same as test

format: setup ## Put the code into its form, and mend what can be mended, links of the docs to its lines included
	$(BIN)/ruff check --fix-only --quiet $(CODE)
	$(BIN)/ruff format $(CODE)
	$(BIN)/python -m tests.docs.links

manifests: setup ## Write what deploy/ holds anew from src/setpoint/deployment and the types of the kinds
	$(BIN)/python -m tests.deployment.deploy_files

docs: setup ## Build the docs site into site/: searched without a server and without a network
	$(BIN)/python -m tools.site $(ARGS)

dashboard: ## Build the page of the dashboard from dashboard/ into src/setpoint/dashboard/static
	cd dashboard && npm ci --no-audit --no-fund && npm run check && npm run build

dashboard-images: setup ## Take the pictures of the dashboard in docs/images anew, with the machine's Chromium
	SETPOINT_DASHBOARD_IMAGES=docs/images $(BIN)/pytest tests/dashboard/browser/test_screenshots.py

official-clients: .venv-clients/.setpoint ## Google's own clients of five services against the local cloud, in an environment of its own
	.venv-clients/bin/pytest tests/official_clients $(ARGS)

collector: setup ## Traces into a real OpenTelemetry Collector, which is built first: a minute, once
	$(BIN)/python -m tests.collector.collector
	SETPOINT_REQUIRE_COLLECTOR=1 $(BIN)/pytest tests/collector $(ARGS)

catalogue: .venv-catalogue/.packages ## Write the catalogue of Google's kinds anew from tools/catalogue, and say what changed
	.venv-catalogue/bin/python -m tools.catalogue

lock: .venv-lock/.uv-$(UV_VERSION) ## Pin all packages anew from pyproject.toml (newer ones: ARGS=--upgrade)
	$(call compile,pyproject.toml,runtime,)
	$(call compile,--group build,build,--constraints requirements/runtime.txt)
	$(call compile,pyproject.toml --group dev,dev,--constraints requirements/runtime.txt --constraints requirements/build.txt)
	$(call compile,pyproject.toml --group bench,bench,--constraints requirements/dev.txt)
	$(call compile,pyproject.toml --group clients,clients,--constraints requirements/dev.txt)
	$(call compile,--group catalogue,catalogue,--constraints requirements/dev.txt)

clean: ## Remove environments, caches and builds
	rm -rf .venv .venv-bench .venv-catalogue .venv-clients .venv-lock .coverage .coverage.* htmlcov dist build site
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call compile,WHAT,FILE,MORE): requirements/FILE.txt holds the packages that WHAT asks for.
define compile
.venv-lock/bin/uv pip compile $(1) --output-file requirements/$(2).txt --quiet \
  --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" $(3) $(ARGS)
endef

# The files below only remember that a step is done. .venv holds at least what setpoint needs to
# be installed and run (.runtime), and all that a developer needs as well once .dev is there.
.venv/.runtime: requirements/runtime.txt requirements/build.txt
	$(call install,.venv,$^)
	@touch $@

.venv/.dev: requirements/dev.txt
	$(call install,.venv,$<)
	@touch .venv/.runtime $@

.venv/.setpoint: .venv/.runtime pyproject.toml
	$(call install_setpoint,.venv)
	@touch $@

.venv-clients/.packages: requirements/clients.txt
	$(call install,.venv-clients,$<)
	@touch $@

.venv-clients/.setpoint: .venv-clients/.packages pyproject.toml
	$(call install_setpoint,.venv-clients)
	@touch $@

.venv-bench/.packages: requirements/bench.txt
	$(call install,.venv-bench,$<)
	@touch $@

.venv-bench/.setpoint: .venv-bench/.packages pyproject.toml
	$(call install_setpoint,.venv-bench)
	@touch $@

.venv-catalogue/.packages: requirements/catalogue.txt
	$(call install,.venv-catalogue,$<)
	@touch $@

.venv-lock/.uv-$(UV_VERSION):
	@$(find_python); "$$found" -m venv --clear .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@
