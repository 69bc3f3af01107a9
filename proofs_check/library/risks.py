"""Claims about the losses and criteria of the library: what is learned, and what it is worth."""

from __future__ import annotations

from typing import Any

from convexkernels import Hinge, LeastSquares, Logistic
from convexkernels.losses import LOSSES
from proofs_check import risk_formulas as formulas
from proofs_check.claim import HOLDS, Claim
from proofs_check.library.all_rows import measure_all_rows


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
    return [*fits, *(Claim(name, statement, paper, *rest) for name, statement, *rest in _LEFT_OUT)]


_RULE, _UNWEIGHED, _DEARER = formulas.Rule(), formulas.Rule(weighed=False), formulas.Rule(price=1.01)


def _slopes(slope: formulas.Slope) -> tuple[Any, ...]:
    """How a slope is measured, and the one that is off."""
    return formulas.measure_slopes, slope, slope.off()


# Claims about rows that were left out: arguments of `Claim` without the paper.
_LEFT_OUT: list[tuple[Any, ...]] = [
    (
        "leave-one-out-risk",
        "w_i / A_ii is the residual of the function that has not seen row i, with intercept, weights and clipping.",
        *("criteria, LeaveOneOut", formulas.measure_leave_one_out, _RULE, _UNWEIGHED, HOLDS, 8),
    ),
    (
        "leave-one-out-slopes",
        "The derivative of the leave-one-out risk in K and in log lam is the closed form of the library.",
        *("criteria, LeaveOneOut", *_slopes(formulas.leave_one_out_slope()), HOLDS, 4),
    ),
    (
        "leave-one-out-of-blocks",
        "(I - H_BB)^-1 (y_B - f_B) is the residual of the function that has not seen block B, for a path of lam.",
        *("criteria, ridge path", formulas.measure_left_out_blocks, _RULE, _DEARER, HOLDS, 12),
    ),
    (
        "leave-one-out-of-features",
        "The risks by which sigma is chosen are those of ridge regression on features, row by row left out.",
        *("spectral, choice of sigma", formulas.measure_left_out_features, _RULE, _UNWEIGHED, HOLDS, 6),
    ),
    (
        "ridge-on-all-rows",
        "Conjugate gradients on tiles find the optimum of kernel ridge at the lam of the least risk on held-out rows.",
        *("problems, FixedKernel", measure_all_rows, 1.0, 1.001, HOLDS, 2),
    ),
    (
        "held-out-risk",
        "The risk (10) on rows that were not trained on is the weighted mean over the folds.",
        *("criteria, HeldOut", formulas.measure_held_out, _RULE, _UNWEIGHED, HOLDS, 4),
    ),
    *(
        (
            f"held-out-slopes{suffix}",
            f"The adjoint of the inner solve gives the slope of the held-out risk of {what} in K and in log lam.",
            *("criteria, HeldOut", *_slopes(formulas.held_out_slope(loss, step)), HOLDS, 3),
        )
        for suffix, what, loss, step in (
            ("", "least squares", LeastSquares, 0.2),
            ("-logistic", "the logistic loss", Logistic, 0.2),
            ("-hinge", "the hinge loss, some of whose coefficients are at their bounds,", Hinge, 1e-3),
        )
    ),
]
