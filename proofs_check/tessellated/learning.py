"""Claims of Colbert and Peet (JMLR 2020) about optimal kernel matrices and kernel learning problems."""

from __future__ import annotations

import numpy as np

from convexkernels import optimal_kernel_matrix
from convexkernels.arrays import Array
from proofs_check.claim import REFUTED, Claim
from proofs_check.tessellated import optimal_kernel as optimal
from proofs_check.tessellated import sets
from proofs_check.tessellated.matrices import (
    Library,
    measure_bound_of_matching,
    measure_distance_to_target,
    measure_gaussian_sign,
    measure_matching,
    measure_scaling,
    measure_strong_duality,
)
from proofs_check.tessellated.optimal_kernel import Answer

PAPER = "tessellated"


def _printed_value(y: Array, C: float) -> float:
    """t* as printed: |e - gamma* y|^2 / m with gamma* = -mean(y)."""
    return float(np.sum((1.0 + y.mean() * y) ** 2)) / y.size


def _value(y: Array, C: float) -> float:
    """t* = |e + gamma* y|^2 / m with gamma* = -mean(y): twice the library's objective for C >= 2 / m."""
    return 2.0 * optimal_kernel_matrix(y)[1]


def _value_for_any_C(y: Array, C: float) -> float:
    """Twice the library's objective: its dual is constant on each class and clipped on the rarer one."""
    return 2.0 * optimal_kernel_matrix(y, C)[1]


def _matrix(y: Array) -> Array:
    """The library's m Y v v'Y / |v|^2, v = e - mean(y) y."""
    return optimal_kernel_matrix(y)[0]


def _with_one_label_turned(y: Array) -> Array:
    """The library's matrix for labels of which one is another: no longer balanced."""
    turned = y.copy()
    turned[int(np.flatnonzero(y > 0)[0])] = -1.0
    return _matrix(turned)


def _labels_matrix(y: Array) -> Array:
    return np.outer(y, y)


def _large_C(rng: np.random.Generator, y: Array) -> float:
    return float(rng.uniform(1.0, 4.0)) * 2.0 / y.size


def _just_large_enough_C(rng: np.random.Generator, y: Array) -> float:
    return float(rng.uniform(1.0, 1.02)) * 2.0 / y.size


def _small_C(rng: np.random.Generator, y: Array) -> float:
    return float(rng.uniform(0.02, 0.98)) * 2.0 / y.size


def _above_threshold(rng: np.random.Generator, y: Array) -> float:
    return float(rng.uniform(1.0, 1.2)) * (1.0 + abs(y.mean())) / y.size


def _below_threshold(rng: np.random.Generator, y: Array) -> float:
    return float(rng.uniform(0.5, 0.8)) * (1.0 + abs(y.mean())) / y.size


OPTIMAL_KERNEL = [
    Claim(
        "theorem-10-value-as-printed",
        "For C >= 2/m the optimum of (17) with 2C delta'e is |e - gamma* y|^2 / m, gamma* = -mean(y).",
        PAPER,
        "Theorem 10",
        optimal.measure_value,
        Answer(2.0, _printed_value, _matrix, _large_C),
        Answer(2.0, lambda y, C: 1.0 + abs(y.mean()), _matrix, _large_C),
        REFUTED,
        trials=6,
    ),
    Claim(
        "theorem-10-value-corrected",
        "For C >= 2/m the optimum of (17) with 2C delta'e is |e + gamma* y|^2 / m, gamma* = -mean(y).",
        PAPER,
        "Theorem 10",
        optimal.measure_value,
        Answer(2.0, _value, _matrix, _large_C),
        Answer(2.0, _printed_value, _matrix, _large_C),
        trials=10,
    ),
    Claim(
        "theorem-10-objective-as-printed",
        "C >= 2/m is enough in (17) with C delta'e, as it is printed (the proof and (5) have 2C delta'e).",
        PAPER,
        "(17)",
        optimal.measure_value,
        Answer(1.0, _value, _matrix, _just_large_enough_C),
        Answer(1.0, _printed_value, _matrix, _just_large_enough_C),
        REFUTED,
        trials=6,
    ),
    Claim(
        "theorem-10-objective-corrected",
        "C >= 4/m is enough in (17) with C delta'e, as it is printed.",
        PAPER,
        "(17)",
        optimal.measure_value,
        Answer(1.0, _value, _matrix, lambda rng, y: 2.0 * _large_C(rng, y)),
        Answer(1.0, _value, _matrix, lambda rng, y: 0.5 * _just_large_enough_C(rng, y)),
        trials=6,
    ),
    Claim(
        "theorem-10-matrix",
        "For C >= 2/m the matrix m Y v v'Y / |v|^2, v = e - mean(y) y, as the library makes it, solves (17).",
        PAPER,
        "Theorem 10",
        optimal.measure_matrix,
        Answer(2.0, _value, _matrix, _large_C),
        Answer(2.0, _value, _labels_matrix, _large_C),
        trials=10,
    ),
    Claim(
        "theorem-10-threshold",
        "(nu, delta, gamma) = (0, 0, -mean(y)) stays optimal down to C = (1 + |mean(y)|)/m, and no further.",
        PAPER,
        "Theorem 10, sharpened",
        optimal.measure_value,
        Answer(2.0, _value, _matrix, _above_threshold),
        Answer(2.0, _value, _matrix, _below_threshold),
        trials=8,
    ),
    Claim(
        "theorem-10-small-c-balanced",
        "For C < 2/m and balanced labels the same matrix is optimal.",
        PAPER,
        "Section 4.3.1, after Theorem 10",
        optimal.measure_matrix,
        Answer(2.0, _value, _matrix, _small_C, balanced=True),
        Answer(2.0, _value, lambda y: np.eye(y.size), _small_C, balanced=True),
        trials=8,
    ),
    Claim(
        "theorem-10-small-c-unbalanced",
        "For C < 2/m and unbalanced labels the same matrix is optimal; only delta and gamma differ.",
        PAPER,
        "Section 4.3.1, after Theorem 10",
        optimal.measure_matrix,
        Answer(2.0, _value, _matrix, _small_C),
        Answer(2.0, _value, _labels_matrix, _small_C),
        trials=12,
    ),
    Claim(
        "theorem-10-small-c-value",
        "For every C the optimum of (17) has the library's closed form: a dual constant on each class, clipped on the "
        "rarer.",
        PAPER,
        "Section 4.3.1, after Theorem 10",
        optimal.measure_value,
        Answer(2.0, _value_for_any_C, _matrix, _small_C),
        Answer(2.0, _value, _matrix, _below_threshold),
        trials=10,
    ),
    Claim(
        "theorem-10-learned",
        "For every C the library learns half the optimum of (17) over all kernel matrices of trace m, by one SVM, "
        "by search and by an interior-point method.",
        PAPER,
        "(17), Theorem 10",
        sets.measure_all_matrices,
        sets.ALL_MATRICES,
        sets.Learner(sets.diagonal_matrices, ("auto",)),
        trials=9,
    ),
    Claim(
        "optimal-entries-as-printed",
        "The optimal kernel matrix has as many negative entries as positive ones.",
        PAPER,
        "Section 4.3",
        optimal.measure_signs,
        (False, _matrix),
        (True, _with_one_label_turned),
        REFUTED,
    ),
    Claim(
        "optimal-entries-balanced",
        "For balanced labels half the entries of the optimal kernel matrix are negative.",
        PAPER,
        "Section 4.3.1",
        optimal.measure_signs,
        (True, _matrix),
        (True, _with_one_label_turned),
    ),
]

