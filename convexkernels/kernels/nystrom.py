"""A kernel replaced by what landmarks see of it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel, as_kernel
from convexkernels.validation import check_points

# Directions that are smaller than this share of the largest one are left out.
NEGLIGIBLE = 1e-9


class Nystrom(Kernel):
    """``k(x, L) K_LL^+ k(L, y)`` for landmarks L: a kernel with as many features as landmarks.

    The best approximation from the span of ``k(l, .)``, never larger than the kernel, and exact where x or y is a
    landmark but for directions below a billionth of the largest [WS01]. With it learning takes memory and time in
    proportion to the rows.

    Parameters
    ----------
    kernel : Kernel
    landmarks : array-like of shape (n_landmarks, n_features)
    """

    def __init__(self, kernel: Kernel, landmarks: Any) -> None:
        self.kernel, self.landmarks = kernel, landmarks

    def feature_map(self) -> Callable[[Array], Array]:
        landmarks, kernel = check_points(self.landmarks, name="landmarks"), as_kernel(self.kernel)
        values, vectors = np.linalg.eigh(kernel(landmarks))
        keep = values > NEGLIGIBLE * max(float(values[-1]), 0.0)
        projection = vectors[:, keep] / np.sqrt(values[keep])

        def features(X: Array) -> Array:
            if landmarks.shape[1] != X.shape[1]:
                raise InvalidInputError(f"X has {X.shape[1]} features, but the landmarks have {landmarks.shape[1]}.")
            return kernel._gram(X, landmarks) @ projection

        return features

    def _gram(self, X: Array, Y: Array) -> Array:
        features = self.feature_map()
        left = features(X)
        return left @ (left if Y is X else features(Y)).T

    def _diag(self, X: Array) -> Array:
        return np.square(self.feature_map()(X)).sum(axis=1)
