"""Candidates centered on the points they are learned from: made together, and the same as one by one."""

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.kernels.normalized import Centered


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrices_centered_in_the_stack_are_those_of_the_centered_kernels(dtype):
    rng = np.random.default_rng(0)
    X = rng.random((25, 3))
    random = ck.random_tessellated_kernels(3, 6, 1, box=ck.UnitBox(0.5), rng=0)
    kernels = [*random, ck.Gaussian(1.0), ck.Gaussian(3.0), ck.Polynomial(2)]
    family = ck.Candidates(kernels, normalize="none", center=True)
    gram_set = family.on(X, dtype=np.dtype(dtype))
    H = np.eye(25) - 1.0 / 25
    for k, kernel in enumerate(kernels):
        K = kernel(X)
        size = np.abs(K).max()
        np.testing.assert_allclose(
            gram_set.stack.matrix(k), H @ K @ H, atol=1e-5 * size if dtype == "float32" else 1e-12 * size
        )
        found = gram_set.kernels[k]
        assert isinstance(found, Centered)
        assert found.grand_mean == pytest.approx(K.mean(), rel=1e-12)
    Z = rng.random((4, 3))
    theta = gram_set.initial()
    np.testing.assert_allclose(gram_set.cross(theta, Z), gram_set.kernel(theta)(Z, X), rtol=1e-9, atol=1e-9)
