"""Claims about every kernel and every family the library exports, read from its tables and not listed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels import NotDifferentiableError
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, check_gradient, check_psd
from convexkernels.kernels import KERNELS, Matern, OnColumns, Polynomial
from proofs_check.claim import Claim
from proofs_check.library.answers import answer_claims
from proofs_check.library.certain import certain_claims
from proofs_check.library.comparisons import comparison_claims
from proofs_check.library.distances import distance_claims
from proofs_check.library.duality import duality_claims
from proofs_check.library.enclosures import enclosure_claims
from proofs_check.library.new_points import new_point_claims
from proofs_check.library.radii import radius_claims
from proofs_check.library.ridges import ridge_claims
from proofs_check.library.risks import risk_claims
from proofs_check.library.sides import side_claims
from proofs_check.library.slopes import slope_claims
from proofs_check.library.stacks import stack_claims
from proofs_check.library.starts import start_claims
from proofs_check.library.stated import stated_claims
from proofs_check.library.steps import step_claims
from proofs_check.library.tables import table_claims
from proofs_check.library.tasks import task_claims
from proofs_check.library.training_points import training_point_claims
from proofs_check.library.units import unit_claims
from proofs_check.library.unseen_rows import unseen_row_claims
from proofs_check.library.values import values_claims

PAPER = "library"

Make = Callable[[int], Any]

# Kernels beside the examples of the table whose derivatives have formulas of their own.
MORE_GRADIENTS: dict[str, tuple[str, Make]] = {
    "on-columns-twice": (
        "a kernel that sees one column twice",
        lambda n: OnColumns(Polynomial(3, 0.5), [n - 1, 0, n - 1]),
    ),
    "matern-of-fractions": (
        "Matern kernels of orders that are no whole numbers, by Bessel functions,",
        lambda n: Matern(0.8 + 0.9 * n, 0.5),
    ),
}


def point_sets(rng: np.random.Generator, n: int) -> dict[str, Array]:
    """Points on which a careless implementation loses positivity."""
    random = rng.uniform(0.0, 1.0, (25, n))
    centers = rng.uniform(0.1, 0.9, (3, n))
    clustered = np.repeat(centers, 8, axis=0) + 1e-7 * rng.standard_normal((24, n))
    line = centers[0] + np.linspace(-0.3, 0.3, 25)[:, None] * rng.standard_normal(n) / np.sqrt(n)
    return {
        "random": random,
        "clustered": clustered,
        "duplicated": random[rng.integers(0, 6, 25)],
        "colinear": np.clip(line, 0.0, 1.0) if n == 1 else line,
        "out of the box": rng.uniform(-2.0, 3.0, (25, n)),
        "corners": rng.integers(0, 2, (12, n)).astype(np.float64),
        "single": np.full((1, n), 0.5),
    }


@dataclass(frozen=True)
class Lowered:
    """A kernel without a little more than what the center of the unit cube spans: hardly not positive.

    ``k(x, y) - s k(x, z) k(z, y) / k(z, z)`` is positive for s = 1, and no more for s = 1.01.
    """

    kernel: Any
    n: int

    def __call__(self, X: Any, Y: Any) -> Array:
        z = np.full((1, self.n), 0.5)
        return self.kernel(X, Y) - 1.01 * self.kernel(X, z) @ self.kernel(z, Y) / float(self.kernel(z, z)[0, 0])


@dataclass(frozen=True)
class Steeper:
    """A kernel whose derivative is said to be one percent, and one thousandth, larger than it is."""

    kernel: Any

    def __call__(self, X: Any, Y: Any) -> Array:
        return np.asarray(self.kernel(X, Y))

    def pullback(self, X: Any, Y: Any, M: Any) -> Array:
        return 1.01 * self.kernel.pullback(X, Y, M) + 1e-3


def measure_positive(make: Make, rng: np.random.Generator) -> Verdict:
    """Symmetric and positive semidefinite on every set of points, in one to four dimensions."""
    n = int(rng.integers(1, 5))
    kernel = make(n)
    verdicts = []
    for name, X in point_sets(rng, n).items():
        verdict = check_psd(kernel, X)
        witness = {**verdict.witness, "points": name, "kernel": repr(kernel)}
        verdicts.append(Verdict(verdict.worst_violation, verdict.tolerance, 1, witness))
    return Verdict.worst(verdicts)


def measure_gradient(make: Make, rng: np.random.Generator) -> Verdict:
    """The pullback is the gradient of the kernel's values."""
    n = int(rng.integers(1, 4))
    kernel, X, Y = make(n), rng.uniform(0.1, 0.9, (5, n)), rng.uniform(0.1, 0.9, (4, n))
    for limit in getattr(kernel, "limits", None) or ():  # where values have kinks
        X = np.where(np.abs(X - limit) < 0.01, X - 0.03, X)
    return check_gradient(kernel, X, Y, trials=2, rng=rng)


def _lowered(make: Make) -> Make:
    return lambda n: Lowered(make(n), n)


def _steeper(make: Make) -> Make:
    return lambda n: Steeper(make(n))


def is_differentiable(make: Make) -> bool:
    """Whether the kernel offers a derivative with respect to its points."""
    X = np.full((1, 2), 0.5)
    try:
        make(2).pullback(X, X + 0.1, np.ones((1, 1)))
    except NotDifferentiableError:
        return False
    return True


def _claims() -> list[Claim]:
    claims = []
    for name, make in KERNELS.items():
        label = name.replace("_", "-")
        claims.append(
            Claim(
                f"positive-{label}",
                f"The kernel '{name}' is positive semidefinite on random, clustered, duplicated, colinear, "
                "out-of-box, corner and single points.",
                PAPER,
                "table KERNELS",
                measure_positive,
                make,
                _lowered(make),
                trials=4,
            )
        )
        if is_differentiable(make):
            claims.append(
                Claim(
                    f"gradient-{label}",
                    f"The pullback of the kernel '{name}' is the gradient of its values.",
                    PAPER,
                    "table KERNELS",
                    measure_gradient,
                    make,
                    _steeper(make),
                    trials=3,
                )
            )
    return claims


def _more_gradients() -> list[Claim]:
    return [
        Claim(
            f"gradient-{name}",
            f"The pullback of {what} is the gradient of the values.",
            *(PAPER, "kernels, derivatives", measure_gradient, make, _steeper(make)),
            trials=3,
        )
        for name, (what, make) in MORE_GRADIENTS.items()
    ]


CLAIMS = [
    *_claims(),
    *_more_gradients(),
    *values_claims(PAPER),
    *task_claims(PAPER),
    *risk_claims(PAPER),
    *slope_claims(PAPER),
    *duality_claims(PAPER),
    *training_point_claims(PAPER),
    *side_claims(PAPER),
    *enclosure_claims(PAPER),
    *distance_claims(PAPER),
    *new_point_claims(PAPER),
    *certain_claims(PAPER),
    *comparison_claims(PAPER),
    *radius_claims(PAPER),
    *ridge_claims(PAPER),
    *answer_claims(PAPER),
    *unit_claims(PAPER),
    *unseen_row_claims(PAPER),
    *stack_claims(PAPER),
    *table_claims(PAPER),
    *step_claims(PAPER),
    *start_claims(PAPER),
    *stated_claims(PAPER),
]
