"""What a user asks for, and what of it can be refused before anything slow is loaded."""

from ast import literal_eval
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Labels
from convexkernels.commands.catalog import (
    ABOVE_ZERO,
    LOWEST,
    MODELS,
    PARAMETERS,
    RIVALS,
    SOLVERS,
    chosen_model,
    estimator_name,
)
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number, check_whole_number


@dataclass(frozen=True)
class Request:
    """What should be learned, and with what; checked when it is made.

    `model` is a name in ``MODELS``, that of an estimator, or "auto"; `given` are parameters as ``name=value``, `rivals`
    names in ``RIVALS``, `tol` a relative gap to prove, `max_time` seconds in all.
    """

    model: str = "auto"
    task: str = "auto"
    given: Sequence[str] = ()
    rivals: Sequence[str] = ("svm",)
    tol: float | None = None
    max_time: float | None = None
    test_size: float = 0.2
    seed: int = 0
    quiet: bool = False

    def __post_init__(self) -> None:
        check_whole_number("--seed", self.seed, low=0)
        if self.tol is not None:
            check_number("--tol", self.tol, low=0.0, high=1.0, open_low=True)
        if self.max_time is not None:
            check_number("--max-time", self.max_time, low=0.0, open_low=True)
        if not 0.0 < self.test_size < 1.0:
            raise InvalidInputError(f"--test-size must lie strictly between 0 and 1, got {self.test_size}.")
        if self.model != "auto" and self.model not in MODELS and self.model not in _estimators():
            raise InvalidInputError(
                f"--model {self.model!r} is not known; choose auto, {', '.join(MODELS)}, or the name of an estimator."
            )
        for rival in self.rivals:
            if rival not in RIVALS:
                raise InvalidInputError(
                    f"--against {rival!r} is not a model to compare with; choose from {', '.join(RIVALS)}, or none."
                )
        for assignment in self.given:
            if not assignment.partition("=")[1]:
                raise InvalidInputError(f"--set {assignment!r} must have the form NAME=VALUE, for example --set C=10.")


def _estimators() -> dict[str, str]:
    """Names of estimators, each with its task."""
    of_classes = {model.classification: "classification" for model in MODELS.values()}
    of_numbers = {model.regression: "regression" for model in MODELS.values()}
    return {name: task for name, task in (of_classes | of_numbers).items() if name is not None}


def task_of(y: Labels) -> str:
    """Classes where the target holds text or few whole numbers, else a number to predict."""
    if y.dtype.kind not in "if":
        return "classification"
    values = np.unique(y)
    few = len(values) <= max(2, min(20, len(y) // 10))
    return "classification" if few and np.array_equal(values, np.round(values)) else "regression"


def estimator_of(model: str, task: str, n_rows: int, n_columns: int) -> tuple[str, str]:
    """The name of the estimator that a model stands for, and why it was chosen where it was."""
    if model == "auto":
        model, why = chosen_model(task, n_rows, n_columns)
        return str(estimator_name(model, task)), f", chosen because {why}"
    name = estimator_name(model, task)
    if name is not None:
        return name, ""
    if model in MODELS or _estimators()[model] != task:
        other = "regression" if task == "classification" else "classification"
        raise InvalidInputError(
            f"--model {model} is not for {task}; choose another model, or --task {other} if that is what the target is."
        )
    return model, ""


def parameters_of(name: str, given: Sequence[str]) -> dict[str, Any]:
    """The values of ``name=value`` pairs; what the estimator does not have, or surely refuses, is refused here."""
    known, values = PARAMETERS[name].split(), {}
    for assignment in given:
        parameter, _, text = assignment.partition("=")
        if parameter not in known:
            raise InvalidInputError(
                f"--set {parameter}: {name} has no such parameter; it has {', '.join(sorted(known))}."
            )
        values[parameter] = value = _value(text)
        if parameter in ABOVE_ZERO and value not in (None, "auto"):
            check_number(parameter, value, low=0.0, open_low=True)
        if parameter in LOWEST and value is not None:
            check_whole_number(parameter, value, low=LOWEST[parameter])
        if parameter == "solver" and value not in SOLVERS:
            raise InvalidInputError(f"solver must be 'auto' or one of {list(SOLVERS[1:])}, got {value!r}.")
    return values


def _value(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def check_target(y: Labels, task: str) -> None:
    """Refuse a target that does not fit the task."""
    if task == "regression":
        if y.dtype.kind not in "if":
            raise InvalidInputError(
                f"A regression target must hold numbers, but it holds text, for example {str(y[0])!r}."
            )
        return
    classes, counts = np.unique(y, return_counts=True)
    if y.dtype.kind == "f" and not np.array_equal(classes, np.round(classes)):
        raise InvalidInputError(
            f"The target holds {classes.size} different numbers that are not whole (for example {classes[0]}): "
            "classification needs classes. Pass --task regression, or turn the target into classes."
        )
    if classes.size < 2:
        raise InvalidInputError(f"The target holds one class only, {classes[0].item()!r}; at least two are needed.")
    if counts.min() < 2:
        rare = classes[np.argmin(counts)].item()
        raise InvalidInputError(
            f"The target has class {rare!r} in one row only; at least 2 are needed to learn it and to test. Join or "
            "remove such classes"
            + (", or pass --task regression." if y.dtype.kind in "if" and classes.size > 20 else ".")
        )
