"""The base classes of scikit-learn, which has no types: the stub beside this file says what checkers need to know."""

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn has callbacks from 1.9 on

    class CallbackSupportMixin:
        """No callbacks: a fit has nobody to tell."""

        def _init_callback_context(self, **options):
            return None

    def with_callbacks(method):
        """The method as it is."""
        return method


__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "RegressorMixin",
    "TransformerMixin",
    "with_callbacks",
]
