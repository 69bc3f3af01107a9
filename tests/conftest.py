"""Settings shared by all tests."""

import os

# Figures are drawn into files; no test needs a window.
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fixed seed: every run of a test sees the same numbers."""
    return np.random.default_rng(20240607)
