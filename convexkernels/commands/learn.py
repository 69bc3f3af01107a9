"""``convexkernels learn``: from a table to a model that was learned, certified, compared and kept."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from convexkernels import estimators
from convexkernels.arrays import Labels
from convexkernels.commands.catalog import RIVALS
from convexkernels.commands.model_file import SavedModel
from convexkernels.commands.request import Request, check_target, estimator_of, parameters_of, task_of
from convexkernels.commands.scores import Score, Split, difference, learned_rival, score_of, split_table
from convexkernels.solution import Status

SCORES = {"classification": "accuracy", "regression": "R^2"}
# Share of the time limit that belongs to the learned kernel when it is compared with other models.
SHARE = 0.6
# Seconds that another model may take at least where there is no limit; it may take as long as the learned kernel took.
LEAST_TIME = 60.0


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted estimator, the rows it has not seen, and the scores of all models on them by their names."""

    estimator: Any
    split: Split
    task: str
    scores: dict[str, Score] = field(default_factory=dict)


def learn(title: str, X: Labels, y: Labels, names: Sequence[str], request: Request) -> Learned:
    """Learn, print what was learned and how it compares; refuse before the work what can be refused.

    `title` is what the table is called, `X` and `y` are as ``load_table`` returns them, `names` are those of the
    columns.
    """
    began = time.monotonic()
    task = task_of(y) if request.task == "auto" else request.task
    name, reason = estimator_of(request.model, task, len(y), X.shape[1])
    check_target(y, task)
    estimator = _made(name, request)
    split = split_table(X, y, task, test_size=request.test_size, seed=request.seed)
    what = f"{len(np.unique(y))} classes" if task == "classification" else "a number to predict"
    rows = f"{len(split.y)} rows to learn from, {len(split.y_test)} to test on"
    print(f"{title}: {X.shape[1]} features, {what}; {rows}\nmodel        {name}{reason}", flush=True)
    if request.max_time is not None:
        estimator.set_params(max_time=request.max_time * (SHARE if request.rivals else 1.0))
    given = estimator.get_params(deep=False)
    estimator.set_params(verbose=not request.quiet).fit(split.X, split.y)
    _name_columns(estimator, names)
    # What is kept, and perhaps saved, is a model that can be fitted again in silence and without haste.
    limit = given["max_time"] if request.max_time is None else None
    estimator.set_params(verbose=False, checkpoint=None, max_time=limit)
    print(estimator.describe(), flush=True)
    learned = Learned(estimator, split, task)
    learned.scores["learned kernel"] = score_of(estimator, split.X_test, split.y_test, task)
    _print_scores(learned, _compared(learned, request, began))
    return learned


def _compared(learned: Learned, request: Request, began: float) -> dict[str, str]:
    """Add the scores of the other models; what each has chosen, by its name. An interrupt ends the comparison only."""
    took, chosen = time.monotonic() - began, {}
    try:
        for k, rival in enumerate(request.rivals):
            if learned.estimator.solution_.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if not request.quiet:
                print(f"learning with {RIVALS[rival]}, to compare", flush=True)
            left = max(took, LEAST_TIME)
            if request.max_time is not None:
                left = max(began + request.max_time - time.monotonic(), 1e-3) / (len(request.rivals) - k)
            split, task = learned.split, learned.task
            other, chosen[RIVALS[rival]] = learned_rival(rival, split, task, seed=request.seed, max_time=left)
            learned.scores[RIVALS[rival]] = score_of(other, split.X_test, split.y_test, task)
    except KeyboardInterrupt:
        print("interrupted: no comparison with " + ", ".join(RIVALS[name] for name in request.rivals[k:]))
    return chosen


def _made(name: str, request: Request) -> Any:
    """The estimator with the given parameters; one that it does not have is refused."""
    estimator = getattr(estimators, name)()
    known, parameters = estimator.get_params(deep=False), parameters_of(name, request.given)
    if request.tol is not None and "tol" in known:
        parameters["tol"] = request.tol
    if "random_state" in known and "random_state" not in parameters:
        parameters["random_state"] = request.seed
    return estimator.set_params(**parameters)


def _name_columns(estimator: Any, names: Sequence[str]) -> None:
    """Give what was learned the names of the columns, which an array does not carry."""
    if estimator.columns_ is not None:
        estimator.columns_ = replace(estimator.columns_, names=list(names))
    estimator.feature_labels_ = list(names) if estimator.columns_ is None else estimator.columns_.encoded_names


def _print_scores(learned: Learned, chosen: dict[str, str]) -> None:
    """Test scores with standard errors over test rows, and what is between each model and the learned kernel."""
    first = learned.scores["learned kernel"]
    print(f"\n{SCORES[learned.task]:<26} {'test':>17}   {'learned kernel is better by':<28} chosen")
    for name, score in learned.scores.items():
        apart = ""
        if score is not first:
            by, error = difference(first, score)
            apart = f"{by:+.4f} +- {error:.4f}"
        print(
            f"{name:<26} {f'{score.value:.4f} +- {score.error:.4f}':>17}   {apart:<28} {chosen.get(name, '')}".rstrip()
        )


def saved(learned: Learned, names: Sequence[str], categories: Sequence[str], target: str, table: Path) -> SavedModel:
    """What is kept of a learned model."""
    scores = {name: [score.value, score.error] for name, score in learned.scores.items()}
    return SavedModel(learned.estimator, list(names), list(categories), target, table.name, scores)
