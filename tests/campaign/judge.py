"""What a case did wrong: lies, crossed bounds, crashes, hangs, leaked warnings; and what was left open."""

import math
import signal
import sys
import time
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

import convexkernels as ck
from convexkernels.estimators import ESTIMATORS
from convexkernels.solvers import make_solver

from .exact import center_of, exact_set, lower_bound, upper_bound

FAULTS = ("lie", "crossed", "crash", "hang", "warning")
# Seconds for a solver, what it may take beyond them, and when it is stopped by force.
MAX_TIME, GRACE, FORCE = 8.0, 4.0, 60.0
# Relative violation of a bound that rounding of doubles does not explain.
TOLERANCE = 1e-8


@dataclass
class Verdict:
    """What happened: `faults` are (kind, sentence), `open` are reasons why the tolerance was not reached."""

    faults: list = field(default_factory=list)
    open: list = field(default_factory=list)
    refused: str = ""
    seconds: float = 0.0

    def add(self, kind, sentence):
        self.faults.append((kind, sentence))


class Overdue(BaseException):
    """Stops what does not stop by itself."""


@contextmanager
def alarm(seconds, error):
    """Raise `error` in the main thread after some seconds, as Ctrl-C would."""

    def ring(signum, frame):
        raise error

    def lost(unraisable):
        # Nothing is raised out of what the garbage collector calls: a moment later then.
        if unraisable.exc_value is error:
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
        else:
            hook(unraisable)

    before, hook = signal.signal(signal.SIGALRM, ring), sys.unraisablehook
    sys.unraisablehook = lost
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def is_interrupt(error):
    """Whether an interrupt is behind an error: numpy and compiled loops give it other names, perhaps several."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@contextmanager
def watched(verdict, what, limit):
    """Record warnings, errors and the time of a call."""
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            yield
        except (ck.InvalidInputError, ck.MemoryLimitError) as error:
            verdict.refused = str(error)
            if len(str(error)) < 20:
                verdict.add("crash", f"{what}: a refusal without a reason: {error!r}")
        except Overdue:
            verdict.add("hang", f"{what}: stopped by force after {FORCE:g} s")
        except KeyboardInterrupt:
            verdict.open.append("interrupt raised")
        except Exception as error:
            if is_interrupt(error):
                verdict.open.append("interrupt raised")
                return
            place = traceback.extract_tb(error.__traceback__)[-1]
            line = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
            verdict.add("crash", f"{what}: {type(error).__name__}: {str(error)[:200]} ({line})")
    for w in seen:
        if issubclass(w.category, ResourceWarning) and "interrupt raised" in verdict.open:
            continue  # a file that the interpreter was about to read
        if not issubclass(w.category, ck.ConvexKernelsWarning):
            place = f"{w.filename.rsplit('/', 1)[-1]}:{w.lineno}"
            verdict.add("warning", f"{what}: {w.category.__name__}: {str(w.message)[:120]} ({place})")
    taken = time.monotonic() - began
    if taken > limit + GRACE:
        verdict.add("hang", f"{what}: {taken:.1f} s where {limit:.3g} s were allowed")


def judge(case):
    """Run a case and measure what came back."""
    verdict, began = Verdict(), time.monotonic()
    {"problem": judge_problem, "interrupt": judge_interrupt, "estimator": judge_estimator}[case.kind](case, verdict)
    verdict.seconds = time.monotonic() - began
    return verdict


def judge_problem(case, verdict):
    problem = stated(case, verdict)
    if problem is None:
        return
    found = {}
    for name in case.solvers:
        if name != "auto" and make_solver(name).accepts(problem) is not None:
            continue
        with watched(verdict, name, MAX_TIME), alarm(FORCE, Overdue()):
            limit = 10_000 if name == "auto" else 60
            found[name] = solve(problem, name, tol=case.tol, max_time=MAX_TIME, max_iter=limit)
    if "auto" in found and not found["auto"].status.is_success and case.tol >= 1e-6:
        solution = found["auto"]
        verdict.open.append(f"{solution.solver} {solution.status.name} gap {solution.certificate.relative_gap:.1e}")
    measure(problem, found, case.tol, verdict)


def solve(problem, name="auto", **settings):
    """By a solver, or at the given lam where one kernel is met on all rows."""
    if isinstance(problem, ck.FixedKernel):
        return problem.solve(lams=[problem.loss.lam], **settings)
    return problem.solve(name, **settings)


def stated(case, verdict):
    """The problem, or None where it was refused."""
    stated = []
    with watched(verdict, "statement", MAX_TIME), alarm(FORCE, Overdue()):
        stated.append(case.problem())
    return stated[0] if stated else None


def measure(problem, found, tol, verdict):
    """Compare certificates with each other, with the functions that were returned, and with exact values."""
    zero = value_of_nothing(problem)
    bounds = {}
    with watched(verdict, "extended precision", math.inf), np.errstate(all="ignore"):
        exact = exact_set(problem)
        for name, solution in found.items():
            certificate = solution.certificate
            size = max(abs(certificate.upper), abs(certificate.lower))
            if not np.isfinite([certificate.upper, certificate.lower]).all():
                verdict.add("lie", f"{name}: a certificate without numbers: {certificate}")
                continue
            if certificate.lower > certificate.upper + 1e-9 * size:
                verdict.add("crossed", f"{name}: {certificate.lower!r} > {certificate.upper!r}")
            if solution.status.is_success and not certificate.holds(tol):
                verdict.add("lie", f"{name}: OPTIMAL with {certificate}")
            bounds[name] = exact_bounds(problem, exact, solution, zero, name, verdict) if exact is not None else None
    compare(bounds, found, zero, verdict)


def exact_bounds(problem, exact, solution, zero, name, verdict):
    """Bounds of one point in extended precision; says where the returned function is not the certified one."""
    upper, returned, rounding = upper_bound(problem, exact, solution)
    lower = lower_bound(problem, exact, solution.alpha if solution.witness is None else solution.witness)
    certified = solution.certificate.upper
    digits = 1e-7 if getattr(problem, "dtype", np.float64) == np.float32 else 1e-15
    slack = 1e-6 * max(abs(certified), 1e-9 * zero)
    weight = problem.loss.cost * problem.weights.sum() * len(problem.Y)
    noise = 20.0 * digits * (rounding + np.abs(problem.Y).max()) + 4e-16 * np.abs(center_of(problem)).max()
    if isinstance(problem.loss, ck.LeastSquares):
        noise *= noise + 2.0 * math.sqrt(abs(float(returned)) / max(weight, 1e-300))
    if returned - certified > slack + weight * noise:
        verdict.add("lie", f"{name}: certified {certified!r}, the returned function costs {float(returned)!r}")
    return upper, lower


def compare(bounds, found, zero, verdict):
    """No certificate may exclude what another point proves, in doubles or in extended precision."""
    uppers = [float(s.certificate.upper) for s in found.values()] + [float(b[0]) for b in bounds.values() if b]
    lowers = [float(s.certificate.lower) for s in found.values()]
    lowers += [float(b[1]) for b in bounds.values() if b and b[1] is not None]
    if not uppers:
        return
    best, worst = min(uppers), max(lowers)
    room = TOLERANCE * max(abs(best), abs(worst)) + 1e-15 * zero
    for name, solution in found.items():
        certificate = solution.certificate
        if certificate.lower > best + room:
            verdict.add("lie", f"{name}: lower bound {certificate.lower!r}, but {best!r} is attained")
        if certificate.upper < worst - room:
            verdict.add("lie", f"{name}: upper bound {certificate.upper!r}, but {worst!r} is proven from below")
    for name, pair in bounds.items():
        if pair and pair[0] < worst - room:
            verdict.add("lie", f"{name}: extended precision attains {float(pair[0])!r} below the bound {worst!r}")


def value_of_nothing(problem):
    """The objective of the best constant: what the numbers of a problem are to be compared with."""
    zeros = np.zeros(problem.m)
    return sum(problem.loss.primal(zeros, 0.0, y, problem.weights)[0] for y in problem.Y)


def judge_interrupt(case, verdict):
    """A keyboard interrupt at a random moment, or a time limit that is soon over."""
    problem = stated(case, verdict)
    if problem is None:
        return
    found, limit, tol = {}, case.max_time or case.delay, 1e-10
    with watched(verdict, "interrupted", limit + 1.0):
        if case.max_time:
            found["auto"] = solve(problem, tol=tol, max_time=case.max_time)
        else:
            with alarm(case.delay, KeyboardInterrupt()):
                found["auto"] = solve(problem, tol=tol)
    measure(problem, found, tol, verdict)
    with watched(verdict, "after an interrupt", MAX_TIME), alarm(FORCE, Overdue()):
        found["again"] = solve(problem, tol=case.tol, max_time=MAX_TIME)
    measure(problem, found, max(case.tol, tol), verdict)


def judge_estimator(case, verdict):
    _, make = ESTIMATORS[case.estimator]
    model = make().set_params(max_time=case.max_time, **case.options)
    counted = case.X if case.weights is None else case.X[case.weights > 0]
    bad = np.isinf(counted).any() or np.abs(counted).max(initial=0.0, where=~np.isnan(counted)) > 1e150
    before = case.X.copy()
    fitted = False
    limit = case.delay or case.max_time
    error = KeyboardInterrupt() if case.delay else Overdue()
    with watched(verdict, "fit", limit + 1.0), alarm(case.delay or FORCE, error):
        model.fit(case.X, case.y, sample_weight=case.weights)
        fitted = True
    np.testing.assert_array_equal(case.X, before)
    if bad and fitted:
        verdict.add("lie", f"{case.estimator} learned from a table that holds no numbers")
    if fitted and not bad:
        with watched(verdict, "predict", MAX_TIME):
            finish_estimator(case, model, verdict)


def finish_estimator(case, model, verdict):
    """Predictions are numbers, also far away, and the certificate says the same again."""
    rows = case.X[(np.abs(case.X) < 1e150).all(axis=1)]
    far = np.vstack([rows, rows.mean(axis=0) + 10.0 * (rows[:1] - rows.mean(axis=0))])
    values = model.decision_function(far) if hasattr(model, "decision_function") else model.predict(far)
    if not np.isfinite(values).all():
        verdict.add("lie", f"{case.estimator} predicts {np.asarray(values)[~np.isfinite(values)][:3]}")
    solution = model.solution_
    again = solution.verify()
    stored = solution.certificate
    if type(again) is not type(stored):
        verdict.add("lie", f"verify() returns another kind of certificate: {again}")
    pairs = zip(vars(stored).values(), vars(again).values(), strict=True)
    size = max(abs(v) for v in vars(stored).values())
    # The certificate of cells is the one of the worst cell: which one that is may be rounding.
    proven = isinstance(stored, ck.DualityGap) and max(stored.relative_gap, again.relative_gap) < 1e-9
    # What both say that rounding may have cost, it may cost differently in another order of summation.
    room = 1e-6 * size + max(getattr(found, "charged", 0.0) for found in (stored, again))
    if not proven and any(not abs(a - b) <= room and a != b for a, b in pairs):
        verdict.add("lie", f"verify() says {again}, the certificate said {stored}")
    if isinstance(stored, ck.DualityGap) and stored.lower > stored.upper + 1e-9 * size:
        verdict.add("crossed", f"{case.estimator}: {stored}")
    if not solution.status.is_success and isinstance(stored, ck.DualityGap) and not (case.delay or case.max_time < 1.0):
        verdict.open.append(f"{case.estimator} {solution.status.name} gap {stored.relative_gap:.1e}")
