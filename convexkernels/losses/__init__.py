"""Losses: convex dual programs for a fixed Gram matrix.

`LOSSES` is the table of all of them, with an example of each and the kind of target it takes: the
contract tests run over it, so a new loss is one file and one line here.
"""

from collections.abc import Callable

from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.interpolation import Interpolation
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.logistic import Logistic
from convexkernels.losses.pinball import Pinball

# name -> (kind of target: "labels" or "numbers", a function that returns an example).
LOSSES: dict[str, tuple[str, Callable[[], Loss]]] = {
    "hinge": ("labels", lambda: Hinge(C=2.0)),
    "hinge_no_intercept": ("labels", lambda: Hinge(C=2.0, intercept=False)),
    "epsilon_insensitive": ("numbers", lambda: EpsilonInsensitive(C=3.0, epsilon=0.1)),
    "epsilon_insensitive_no_intercept": ("numbers", lambda: EpsilonInsensitive(C=3.0, epsilon=0.1, intercept=False)),
    "least_squares": ("numbers", lambda: LeastSquares(lam=0.1)),
    "least_squares_no_intercept": ("numbers", lambda: LeastSquares(lam=0.1, intercept=False)),
    "logistic": ("labels", lambda: Logistic(C=2.0)),
    "logistic_no_intercept": ("labels", lambda: Logistic(C=2.0, intercept=False)),
    "interpolation": ("numbers", lambda: Interpolation()),
    "pinball": ("numbers", lambda: Pinball(C=2.0, quantile=0.7)),
    "pinball_no_intercept": ("numbers", lambda: Pinball(C=2.0, quantile=0.7, intercept=False)),
}
