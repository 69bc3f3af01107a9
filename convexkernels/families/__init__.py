"""Families: convex sets of kernels.

`FAMILIES` is the table of all of them, with an example of each: the contract tests run over it, so a
new family is one file and one line here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.families.all_kernel_matrices import AllKernelMatrices
from convexkernels.families.base import Family
from convexkernels.families.box import UnitBox
from convexkernels.families.candidates import Candidates
from convexkernels.families.generalized_polynomial import GeneralizedPolynomial
from convexkernels.families.span import Span
from convexkernels.families.tessellated import Tessellated
from convexkernels.kernels import Gaussian, Polynomial

# name -> a function that returns an example for points in [0, 1]^n.
FAMILIES: dict[str, Callable[[], Family]] = {
    "tessellated": lambda: Tessellated(degree=1, box=UnitBox(0.3)),
    "tessellated_no_z": lambda: Tessellated(degree=2, z_degree=0, box=UnitBox(0.5), trace=2.0),
    "tessellated_on_landmarks": lambda: Tessellated(degree=1, box=UnitBox(0.5), landmarks=9),
    "tessellated_of_tasks": lambda: Tessellated(degree=1, box=UnitBox(0.4), tasks=2),
    "generalized_polynomial": lambda: GeneralizedPolynomial(degree=2),
    "candidates": lambda: Candidates(_example_kernels()),
    "candidates_centered_cosine": lambda: Candidates(_example_kernels(), normalize="cosine", center=True),
    "candidates_on_landmarks": lambda: Candidates(_example_kernels(), normalize="variance", landmarks=6),
    "span": lambda: Span(_example_kernels(), trace=10.0),
    "all_kernel_matrices": lambda: AllKernelMatrices(),
}


def example_points(family: Family, X: Array) -> Array:
    """Points of [0, 1]^n as an example takes them: with tasks in the last column where it has any."""
    tasks = getattr(family, "tasks", None)
    return X if tasks is None else np.column_stack([X[:, :-1], np.floor(tasks * X[:, -1])])


def _example_kernels() -> list[Any]:
    return [Gaussian(0.5), Gaussian(8.0), Polynomial(2), ("first feature", Gaussian(20.0), [0])]
