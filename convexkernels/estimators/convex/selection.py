"""Regularization parameters and families by scores on rows that are left out of a table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.estimators.convex.by_squares import Glance, glance
from convexkernels.estimators.convex.fold import PATH_TOL, EachRow, Fold, folds_of, scored_weights
from convexkernels.estimators.convex.path import CLEARLY, LossAt, Path, PathSelection, soft
from convexkernels.families.base import Family
from convexkernels.problems.kernel_learning import KernelLearning

# The part of the time in which families are compared by squares.
SHARE = 0.5


def choose(
    problem: KernelLearning,
    families: Mapping[str, Family],
    name: str,
    losses: Mapping[str, LossAt],
    values: Array,
    clock: Clock,
    tol: float = PATH_TOL,
) -> tuple[KernelLearning, str, str, PathSelection | None]:
    """Choose among families, losses and values, given from the most regular one on, by learning and scoring.

    Families go from those of functions that change quickly to smooth ones; the only one, where it was given, has no
    name. They are compared by squares (`glance`): for a kernel that is learned from all rows, ridge regression leaves
    every row out in closed form, for all values at once. That chooses the family, and says where the path of values by
    the loss itself begins, and what deviation errors have.

    On the path every row is left out in closed form where the problem is one of least squares; otherwise the kernel is
    learned anew on folds, so that what it promises has not seen the rows. Every value starts from the kernel and the
    functions of the nearest one; the path goes on as long as values gain. Then comes that of another loss, squares,
    from the value chosen by the first, which is kept where both are as good; of numbers only where the functions of the
    first are not the mean.

    Losses ``loss_at(value, deviation)`` take the deviation of errors expected, and are scored as that of the problem
    is. Kernels are learned to a relative gap of `tol`, or to a fifth of it where they see all rows, as far as ten steps
    lead. With the problem for the chosen family, its name and that of the loss comes None where the rows are too few to
    hold any out, or no family was looked at in time, and no value, or one only that is no better than constants; the
    loss is the first one then, and so where the user interrupts before anything was tried. Where there was no time for
    the path, the value is the one it would have begun with.
    """
    search = _Search(problem, families, name, losses, values, tol)
    family, loss, found = _searched(search, clock)
    return search.problem_of(family), family, loss, found


def _searched(search: "_Search", clock: Clock) -> tuple[str, str, PathSelection | None]:
    """What an earlier run has chosen, or what a search does."""
    problem, families, name, losses = search.problem, search.families, search.name, search.losses
    values, tol = search.values, search.tol
    stated = [problem.loss, *(loss_at(values[0], 1.0) for loss_at in losses.values())]
    asked = problem.X, problem.Y, problem.weights, list(families.values()), name, stated, values, tol
    piece = clock.piece("path of values from squares", *asked)
    places, others = list(families), list(losses)

    def named(
        found: PathSelection, family: str, loss: str, tried: Mapping[str, tuple[Array, ...]], rows: Array | None
    ) -> tuple[str, str, PathSelection]:
        paths = {called: tried[called] for called in places if called in tried}
        found = replace(found, kernels=family or None, paths=paths, errors_by_squares=rows)
        return family, loss, replace(found, loss=loss) if len(losses) > 1 and len(found.values) else found

    if known := piece.found:
        value, deviation = float(known["value"]), float(known["deviation"])
        kept = PathSelection(name, known["values"], known["scores"], value, deviation, False, theta=known.get("theta"))
        tried = {called: (values, known[f"path {k}"]) for k, called in enumerate(places) if f"path {k}" in known}
        return named(kept, places[int(known["family"])], others[int(known["loss"])], tried, known.get("rows"))
    interrupted = False
    try:
        search.run(clock)
    except KeyboardInterrupt:
        interrupted = True
    best, cut = search.best, search.is_cut or clock.is_over
    if cut and not interrupted:
        # With one value and one family it is epsilon that is open, which follows from the errors met on the way.
        open_ones = name if len(values) > 1 else "kernels" if len(families) > 1 else "epsilon"
        clock.cut(f"the choice of {open_ones}")
    (family, loss), rows = search.chosen, None if search.seen is None else search.seen.errors
    tried = {called: (values, scores) for called, scores in search.by_squares.items()}
    if best is None:
        none, seen = np.zeros(0), search.seen
        if seen is not None and not interrupted:  # of the path there was no time for a value
            by_squares = PathSelection(name, none, none, seen.value, seen.deviation, False, theta=seen.theta)
            return named(by_squares, family, loss, tried, rows)
        nothing = PathSelection(name, none, none, soft(values), search.deviation, True)
        return named(nothing, family, loss, {}, None) if interrupted else (family, loss, None)
    found = best.selection(name, interrupted)
    if not (interrupted or cut):
        paths: dict[str, Any] = {f"path {places.index(called)}": scores for called, (_, scores) in tried.items()}
        if found.theta is not None:
            paths["theta"] = found.theta
        if rows is not None:
            paths["rows"] = rows
        piece.keep(
            values=found.values,
            scores=found.scores,
            value=found.value,
            deviation=found.deviation,
            family=places.index(family),
            loss=others.index(loss),
            **paths,
        )
    return named(found, family, loss, tried, rows)


def beside(
    problem: KernelLearning,
    families: Sequence[Family],
    name: str,
    values: Array,
    notable: float,
    clock: Clock,
) -> Array | None:
    """Errors by squares (`glance`), row by row, of the best of some families; None where the time is up.

    Others are looked at where those before hardly predict anything. Nothing is chosen.
    """
    scored, best = scored_weights(problem), None
    for family in families:
        if clock.is_over or (best is not None and best.sum() <= 1.0 - notable):
            break
        seen = glance(problem, {"": family}, values, name, scored, clock)
        if seen is not None and (best is None or seen.errors.sum() < best.sum()):
            best = seen.errors
    return best


def is_clearly_better(other: Array, own: Array, notable: float) -> bool:
    """Whether errors of another family, row by row, are less than its own ones by a notable part and not by chance."""
    more = own - other
    return bool(other.sum() < 1.0 and more.sum() > max(CLEARLY * math.hypot(*more.tolist()), notable))


@dataclass(eq=False)
class _Search:
    """What was found so far: the best path with what it chose, the names of its family and loss (`chosen`).

    Where nothing is compared, the family is that of the problem. `by_squares` has the scores of families by squares,
    `is_cut` says that the time of a path was up.
    """

    problem: KernelLearning
    families: Mapping[str, Family]
    name: str
    losses: Mapping[str, LossAt]
    values: Array
    tol: float
    best: Path | None = None
    found: PathSelection | None = None
    seen: Glance | None = None
    is_cut: bool = False

    def __post_init__(self) -> None:
        stated = [name for name, family in self.families.items() if family is self.problem.family]
        self.chosen = [*stated, *self.families][0], next(iter(self.losses))

    @cached_property
    def scored(self) -> Array:
        """Weights of targets by which errors are scored."""
        return scored_weights(self.problem)

    @property
    def by_squares(self) -> Mapping[str, Array]:
        return {} if self.seen is None else self.seen.scores

    @property
    def deviation(self) -> float:
        """The deviation that errors are expected to have."""
        if self.found is not None:
            return self.found.deviation
        return 1.0 if self.seen is None else self.seen.deviation

    def problem_of(self, name: str) -> KernelLearning:
        """The problem with a family, whose matrices are there, or are formed in the place of others."""
        family, problem = self.families[name], self.problem
        if self.seen is not None and self.seen.family == name and self.seen.problem is not None:
            return self.seen.problem
        if family is problem.family:
            return problem
        folds, self.best = [] if self.best is None else self.best.folds, None
        if folds and isinstance(folds[0], EachRow) and len(folds[0].train) == problem.m:
            return folds[0].problem
        del folds
        problem.gram_set.release()  # both would be in memory
        return problem.on_rows(np.arange(problem.m), family)

    def run(self, clock: Clock) -> None:
        """The family by squares first, then values by each loss."""
        first, *others = self.losses
        if len(self.families) > 1 or len(self.values) > 1:
            part = clock.part(SHARE)
            self.seen = glance(self.problem, self.families, self.values, self.name, self.scored, part)
            self.is_cut = part.is_over
        begin, seen = None, self.seen
        if seen is not None:
            self.chosen, begin = (seen.family, first), seen.value
        folds = folds_of(self.problem, self.families[self.chosen[0]], self.scored, self.tol)
        if seen is not None:
            for fold in folds:
                fold.begin_at(seen.theta, seen.problem)
        # Of numbers another loss is seldom tried, and has what is left.
        left = 1 if self.problem.loss.is_of_differences else 1 + len(others)
        self._follow(first, folds, begin, clock.part(1.0 / left))
        for k, loss in enumerate(others):
            if self.best is None or self.found is None or clock.is_over or self.best.is_exact:
                break
            if self.found.score >= 1.0 or not self.best.may_gain_by_squares():
                break
            folds = [fold.again() for fold in self.best.folds]
            self._follow(loss, folds, self.found.value, clock.part(1.0 / (len(others) - k)))

    def _follow(self, loss: str, folds: list[Fold], begin: float | None, part: Clock) -> None:
        """Follow a path, and keep it where it is the best one; an interrupt leaves what was tried."""
        family = self.families[self.chosen[0]]
        path = Path(family, folds, self.losses[loss], self.values, self.deviation, begin)
        try:
            path.follow(part)
        finally:
            path.is_cut = part.is_over
            one = path.selection(self.name)
            if path.says_something and (self.found is None or one.score > self.found.score):
                self.best, self.found, self.chosen = path, one, (self.chosen[0], loss)
        self.is_cut |= path.is_cut
