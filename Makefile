# The README's first two commands are `make study` and `make test`; both install what they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: study test install install-dev check bench lock clean

install: .venv/.installed
install-dev: .venv/.installed-dev

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.installed-dev: requirements-dev.lock .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: check
	bash tests/install-servers
	$(BIN)/pytest -n 2 --dist loadgroup

clean:
	rm -rf .venv runs .mypy_cache .ruff_cache .pytest_cache
