"""What losses with C share."""

from copy import copy
from typing import Self

from convexkernels.losses.base import Loss, check_regularization


class WeightedLoss(Loss):
    """A loss with C, the weight of the sum of losses in ``1/2 |f|^2 + C sum_i weights_i loss_i``."""

    def __init__(self, C: float = 1.0, intercept: bool = True) -> None:
        self.C = check_regularization("C", C)
        self.intercept = bool(intercept)

    @property
    def cost(self) -> float:  # type: ignore[override]
        return self.C

    def at(self, lam: float) -> Self:
        other = copy(self)
        other.C = 0.5 / check_regularization("lam", lam)
        return other
