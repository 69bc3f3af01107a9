"""What parameters of concatenated estimators stand for: losses by name, the scale of features, weights of norms."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.metric import learned_widths
from convexkernels.clock import Clock
from convexkernels.criteria.ridge import matrix_path_residuals
from convexkernels.driver import stated
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import SUITED_EPSILON, EpsilonInsensitive, deviation_of
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.validation import check_number

# Candidates of lam for the plainest start and rows of unit weight, and what lam and mu are tried at beside those that
# suit it.
LAMS = 2.0 ** np.arange(-23.0, 11.0)
LAM_FACTORS, MU_FACTORS = 8.0 ** np.arange(-1.0, 2.0), 16.0 ** np.arange(-1.0, 2.0)
# What is left of the leave-one-out risk where a width per feature is worth its overfitting.
WORTHWHILE = 0.5
# What norms cost of the fit where that says nothing about their weight.
SMALL = 0.01
# Deviations that cost nothing where nothing can be learned.
EPSILON = 0.1

LOSSES: dict[str, Loss] = {
    "hinge": Hinge(),
    "least_squares": LeastSquares(intercept=False),
    "epsilon_insensitive": EpsilonInsensitive(epsilon=EPSILON),
}


def with_weights(problem: OuterLearning, lam: float, mu: float) -> OuterLearning:
    """The problem with these weights of the outermost norm and of the inner ones."""
    family: Any = problem.family
    return problem.with_loss(problem.loss.at(lam), family.with_mu(mu))


def suited_weights(problem: OuterLearning, lam: float | None = None) -> tuple[float, float]:
    """The lam and the mu that suit the plainest start.

    lam, unless it is given, is that of the least leave-one-out risk of least squares. With mu the objective is
    stationary along multiples of all layers: larger images, which are a narrower kernel, gain in fit what their norms
    cost. Where they gain nothing, norms cost a hundredth of the fit. Where nothing can be learned, both are as the
    weights of rows.
    """
    unit = unit_of(problem.weights)
    if not (np.ptp(problem.Y, axis=1).any() and np.ptp(problem.X, axis=0).any()):
        return unit if lam is None else lam, unit
    z = problem.split(problem.start(0))[0]
    if lam is None:
        squares = [float(np.sum(errors**2 @ problem.weights)) for errors in _left_out_errors(problem)]
        lam = float(unit * LAMS[np.argmin(squares)])
    values, slopes = np.empty(2), np.empty(2)
    for k in range(2):
        here = with_weights(problem, lam, unit * (k + 1.0))
        chart = here.gram_set.chart(z)
        there = here.evaluate(chart, chart.u)
        values[k], slopes[k] = there.value, there.gradient() @ chart.u
    of_norms = slopes[1] - slopes[0]
    mu = (of_norms - slopes[0]) / of_norms
    if mu > 0.0:
        return lam, unit * float(mu)
    cost = values[1] - values[0]
    return lam, unit * SMALL * float((values[0] - cost) / cost)


def unit_of(weights: Array) -> float:
    """The mean weight of rows to a power of 2: what weights of norms are compared with."""
    return float(2.0 ** np.round(np.log2(weights.mean())))


def _left_out_errors(problem: OuterLearning) -> Iterator[Array]:
    """Errors of the plainest start at rows left out, shape (n_outputs, m), for every candidate of lam."""
    at_start = problem.gram_set.at(problem.split(problem.start(0))[0])
    assert at_start is not None
    return matrix_path_residuals(at_start.gram(), problem.Y, problem.weights, unit_of(problem.weights) * LAMS)


def suited_epsilon(problem: OuterLearning) -> float:
    """The epsilon that suits the errors of the plainest start at rows left out, for the output where they are least."""
    varying = np.ptp(problem.Y, axis=1) > 0.0
    if problem.m < 2 or not (varying.any() and np.ptp(problem.X, axis=0).any()):
        return EPSILON
    of_lams = [errors[varying] for errors in _left_out_errors(problem)]
    best = np.argmin([errors**2 @ problem.weights for errors in of_lams], axis=0)
    return SUITED_EPSILON * min(deviation_of(of_lams[k][[j]], problem.weights) for j, k in enumerate(best.tolist()))


def candidates(problem: OuterLearning, lam: Any, mu: Any, clock: Clock) -> tuple[list[float], list[float]]:
    """The lists of values that lam and mu stand for; None is a list around the value that suits the data."""
    lams, mus = _listed("lam", lam), _listed("mu", mu)
    if lams and mus:
        return lams, mus
    given = float(np.median(lams)) if lams else None
    suited = clock.once(lambda: {"weights": suited_weights(problem, given)}, "weights", *stated(problem), given)[
        "weights"
    ]
    return lams or list(suited[0] * LAM_FACTORS), mus or list(suited[1] * MU_FACTORS)


def _listed(name: str, value: Any) -> list[float]:
    """The values as a list, which is empty for None."""
    if value is None:
        return []
    if np.ndim(value) == 0:
        return [check_number(name, value, low=0.0, open_low=True)]
    if len(value) == 0:
        raise InvalidInputError(f"{name} must be None, a number > 0 or a list of them, got {value!r}.")
    return [check_number(name, entry, low=0.0, open_low=True) for entry in value]


def learned_scale(
    kernel: Kernel, X: Array, Y: Array, weights: Array, clock: Clock, seed: int, tied: Sequence[Index] = ()
) -> Array:
    """Factors of the features for which the plainest images have the width that the data ask for.

    Leave-one-out risks of least squares with the outermost kernel decide: one factor for all features, or one for each
    where that is clearly better; features that are `tied` share one.
    """
    if (Y[:, :1] == Y).all() or not np.ptp(X, axis=0).any():
        return np.ones(X.shape[1])
    found = learned_widths(kernel, X, Y, weights, clock, seed, tied=tied)
    return found.by_feature if found.by_feature is not None and found.share < WORTHWHILE else found.alike


def named(loss: Any, names: tuple[str, ...]) -> Loss:
    """The loss of a name, or a loss itself."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in names:
        raise InvalidInputError(f"loss must be {' or '.join(map(repr, names))}, or a Loss, got {loss!r}.")
    return LOSSES[loss]
