"""The one inner solve: a loss and a Gram matrix in; dual variables, coefficients, intercepts and bounds out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.factored import FactoredGram
from convexkernels.losses.base import Loss, product
from convexkernels.losses.factored import maximize_factored


@dataclass(frozen=True, eq=False)
class Fit:
    """Functions ``f_k = K w_k + b_k`` that share a Gram matrix K, and what they prove about J(K).

    Attributes
    ----------
    alpha : ndarray of shape (n_outputs, m)
        Dual variables.
    W : ndarray of shape (n_outputs, m)
        Coefficients w of the expansions.
    b : ndarray of shape (n_outputs,)
        Intercepts of least loss, 0 for a loss without.
    multiples : ndarray of shape (n_outputs,)
        ``multiples[k] (K w_k + b_k)`` are the functions behind `upper`; 1 unless the loss knows better multiples.
    value : float
        Dual objective, summed over outputs: not above J(K).
    upper : float
        Primal objective of the functions: not below J(K).
    constant : float
        ``scale * sum of c(alpha)``: with the support function of a set of kernels it gives a lower bound for all.
    """

    alpha: Array
    W: Array
    b: Array
    multiples: Array
    value: float
    upper: float
    constant: float


def fit(loss: Loss, K: Array, Y: Array, weights: Array, **settings: Any) -> Fit:
    """Solve for all outputs up to a relative duality gap; settings as for :meth:`Loss.maximize_all`."""
    return measure(loss, K, Y, weights, maximize(loss, K, Y, weights, **settings))


def maximize(loss: Loss, K: Any, Y: Array, weights: Array, **settings: Any) -> Array:
    """Alphas of all outputs, for a matrix or for its factors; settings as for :meth:`Loss.maximize_all`."""
    if isinstance(K, FactoredGram):
        return maximize_factored(loss, K, Y, weights, **settings)
    return loss.maximize_all(K, Y, weights, **settings)


def measure(loss: Loss, K: Any, Y: Array, weights: Array, alpha: Array) -> Fit:
    """What given dual variables are worth, infinite where they are not finite: nothing is solved."""
    if not np.isfinite(alpha).all():
        return Fit(alpha, alpha, np.zeros(len(Y)), np.ones(len(Y)), np.inf, np.inf, np.inf)
    W = np.array([loss.coefficients(a, y) for a, y in zip(alpha, Y, strict=True)])
    return measure_values(loss, np.array([product(K, w) for w in W]), W, Y, weights, alpha)


def measure_values(loss: Loss, F: Array, W: Array, Y: Array, weights: Array, alpha: Array) -> Fit:
    """The same from the coefficients `W` of dual variables and the values ``F = W K``, for a matrix nobody holds."""
    b, multiples = np.empty(len(Y)), np.empty(len(Y))
    constant, quadratics, upper = 0.0, 0.0, 0.0
    for k, (a, w, f, y) in enumerate(zip(alpha, W, F, Y, strict=True)):
        quadratic = float(w @ f)
        value, b[k], multiples[k] = loss.primal(f, quadratic, y, weights)
        constant += loss.dual_constant(a, y, weights)
        quadratics, upper = quadratics + quadratic, upper + value
    scale = loss.scale
    return Fit(alpha, W, b, multiples, scale * (constant - 0.5 * quadratics), scale * upper, scale * constant)
