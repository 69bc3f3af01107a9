# Everything here works from a fresh clone with Python 3.11 or newer and make; nothing else is assumed.
#
#   make demo    learn a kernel on a real table, print its certificate, draw a figure
#   make test    run the whole test suite (two processes)
#   make lint    ruff and mypy
#   make claims  check the theorems of the papers numerically
#   make formulas  write docs/formulas.md: where every formula of the papers is implemented
#   make docs    build the documentation site in build/site, and follow its links
#   make browse  look at the pages in a headless browser
#   make clean   remove caches and build products;  make distclean also removes .venv
#
# The environment is .venv, made once and brought up to date when pyproject.toml changes. An
# environment that happens to be active is left alone. Choose an interpreter with `make PYTHON=... demo`.

VENV := .venv
RUN := $(VENV)/bin/python
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3)
IS_RECENT := import sys; sys.exit(sys.version_info < (3, 11))
MAKES_VENVS := import ensurepip, venv; $(IS_RECENT)
TYPED := convexkernels $(patsubst %/__init__.py,%,$(wildcard proofs_check/__init__.py))

# Settings of the caller's shell that would lead pip or Python out of .venv.
unexport PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX

# Two test processes share the cores; threads below them would only compete.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 MPLBACKEND=Agg

.PHONY: help demo test lint lint-rules lint-format lint-types claims formulas docs browse clean distclean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.ready-demo
	@$(RUN) -m convexkernels demo

test: $(VENV)/.ready-dev
	$(ONE_THREAD) $(RUN) -m pytest -n 2 --dist worksteal --durations 15

lint: lint-rules lint-format lint-types

lint-rules: $(VENV)/.ready-dev
	$(RUN) -m ruff check .

lint-format: $(VENV)/.ready-dev
	$(RUN) -m ruff format --check .

lint-types: $(VENV)/.ready-dev
	$(RUN) -m mypy $(TYPED)

claims: $(VENV)/.ready-dev
	$(RUN) -m proofs_check

formulas: $(VENV)/.ready-dev
	$(RUN) docs/formulas.py

# Warnings are errors; all of them are shown.
docs: $(VENV)/.ready-docs
	$(ONE_THREAD) $(RUN) -m sphinx -W --keep-going -q -j 2 -d build/doctrees docs build/site
	@$(RUN) docs/check_site.py build/site
	@echo 'The pages are in build/site: open build/site/index.html.'

# What a reader sees: needs Chromium.
browse: docs
	$(RUN) -m pip install --quiet --disable-pip-version-check playwright
	$(RUN) docs/check_site.py build/site --browser

$(VENV)/.ready-docs: pyproject.toml | $(VENV)/.made
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/.ready-demo: pyproject.toml | $(VENV)/.made
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[plot,persist]'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(VENV)/.made
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# A command may exist and still not run (a version manager's shim), so each candidate is tried.
$(VENV)/.made:
	@if [ -e $(RUN) ] || [ -L $(RUN) ]; then \
	    $(RUN) -c '$(IS_RECENT)' 2>/dev/null && $(RUN) -m pip --version >/dev/null 2>&1 || { \
	        echo 'make: $(VENV) exists, but its Python does not run, is older than 3.11 or has no pip.' >&2; \
	        echo 'make: move $(VENV) away (or run `make distclean`) and try again.' >&2; exit 1; }; \
	else \
	    found=; \
	    for candidate in $(CANDIDATES); do \
	        if "$$candidate" -c '$(MAKES_VENVS)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo 'make: Python 3.11 or newer with its venv module is needed; tried: $(CANDIDATES)' >&2; \
	        echo 'make: install one (on Debian and Ubuntu also the package python3-venv), or name yours:' >&2; \
	        echo 'make:     make PYTHON=/path/to/python3 demo' >&2; \
	        exit 1; \
	    fi; \
	    echo "Creating $(VENV) with $$found ($$("$$found" --version)); the first installation takes some minutes."; \
	    "$$found" -m venv $(VENV); \
	fi
	@touch $@

clean:
	rm -rf build dist docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
