PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test lint bench clean

# The stamp is made anew whenever what is installed changes.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable ".[test,lint]"
	touch $@

demo: $(VENV)/.ready  ## make a film, index it, show what was found
	$(BIN)/python examples/demo.py

test: $(VENV)/.ready  ## the whole suite, the installed wheel included
	$(BIN)/python -m longtake.cli.models pull local/smollm2-135m  # 93 MB, once; the tests themselves are offline
	LONGTAKE_REQUIRE_MODELS=1 $(BIN)/python -m pytest

lint: $(VENV)/.ready  ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.ready  ## performance against named peers, in an environment of its own
	$(PYTHON) benchmarks/decode.py
	$(BIN)/python benchmarks/models.py

clean:
	rm -rf $(VENV) build dist
