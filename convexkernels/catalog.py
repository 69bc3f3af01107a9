"""The models the command line offers, as plain data: adding one is one entry of `MODELS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MODELS", "Model"]

# Kernel values of small boxes are large in many dimensions, so useful values of C reach far down.
COSTS = tuple(10.0**k for k in range(-5, 4))


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
        grid={"margin": (0.5, 0.1, 1.0, 2.0), "C": COSTS},
    ),
}
