"""Numerical checks of a kernel a user brings: is it positive semidefinite, is its gradient right.

A check answers with a :class:`Verdict`: what numerics can say, by how much, and a witness to look at.
"""

from convexkernels.checking.gradient import check_gradient, richardson_derivative
from convexkernels.checking.matrices import gram_and_error, smallest_eigenvalue
from convexkernels.checking.semidefinite import check_psd
from convexkernels.checking.verdict import Outcome, Verdict

__all__ = [
    "Outcome",
    "Verdict",
    "check_gradient",
    "check_psd",
    "gram_and_error",
    "richardson_derivative",
    "smallest_eigenvalue",
]
