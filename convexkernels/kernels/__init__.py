"""Kernels: objects that make matrices.

`KERNELS` is the table of all of them, with an example of each: the contract tests and
the PSD claims of ``proofs_check`` run over it, so a new kernel is one file and one line here.
"""

from collections.abc import Callable
from math import comb

import numpy as np

from convexkernels.arrays import Array
from convexkernels.kernels.algebra import OnColumns, WeightedSum
from convexkernels.kernels.base import Constant, Kernel, Scaled
from convexkernels.kernels.beside_ranks import BesideRanks
from convexkernels.kernels.concatenated import Concatenated, KernelMap
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian
from convexkernels.kernels.localized import Localized
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.normalized import Centered, Normalized
from convexkernels.kernels.nystrom import Nystrom
from convexkernels.kernels.polynomial import Linear, Polynomial
from convexkernels.kernels.rescaled import Rescaled
from convexkernels.kernels.spectral import Spectral
from convexkernels.kernels.stumps import Stumps
from convexkernels.kernels.tensor_matern import TensorMatern
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel, TessellatedKernel


def _example_matrix(size: int) -> Array:
    """A PSD matrix of rank about size / 2 that is not diagonal."""
    grid = np.arange(size)
    half = np.cos(np.outer(grid, np.arange(1, size // 2 + 2)))
    return half @ half.T / size


# name -> a function of the number of features that returns an example for points in [0, 1]^n.
KERNELS: dict[str, Callable[[int], Kernel]] = {
    "constant": lambda n: Constant(2.0),
    "gaussian": lambda n: Gaussian(gamma=1.5),
    "linear": lambda n: Linear(),
    "polynomial": lambda n: Polynomial(degree=3, offset=0.5),
    "sum": lambda n: Gaussian(0.5) + Linear(),
    "product": lambda n: Gaussian(0.5) * Polynomial(2),
    "scaled": lambda n: Scaled(0.3, Gaussian(2.0)),
    "weighted_sum": lambda n: WeightedSum([Gaussian(0.5), Linear()], [0.25, 0.75]),
    "generalized_polynomial": lambda n: GeneralizedPolynomialKernel(_example_matrix(comb(n + 2, 2)), degree=2),
    "tessellated": lambda n: TessellatedKernel(_example_matrix(2 * (2 * n + 1)), [-0.3] * n, [1.3] * n, degree=1),
    "tessellated_no_z": lambda n: TessellatedKernel(
        _example_matrix(2 * (n + 1)), [-0.3] * n, [1.3] * n, degree=1, z_degree=0
    ),
    "on_columns": lambda n: OnColumns(Gaussian(1.0), [n - 1]),
    "rescaled": lambda n: Rescaled(
        Gaussian(1.0), np.linspace(-1.0, 1.0, n), np.linspace(0.5, 2.0, n), (np.full(n, 0.05), np.linspace(0.8, 0.9, n))
    ),
    "normalized": lambda n: Normalized(Polynomial(degree=2, offset=0.5)),
    "nystrom": lambda n: Nystrom(Gaussian(1.5), np.linspace(0.1, 0.9, 5)[:, None] * np.ones(n)),
    "nystrom_by_reference": lambda n: Nystrom(
        Polynomial(2), np.linspace(0.1, 0.9, 5)[:, None] * np.ones(n), Gaussian(1.5)
    ),
    "centered": lambda n: Centered(Gaussian(1.5), np.linspace(0.1, 0.9, 7)[:, None] * np.ones(n)),
    "stumps": lambda n: Stumps(np.outer([0.1, 0.4, 0.4, 0.7, 0.9], np.ones(n))),
    "beside_ranks": lambda n: BesideRanks(Gaussian(1.5), np.outer([0.1, 0.2, 0.2, 0.4, 0.9], np.ones(n))),
    "localized": lambda n: Localized(
        np.outer([0.2, 0.7], np.ones(n)), [Gaussian(1.5), Gaussian(0.5) + Polynomial(2)], [0.5, 2.0]
    ),
    "matern": lambda n: Matern(order=2, length=0.5),
    "tensor_matern": lambda n: TensorMatern(order=2, length=0.5),
    "inhomogeneous_gaussian": lambda n: HierarchicalGaussian(np.linspace(0.5, 2.0, n), gamma=0.8),
    "hierarchical_gaussian": lambda n: HierarchicalGaussian(
        [0.8, 0.5],
        [HierarchicalGaussian(np.linspace(1.0, 2.0, n)), HierarchicalGaussian([1.5], features=[n - 1])],
        gamma=0.7,
    ),
    "concatenated": lambda n: Concatenated(
        Gaussian(0.5), [KernelMap(Polynomial(2), np.eye(3, n), [[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]])]
    ),
    "spectral": lambda n: Spectral.random(n, 20, sigma=2.0, random_state=0),
    "spectral_shared_phase": lambda n: Spectral.random(n, 20, sigma=2.0, feature_map="phi", random_state=0),
    "spectral_stacked": lambda n: Spectral.random(n, 20, sigma=0.8, inner=(7, 5), random_state=0),
}
