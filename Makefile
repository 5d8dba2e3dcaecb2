# Each target sets up what it needs in a virtual environment of its own, .venv; PYTHON names the interpreter.
PYTHON ?= python3
BIN := .venv/bin
# Modules are compiled when they are first imported, not all at once: most are never imported.
PIP := $(BIN)/python -m pip install --quiet --no-compile
# Without compiled modules each of the thousand processes of the tests would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow coverage mutants fuzz lint docs accuracy bench calibrations release clean

demo: .venv/installed          ## validate the shipped catalog and show what it holds
	$(BIN)/trnspec validate --table

test: .venv/developing         ## the tests that are not slow, on all cores
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow" $(ARGS)

test-slow: .venv/developing    ## the slow tests: they build, install, run other programs, or take seconds
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m slow $(ARGS)

coverage: .venv/developing     ## the tests that are not slow, and the gate on branch coverage
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow" --cov --cov-report=term $(ARGS)

mutants: .venv/mutating        ## the share of small changes to the code that the tests detect, in a sample; ARGS='--seed 2'
	$(BIN)/python benchmarks/mutants.py $(ARGS)

fuzz: .venv/developing         ## SECONDS of fuzzing (3600 by default), with atheris for a tenth of it where it can be installed
	-$(PIP) --group fuzz
	$(BIN)/python tests/fuzz/coverage_guided.py $(or $(SECONDS),3600)
	FUZZ_SEED=$(or $(FUZZ_SEED),random) FUZZ_SECONDS=$(or $(SECONDS),3600) $(BIN)/python -m pytest tests/fuzz -s $(ARGS)

lint: .venv/developing         ## ruff, mypy over the package and the plugins, the import layers, the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/zizmor --quiet --offline --no-progress --config .github/zizmor.yml .github action.yml

docs: .venv/developing         ## write what is generated from the code, then the manual and the catalog as one site in dist/docs
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs dist/docs
	$(BIN)/trnspec site build dist/docs/catalog

accuracy: .venv/developing     ## write the page of errors against measurements, its plots and the errors a test compares with
	$(BIN)/python docs/accuracy.py

bench: .venv/developing        ## ratios measured side by side
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/plugins.py
	$(BIN)/python benchmarks/search.py

calibrations: .venv/developing ## fit every shipped calibration to its measurements anew; about five minutes
	TRNSPEC=$(BIN)/trnspec benchmarks/refit.sh

release:                       ## build all distributions into dist/, check them, and use them on every Python found
	PYTHON=$(PYTHON) .ci/release

clean:
	rm -rf .venv dist build

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "trnspec needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1'
	@touch $@

.venv/installed: .venv/python pyproject.toml
	$(PIP) --editable .
	@touch $@

.venv/developing: .venv/installed pyproject.toml
	$(PIP) --group dev
	@touch $@

.venv/mutating: .venv/developing pyproject.toml
	$(PIP) --group mutants
	@touch $@
