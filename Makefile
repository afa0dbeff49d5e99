# Everything is installed into .venv and build/; only Python with venv and pip is required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Slow mirrors exceed pip's default timeout.
export PIP_RETRIES ?= 10
export PIP_DEFAULT_TIMEOUT ?= 60

# Tests start hundreds of processes, which would all recompile longtake if this were set.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test hostile cluster-test attack chaos browser screenshots compat lint docs figures reference clients vlmevalkit bench wheel-check release-check clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

# Rebuilt when dependencies change.
$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "installing longtake into $(VENV) (0.8 GB)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

$(VENV)/.ready: $(VENV)/.installed
	@echo "installing what tests and extras need"
	$(PIP) install --constraint constraints.txt --editable ".[test,lint,speech,report,serve,mcp,otel,parquet]"
	touch $@

demo: $(VENV)/.installed  ## make a film, index it, ask about it; no extras needed
	$(BIN)/python examples/demo.py

# Three processes on two cores, since tests also wait for servers, timers and killed processes.
PROCESSES ?= 3
# In folder order: slow files run first, so that no process idles at the end.
PYTEST := -m "not campaign" --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder --durations 10 -rfE
ifdef SEED
PYTEST += --random-order-seed $(SEED)
endif

test: $(VENV)/.ready wheel-check  ## the whole suite and the built wheel; SEED=1: in random order
	$(BIN)/longtake models pull local/smollm2-135m  # 93 MB, once; the tests themselves are offline
	LONGTAKE_REQUIRE_MODELS=1 $(BIN)/python -m pytest $(PYTEST)

# What is tried of it in every CI run: HOSTILE=processes.
HOSTILE ?= not campaign
# collecting only the files with such tests saves half a minute
hostile: FILES = $(if $(filter processes,$(HOSTILE)),$(shell grep -rl --include='test_*.py' 'mark\.processes' tests))
hostile: $(VENV)/.ready  ## the suite as a service manager starts it: signals ignored, no stdin, no home, odd names
	$(BIN)/python tests/hostile.py $(FILES) -m "($(HOSTILE)) and not campaign" --numprocesses $(PROCESSES) --dist loadfile -rfE

# Ray is large and optional, so it is installed outside the environment.
build/ray/.ready: pyproject.toml constraints.txt
	rm -rf build/ray
	$(PIP) install --constraint constraints.txt --target build/ray "ray>=2.60,<3"
	touch $@

cluster-test: $(VENV)/.ready build/ray/.ready  ## clusters of two and four nodes on this machine
	LONGTAKE_CLUSTER=1 PYTHONPATH=$(CURDIR)/build/ray $(BIN)/python -m pytest tests/cluster
	PYTHONPATH=$(CURDIR)/build/ray $(BIN)/python benchmarks/cluster.py --on "ray?cpus=0.25"
	$(BIN)/python benchmarks/cluster.py

MINUTES ?= 60
attack: $(VENV)/.ready  ## the tests that make test skips, then newly generated damaged films, texts, responses and requests for MINUTES=60
	$(PIP) install --constraint constraints.txt "atheris>=3"
	ATTACK_PROCESS_SECONDS=100 $(BIN)/python -m pytest -m campaign  # includes a process watched for 100 s
	$(BIN)/python tests/attack/campaign.py --minutes $(MINUTES)

chaos: $(VENV)/.ready  ## index, eval and serve under kills, full disks, crowds and a failing model, for MINUTES=60
	$(BIN)/python tests/attack/chaos.py --minutes $(MINUTES)

compat: $(VENV)/.ready  ## real servers in separate environments: about 2 GB, compiles llama.cpp
	$(BIN)/python tests/compat/run.py

lint: $(VENV)/.ready  ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Documentation tools have a separate environment; they need no longtake.
build/docs-tools/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv build/docs-tools
	build/docs-tools/bin/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt "mkdocs-material>=9.8,<10"
	touch $@

docs: build/docs-tools/.ready  ## build the documentation site in build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 build/docs-tools/bin/mkdocs build --quiet
	@echo "build/site/index.html"

figures:  ## list the commands behind the figures in the docs, and the figures' dates
	$(PYTHON) benchmarks/figures.py

