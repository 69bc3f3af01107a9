"""Class labels: checked, coded, turned into targets and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number

__all__ = ["check_labels", "class_weights", "classes_and_codes", "one_against_rest"]

Array = NDArray[np.float64]


def check_labels(y: Any) -> None:
    """Refuse targets that are not class labels."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise InvalidInputError(f"y must hold class labels: {error}") from error


def classes_and_codes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes in ascending order and the place of every label among them; one class alone is refused."""
    check_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y holds one class only ({classes.tolist()[0]!r}, in all {len(codes)} rows of positive weight) where "
            "two or more classes are needed; check how the rows were selected."
        )
    return classes, codes


def one_against_rest(codes: NDArray[Any], n_classes: int) -> Array:
    """Targets -1 and 1: of shape (m,) for two classes, else one column per class."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def class_weights(class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: Array) -> Array:
    """Weight of every class, shape (n_classes,), from `class_weight` as scikit-learn takes it."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        return weights.sum() / (len(classes) * np.bincount(codes, weights=weights, minlength=len(classes)))
    if not isinstance(class_weight, dict):
        raise InvalidInputError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise InvalidInputError(f"class_weight names the class {unknown[0]!r}, but the classes of y are {labels}.")
    return np.array(
        [check_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), low=0.0) for label in labels]
    )
