"""What parameters of concatenated estimators stand for: losses by name, lists of weights of norms."""

from typing import Any

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solvers.nonconvex.paths import DEFAULT_GRID

LOSSES: dict[str, Loss] = {
    "hinge": Hinge(),
    "squared": LeastSquares(intercept=False),
    "epsilon_insensitive": EpsilonInsensitive(epsilon=0.1),
}


def with_weights(problem: OuterLearning, lam: float, mu: float) -> OuterLearning:
    """The problem with these weights of the outermost norm and of the inner ones."""
    family: Any = problem.family
    return problem.with_loss(problem.loss.at(lam), family.with_mu(mu))


def candidates(name: str, value: Any) -> Any:
    """The list of values that a norm-weight parameter stands for; None is the default grid."""
    if value is None:
        return DEFAULT_GRID
    if np.ndim(value) == 0:
        return [value]
    if len(value) == 0:
        raise InvalidInputError(f"{name} must be None, a number > 0 or a list of them, got {value!r}.")
    return list(value)


def named(loss: Any, names: tuple[str, ...]) -> Loss:
    """The loss of a name, or a loss itself."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in names:
        raise InvalidInputError(f"loss must be {' or '.join(map(repr, names))}, or a Loss, got {loss!r}.")
    return LOSSES[loss]
