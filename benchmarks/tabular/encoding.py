"""Columns of text and missing values for methods that cannot take them; everything is learned from training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

MISSING = "missing"


def _numbers() -> Any:
    return make_column_selector(dtype_include=np.number)


def _text() -> Any:
    return make_column_selector(dtype_exclude=np.number)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Missing text is a category."""
    return frame.astype(object).where(frame.notna(), MISSING)


def _missing_text() -> Any:
    return FunctionTransformer(_named, feature_names_out="one-to-one")


def indicators() -> Any:
    """Standardized numbers (medians where missing, and a column that says so), an indicator for every category."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True))
    text = make_pipeline(_missing_text(), OneHotEncoder(handle_unknown="ignore", sparse_output=False))
    columns = make_column_transformer((numbers, _numbers()), (text, _text()))
    return make_pipeline(columns, StandardScaler())


def codes() -> Any:
    """Numbers as they are, and categories as whole numbers, for forests."""
    text = make_pipeline(_missing_text(), OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))
    return make_column_transformer(("passthrough", _numbers()), (text, _text()))


def medians() -> Any:
    """Numbers without missing ones and text, as a data frame, for networks that encode text themselves."""
    numbers = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encoder = make_column_transformer(
        (numbers, _numbers()), (_missing_text(), _text()), verbose_feature_names_out=False
    )
    return encoder.set_output(transform="pandas")


class Categories(TransformerMixin, BaseEstimator):
    """Text as pandas categories, those of the training rows."""

    def __init__(self, missing_is_category: bool = False) -> None:
        self.missing_is_category = missing_is_category

    def fit(self, X: pd.DataFrame, y: Any = None) -> Categories:
        self.categories_ = {name: sorted(X[name].dropna().unique()) for name in X if X[name].dtype.kind != "f"}
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        X = X.copy()
        for name, categories in self.categories_.items():
            if self.missing_is_category:
                X[name] = _named(X[[name]])[name].astype(str)
            else:
                X[name] = pd.Categorical(X[name], categories=categories)
        return X
