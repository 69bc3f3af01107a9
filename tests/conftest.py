"""Settings shared by all tests."""

import os
import sys
from collections.abc import Iterator

# Figures are drawn into files; no test needs a window.
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest


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
