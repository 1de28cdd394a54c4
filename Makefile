# nasbot: every chore is a target here. The first one that needs it builds .venv; after that the step is skipped.
#
#   PYTHON=/path/to/python       which interpreter to build .venv from: 3.11 to 3.13 (found by itself otherwise)
#   JOBS=2                       test processes
#   ARGS=…                       handed on to the command of test, thorough, demo, bench, bench-synthetic and fuzz

JOBS      ?= 2
ARGS      ?=
FUZZ_RUNS ?= 100000
WHEELS    ?= dist

VENV      := .venv
BIN       := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CREATED   := $(VENV)/.created

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install test wheel wheel-test thorough test-faults mutants browser postgres docs lint format demo bench bench-synthetic fuzz paper paper-quick clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## build .venv (Python 3.11 to 3.13, pinned packages); instant when it is up to date

test: lint ## lint, types, import rules, then every test with warnings as errors
	@echo "== pytest"
	@$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

wheel: $(INSTALLED) ## dist/nasbot-….whl, for pip install
	@$(BIN)/python -m pip wheel --quiet --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEELS) .

wheel-test: ## build the wheel, install it without extras into an empty environment, and use it as a new user does
	@echo "== the wheel, alone in an environment"
	@rm -rf build/wheel && mkdir -p build/wheel/work
	@$(MAKE) --no-print-directory wheel WHEELS=build/wheel
	@$(BIN)/python -m venv build/wheel/venv
	@build/wheel/venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt build/wheel/nasbot-*.whl
	@cd build/wheel/work && env -u PYTHONPATH ../venv/bin/python -I ../../../tests/wheel/smoke.py ../../../README.md
	@rm -rf build/wheel

thorough: $(INSTALLED) ## the slow tests too, and many more random examples, freshly drawn
	@NASBOT_THOROUGH=1 $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

test-faults: $(INSTALLED) ## kills, hangs, full disks and damaged files, hundreds of each
	@NASBOT_FAULTS=1 $(BIN)/python -m pytest tests/faults $(ARGS)

mutants: $(INSTALLED) ## a sample of slips in the core, each against the tests that reach it, in 30 minutes
	@$(BIN)/python -m tests.mutation.mutants --jobs $(JOBS) $(ARGS)

browser: ## install Debian's chromium for the tests of the page, where it is not there yet
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

postgres: ## install Debian's PostgreSQL for the tests of the storage, where it is not there yet
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; }

docs: $(INSTALLED) ## the documentation as a site, build/site, without a network; warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html; with its search: $(BIN)/python -m http.server --directory build/site"

lint: $(INSTALLED) ## ruff (rules and format), mypy strict, import-linter
	@echo "== ruff check"
	@$(BIN)/ruff check --quiet .
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check --quiet .
	@echo "== mypy"
	@$(BIN)/mypy --no-error-summary src $(wildcard benchmarks experiments)
	@echo "== lint-imports"
	@$(BIN)/lint-imports

format: $(INSTALLED) ## rewrite the code in the house format and apply ruff's safe fixes
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

demo: $(INSTALLED) ## a real search on handwritten digits, in about two minutes
	@$(BIN)/nasbot demo $(ARGS)

bench: $(INSTALLED) ## microseconds per pair, ours against POT's, and seconds to decide
	@$(BIN)/python -m benchmarks.run $(ARGS)

bench-synthetic: $(INSTALLED) ## the synthetic functions, NASBOT against its rivals; stop it and go on as you like (ARGS=--summary)
	@$(BIN)/python -m benchmarks.synthetic $(ARGS)

fuzz: $(INSTALLED) ## FUZZ_RUNS inputs (100,000) to the JSON codec
	@$(BIN)/python -m tests.fuzz.fuzz_codec --runs $(FUZZ_RUNS) $(ARGS)

paper: $(INSTALLED) ## every table and figure of the paper, for hours; stop it and go on as you like
	@$(BIN)/python -m experiments all $(ARGS)

paper-quick: $(INSTALLED) ## a smoke version of each experiment, in minutes
	@$(BIN)/python -m experiments all --quick $(ARGS)

clean: ## remove caches and build products; .venv stays
	@rm -rf build dist demo-output .benchmarks .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## and .venv
	@rm -rf $(VENV)

# Two stamps: a changed pin reinstalls into the environment, an interrupted creation starts it afresh.
$(CREATED):
	@for python in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
	  if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; then \
	    echo "== creating $(VENV) with $$("$$python" --version)"; \
	    "$$python" -m venv --clear $(VENV) && touch $@ && exit 0; \
	    echo "make: $$python cannot create a virtual environment (on Debian: apt install python3-venv)" >&2; exit 1; \
	  fi; \
	done; \
	echo "make: nasbot needs Python 3.11 to 3.13, and found $$(python3 --version 2>/dev/null || echo 'no python3'); install it or say make PYTHON=/path/to/python" >&2; \
	exit 1

$(INSTALLED): pyproject.toml constraints.txt | $(CREATED)
	@echo "== installing the pinned packages into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
