"""Regularization parameters and families by scores on rows that are left out of a table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.estimators.convex.fold import (
    ENOUGH,
    FEW_ROWS,
    LARGEST_SAMPLE,
    PATH_TOL,
    Fold,
    Points,
    folds_of,
    scored_weights,
)
from convexkernels.estimators.convex.path import SECOND, TIE, LossAt, Path, PathSelection, soft
from convexkernels.families.base import Family
from convexkernels.problems.kernel_learning import KernelLearning

# How many values from that of a soft margin on another family may be scored at.
REACH = 3
# The place of the family that is tried first, where there are so many, and how many are tried at most of six.
FIRST, MOST_TRIED = 3, 4
# The parts of the time for the path of the first of several families, which finds where others begin, and, of what it
# has left, for that of the largest one.
SHARES = 0.5, 0.8


def choose(
    problem: KernelLearning,
    families: Mapping[str, Family],
    name: str,
    losses: Mapping[str, LossAt],
    values: Array,
    clock: Clock,
    tol: float = PATH_TOL,
) -> tuple[str, str, PathSelection | None]:
    """Choose among families, losses and values, given from the most regular one on, by learning and scoring.

    Where the problem is one of least squares, every row is left out in closed form; otherwise the kernel is learned
    anew on folds.

    Every value starts from the kernel and the functions of the nearest one. The path of a family begins with the second
    and third value, and ends where errors rise, or where C bounds no coefficient any more: values for which learning
    takes long are never met, unless they are the ones that are needed. Beside the best family so far, the path of
    another one begins near what was chosen there, unless that is the most regular value, and goes on only where it is
    better or may come to be. So does that of another loss, squares, for the family that is best with the first, which
    is kept where both are as good; of numbers only where the functions of the first are not the mean. On the best path
    the values between the best one and its neighbors are tried, too.

    Families go from those of functions that change quickly to smooth ones; the only one, where it was given, has no
    name. One in the middle is tried first (`first_of`), because rougher ones take longest with regularization that
    suits none, then the one before it, unless it is behind on half of the rows: a family of many members takes most of
    the time, and where it loses it loses there, too. Where it is clearly ahead come those before, otherwise those after
    the first one, until one is clearly behind.

    Losses ``loss_at(value, deviation)`` take the deviation of errors expected, beginning with 1, and are scored as that
    of the problem is. Kernels are learned to a relative gap of `tol`, or to a fifth of it where they see all rows, as
    far as ten steps lead. With the names of the best family and loss comes None where the rows are too few to hold any
    out, or no value was tried in time, or one only that is no better than constants; then, as where the user interrupts
    before anything was tried, they are that of `default_of` and the first loss.
    """
    stated = [problem.loss, *(loss_at(values[0], 1.0) for loss_at in losses.values())]
    asked = problem.X, problem.Y, problem.weights, list(families.values()), name, stated, values, tol
    piece = clock.piece("path of values", *asked)
    places, others = list(families), list(losses)

    def named(
        found: PathSelection, family: str, loss: str, tried: Mapping[str, tuple[Array, ...]]
    ) -> tuple[str, str, PathSelection]:
        if all(families):
            paths = {called: tried[called] for called in places if called in tried}
            found = replace(found, kernels=family, paths=paths)
        return family, loss, replace(found, loss=loss) if len(losses) > 1 and len(found.values) else found

    if known := piece.found:
        value, deviation = float(known["value"]), float(known["deviation"])
        kept = PathSelection(name, known["values"], known["scores"], value, deviation, False, theta=known.get("theta"))
        tried = {called: tuple(known[f"path {k}"]) for k, called in enumerate(places) if f"path {k}" in known}
        return named(kept, places[int(known["family"])], others[int(known["loss"])], tried)
    search, interrupted = _Search(problem, families, name, losses, values, tol), False
    try:
        search.run(clock)
    except KeyboardInterrupt:
        interrupted = True
    best, cut = search.best, search.is_cut or clock.is_over
    if cut and not interrupted:
        # With one value and one family it is epsilon that is open, which follows from the errors met on the way.
        open_ones = name if len(values) > 1 else "kernels" if len(families) > 1 else "epsilon"
        clock.cut(f"the choice of {open_ones}")
    if best is None:
        none = np.zeros(0)
        nothing = PathSelection(name, none, none, soft(values), search.deviation, True)
        plain = default_of(families), others[0]
        return named(nothing, *plain, {}) if interrupted else (*plain, None)
    family, loss = search.chosen
    found = best.selection(name, interrupted)
    tried = search.tried | {family: (found.values, found.scores)}
    if not (interrupted or cut):
        paths: dict[str, Any] = {f"path {places.index(called)}": np.array(path) for called, path in tried.items()}
        if found.theta is not None:
            paths["theta"] = found.theta
        piece.keep(
            values=found.values,
            scores=found.scores,
            value=found.value,
            deviation=found.deviation,
            family=places.index(family),
            loss=others.index(loss),
            **paths,
        )
    return named(found, family, loss, tried)


def beside(
    problem: KernelLearning,
    families: Sequence[Family],
    found: PathSelection,
    loss_at: LossAt,
    values: Array,
    notable: float,
    clock: Clock,
    tol: float = PATH_TOL,
) -> tuple[float, int]:
    """The score of other families on the rows that a value was found by, at that value, and the number of the rows.

    Nothing is chosen.

    The score is that of the first one, or where this hardly predicts anything the best one of all.

    Where functions are hardly better than constants, their value is one of chance, often the most regular one, with
    which those of any family are constant: others are scored with a soft margin and less regularization, as long as
    they gain notably. So it is with less, after the value itself, where that is more regular than a soft margin. -inf
    where the time is up.
    """

    def climbed() -> dict[str, Any]:
        best, rows, scored = -np.inf, 0, scored_weights(problem)
        for family in families:
            folds = folds_of(problem, family, scored, tol)
            path = Path(family, folds, lambda value, _: loss_at(value, found.deviation), values, found.deviation)
            path.values = _values_beside(path, found, values, notable)
            path.climb(notable, clock)
            rows = len(path.errors_of_constants)
            best = max(best, path.selection(found.name).score)
            predicts = best >= _of_constants(path) + notable and path.is_clearly_ahead_of(path.errors_of_constants)
            if clock.is_over or (family is families[0] and predicts):
                break
        return {"score": best, "rows": rows}

    stated = problem.loss, loss_at(found.value, found.deviation), found.value, found.score, values, notable, tol
    asked = problem.X, problem.Y, problem.weights, list(families), *stated
    known = clock.once(climbed, "score of another family, and rows", *asked)
    return float(known["score"]), int(known["rows"])


def _values_beside(path: Path, found: PathSelection, values: Array, notable: float) -> Array:
    """The values at which another family than that of what was found is scored."""
    if len(values) <= SECOND:
        return np.array([found.value])
    few = values[SECOND : SECOND + REACH]
    if found.score < _of_constants(path) + notable:
        return few
    is_regular = (found.value - few[0]) * (values[0] - few[0]) > 0.0
    return np.append(found.value, few[1:] if is_regular else [])


def _of_constants(path: Path) -> float:
    """The score of the best constants, 0 at least."""
    return max(0.0, 1.0 - path.constant / path.total)


def first_of(families: Mapping[str, Family]) -> str:
    """The name of the family that is tried first."""
    return list(families)[: FIRST + 1][-1]


def default_of(families: Mapping[str, Family]) -> str:
    """The name of the family that stays where nothing is compared: the one before the first one."""
    return list(families)[: FIRST + 1][-2:][0]


@dataclass(eq=False)
class _Search:
    """Paths followed so far: the best one with what it chose, and the errors of the last one row by row.

    `chosen` names the family and the loss of the best one; `tried` has the values and scores of families with the first
    loss. `of_half` has points of families on half of the rows, `is_cut` says that the time of a path was up.
    """

    problem: KernelLearning
    families: Mapping[str, Family]
    name: str
    losses: Mapping[str, LossAt]
    values: Array
    tol: float
    best: Path | None = None
    found: PathSelection | None = None
    chosen: tuple[str, str] = ("", "")
    last: Array | None = None
    tried: dict[str, tuple[Array, ...]] = field(default_factory=dict)
    of_half: dict[str, Points] = field(default_factory=dict)
    is_cut: bool = False

    @cached_property
    def scored(self) -> Array:
        """Weights of targets by which errors are scored."""
        return scored_weights(self.problem)

    @property
    def constants(self) -> Array | None:
        """Errors of the best constants row by row."""
        return None if self.best is None else self.best.errors_of_constants

    @property
    def deviation(self) -> float:
        """The deviation that errors are expected to have."""
        return 1.0 if self.found is None else self.found.deviation

    def run(self, clock: Clock) -> None:
        """Families first, then for the best one the other losses, and values beside the best one."""
        first, *others = self.losses
        # Of numbers another loss is seldom tried, and has what is left.
        left = min(len(self.families), MOST_TRIED) + (0 if self.problem.loss.is_of_differences else len(others))
        for k, family in enumerate(self._in_order(clock)):
            if k > 0 and self._is_over(clock):
                break
            part = clock.part(SHARES[k] if k < len(SHARES) and left - k > 1 else 1.0 / (left - k))
            folds = self._folds_of(family)
            for fold in folds:
                fold.begin_at(self.of_half.get(family, {}))
            self._follow(family, folds, first, part)
        for k, loss in enumerate(others):
            if self.best is None or self._is_over(clock):  # where there is none, time was too short for any value
                break
            if not self.best.may_gain_by_squares():
                break
            folds, part = [fold.again() for fold in self.best.folds], clock.part(1.0 / (len(others) - k))
            self._follow(self.chosen[0], folds, loss, part)
        if self.best is not None:
            self.best.refine(clock)

    def _folds_of(self, family: str, most: int = LARGEST_SAMPLE, enough: float = ENOUGH) -> list[Fold]:
        """Rows to learn from and to score on, for a family, of so many rows at most."""
        return folds_of(self.problem, self.families[family], self.scored, self.tol, most, enough)

    def _in_order(self, clock: Clock) -> Iterator[str]:
        """Names of families, each as soon as it is to be tried."""
        called, first = list(self.families), first_of(self.families)
        rougher, smoother = called[: called.index(first)][::-1], called[called.index(first) + 1 :]
        yield first
        of_first = self.last
        if rougher and not self._is_behind_on_half(rougher[0], clock):
            yield rougher[0]
        for family in rougher[1:] if self._is_ahead_of(of_first) else smoother:
            yield family
            if self._is_ahead_of(self.last):
                return

    def _is_ahead_of(self, errors: Array | None) -> bool:
        """Whether the best path is clearly better than errors row by row."""
        return self.best is not None and self.best.is_clearly_ahead_of(errors)

    def _is_behind_on_half(self, family: str, clock: Clock) -> bool:
        """Whether a family is behind the best one on half of the rows, at the value chosen there and the one before.

        So it is where there is no time for these.
        """
        half = min(self.problem.m, LARGEST_SAMPLE) // 2
        if half < FEW_ROWS or self._rival is None:
            return False
        at = self.values.tolist().index(self._rival.value)
        least, part = [], clock.part(SHARES[1])
        for name in (self.chosen[0], family):
            # With few folds a family that needs many rows is behind by chance.
            folds, loss_at = self._folds_of(name, half, math.inf), self.losses[self.chosen[1]]
            path = Path(self.families[name], folds, loss_at, self.values[at - 1 : at + 1], self.deviation)
            if not folds:
                return False
            if not path.visit_all(part):
                return True
            least.append(min(path.errors.values()))
        self.of_half[family] = folds[0].points
        return least[1] > TIE * least[0]

    @property
    def _rival(self) -> PathSelection | None:
        """What was found, where it says where to begin: not what is no better than constants, or the most regular."""
        says = self.found is not None and self.found.value != self.values[0] and self._is_ahead_of(self.constants)
        return self.found if says else None

    def _is_over(self, clock: Clock) -> bool:
        """Whether not even a fold would be in time, or nothing can be better."""
        if self.best is None or self.found is None:
            return clock.is_over
        return clock.is_over or self.best.is_exact or self.found.score >= 1.0

    def _follow(self, family: str, folds: list[Fold], loss: str, part: Clock) -> None:
        """Follow a path, and keep it where it is the best one; an interrupt leaves what was tried."""
        path = Path(self.families[family], folds, self.losses[loss], self.values, self.deviation, self._rival)
        try:
            path.follow(part)
        finally:
            path.is_cut = part.is_over
            one = path.selection(self.name)
            if path.errors:
                self.tried.setdefault(family, (one.values, one.scores))
            if path.says_something and (self.found is None or one.score > self.found.score):
                self.best, self.found, self.chosen = path, one, (family, loss)
        self.is_cut |= path.is_cut
        # Where time has cut a path, nothing is known of what it did not try.
        self.last = None if path.is_cut else path.errors_of_rows()
