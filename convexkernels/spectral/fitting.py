"""Automated spectral kernel learning from a table to an answer: choices, start, training, final solve, certificate."""

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.exceptions import tell
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.solution import Record, Solution, Status
from convexkernels.spectral.cross_validation import Choice, FinalWeights, exact_points
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.options import Hyperparameters, Training
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.spectral.preparation import CLEARLY, WARM_ROWS, Preparation
from convexkernels.spectral.selection import Width
from convexkernels.spectral.training import Epoch, TrainingRun, Validation, validation_of

# Relative duality gap at which the answer to a convex setting is called optimal.
OPTIMAL = 1e-4
# What follows training, in solves for W at the start: the last W and its certificate, and first, by validation, which
# frequencies and which weight it has.
LAST, VALIDATED = 4.0, 9.0
# Scores of weights that rise, worse than the best one so far, in a row, after which others are no better. (Not of those
# from a ridge that nothing has chosen: scores are level for a while, fall and rise again.)
FALLEN = 2


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What was learned and how.

    Attributes
    ----------
    solution : Solution
    epochs : tuple of Epoch
    initial : SpectralMap
        Frequencies before training.
    sigma : float
        What was used.
    width : Width or None
        The choice of sigma, where there was one.
    choice : Choice or None
        The cross-validation, where there was one.
    calm : float in ]0, 1]
        Norm of W at the end of training against that of the answer: the larger the exact W, the more a step of the
        frequencies changes.
    factors : array of shape (n_features,) or None
        By which frequencies as drawn were multiplied, feature by feature.
    """

    solution: Solution
    epochs: tuple[Epoch, ...]
    initial: SpectralMap
    sigma: float
    width: Width | None
    choice: Choice | None
    calm: float = 1.0
    factors: Array | None = None


def learn_spectral(
    problem: SpectralLearning,
    options: Hyperparameters,
    *,
    held_out: Any = None,
    codes: Any = None,
    rng: Any,
    clock: Clock | None = None,
) -> SpectralFit:
    """Learn frequencies and weights.

    1. sigma, or the most promising of a list, and a ridge from closed-form leave-one-out risks on random features;
    2. W exactly, by ridge regression, for the frequencies that were drawn: the start;
    3. sigma, lam1 and lam2, where there is a choice, by cross-validation with successive halving from those starts;
    4. mini-batch training of everything, the best validation score being kept;
    5. for squared loss, W exactly again, on all rows; where sigma was not given, for the frequencies that were drawn,
       unless trained ones are clearly better on rows held out.

    Parameters
    ----------
    problem : SpectralLearning
        Its regularization weights are those of the options, whatever they are here.
    options : Hyperparameters
    held_out : array of int, optional
        Rows that are not trained on but validate (they join in step 5).
    codes : array of int, shape (m,), optional
        Classes: validation then counts hits instead of averaging the loss.
    rng : Generator
    clock : Clock, optional
        One limit for all steps. When its time is up, or at an interrupt, the best so far is kept; before there is
        anything, an interrupt is raised.
    """
    clock = Clock() if clock is None else clock
    is_held = np.zeros(problem.m, dtype=bool)
    is_held[[] if held_out is None else held_out] = True
    rows, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    preparation = Preparation(options, problem, rng, clock)
    sigma = preparation.sigmas[0]
    _tell(clock, f"sigma {sigma:.4g}, ridge {preparation.ridge(sigma):.2g}")
    choice = preparation.cross_validate(rows, codes) if preparation.has_lists else None
    if choice is not None:
        _tell(clock, f"{choice.best} of {len(choice.candidates)}")
        sigma = choice.best.sigma
    chance, drawn = json.dumps(rng.bit_generator.state), preparation.draw(options.n_components)
    began = clock.seconds
    moments = preparation.moments(drawn, sigma, rows)
    start = preparation.start(moments, sigma)
    solve_seconds = clock.seconds - began
    chosen = preparation.candidates(start)[0] if choice is None else choice.best
    problem = problem.with_weights(chosen.lam1, chosen.lam2)

    validate = validation_of(problem, held, codes)
    n_hits = 0 if codes is None else len(held)
    piece = clock.piece("training", replace(options, factors=()), choice and choice.best.sigma, chance)
    spared = clock.sparing(LAST * solve_seconds)
    run = TrainingRun(problem.on_rows(rows), start, options.training, rng, validate, n_hits, spared, piece=piece)
    # Without the time for one more solve, the start is all there is, with the ridge that is right for it.
    is_late = clock.left is not None and clock.left < LAST * solve_seconds
    known = is_late and problem.learned and preparation.is_exact and not run.history
    if known:
        run.status = Status.TIME_LIMIT
    elif problem.learned or not preparation.is_exact:
        is_over = clock.interrupted or run.status is Status.EARLY_STOPPED
        run.run(0 if is_over else options.training.max_epochs - len(run.history))
    if spared.interrupted:
        clock.interrupt()
    run.clock, point = clock, run.best
    if preparation.is_exact:
        is_short = clock.left is not None and clock.left < (LAST + VALIDATED) * solve_seconds
        if is_short and validate is not None:
            clock.cut("the choice of the last ridge")
        weights = preparation.chosen_weights(chosen.sigma, choice, validate is not None and not is_short)
        try:
            as_drawn = moments if problem.learned and options.sigma is None else None
            is_all = moments if known else None
            problem, point = _final_solve(problem, run, rows, validate, weights, is_short, is_all, as_drawn)
        except KeyboardInterrupt:
            clock.interrupt()
    _tell(clock, "the weights W are found")
    solution = _solution(problem, point, run)
    initial = drawn.scaled(chosen.sigma)
    trained, final = (float(problem.backend.xp.linalg.matrix_norm(at.W)) for at in (run.best, point))
    calm = min(1.0, trained / final) if final > 0.0 < trained else 1.0
    width, factors = preparation.width, preparation.factors
    of_features = None if factors is None else factors[0]
    return SpectralFit(solution, tuple(run.history), initial, chosen.sigma, width, choice, calm, of_features)


def _tell(clock: Clock, message: str) -> None:
    """Say what is done; an interrupt is kept in mind."""
    try:
        clock.show.note(f"{message}, {clock.seconds:.2f} s")
    except KeyboardInterrupt:
        clock.interrupt()


def continue_training(
    fit: SpectralFit,
    run: TrainingRun | None,
    X: Any,
    Y: Any,
    weights: Any,
    training: Training,
    rng: Any,
    *,
    pace: float,
    clock: Clock,
) -> tuple[SpectralFit, TrainingRun]:
    """One more pass, over new rows only; `run` carries the moments of Adam from call to call."""
    problem = replace(fit.solution.problem, X=X, Y=Y, weights=weights)
    if run is None:
        # Its first step is one for the rows that were learned from: new ones may be few, or all of one value.
        run = TrainingRun(
            fit.solution.problem, fit.solution.theta.copy(), training, rng, pace=pace * fit.calm, continues=True
        )
    run.problem, run.training, run.clock, run.status = problem, training, clock, Status.ITERATION_LIMIT
    run.run(1)
    epochs = (*fit.epochs, *run.history[-1:])
    return replace(fit, solution=_solution(problem, run.best, run), epochs=epochs), run


def _final_solve(
    problem: SpectralLearning,
    run: TrainingRun,
    rows: Any,
    validate: Validation | None,
    last: FinalWeights,
    is_short: bool,
    known: Moments | None,
    drawn: Moments | None,
) -> tuple[SpectralLearning, SpectralPoint]:
    """The exact W for learned frequencies, from all rows or, where only that much is `known`, those of training.

    Which frequencies and which weight is said by validation; see `_validated`, which `drawn` is for, too.
    """
    best = run.point.map if run.history and not is_short else run.best.map
    weight = last.weights[0]
    if not is_short and validate is not None and (run.history or len(last.weights) > 1):
        best, weight = _validated(problem.on_rows(rows), run, validate, last, drawn)
    if not problem.learned:  # the optimum of a convex problem is not to be missed by the rounding of float32
        problem = problem.doubled()
        best = best.on(problem.backend)
    moments = Moments.of(best, problem) if known is None else known
    [(lam1, found)] = exact_points(problem, moments, replace(last, weights=(weight,)), run.clock)
    problem = problem.with_weights(lam1, problem.lam2)
    if last.are_ridges and not isinstance(problem.penalty, FrobeniusNorm):  # the ridge was a stand-in
        found = solve_inner(problem, moments, start=found, max_iter=300, clock=run.clock)
    return problem, found


def _validated(
    problem: SpectralLearning, run: TrainingRun, validate: Validation, last: FinalWeights, drawn: Moments | None
) -> tuple[SpectralMap, float]:
    """Frequencies and a weight for the last solve, `problem` being that of the rows of training.

    Of the last and of the best epoch, each with the W that is exact for it: scores of the W that was trained on the way
    say little. Frequencies as `drawn`, where they suit the sigma that was chosen for them, stay unless these are
    clearly better, having been chosen by the same rows before.
    """
    maps = [run.point.map, run.best.map] if run.history else [run.best.map]
    tried = [(*_best_of(Moments.of(there, problem), problem, last, validate), there) for there in maps]
    score, weight, best = max(tried, key=lambda one: one[0])
    if run.history and drawn is not None:
        first = drawn if problem.m <= WARM_ROWS else Moments.of(drawn.map, problem)
        plain, own = _best_of(first, problem, last, validate)
        top = 1.0 if run.n_hits else 0.0  # scores are shares of hits, or minus losses
        if not top - score <= CLEARLY * (top - plain):
            return drawn.map, own
    return best, weight


def _best_of(
    moments: Moments, problem: SpectralLearning, last: FinalWeights, validate: Validation
) -> tuple[float, float]:
    """The best score along the path of weights, and the weight; where they `rise` it ends after some worse scores."""
    top, best, n_worse = -math.inf, last.weights[0], 0
    for weight, (_, solved) in zip(last.weights, exact_points(problem, moments, last), strict=False):
        score = validate(solved)
        n_worse = n_worse + 1 if score < top else 0
        if score > top:
            top, best = score, weight
        if last.rise and n_worse == FALLEN:
            break
    return top, best


def _solution(problem: SpectralLearning, point: SpectralPoint, run: TrainingRun) -> Solution:
    certificate, status, clock = problem.certificate(point), run.status, run.clock
    if clock.interrupted:
        status = Status.INTERRUPTED
    elif isinstance(certificate, DualityGap) and certificate.holds(OPTIMAL):
        status = Status.OPTIMAL
    elif status is Status.ITERATION_LIMIT and run.training.schedule == "cosine":
        status = Status.COMPLETED
    if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
        tell(f"learning ended early, {status.name} ({status.value}); the best weights so far were kept, {certificate}.")
    history = tuple(Record(int(e.epoch), e.objective, -math.inf, e.seconds) for e in run.history)
    return Solution(problem, point, certificate, status, run.n_steps, clock.seconds, history, "adam")
