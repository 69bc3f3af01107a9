"""Losses: convex dual programs for a fixed Gram matrix.

`LOSSES` is the table of all of them, with an example of each and the kind of target it takes: the
contract tests run over it, so a new loss is one file and one line here.
"""

from collections.abc import Callable

from convexkernels.losses.base import Loss, LossStatement
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.support_vector import BoxDual, SupportVectorLoss

__all__ = ["LOSSES", "BoxDual", "Hinge", "Loss", "LossStatement", "SupportVectorLoss"]

# name -> (kind of target: "labels" or "numbers", a function that returns an example).
LOSSES: dict[str, tuple[str, Callable[[], Loss]]] = {
    "hinge": ("labels", lambda: Hinge(C=2.0)),
    "hinge_no_intercept": ("labels", lambda: Hinge(C=2.0, intercept=False)),
}
