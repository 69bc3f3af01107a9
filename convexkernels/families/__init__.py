"""Families: convex sets of kernels.

`FAMILIES` is the table of all of them, with an example of each: the contract tests run over it, so a
new family is one file and one line here.
"""

from collections.abc import Callable

from convexkernels.families.base import Family, FamilyStatement, GramSet
from convexkernels.families.box import Box, BoxRule, UnitBox
from convexkernels.families.generalized_polynomial import GeneralizedPolynomial
from convexkernels.families.tessellated import Tessellated

__all__ = [
    "FAMILIES",
    "Box",
    "BoxRule",
    "Family",
    "FamilyStatement",
    "GeneralizedPolynomial",
    "GramSet",
    "Tessellated",
    "UnitBox",
]

# name -> a function that returns an example for points in [0, 1]^n.
FAMILIES: dict[str, Callable[[], Family]] = {
    "tessellated": lambda: Tessellated(degree=1, box=UnitBox(0.3)),
    "tessellated_no_z": lambda: Tessellated(degree=2, z_degree=0, box=UnitBox(0.5), trace=2.0),
    "generalized_polynomial": lambda: GeneralizedPolynomial(degree=2),
}
