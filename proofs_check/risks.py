"""Claims about the losses and criteria of the library: what is learned, and how it is judged."""

from __future__ import annotations

from convexkernels.losses import LOSSES
from proofs_check import risk_formulas as formulas
from proofs_check.claim import Claim

__all__ = ["risk_claims"]


def risk_claims(paper: str) -> list[Claim]:
    """One claim per loss of the table, and those about risks of rows that were left out."""
    fits = [
        Claim(
            f"fits-{name.replace('_', '-')}",
            f"What the library fits for the loss '{name}' is the optimum of its primal program, and its bounds hold.",
            paper,
            "table LOSSES",
            formulas.measure_fit,
            (name, 1.0),
            (name, 1.01),
            trials=4,
        )
        for name in LOSSES
    ]
    return [*fits, *_left_out(paper)]


def _left_out(paper: str) -> list[Claim]:
    rule, unweighed, dearer = formulas.Rule(), formulas.Rule(weighed=False), formulas.Rule(price=1.01)
    return [
        Claim(
            "leave-one-out-risk",
            "w_i / A_ii is the residual of the function that has not seen row i, with intercept, weights and clipping.",
            paper,
            "criteria, LeaveOneOut",
            formulas.measure_leave_one_out,
            rule,
            unweighed,
            trials=8,
        ),
        Claim(
            "leave-one-out-slopes",
            "The derivative of the leave-one-out risk in K and in log lam is the closed form of the library.",
            paper,
            "criteria, LeaveOneOut",
            formulas.measure_slopes,
            formulas.leave_one_out_slope(),
            formulas.leave_one_out_slope().off(),
            trials=4,
        ),
        Claim(
            "leave-one-out-of-blocks",
            "(I - H_BB)^-1 (y_B - f_B) is the residual of the function that has not seen block B, for a path of lam.",
            paper,
            "criteria, ridge path",
            formulas.measure_left_out_blocks,
            rule,
            dearer,
            trials=12,
        ),
        Claim(
            "leave-one-out-of-features",
            "The risks by which sigma is chosen are those of ridge regression on features, row by row left out.",
            paper,
            "spectral, choice of sigma",
            formulas.measure_left_out_features,
            rule,
            unweighed,
            trials=6,
        ),
        Claim(
            "held-out-risk",
            "The risk (10) on rows that were not trained on is the weighted mean over the folds.",
            paper,
            "criteria, HeldOut",
            formulas.measure_held_out,
            rule,
            unweighed,
            trials=4,
        ),
        Claim(
            "held-out-slopes",
            "The adjoint of the inner solve gives the slope of the held-out risk of least squares in K and in log lam.",
            paper,
            "criteria, HeldOut",
            formulas.measure_slopes,
            formulas.held_out_slope(labels=False),
            formulas.held_out_slope(labels=False).off(),
            trials=3,
        ),
        Claim(
            "held-out-slopes-logistic",
            "The adjoint of the inner solve gives the slope of the held-out risk of the logistic loss.",
            paper,
            "criteria, HeldOut",
            formulas.measure_slopes,
            formulas.held_out_slope(labels=True),
            formulas.held_out_slope(labels=True).off(),
            trials=3,
        ),
    ]
