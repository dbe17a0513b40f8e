# Everything a newcomer or CI runs. Each target sets up what it needs in .venv and says what it does.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One BLAS thread pool per test worker: two workers on two cores, not two pools on each.
WORKERS ?= 2
# Neighbours stay together, for they share what is compiled; who is done first takes from the other.
SPREAD := -n $(WORKERS) --dist worksteal
# Cases of `make mutations`.
CASES ?= 1000000
# Experiments of `make reproduce`.
NAMES ?= all
# `make test-oldest`: an environment with the minimum versions, and the oldest Python.
OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11

.PHONY: help demo torch test test-slow test-oldest lint format browser bench soundness mutations reproduce gallery docs clean
help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s '	'

$(BIN)/python:
	@echo "==> making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "==> installing eigengame[$*] into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-plots  ## fit scikit-learn's digits, print a table, draw a picture
	@echo "==> fitting the handwritten digits that come with scikit-learn"
	@$(BIN)/python examples/demo.py

torch: $(VENV)/.installed-test  ## add PyTorch, so that the tests that need it run too
	@echo "==> installing PyTorch (CPU)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0

browser:  ## add Chromium and its driver, so that the report is tested in a real browser
	@if command -v chromedriver >/dev/null && command -v chromium >/dev/null; then \
	  echo "==> Chromium is here: $$(chromium --version 2>/dev/null)"; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "==> installing chromium and chromium-driver"; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null; \
	elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then \
	  echo "==> installing chromium and chromium-driver by sudo"; \
	  sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null; \
	else \
	  echo "==> no right to install: please install chromium and chromedriver (Debian: chromium chromium-driver)"; \
	  exit 1; \
	fi

test: $(VENV)/.installed-test  ## run the tests (a few minutes on two cores)
	@echo "==> running the tests"
	@$(BIN)/python -m pytest $(SPREAD)

test-slow: $(VENV)/.installed-test  ## run the slow checks too
	@echo "==> running every test, the slow ones included"
	@EIGENGAME_OPTIMIZE=1 $(BIN)/python -m pytest $(SPREAD) -m "slow or not slow"

$(OLDEST)/.installed: pyproject.toml packaging/oldest.py
	@echo "==> making a virtual environment in $(OLDEST), with the minimum versions of pyproject.toml"
	@$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	@$(OLDEST)/bin/python packaging/oldest.py test > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint $(OLDEST)/constraints.txt --editable ".[test]"
	@touch $@

test-oldest: $(OLDEST)/.installed  ## run the tests with the minimum versions of all dependencies
	@echo "==> running the tests with the minimum versions"
	@$(OLDEST)/bin/python -m pytest $(SPREAD)

lint: $(VENV)/.installed-lint  ## check style and types
	@echo "==> ruff and mypy"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.installed-lint  ## put the code into the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.installed-test  ## measure ourselves and our peers (an hour; results in benchmarks/results)
	@echo "==> installing the peers of benchmarks/requirements.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	@echo "==> one update of each algorithm"
	@$(BIN)/python -m benchmarks.updates
	@echo "==> where an update's time goes, and how long the first fit takes"
	@$(BIN)/python -m benchmarks.share
	@$(BIN)/python -m benchmarks.startup
	@echo "==> reading and computing side by side"
	@$(BIN)/python -m benchmarks.reading
	@echo "==> fits, side by side with our peers"
	@$(BIN)/python -m benchmarks.peers
	@echo "==> one page of all fits: benchmarks/results/peers.md"
	@$(BIN)/python -m benchmarks.summary | tee benchmarks/results/peers.md

soundness: $(VENV)/.installed-test  ## check certificates against the truth on hostile problems (half an hour)
	@echo "==> certificates against the truth; tables go to benchmarks/results/soundness.md"
	@$(BIN)/python -m benchmarks.soundness

mutations: $(VENV)/.installed-test  ## read a million mutated inputs of all formats (about an hour); CASES=100000 for fewer
	@echo "==> mutated inputs, in child processes with limits"
	@$(BIN)/python -m benchmarks.mutated_inputs --cases $(CASES) --processes $(WORKERS)

reproduce: $(VENV)/.installed-plots  ## run the paper's experiments (an hour or more): NAMES="mnist synthetic" for some, QUICK=1 for a smoke test
	@echo "==> running the experiments of the paper; results go to reproduction/output"
	@$(BIN)/python -m reproduction $(NAMES) $(if $(QUICK),--quick)

gallery: torch  ## run the examples, and write their pages, figures and notebooks in docs/gallery
	@echo "==> running the examples"
	@$(BIN)/python examples/build_gallery.py

docs: $(VENV)/.installed-docs  ## build the documentation into site/
	@echo "==> building the documentation into site/"
	@$(BIN)/mkdocs build --strict --quiet

clean:  ## remove everything that was built
	rm -rf $(VENV) $(OLDEST) .cache site build dist demo.png
