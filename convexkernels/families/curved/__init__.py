"""Curved families: kernels that depend smoothly on their unknowns.

`CURVED` is the table of all of them, with an example of each for points of two features or more in [0, 1]: the contract
tests run over it, so a new family is one file and one line here.
"""

from collections.abc import Callable

from convexkernels.families.candidates import Candidates
from convexkernels.families.curved.base import CurvedFamily
from convexkernels.families.curved.concatenations import Concatenations
from convexkernels.families.curved.convex import Convex
from convexkernels.families.curved.penalties import LogPenalty, PowerPenalty
from convexkernels.families.curved.spectral_maps import SpectralMaps
from convexkernels.families.curved.trees import Trees
from convexkernels.families.curved.widths import Widths
from convexkernels.families.tessellated import Tessellated
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.polynomial import Polynomial

CURVED: dict[str, Callable[[], CurvedFamily]] = {
    "trees": lambda: Trees([[0, 1], [[0], [1]]]),
    "widths": lambda: Widths(),
    "width": lambda: Widths(Matern(order=3), per_feature=False),
    "spectral": lambda: SpectralMaps(8, sigma=3.0),
    "spectral_stationary": lambda: SpectralMaps(6, stationary=True),
    "candidates": lambda: Convex(Candidates([Gaussian(1.0), Gaussian(20.0), ("first", Gaussian(5.0), [0])], "mean")),
    "tessellated": lambda: Convex(Tessellated(degree=1, z_degree=0)),
    "tessellated_with_z": lambda: Convex(Tessellated(degree=1)),
    "tessellated_margin": lambda: Convex(Tessellated(degree=1), learns_margin=True),
    "two_layers": lambda: Concatenations([Matern(order=2), Polynomial(1)], mu=0.1),
    "three_layers": lambda: Concatenations([Gaussian(2.0), Matern(order=2), Polynomial(2)], widths=(2, 3), mu=0.1),
    "three_layers_penalized": lambda: Concatenations(
        [Gaussian(2.0), Matern(order=2), Polynomial(2)], widths=(2, 1), mu=0.1, penalty=[LogPenalty(), PowerPenalty(1)]
    ),
}