LEARNING = [
    Claim(
        "gaussians-of-22-as-printed",
        "exp(|x - y|^2 / gamma^2), without a minus sign, is a positive kernel.",
        PAPER,
        "(22)",
        measure_gaussian_sign,
        lambda exponent: -exponent,
        lambda exponent: -0.01 * exponent,
        REFUTED,
        trials=4,
    ),
    Claim(
        "gaussians-of-22-corrected",
        "The library's exp(-|x - y|^2 / gamma^2) is a positive kernel; with an exponent of 2.2 it is none.",
        PAPER,
        "(22)",
        measure_gaussian_sign,
        lambda exponent: exponent,
        lambda exponent: -((-exponent) ** 1.1),
        trials=4,
    ),
    Claim(
        "gaussians-saturate",
        "For balanced labels no positive sum of Gaussians comes closer to K* than 0.5 in (20) and 1 in (21).",
        PAPER,
        "(20), (21), Section 4.3.3",
        measure_distance_to_target,
        Library(degree=None),
        Library(degree=7),
        trials=4,
    ),
    Claim(
        "matching-20",
        "The library's bounds on the mean distance (20) from a matrix enclose the optimum of the conic program.",
        PAPER,
        "(20)",
        measure_matching,
        ("one", 0),
        ("infinity", 0),
        trials=4,
    ),
    Claim(
        "matching-21",
        "The library's bounds on the largest distance (21) from a matrix enclose the optimum of the conic program.",
        PAPER,
        "(21)",
        measure_matching,
        ("infinity", 1),
        ("one", 1),
        trials=4,
    ),
    Claim(
        "matching-inside",
        "Whatever the multipliers are, the library's lower bound on the distance from a kernel of the family is 0.",
        PAPER,
        "(20), (21)",
        measure_bound_of_matching,
        0.0,
        1.01,
        trials=6,
    ),
    Claim(
        "strong-duality",
        "Half the optimum of the SDP (24), by CVXPY, is the optimum of (4), by the library's solver.",
        PAPER,
        "(4), (24)",
        measure_strong_duality,
        (2.0, 1.0),
        (1.0, 1.0),
        trials=5,
    ),
    Claim(
        "trace-bound",
        "The bound on trace P means the same in (24) and in the library's family of tessellated kernels.",
        PAPER,
        "(24)",
        measure_strong_duality,
        (2.0, 1.0),
        (2.0, 2.0),
        trials=3,
    ),
    Claim(
        "unnormalized-weights",
        "(6) and (25), printed without a constraint on sum mu, have no minimizer: what the library fits for 1.1 mu is "
        "always better than for mu.",
        PAPER,
        "(6), (25)",
        measure_scaling,
        1.1,
        0.99,
        trials=4,
    ),
    Claim(
        "simple-mkl",
        "(6) with sum mu = 1, as SimpleMKL solves it, is the second-order cone program of its dual: the library's "
        "searches over the simplex reach its optimum.",
        PAPER,
        "(6), Section 2.2",
        sets.measure_simplex,
        "trace",
        "mean",
        trials=6,
    ),
    Claim(
        "signed-weights",
        "Half the optimum of the SDP (5), K >= 0 on training and test points, is learned over the library's span; "
        "weights >= 0 do not reach it.",
        PAPER,
        "(5)",
        sets.measure_span,
        sets.span_on_all_points,
        sets.nonnegative_weights,
        trials=4,
    ),
    Claim(
        "transductive-constraint",
        "K >= 0 on the test points is a restriction in (5): K >= 0 on the training points alone has a lower optimum.",
        PAPER,
        "(5)",
        sets.measure_span,
        sets.span_on_all_points,
        sets.span_on_training_points,
        trials=3,
    ),
]
