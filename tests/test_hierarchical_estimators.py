"""The hierarchical Gaussian estimators: scikit-learn's checks, what they learn, choices, limits, and refusals."""

import pickle

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from convexkernels import HierarchicalGaussianClassifier, HierarchicalGaussianRegressor
from convexkernels.outer import Schedule

TINY = Schedule(rounds=1, passes=1, first_annealing=2, later_annealing=2, gradient_steps=1, n_lams=2, n_gammas=1)
QUICK = {"architecture": 2, "max_iter": 2, "random_state": 0}


@parametrize_with_checks(
    [
        HierarchicalGaussianRegressor(**QUICK),
        HierarchicalGaussianRegressor(loss="epsilon_insensitive", **QUICK),
        HierarchicalGaussianClassifier(**QUICK),
        HierarchicalGaussianClassifier(loss="hinge", multi_class="all-vs-all", **QUICK),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
