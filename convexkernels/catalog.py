"""The models the command line offers, as plain data: adding one is one entry of `MODELS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MODELS", "Model"]

# Kernels are on a scale on which C = 1 is a soft margin.
COSTS = tuple(10.0**k for k in range(-2, 5))


@dataclass(frozen=True)
class Model:
    """An estimator and what may be chosen about it.

    Attributes
    ----------
    estimator : str
        Public name in :mod:`convexkernels.estimators`. It takes ``tol``, ``max_time`` and ``verbose``, and has
        ``solution_`` after fitting.
    task : {"classification", "regression"}
    options : tuple of str
        Parameters that can be given by hand.
    grid : mapping of str to tuple
        Parameters that are cross-validated when not given, with the values tried.
    """

    estimator: str
    task: str
    options: tuple[str, ...] = ()
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


# name on the command line -> model
MODELS: dict[str, Model] = {
    "tessellated": Model(
        "TessellatedSVC",
        "classification",
        options=("C", "degree", "z_degree", "margin", "solver"),
        grid={"C": COSTS},
    ),
}
