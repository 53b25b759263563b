# Two commands for a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help demo test test-gpu test-slow lint clean

help:
	@echo "make demo      set up, scaffold gemm --step 9, build it and prove what this machine can prove"
	@echo "make test      all tests that need no GPU"
	@echo "make test-gpu  the tests that need a Hopper card"
	@echo "make test-slow minutes of emulation: every preset over twenty timings"

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[dev]'
	@# No compiler on the machine: bring NVIDIA's own from PyPI.
	@if [ -z "$$CUDA_HOME" ] && ! command -v nvcc >/dev/null 2>&1; then \
	  echo "no nvcc found: installing the toolchain from PyPI"; \
	  $(BIN)/pip install --quiet -e '.[toolchain]'; fi
	@touch $@

# On the card where there is a matching one; otherwise the compiled PTX is executed in the emulator, and kgen says so.
demo: $(VENV)/.ready
	rm -rf demo && mkdir demo
	$(BIN)/kgen new gemm --step 9 -o demo/gemm_step9
	$(BIN)/kgen build demo/gemm_step9
	$(BIN)/kgen test demo/gemm_step9

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not gpu and not slow"

test-gpu: $(VENV)/.ready
	$(BIN)/python -m pytest -m gpu -rs

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

lint: $(VENV)/.ready
	$(BIN)/ruff check kgen tests

clean:
	rm -rf $(VENV) build demo *.egg-info
