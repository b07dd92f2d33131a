BIN := .venv/bin
PLACE := import os, sys; print(os.path.realpath(sys.executable))

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

.PHONY: demo test pytest test-slurm lint site ffcv offline-kit gpu-proof faults bench FORCE

# Train three seeds of the sample-efficiency grid's scarce end on real CIFAR-10 images and show where its leaderboard is.
demo: .venv/installed
	$(BIN)/python launchers/grid.py --suite sample_efficiency --only train_fraction=0.01 --seeds 3

# Everything that must pass: style, types, import rules, tests, at once: types take one core.
test: .venv/installed
	$(MAKE) --jobs=2 lint pytest

pytest: .venv/installed
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# On a real SLURM cluster of four nodes, which is set up on this machine: as root, on Debian or Ubuntu.
test-slurm: .venv/installed
	TEST_SLURM=1 $(BIN)/python -m pytest tests/slurm -rs

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

.venv/installed: pyproject.toml constraints.txt $(if $(ANEW),FORCE)
	$(if $(filter fit,$(FITNESS)),,$(error $(PYTHON): $(FITNESS). Expected Python 3.11 or newer with venv; name it: make $(MAKECMDGOALS) PYTHON=python3.11))
	$(PYTHON) -m venv $(ANEW) .venv
	@test -e $@ || touch .venv/unfinished
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@rm -f .venv/unfinished
	touch $@

# The manual as a site that needs no network, in build/site. Strict: a broken link or an unknown name ends it.
site: .venv/installed
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/site
	@echo "The manual: build/site/index.html"

# FFCV, for --loader ffcv; its build needs the system packages that docs/images.md names.
ffcv: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,ffcv]"

# What a machine without a network needs beside a copy of the project and its own PyTorch: wheels and CIFAR-10, in parts.
offline-kit: .venv/installed
	$(BIN)/python -m launchers.offline pack $(OPTIONS)

# Everything that only a GPU can show, most valuable first; started again, it goes on with what is missing.
gpu-proof: .venv/installed
	$(BIN)/python benchmarks/gpu_proof.py $(OPTIONS)

# Faults by the thousand, for hours, counted in docs/faults.md; started again, it goes on. The cluster's need root, on Debian or Ubuntu.
faults: .venv/installed
	$(BIN)/python -m pytest tests/faults -m campaign --campaign-minutes 600 $(OPTIONS)

# Every benchmark in short form, each beside its reference: benchmarks/results/<machine>.md; some minutes on an idle machine.
bench: .venv/installed
	$(BIN)/python benchmarks/bench.py $(OPTIONS)
