# Needs make, a Python of at least 3.11 and a package registry; everything else is built in .venv.
#
#   make demo      evaluate the sample
#   make check     lint, types, import contracts, fast tests: before each commit
#   make test      lint, types, import contracts, all tests
#   make coverage  all tests but those of browser and cluster, and how many lines they cover: at least 95 %
#   make durations all tests, and with them the list of slow ones anew
#   make docs      the site in build/site: reference from the code, warnings as errors, links checked
#   make browser   the pages in chromium, where there is one
#   make cluster   an object store, and clusters of Dask, on this machine
#   make oldest    fast tests with the oldest versions that pyproject.toml allows
#   make newest    fast tests with the newest versions that the registry has, those before a release included
#   make plain     fast tests without the optional packages and without the compiled core
#   make torch     tests next to torchmetrics, with a small build of torch
#   make frameworks  recipes and drop-ins in Ultralytics, Lightning and others, which it installs
#   make benchmarks  times of this and its peers, 20 minutes, to the READMEs; TABLES='speed lvis', SMALL=1 for tiny sets
#   make fuzz      damaged inputs and options for SECONDS=60, on JOBS=2; SEED=7 draws the same cases again
#   make harness   scenes with planted mistakes, SCENES=3000, whose fixes are followed by machine; SEED=7 as above
#   make clean     remove what these built

VENV := .venv
BIN := $(VENV)/bin
SAMPLE := sample_data
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11
RECENT := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for one in $(CANDIDATES); do "$$one" -c '$(RECENT)' 2>/dev/null && echo "$$one" && break; done)
PIP := python -m pip --quiet --disable-pip-version-check
# What is imported is compiled then, once: compiling all that is installed takes longer than installing it.
INSTALL := $(BIN)/$(PIP) install --no-compile
VENVS := build/venvs
BUILT := pyproject.toml setup.py $(wildcard jaccard_eval/native/*pp)  # what an installation is made of
# A file stays on one worker: what its tests share is made once. The folder of temporary files has a short name, for
# messages cut long paths. A test that waits for ever ends as a failure with its stack.
RUN := scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT &&
PARALLEL := pytest -n auto --dist loadfile --timeout=300 --basetemp="$$scratch"
FAST := $(PARALLEL) -m 'not slow and not browser and not cluster'

# Tests start the command thousands of times: compiled once, it starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo lint check test full durations docs browser cluster environments oldest test-oldest newest plain torch frameworks benchmarks fuzz harness clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	$(BIN)/jaccard-eval evaluate $(SAMPLE)/coco/gt.json $(SAMPLE)/coco/better.json
	$(BIN)/jaccard-eval evaluate $(SAMPLE)/coco/gt.json $(SAMPLE)/coco/worse.json
	# YOLO's predictions against ground truth in CSV: the same numbers as COCO JSON gave for the better model.
	$(BIN)/jaccard-eval evaluate $(SAMPLE)/csv/gt.csv $(SAMPLE)/yolo/better

lint: $(VENV)/.installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(RUN) $(BIN)/$(FAST)

test: lint full docs browser cluster

full: $(VENV)/.installed-for-tests
	$(RUN) $(BIN)/$(PARALLEL) -m 'not browser and not cluster'

# Tracing takes a third more of the processor's time, so it runs before a release and not with every change.
coverage: $(VENV)/.installed-for-tests
	$(RUN) $(BIN)/$(PARALLEL) -m 'not browser and not cluster' --cov=jaccard_eval --cov-report= --cov-fail-under=95

# Renews the list of tests that `make check` skips.
durations: $(VENV)/.installed-for-tests
	@mkdir -p build
	$(RUN) $(BIN)/$(PARALLEL) -m 'not browser and not cluster' --processor-seconds --durations=0 -vv \
	  > build/durations.txt
	$(BIN)/python tests/slow_list.py build/durations.txt

docs: $(VENV)/.installed-for-tests
	$(BIN)/python docs/site/build.py build/site

browser: $(VENV)/.installed-for-tests
	$(RUN) $(BIN)/$(PARALLEL) -rs tests/pages

# Only the files that contain the word are collected: all of them take a processor ten seconds.
cluster: $(VENV)/.installed-for-tests
	$(RUN) $(BIN)/$(PARALLEL) -m cluster $$(grep -rl --include='test_*.py' 'pytest\.mark\.cluster' tests)

# Old packages warn of what the newest of those below them deprecate.
oldest: $(VENVS)/oldest/.installed
	$(RUN) HYPOTHESIS_PROFILE=again $(VENVS)/oldest/bin/$(FAST) -W ignore::DeprecationWarning

test-oldest: oldest

# Made anew each time, for what is newest changes; warnings are theirs to announce.
newest:
	$$(for one in python3.14 python3.13 $(PYTHON); do "$$one" -c pass 2>/dev/null && echo "$$one" && break; done) \
	  -m venv --clear $(VENVS)/newest
	$(VENVS)/newest/bin/$(PIP) install --pre --only-binary numpy,pandas,pillow,msgspec --editable '.[cloud,parquet,plot]' $(NEEDED)
	$(VENVS)/newest/bin/python -m pip list | grep -iE '^(click|msgspec|numpy|pandas|pillow|pyarrow|rich) '
	$(RUN) HYPOTHESIS_PROFILE=again $(VENVS)/newest/bin/$(FAST) -W ignore::DeprecationWarning

# What README.md and the pages show works with the core alone.
plain: $(VENVS)/plain/.installed
	$(RUN) HYPOTHESIS_PROFILE=again JACCARD_EVAL_NATIVE=0 $(VENVS)/plain/bin/$(FAST)
	$(RUN) $(VENVS)/plain/bin/$(PARALLEL) tests/test_readme.py

# What needs torch is skipped in all other environments; its last line counts the tests that ran.
torch: $(VENVS)/torch/.installed
	$(VENVS)/torch/bin/pytest -rs tests/test_mean_average_precision.py tests/test_torchmetrics_metric.py tests/test_evaluator.py

# Writes the versions to tests/frameworks/verified.toml.
frameworks: $(VENVS)/frameworks/.installed
	$(VENVS)/frameworks/bin/python tests/frameworks/verify.py

# Made anew each time, for the newest releases count. What cannot be installed is named above its tables. Installed as
# users have it, not from the checkout. torch holds arrays of a peer: of this version there is a build for the processor alone.
COCO_TOOLS := ultrafast-pycocotools hotcoco faster-coco-eval pycocotools vernier lvis
OTHER_TOOLS := shapely globox supervision torch==2.13.0 torchmetrics panopticapi@git+https://github.com/cocodataset/panopticapi
benchmarks:
	$(PYTHON) -m venv --clear $(VENVS)/benchmarks
	$(VENVS)/benchmarks/bin/$(PIP) install '.[dask,parquet]'
	for one in $(COCO_TOOLS) $(OTHER_TOOLS); do \
	  $(VENVS)/benchmarks/bin/$(PIP) install "$$one" || echo "Not installed: $$one" >&2; done
	$(VENVS)/benchmarks/bin/python benchmarks/tables.py $(if $(SMALL),--small) $(if $(TABLES),--only $(TABLES))

SECONDS ?= 60
JOBS ?= 2
fuzz: $(VENV)/.installed-for-tests
	$(BIN)/python tests/hostile/fuzz.py $(if $(SEED),--seed $(SEED)) --seconds $(SECONDS) --jobs $(JOBS)

SCENES ?= 3000
harness: $(VENV)/.installed-for-tests
	$(BIN)/python tests/harness.py $(if $(SEED),--seed $(SEED)) --scenes $(SCENES)

clean:
	rm -rf $(VENV) build dist *.egg-info .*_cache .hypothesis .coverage*

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "No Python of at least 3.11 with venv among: $(CANDIDATES)." \
	  "Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made $(BUILT)
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-for-tests: $(VENV)/.made $(BUILT)
	$(INSTALL) --editable '.[docs,test]'
	@touch $@ $(VENV)/.installed

# The others share the checkout, and so the core that was built in it for the first.
environments: $(VENVS)/oldest/.installed $(VENVS)/plain/.installed $(VENVS)/torch/.installed
	$(BIN)/pytest --collect-only -qq > $(VENVS)/collected.txt
INSTALL_SHARED = JACCARD_EVAL_NATIVE=0 $(@D)/bin/$(PIP) install --no-compile

# numpy 1.26 and its like have wheels for 3.11 and 3.12 only, so the first of these that there is.
$(VENVS)/oldest/.installed: $(VENV)/.installed-for-tests
	$$(for one in python3.11 python3.12 $(PYTHON); do $$one -c pass 2>/dev/null && echo $$one && break; done) \
	  -m venv --clear $(@D)
	$(@D)/bin/python -c '$(OLDEST)' > $(@D)/oldest.txt
	$(INSTALL_SHARED) --constraint $(@D)/oldest.txt --editable '.[cloud,dask,parquet,plot]' $(NEEDED)
	@touch $@

OLDEST := import re, tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  extras = [wanted for name, wanted in project["optional-dependencies"].items() if name != "test"]; \
  print(*[re.sub(r"\[.*\]", "", one).replace(">=", "==") for one in sum(extras, project["dependencies"])], sep="\n")

# Of this version there is a build for the processor alone, a tenth of the usual one.
$(VENVS)/torch/.has-torch:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/$(PIP) install --no-compile torch==2.13.0
	@touch $@

$(VENVS)/torch/.installed: $(VENV)/.installed-for-tests $(VENVS)/torch/.has-torch
	$(INSTALL_SHARED) --editable . torchmetrics==1.9.0 lightning-utilities hypothesis pycocotools pytest \
	  pytest-randomly
	@touch $@

# Of torchvision the registry has builds for graphic cards; without what these ask for, its modules can be imported.
FRAMEWORKS := accelerate alembic faster-coco-eval lightning matplotlib mlflow-skinny mmengine opencv-python-headless \
  polars psutil 'pyDeprecate<0.10' requests sqlalchemy supervision tensorboard torchmetrics==1.9.0 transformers wandb
$(VENVS)/frameworks/.installed: $(BUILT)
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/$(PIP) install torch==2.13.0 --editable . $(FRAMEWORKS) hypothesis pytest pytest-randomly \
	  pytest-timeout
	$(@D)/bin/$(PIP) install --no-deps torchvision==0.28.0 rfdetr ultralytics ultralytics-platform ultralytics-thop
	@touch $@

# What the tests cannot do without: the other packages of `test` bring optional ones with them.
NEEDED := html5lib hypothesis import-linter jsonschema prometheus-client pycocotools pytest pytest-randomly \
  pytest-timeout pytest-xdist 'setuptools>=77' shapely xmlschema
$(VENVS)/plain/.installed: $(VENV)/.installed-for-tests
	$(PYTHON) -m venv --clear $(@D)
	$(INSTALL_SHARED) --editable . $(NEEDED)
	@touch $@
