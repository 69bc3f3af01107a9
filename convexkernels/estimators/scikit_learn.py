"""The base classes of scikit-learn, which has no types: the stub beside this file says what checkers need to know."""

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]
