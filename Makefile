# The one door for every developer command. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Compiled crates are shared between clones, so that a fresh clone does not compile the world.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/seatrial/target
# Commands in recipes run with the environment's own tools, whatever the shell has active.
export VIRTUAL_ENV := $(CURDIR)/.venv
export SEATRIAL_TEST_RUNTIME = $(firstword $(wildcard .venv/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*))
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
RUST := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: help setup build demo examples fmt check lint test test-fast bench docs lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)-dev $(STAMP)-examples $(STAMP)-native ## environment, native module, example data; leaves .venv/bin/seatrial working

build: $(STAMP)-native ## the native module and the command line, nothing else

demo: $(STAMP)-examples $(STAMP)-native ## the main job on real input: trial of the click-through example
	$(BIN)/python examples/prepare.py 01-movie-ctr
	$(BIN)/seatrial trial examples/01-movie-ctr --profile quick

examples: $(STAMP)-examples $(STAMP)-native ## prepare and check every example
	$(BIN)/python examples/prepare.py
	@for example in examples/[0-9]*; do $(BIN)/seatrial check "$$example"; done

fmt: $(STAMP)-dev ## let the formatters decide the layout
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .

lint: $(STAMP)-dev $(STAMP)-native ## formatters, linters, types, import order; warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-cache > "$(STAMP)-imports.log" || { cat "$(STAMP)-imports.log"; exit 1; }

check: lint ## everything that needs no server: lint, generated files fresh, house rules
	$(BIN)/python tools/generate.py --check
	$(BIN)/python -m pytest tests/house

test: check $(STAMP)-examples ## check, then every test of both languages
	cargo test --workspace --exclude seatrial-python --locked --quiet
	$(BIN)/python -m pytest tests --ignore=tests/house

test-fast: $(STAMP)-dev $(STAMP)-native ## the tests that take less than ten seconds each
	$(BIN)/python -m pytest tests -m 'not slow'

bench: $(STAMP)-dev $(STAMP)-bench $(STAMP)-examples $(STAMP)-native ## our server beside in-process onnxruntime and a plain Python wrap, one interleaved run
	$(BIN)/python examples/prepare.py 01-movie-ctr
	$(BIN)/python benchmarks/beside_peers.py

docs: $(STAMP)-dev $(STAMP)-native ## write the generated reference pages and schemas anew
	$(BIN)/python tools/generate.py

lock: $(STAMP)-dev ## resolve the Python locks anew
	for name in base dev bench kserve schemathesis triton; do $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --quiet "requirements/$$name.in" -o "requirements/$$name.lock"; done
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-deps \
	  --no-emit-index-url --no-header --no-annotate --quiet requirements/examples.in -o requirements/examples.lock

clean: ## remove what was made here (the shared compile cache stays)
	rm -rf .venv records

$(STAMP)-venv:
	@command -v $(PYTHON) >/dev/null || { echo "missing: Python 3.11 or newer ($(PYTHON) is not on the PATH)" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "missing: Python 3.11 or newer ($$($(PYTHON) --version 2>&1 | head -1) found; name another with make PYTHON=...)" >&2; exit 3; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "missing: Python's venv module (Debian: apt install python3-venv)" >&2; exit 3; }
	$(PYTHON) -m venv .venv
	@touch $@

$(STAMP)-base: requirements/base.lock | $(STAMP)-venv
	$(PIP) -r requirements/base.lock
	@touch $@

$(STAMP)-dev: requirements/dev.lock $(STAMP)-base
	$(PIP) -r requirements/dev.lock
	@touch $@

$(STAMP)-bench: requirements/bench.lock $(STAMP)-base
	$(PIP) -r requirements/bench.lock
	@touch $@

$(STAMP)-examples: requirements/examples.lock $(STAMP)-base
	$(PIP) --no-deps -r requirements/examples.lock
	@touch $@

$(STAMP)-native: $(RUST) pyproject.toml $(STAMP)-base
	@command -v cargo >/dev/null || { echo "missing: a Rust toolchain, 1.92 or newer (see rustup.rs)" >&2; exit 3; }
	@command -v cc >/dev/null || { echo "missing: a C compiler for linking (Debian: apt install gcc)" >&2; exit 3; }
	@echo "building the native module: a few minutes the first time; it waits while another build runs"
	PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	@touch $@
