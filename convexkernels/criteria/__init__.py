"""Criteria: what makes one Gram matrix better than another, with exact derivatives.

`CRITERIA` is the table of all of them, with an example of each: the contract tests run over it, so a new criterion is
one file and one line here.
"""

from collections.abc import Callable

from convexkernels.criteria.base import Criterion
from convexkernels.criteria.held_out import HeldOut
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.criteria.training_value import TrainingValue

CRITERIA: dict[str, Callable[[], Criterion]] = {
    "training_value": lambda: TrainingValue(tol=1e-11),
    "leave_one_out": lambda: LeaveOneOut(),
    "held_out_third": lambda: HeldOut(1, tol=1e-11),
    "held_out_folds": lambda: HeldOut(4, tol=1e-11),
}
