# Needs make, a Python of at least 3.11 and a package registry; everything else is built in .venv.
#
#   make demo    evaluate the sample
#   make test    lint, types, import contracts, tests
#   make clean   remove what these built

VENV := .venv
BIN := $(VENV)/bin
SAMPLE := sample_data
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11
RECENT := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for one in $(CANDIDATES); do "$$one" -c '$(RECENT)' 2>/dev/null && echo "$$one" && break; done)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help demo test clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	$(BIN)/jaccard-eval evaluate $(SAMPLE)/coco/gt.json $(SAMPLE)/coco/better.json
	$(BIN)/jaccard-eval evaluate $(SAMPLE)/coco/gt.json $(SAMPLE)/coco/worse.json
	# YOLO's predictions against ground truth in CSV: the same numbers as COCO JSON gave for the better model.
	$(BIN)/jaccard-eval evaluate $(SAMPLE)/csv/gt.csv $(SAMPLE)/yolo/better

test: $(VENV)/.installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

clean:
	rm -rf $(VENV) build dist *.egg-info .*_cache .hypothesis

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "No Python of at least 3.11 with venv among: $(CANDIDATES)." \
	  "Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-for-tests: $(VENV)/.made pyproject.toml
	$(INSTALL) --editable '.[test]'
	@touch $@ $(VENV)/.installed