reference: $(VENV)/.ready  ## generate docs/reference.md from the commands
	$(BIN)/python benchmarks/command_reference.py

# An editable install hides missing package data, so the wheel is tested outside the repository.
wheel-check: $(VENV)/.ready
	$(BIN)/python tests/wheel_check.py

PYTHONS ?= python3.11 python3.12 python3.13
release-check: $(VENV)/.ready  ## wheel and sdist: metadata, licences, pip-audit, then used and tested with each of PYTHONS="…"
	$(BIN)/python tests/release_check.py $(PYTHONS) $(if $(SUITE),--suite "$(SUITE)")

# Harnesses pin conflicting versions, so each has its own environment.
CLIENTS := build/clients
CLIENT_PIP = $(@D)/bin/python -m pip --quiet --disable-pip-version-check install

$(CLIENTS)/litellm/.ready:
	$(PYTHON) -m venv $(@D)
	$(CLIENT_PIP) litellm==1.102.4
	touch $@

# Without its dependencies, which include every judge and model library; these are what its openai model imports.
$(CLIENTS)/lmms-eval/.ready: tests/clients/requirements/lmms-eval.txt
	$(PYTHON) -m venv $(@D)
	$(CLIENT_PIP) --no-deps lmms-eval==0.7.3
	$(CLIENT_PIP) -r $<
	touch $@

$(CLIENTS)/frameworks/.ready:
	$(PYTHON) -m venv $(@D)
	$(CLIENT_PIP) langchain-openai==1.7.3 llama-index-llms-openai-like==0.8.1
	touch $@

# Not published as a package: clone open-compass/VLMEvalKit to build/clients/VLMEvalKit-source first.
# Its run.py imports every model and dataset, so all requirements are installed, plus rouge_score, which is missing from them.
$(CLIENTS)/VLMEvalKit/.ready: $(CLIENTS)/VLMEvalKit-source/requirements.txt
	$(PYTHON) -m venv $(@D)
	$(CLIENT_PIP) -r $< rouge_score
	touch $@

vlmevalkit: $(VENV)/.ready $(CLIENTS)/VLMEvalKit/.ready  ## the same through VLMEvalKit's run.py: needs its source and 8 GB
	$(BIN)/python tests/clients/harness.py --client VLMEvalKit --python $(CLIENTS)/VLMEvalKit/bin/python

ENVIRONMENTS := litellm lmms-eval frameworks

clients: $(VENV)/.ready $(ENVIRONMENTS:%=$(CLIENTS)/%/.ready)  ## a lab film as a benchmark, through real clients
	$(BIN)/python tests/clients/harness.py --client openai --python $(BIN)/python
	$(BIN)/python tests/clients/harness.py --client litellm --python $(CLIENTS)/litellm/bin/python
	$(BIN)/python tests/clients/harness.py --client lmms-eval --python $(CLIENTS)/lmms-eval/bin/python
	$(BIN)/python tests/clients/harness.py --client langchain-openai --python $(CLIENTS)/frameworks/bin/python
	$(BIN)/python tests/clients/harness.py --client llama-index-llms-openai-like --python $(CLIENTS)/frameworks/bin/python

bench: $(VENV)/.ready  ## performance compared with other libraries, in separate environments
	$(BIN)/python benchmarks/decode.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/events_f1.py

# The accessibility checker from npm; the browser is Debian's.
tests/browser/axe.min.js:
	cd tests/browser && npm pack --silent axe-core@4.14.0 && tar xzf axe-core-4.14.0.tgz package/axe.min.js \
		&& mv package/axe.min.js . && rm -r package axe-core-4.14.0.tgz

browser: $(VENV)/.ready tests/browser/axe.min.js  ## the page in a real browser: installs Chromium, runs its tests
	command -v chromium >/dev/null || apt-get install --yes chromium
	LONGTAKE_BROWSER=1 $(BIN)/python -m pytest tests/browser

screenshots: $(VENV)/.ready  ## docs/images: the page during a run, the answer, compare, phone, dark
	$(BIN)/python tests/browser/screenshots.py

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist
