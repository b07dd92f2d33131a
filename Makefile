BIN := .venv/bin
PLACE := import os, sys; print(os.path.realpath(sys.executable))

DEVICE ?= gpu
PROOF := runs/gpu-proof-$(DEVICE)

# The Python of .venv, unless that is gone, or no longer finds the project that was installed there.
MADE_BY := $(shell { $(BIN)/python -Ic '$(if $(wildcard .venv/installed),import suite; )$(PLACE)'; } 2>/dev/null)
PYTHON ?= $(if $(and $(wildcard .venv/installed),$(MADE_BY)),$(BIN)/python,python3)

# The environment is made ANEW where its Python is another than PYTHON, and where its first installation was cut short.
ANEW := $(if $(wildcard .venv/unfinished),--clear)
ifneq ($(MADE_BY),$(shell { $(PYTHON) -c '$(PLACE)'; } 2>/dev/null))
ANEW := --clear
endif

# "fit", or why PYTHON is not; it may be of any age.
FITNESS = $(shell { $(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("it is Python %d.%d.%d" % sys.version_info[:3]); \
	from importlib.util import find_spec; print("fit") if find_spec("ensurepip") else sys.exit("it has no ensurepip")' || :; } 2>&1)

.PHONY: demo test pytest coverage test-slurm lint lock site ffcv moto gpu-proof gpu-tests gpu-speed gpu-boards faults bench FORCE

# Train three seeds of the sample-efficiency grid's scarce end on real CIFAR-10 images and show where its leaderboard is.
demo: .venv/installed
	@$(BIN)/python launchers/grid.py --suite sample_efficiency --only train_fraction=0.01 --seeds 3

# Everything that must pass: style, types, import rules, workflows, tests, at once: types take one core.
test: .venv/installed
	$(MAKE) --jobs=2 lint pytest

pytest: .venv/installed
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# Which lines the tests run, in every process: build/coverage/report.txt, and the lines themselves in build/coverage/html. Where a
# test fails the report is made all the same.
coverage: .venv/installed
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder; tests=$$?; \
	$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage html --quiet && \
	$(BIN)/python -m coverage report > build/coverage/report.txt && cat build/coverage/report.txt && exit $$tests

# On a real SLURM cluster of four nodes, which is set up on this machine: as root, on Debian or Ubuntu.
test-slurm: .venv/installed
	TEST_SLURM=1 $(BIN)/python -m pytest tests/slurm -rs

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/zizmor --quiet --offline --strict-collection .github

# All that `.[dev]` installs, for any platform and Python that the project is for, with the hashes of the files.
lock: .venv/installed
	$(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --extra dev --constraint constraints.txt \
		--generate-hashes --no-annotate --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

.venv/installed: pyproject.toml constraints.txt $(if $(ANEW),FORCE)
	$(if $(filter fit,$(FITNESS)),,$(error $(PYTHON): $(FITNESS). Expected Python 3.11 or newer with venv; name it: make $(MAKECMDGOALS) PYTHON=python3.11))
	@$(PYTHON) -m venv $(ANEW) .venv
	@test -e $@ || touch .venv/unfinished
	@echo "Installing into .venv, which takes some minutes the first time."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@rm -f .venv/unfinished
	@touch $@

# The manual with all published boards as a site that needs no network, in build/site. Strict: a broken link or an unknown name
# ends it. The boards' own pages are kept in build/boards.
site: .venv/installed
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/site
	@echo "The manual and the boards: build/site/index.html"

# FFCV, which tests and benchmarks compare with; its build needs the system packages that docs/images.md names.
ffcv: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,ffcv]"

# A local S3 for the tests of far files, in an environment of its own: its botocore and our pins do not go together.
moto: .venv/moto/bin/moto_server

.venv/moto/bin/moto_server: .venv/installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/moto
	$(BIN)/uv pip install --quiet --python .venv/moto/bin/python "moto[server]==5.2.5"

# Everything that only a GPU can show: its tests, its speed, and boards of the SUITES that are named. Started again, it goes on
# with what is missing in runs/gpu-proof-gpu. DEVICE=cpu rehearses it in a small form.
gpu-proof: .venv/installed
	$(MAKE) --keep-going gpu-tests gpu-speed gpu-boards

gpu-tests: .venv/installed
	GPU_TESTS_ON=$(DEVICE) GPU_PROOF=$(PROOF)/tests.jsonl $(BIN)/python -m pytest -m gpu -rs

gpu-speed: .venv/installed
	$(BIN)/python benchmarks/gpu.py --device $(DEVICE) --out $(PROOF) $(OPTIONS)

gpu-boards: $(addprefix gpu-board-,$(SUITES))

gpu-board-%: .venv/installed
	$(BIN)/python launchers/grid.py --suite $* --profile gpu --device $(DEVICE) --runs $(PROOF)/runs --max-parallel 8 --retry-failed

# Faults by the thousand, for hours, counted in docs/faults.md; started again, it goes on. The cluster's need root, on Debian or Ubuntu.
faults: .venv/installed
	$(BIN)/python -m pytest tests/faults -m campaign --campaign-minutes 600 $(OPTIONS)

# Every benchmark in short form, each beside its reference: benchmarks/results/<machine>.md; some minutes on an idle machine.
bench: .venv/installed
	$(BIN)/python benchmarks/bench.py $(OPTIONS)
