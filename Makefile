# `make study` and `make test` are the two commands a newcomer needs; each installs what it needs.
PYTHON ?= python3
PORT ?= 8321
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: study demo test coverage check docs wheel install install-dev fresh bench peers fuzz torture lock clean

study: install
	$(BIN)/sqlcrystal study run studies/quarry.toml --set mode=replay --out runs/quarry
	$(BIN)/sqlcrystal study report runs/quarry

# Ask, confirm, reject, bank and value in a browser, with recorded replies: no weights, no key. Ctrl+C ends it; PORT=8400 moves it.
demo: install
	$(BIN)/sqlcrystal serve --demo --port $(PORT)

test: check
	bash tests/install-servers
	bash tests/install-torch $(BIN)/python
	$(BIN)/pytest -n 2 --dist loadgroup

# The same tests, with the share of lines and branches that they run; build/coverage shows which. Not a part of `make
# test`: on Python 3.11 a sample of the tests took 1.7 times the processor time under measurement.
coverage: install-dev
	bash tests/install-servers
	bash tests/install-torch $(BIN)/python
	$(BIN)/pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered --cov-report=html:build/coverage

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The documentation as a site in build/site; a broken link or a name that is not there fails.
docs: install-dev
	$(BIN)/zensical build --strict --clean

# Every command block of the pages once more, on installs that pip fetches by the pages' own lines: the newest of all that
# they ask for, some 600 MB each until it ends. PAGE=score runs what has the word in its name.
fresh: install-dev
	bash tests/install-servers
	$(BIN)/python tests/fresh_pages.py $(if $(PAGE),-k $(PAGE))

wheel: install-dev
	$(BIN)/python -m hatchling build -t wheel -d dist

install: .venv/.installed
install-dev: .venv/.installed-dev

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv/.installed-dev: requirements-dev.lock .venv/.installed
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

# Speed against the field's own tools, side by side in one run; fails when a bar is missed.
bench: install-dev
	$(BIN)/python benchmarks/score_speed.py
	$(BIN)/python benchmarks/score_command_speed.py
	$(BIN)/python benchmarks/statistics_speed.py
	$(BIN)/python benchmarks/retrieval_speed.py
	$(BIN)/python benchmarks/study_throughput.py
	$(BIN)/python benchmarks/growth.py --out build/growth
	$(BIN)/python benchmarks/study_growth.py --out build/growth-of-studies
	$(BIN)/python benchmarks/ask_overhead.py

# The tools that people would use instead, on the same weights, questions and examples; each installs itself into an
# environment of its own below build/peers. Hours on two cores; stopped, it goes on where it was.
peers: install-dev
	bash tests/install-torch $(BIN)/python
	$(BIN)/python benchmarks/peers

# A million random statements over four engines; stopped, it goes on where it was. Half an hour to an hour.
fuzz: install-dev
	bash tests/install-servers
	PYTHONPATH=src:tests $(BIN)/python tests/fuzzing.py --statements 250000 --progress build/fuzzing.jsonl

# Every promise under torture: kills, full disks, damage, crashes, attacks. Stopped, it goes on where it was.
torture: install-dev
	bash tests/install-servers
	PYTHONPATH=src:tests $(BIN)/python tests/torture.py --progress build/torture.jsonl

# Pinned versions with hashes, for every Python we support; names no registry.
LOCK := $(BIN)/uv pip compile --quiet pyproject.toml - --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --upgrade
lock: install
	$(PIP) uv
	printf 'hatchling\neditables\n' | $(LOCK) --extra local --extra report --extra server --extra mcp -o requirements.lock
	printf 'hatchling\neditables\n' | $(LOCK) --extra dev -c requirements.lock -o requirements-dev.lock

clean:
	rm -rf .venv runs build dist .cache .mypy_cache .ruff_cache .pytest_cache
