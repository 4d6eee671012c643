# Every target sets itself up: `make run` or `make test` may be the first command in a fresh clone.
.DELETE_ON_ERROR:
.PHONY: run test test-all test-core test-rest test-train bench bench-audit proof check lint mypy pyright web page clean
# Images of containers set it, and then each of the many programs that tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train
BENCHES := $(filter-out bench/_%,$(sort $(wildcard bench/*.py)))
TOOLS := tests/test_bench.py tests/test_mutation.py tests/test_tidy.py
CORE := $(filter-out $(TOOLS),$(wildcard tests/test_*.py)) tests/golden tests/bad_input
REST := $(addprefix --ignore=,$(CORE)) tests
WORKERS = $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

run: $(VENV)/.base
	$(BIN)/quintain demo

# The checkers run beside the tests of the core, which alone measure coverage: it costs 40 % elsewhere.
# pyright reads the sources only, and only if they have changed, mypy reads all; `make check` and `make test-all` give
# both all.
test: $(VENV)/.dev $(VENV)/.system $(VENV)/.compiled page
	@$(MAKE) --no-print-directory --jobs --output-sync=target $(or $(PYRIGHT),$(VENV)/.pyright) mypy test-core lint
	@$(MAKE) --no-print-directory test-rest

test-all:
	@$(MAKE) --no-print-directory test MARKED='-m ""' PYRIGHT=pyright
	@$(MAKE) --no-print-directory test-train MARKED='-m ""'

test-core: $(VENV)/.dev $(VENV)/.system $(VENV)/.compiled
	$(BIN)/pytest --numprocesses=logical --cov --cov-report=term-missing $(MARKED) $(CORE)

# More workers than cores, because many of these tests wait for a server or a program.
test-rest: $(VENV)/.dev $(VENV)/.system $(VENV)/.compiled page
	$(BIN)/pytest --numprocesses=$(WORKERS) --dist=worksteal $(MARKED) $(REST)

# Training with torch and TRL, in an environment of its own: 2 GB that no other test needs.
test-train: $(TRAIN)/.train
	$(TRAIN)/bin/pytest --numprocesses=logical $(MARKED) tests/train
	$(TRAIN)/bin/pytest $(MARKED) tests/docs -k 'runs and (trl or local)'

bench: $(VENV)/.dev $(VENV)/.system
	@set -e; for script in $(BENCHES); do echo "== $$script"; $(BIN)/python $$script; done

# Precision and recall of the audit: about an hour and a half of two cores.
bench-audit: $(VENV)/.dev $(VENV)/.system
	$(BIN)/python bench/audit/sound.py --budget 90
	$(BIN)/python bench/audit/detectors.py --suite seeded --suite blind --suite unseen --own --tasks 12 --budget 90 --misses

# What environments teach, in at most 20 minutes on two cores; `make proof PART=b` runs one part.
proof: $(TRAIN)/.train
	$(TRAIN)/bin/python -m proof --picture proof.svg $(addprefix --part ,$(PART))

check: lint mypy pyright

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

mypy: $(VENV)/.dev
	$(BIN)/mypy

pyright: $(VENV)/.dev
	$(BIN)/pyright --project .

# pyright keeps no cache as mypy does, and takes 40 s of CPU. A folder is newer after a file was removed from it.
$(VENV)/.pyright: $(VENV)/.dev pyproject.toml $(shell find src -name __pycache__ -prune -o -type d -print -o -name '*.py' -print)
	$(BIN)/pyright src
	@touch $@

# The page of the studio, which needs Node.
web: src/quintain/studio/static/studio.js

src/quintain/studio/static/studio.js: $(wildcard web/src/*) web/build.mjs web/tsconfig.json web/node_modules/.made
	cd web && npm run --silent check && npm run --silent build

NPM_CI := npm ci --silent --no-audit --no-fund --ignore-scripts
web/node_modules/.made: web/package-lock.json
	cd web && $(NPM_CI) && touch node_modules/.made

# The same for the tests, which skip what shows the page where it cannot be built.
page:
	@if [ -e web/node_modules/.made ] || (command -v npm && cd web && $(NPM_CI) && touch node_modules/.made) >/dev/null 2>&1; \
	then $(MAKE) --no-print-directory web; else echo "tests of the studio's page will be skipped: npm cannot install web/"; fi

clean:
	rm -rf web/node_modules src/quintain/studio/static
	rm -rf .venv* dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# `run` needs only what a user installs; the tools come on top when a target asks for them.
$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# torch's own index has a build without CUDA, of a tenth of the size.
$(TRAIN)/.train: pyproject.toml
	test -x $(TRAIN)/bin/python || $(PYTHON) -m venv $(TRAIN)
	-$(TRAIN)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --retries 1 torch \
		--index-url https://download.pytorch.org/whl/cpu
	$(TRAIN)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[trl,dev]' openai
	touch $@

# Without byte code, each of the workers that begin at the same time would compile every test. A module that cannot be
# imported is an error of the tests, not of this step.
$(VENV)/.compiled: $(VENV)/.dev
	@echo "compiling the tests"
	-@$(BIN)/pytest --collect-only --quiet >/dev/null
	@touch $@

# Sandboxes need bubblewrap, worlds on a server PostgreSQL, tests of pages Chromium, those of clocks that jump faketime,
# and those of several servers behind one address nginx. Whatever can't be installed here is skipped, with a reason.
SYSTEM := bubblewrap postgresql chromium faketime nginx-light
INSTALL := apt-get install --yes --no-install-recommends $(SYSTEM)

$(VENV)/.system: Makefile | $(VENV)/.base
	@if command -v bwrap >/dev/null && command -v chromium >/dev/null && command -v faketime >/dev/null \
	&& PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null \
	&& ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		(apt-get update --quiet=2; DEBIAN_FRONTEND=noninteractive $(INSTALL) --quiet=2) >/dev/null 2>&1 \
		|| echo "tests of what is missing will be skipped, for this failed: $(INSTALL)"; \
	else echo "tests of what is missing will be skipped; to run them: sudo $(INSTALL)"; fi
	@touch $@
