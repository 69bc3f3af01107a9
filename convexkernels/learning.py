"""From a table to a model that was chosen, learned, certified and compared, within a time limit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.multiclass import type_of_target

from convexkernels import estimators
from convexkernels.catalog import Model
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError
from convexkernels.progress import Silent
from convexkernels.solution import Status

__all__ = ["Choice", "Learned", "Split", "choose", "learn", "rbf_machine", "split_table"]

N_FOLDS = 5
# Tolerance of the certificate while parameters are compared: folds differ by more than this.
SEARCH_TOL = 1e-2
# Seconds one fit may take in a comparison; after that its best point so far is compared.
SEARCH_SECONDS = 10.0
RBF_GRID = {"C": tuple(10.0**k for k in range(-2, 4)), "gamma": tuple(10.0**k for k in range(-4, 2))}


@dataclass(frozen=True, eq=False)
class Split:
    """A table cut in two, and the folds of its first part.

    Attributes
    ----------
    X, y : ndarray
        The part to learn from.
    X_test, y_test : ndarray
        The part that nothing but the final score sees.
    folds : list of (train rows, validation rows)
        Of the first part.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]


@dataclass(frozen=True)
class Choice:
    """Parameters chosen by cross-validation.

    Attributes
    ----------
    parameters : dict
    score, deviation : float
        Mean and standard deviation over the folds; NaN when nothing was compared.
    tried, offered : int
        Numbers of candidates that were compared and that there were.
    """

    parameters: dict[str, Any]
    score: float = float("nan")
    deviation: float = float("nan")
    tried: int = 0
    offered: int = 0


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted estimator with the scores of its choice and on the test part."""

    estimator: Any
    choice: Choice
    test_score: float
    seconds: float


def split_table(X: NDArray[np.float64], y: NDArray[Any], task: str, *, test_size: float = 0.2, seed: int = 0) -> Split:
    """Cut a table into a part to learn from, with folds, and a part to test on.

    Parameters
    ----------
    X : ndarray of shape (m, n)
    y : ndarray of shape (m,)
    task : {"classification", "regression"}
        Classes keep their proportions in all parts.
    test_size : float in ]0, 1[
        Share of the rows to test on.
    seed : int

    Raises
    ------
    InvalidInputError
        When the target does not fit the task, or a part would be empty.
    """
    if not 0.0 < test_size < 1.0:
        raise InvalidInputError(f"test_size must lie strictly between 0 and 1, got {test_size}.")
    if task == "classification":
        _check_classes(y)
    elif y.dtype.kind not in "if":
        raise InvalidInputError(f"A regression target must hold numbers, but it holds text, for example {y[0]!r}.")
    stratify = y if task == "classification" else None
    try:
        X, X_test, y, y_test = train_test_split(X, y, test_size=test_size, random_state=seed, stratify=stratify)
    except ValueError as error:
        raise InvalidInputError(
            f"A table of {len(y)} rows cannot be split with test_size={test_size}: {error}"
        ) from error
    n_folds = min(N_FOLDS, len(y))
    if task == "classification":
        n_folds = min(n_folds, int(np.unique(y, return_counts=True)[1].min()))
    if n_folds < 2:
        raise InvalidInputError(
            f"{len(y)} rows are left to learn from, too few to cross-validate (every class needs two); "
            "use a smaller test_size, or more rows."
        )
    kind = StratifiedKFold if task == "classification" else KFold
    folds = list(kind(n_folds, shuffle=True, random_state=seed).split(X, y))
    return Split(X, y, X_test, y_test, folds)


def _check_classes(y: NDArray[Any]) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if type_of_target(y) == "continuous":
        raise InvalidInputError(
            f"The target holds {classes.size} different numbers that are not whole (for example {classes[0]}): "
            "a classification model needs classes. Choose a regression model, or turn the target into classes."
        )
    if classes.size < 2:
        raise InvalidInputError(f"The target holds one class only, {classes[0].item()!r}; at least two are needed.")
    if counts.min() < 3:
        rare = classes[np.argmin(counts)].item()
        raise InvalidInputError(
            f"The target has class {rare!r} in {counts.min()} row(s) only; at least 3 are needed to learn it, "
            "choose parameters and test. Join or remove such classes"
            + (", or choose a regression model." if y.dtype.kind in "if" and classes.size > 20 else ".")
        )


def choose(
    make: Callable[..., Any],
    grid: Mapping[str, tuple[Any, ...]],
    split: Split,
    *,
    deadline: float = float("inf"),
    progress: Silent | None = None,
) -> Choice:
    """Compare the members of a grid on the folds and keep the best (the earliest among equals).

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator for keyword parameters.
    grid : mapping of str to tuple
    split : Split
    deadline : float
        Value of ``time.monotonic()`` at which to stop; candidates not finished by then do not count.
    progress : Silent, optional
        Told about every candidate.

    Returns
    -------
    Choice
        With empty parameters when not one candidate was finished. An interruption by the user
        ends the comparison, not the program, once one candidate is finished.
    """
    candidates = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    best = Choice({}, offered=len(candidates))
    for tried, parameters in enumerate(candidates, start=1):
        try:
            scores = _fold_scores(make, parameters, split, deadline)
        except KeyboardInterrupt:
            if not best.tried:
                raise
            break
        if scores is None:
            break
        mean = float(np.mean(scores))
        if not best.tried or mean > best.score:
            best = replace(best, parameters=parameters, score=mean, deviation=float(np.std(scores)))
        best = replace(best, tried=tried)
        if progress is not None:
            values = "  ".join(f"{name} {value:<8g}" for name, value in parameters.items())
            progress.note(f"{tried:>4d}/{len(candidates)}  {values}  score {mean:.4f} +- {np.std(scores):.4f}")
    return best


def _fold_scores(
    make: Callable[..., Any], parameters: dict[str, Any], split: Split, deadline: float
) -> list[float] | None:
    """Validation scores of one candidate, None when the deadline came first."""
    scores = []
    for train, validation in split.folds:
        if time.monotonic() >= deadline:
            return None
        estimator = make(**parameters)
        if "max_time" in estimator.get_params(deep=False):
            left = max(deadline - time.monotonic(), 1e-3)
            estimator.set_params(max_time=min(left, SEARCH_SECONDS))
        with warnings.catch_warnings():
            # A loose answer is good enough to compare; the model that is kept reports its own.
            warnings.simplefilter("ignore", ConvexKernelsWarning)
            estimator.fit(split.X[train], split.y[train])
        # A solver answers an interruption with its best point; here it ends the search.
        if getattr(getattr(estimator, "solution_", None), "status", None) is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if time.monotonic() >= deadline:
            return None
        scores.append(float(estimator.score(split.X[validation], split.y[validation])))
    return scores


def learn(
    model: Model,
    split: Split,
    *,
    given: Mapping[str, Any],
    tol: float = 1e-4,
    max_time: float | None = None,
    progress: Silent | None = None,
) -> Learned:
    """Choose what is not given, learn on the whole first part of the split, score on the second.

    Parameters
    ----------
    model : Model
    split : Split
    given : mapping of str to value
        Parameters that are not searched.
    tol : float
        Relative gap to prove.
    max_time : float, optional
        Seconds in all: choosing takes half of them at most, learning what is left.
    progress : Silent, optional
        Where to report; the estimator itself reports on standard error when this is given.

    Raises
    ------
    InvalidInputError
        From the estimator, before any work.
    """
    start = time.monotonic()
    estimator_class = getattr(estimators, model.estimator)
    fixed = {**given, "tol": max(tol, SEARCH_TOL)}
    grid = {name: values for name, values in model.grid.items() if name not in given}
    choice = Choice({})
    if grid:
        deadline = start + 0.5 * max_time if max_time is not None else float("inf")
        if progress is not None:
            progress.note(f"choosing {' and '.join(grid)} by {len(split.folds)}-fold cross-validation")
        choice = choose(lambda **p: estimator_class(**fixed, **p), grid, split, deadline=deadline, progress=progress)
    left = None if max_time is None else max(max_time - (time.monotonic() - start), 1e-3)
    estimator = estimator_class(**given, **choice.parameters, tol=tol, max_time=left, verbose=progress is not None)
    estimator.fit(split.X, split.y)
    # What is kept, and perhaps saved, is a model that can be fitted again in silence and without haste.
    estimator.set_params(verbose=False, max_time=None)
    score = float(estimator.score(split.X_test, split.y_test))
    return Learned(estimator, choice, score, time.monotonic() - start)


def rbf_machine(split: Split, task: str, *, max_time: float | None = None) -> Learned:
    """Fit the customary rival: a Gaussian support vector machine, C and gamma chosen on the same folds.

    Parameters
    ----------
    split : Split
    task : {"classification", "regression"}
    max_time : float, optional
        Seconds after which the search stops.
    """
    start = time.monotonic()

    def make(**parameters: Any) -> Any:
        return make_pipeline(StandardScaler(), (SVC if task == "classification" else SVR)(**parameters))

    deadline = start + max_time if max_time is not None else float("inf")
    choice = choose(make, RBF_GRID, split, deadline=deadline)
    estimator = make(**choice.parameters).fit(split.X, split.y)
    return Learned(estimator, choice, float(estimator.score(split.X_test, split.y_test)), time.monotonic() - start)
