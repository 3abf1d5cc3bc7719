# Every target prepares what it needs: a fresh clone can start with any of them.
SHELL := /bin/sh
BIN := .venv/bin
CODE := $(wildcard src testing/src tests bench scripts)
# Tests mostly wait for other programs, so a small machine runs more workers than it has cores.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 4); [ "$$n" -ge 4 ] || n=4; echo "$$n")
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help setup demo test check static bench simulate soak works strangers live docs format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv and install what is missing (does nothing the second time)
	@scripts/setup

demo: setup ## see the product work on a sample project
	@$(BIN)/mngr demo

test: static ## everything CI runs: the static checks, all tests, and whether they run the whole tutorial
	@scripts/setup --test
	@$(BIN)/python scripts/suite.py $(WORKERS)

check: static ## format, lint, types, layers, reference and unit tests: under a minute
	@$(BIN)/python -m pytest tests/unit

static: setup
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/mypy $(CODE)
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/reference.py --check

bench: setup ## measure against the floors
	@$(BIN)/python bench/bench.py

simulate: setup ## the scheduler with 10,000 simulated tasks on 1,000 hosts, and 100 idle channels: takes minutes
	@$(BIN)/python bench/simulate.py

works: setup ## all planted works through mngr tmr, and where they end
	@$(BIN)/python -m pytest -m soak --timeout 3600 -s tests/real/test_tmr_works.py

soak: setup ## the long fault tests; those of Ray also need: .venv/bin/pip install -e '.[ray]'
	@$(BIN)/python -m pytest -m soak --timeout 3600

strangers: setup ## six projects of others through `mngr tmr`, fetched from PyPI: takes an hour (ONLY="click attrs")
	@$(BIN)/python -m scripts.strangers $(ONLY)

live: setup ## three tests by a real model, for at most 2 USD: needs a login or a key of yours (TYPE=claude)
	@scripts/live

docs: setup ## write docs/reference and docs/man from the commands' own help
	@$(BIN)/python scripts/reference.py

format: setup ## format the code and fix what can be fixed
	@$(BIN)/ruff check --fix --quiet --exit-zero $(CODE)
	@$(BIN)/ruff format $(CODE)

lock: setup ## write requirements.lock from pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<1'
	@$(BIN)/uv pip compile pyproject.toml --group dev --upgrade --no-config --quiet \
	  --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-index-url --no-emit-find-links --output-file requirements.lock
	@scripts/setup

clean: ## remove .venv and what the tools left
	@rm -rf .venv dist .hypothesis .import_linter_cache .mngr/e2e .mypy_cache .pytest_cache .ruff_cache
	@find src testing tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
