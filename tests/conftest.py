"""Settings shared by all tests."""

import contextlib
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator

# Figures are drawn into files; no test needs a window.
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest

import convexkernels

# Modules are imported when they are needed. One that came first while a test has replaced a name in another one would
# keep what stood there, for all tests after it.
for module in pkgutil.walk_packages(convexkernels.__path__, "convexkernels."):
    if not module.name.endswith("__main__"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fixed seed: every run of a test sees the same numbers."""
    return np.random.default_rng(20240607)


@pytest.fixture(autouse=True)
def no_figure_is_left() -> Iterator[None]:
    """Close all figures after every test that has drawn any."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
