"""Monomial bases and their integrals over a box: exponents, symbolic forms, compiled tables."""

from convexkernels.bases.integrals import (
    box_integrals,
    interval_ratios,
    ratio_coefficients,
    symbolic_entry,
)
from convexkernels.bases.monomials import (
    MonomialBasis,
    count_monomials,
    expansion,
    exponents,
    monomial_basis,
    monomials,
)

__all__ = [
    "MonomialBasis",
    "box_integrals",
    "count_monomials",
    "expansion",
    "exponents",
    "interval_ratios",
    "monomial_basis",
    "monomials",
    "ratio_coefficients",
    "symbolic_entry",
]
