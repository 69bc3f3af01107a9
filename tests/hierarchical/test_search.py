"""Searching for the weights of hierarchical kernels: clipped risks, both kinds of search, limits, and refusals."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from convexkernels import (
    ConvexKernelsWarning,
    EpsilonInsensitive,
    Gaussian,
    HeldOut,
    Hinge,
    InvalidInputError,
    LeastSquares,
    LeaveOneOut,
    OuterLearning,
    Schedule,
    Status,
    TrainingValue,
    Trees,
    Widths,
)
from convexkernels.criteria.folds import split_rows, three_parts
from convexkernels.datasets import make_friedman1, make_two_moons
from convexkernels.families.curved.trees import NARROWER, PAPER_ARCHITECTURES, make_tree, start_weights
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.progress import Silent
from convexkernels.solvers.nonconvex.algorithm1 import Annealing, _halves, _parts, _Search
from convexkernels.solvers.nonconvex.annealing import FixedFunction, anneal
from convexkernels.solvers.nonconvex.quasi_newton import QuasiNewton
from convexkernels.solvers.nonconvex.stochastic import Stochastic

SHORT = Schedule(rounds=3, passes=3, first_annealing=30, later_annealing=20, gradient_steps=5, n_lams=4, n_gammas=3)
LOSSES = {
    "least_squares": LeastSquares(0.1, intercept=False),
    "hinge": Hinge(5.0, intercept=False),
    "epsilon_insensitive": EpsilonInsensitive(5.0, 0.05, intercept=False),
    "hinge, intercept": Hinge(5.0),
}


def friedman(m=200, seed=0):
    X, y = make_friedman1(m, random_state=seed)
    return 2.0 * X - 1.0, (y - 14.0) / 15.0


def learning(architecture, X, y, loss="least_squares", **options):
    criterion = LeaveOneOut() if loss == "least_squares" else HeldOut(1)
    return OuterLearning(Trees(architecture), LOSSES[loss], criterion, X, y, **options)


def waves(m=150, seed=0):
    """A function of one feature that changes too quickly for the kernels of a plain start."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (m, 1))
    return X, np.sin(40.0 * X[:, 0]) + 0.2 * rng.standard_normal(m)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_a_search_begins_with_a_narrower_kernel_where_that_errs_clearly_less(unit):
    """Its lam is the one of least error, in the unit of the weights; leaves alone are multiplied."""
    X, y = waves()
    problem = learning(3, X, y, sample_weight=np.full(150, unit))
    plain, best = problem.start(0), problem.best_start(0)
    moved, tree = best[:-1] - plain[:-1], problem.gram_set.tree
    leaves = np.zeros(len(moved), dtype=bool)
    for i in tree.leaves:
        leaves[tree.places[i].weights] = True
    assert np.ptp(moved[leaves]) < 1e-12
    assert min(abs(np.exp(2.0 * moved[leaves][0]) - rate) for rate in NARROWER) < 1e-9
    assert not moved[~leaves].any()
    lams = unit * np.geomspace(1e-4, 1e1, 6)
    assert np.exp(best[-1]) == pytest.approx(lams[problem.along_lam(best, lams).argmin()])
    assert problem.along_lam(best, lams).min() < 0.3 * problem.along_lam(plain, lams).min()
    found = problem.solve("stochastic", random_state=0)
    assert found.value < 0.3 * problem.along_lam(plain, lams).min()


def test_a_search_with_an_intercept_begins_where_it_does_without_an_offset():
    X, y = waves()
    loss = LeastSquares(0.1, intercept=True)
    starts = [OuterLearning(Trees(3), loss, LeaveOneOut(), X, y + offset).best_start(0) for offset in (0.0, 1e4)]
    np.testing.assert_allclose(*starts, rtol=1e-12)
    assert not np.array_equal(starts[0], OuterLearning(Trees(3), loss, LeaveOneOut(), X, y).start(0))


@pytest.mark.parametrize("unit", [1e-15, 1e21])
def test_searches_begin_with_a_lam_that_criteria_know(unit):
    X, y = waves()
    for criterion in (LeaveOneOut(), HeldOut(3)):
        problem = OuterLearning(Trees(3), LeastSquares(0.1), criterion, X, y, sample_weight=np.full(150, unit))
        chart = problem.gram_set.chart(problem.split(problem.best_start(0))[0])
        assert np.isfinite(problem.evaluate(chart, problem.best_start(0)).value)


def test_a_search_without_a_finite_value_is_no_success():
    X, y = friedman()
    problem = learning(3, X, y)
    start = problem.start(0)
    start[-1] = 45.0
    with pytest.warns(ConvexKernelsWarning, match="NUMERICAL_ERROR"):
        found = problem.solve("stochastic", start=start, max_iter=3)
    assert found.status is Status.NUMERICAL_ERROR


@pytest.mark.parametrize("restarts", [1, 3])
def test_restarts_begin_with_narrower_kernels_too(restarts):
    X, y = waves()
    T, t = waves(500, 1)
    found = learning(2, X, y).solve("quasi-newton" if restarts == 1 else "auto", restarts=restarts, random_state=0)
    assert np.square(found.decision_function(T) - t).mean() < 0.25 * t.var()


def test_a_search_begins_with_the_plain_start_where_no_other_is_clearly_better():
    for problem in (
        learning(3, *friedman()),
        learning(3, *waves(15)),
        OuterLearning(Trees(3), LOSSES["least_squares"], TrainingValue(), *waves()),
        OuterLearning(Widths(Gaussian()), LOSSES["least_squares"], LeaveOneOut(), *waves()),
    ):
        np.testing.assert_array_equal(problem.best_start(0), problem.start(0))


@pytest.fixture
def small(rng):
    X = rng.uniform(-1, 1, (60, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(60)
    tree = make_tree([[0, 1], [1, 2], [0, 1, 2]], 3)
    point = np.append(rng.normal(0, 0.4, tree.n_weights), -1.5)
    return tree, X, np.column_stack([y, np.sign(y)]), rng.uniform(0.5, 2.0, 60), point


def risk(problem, point, dtype=np.float64):
    return problem.evaluate(problem.gram_set.chart(point[:-1]), point, problem.bind(0, dtype), dtype)


@pytest.mark.parametrize("limit", [1.0, 0.3])
def test_clipped_leave_one_out_risk_is_that_of_functions_that_have_not_seen_the_row(small, limit):
    tree, X, Y, weights, point = small
    offset = np.array([0.1, -0.2])
    problem = learning(tree, X, Y, sample_weight=weights, offset=offset, bounds=(-limit, limit))
    K = TreeEvaluation(tree, np.exp(2 * point[:-1]), X).gram()
    total = 0.0
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        shifted = K[np.ix_(rest, rest)] + np.diag(problem.bind().lam(point[-1]) / weights[rest])
        f = np.clip(offset + K[i, rest] @ np.linalg.solve(shifted, Y[rest] - offset), -limit, limit)
        total += weights[i] / weights.sum() * np.mean((Y[i] - f) ** 2)
    assert risk(problem, point).value == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("limit", [1.0, 0.3])
def test_gradients_of_clipped_risks(small, loss, limit):
    tree, X, Y, weights, point = small
    y = Y[:, 1] if "hinge" in loss else Y[:, 0]
    criterion = LeaveOneOut() if loss == "least_squares" else HeldOut(2, tol=1e-11)
    bounds = (-limit, limit)
    problem = OuterLearning(Trees(tree), LOSSES[loss], criterion, X, y, sample_weight=weights, bounds=bounds)
    slopes, h = risk(problem, point).gradient(), 1e-6
    measured = [
        (risk(problem, point + h * v).value - risk(problem, point - h * v).value) / (2 * h) for v in np.eye(len(point))
    ]
    np.testing.assert_allclose(slopes, measured, atol=1e-5 * np.abs(slopes).max())
    if loss == "least_squares":
        single = risk(problem, point, np.float32).gradient()
        np.testing.assert_allclose(single, slopes, atol=1e-3 * np.abs(slopes).max())


def test_moves_of_the_annealing_are_exact_updates(rng):
    tree = make_tree([[0, 1], [[2], [3, 4]], [1, 2]], 5)
    X, Z, alpha = rng.uniform(-1, 1, (80, 5)), rng.uniform(-1, 1, (70, 5)), rng.standard_normal((80, 2))
    weights = rng.uniform(0.3, 1.0, tree.n_weights)
    function = FixedFunction(tree, weights, Z, X, alpha, np.float64)
    for _ in range(80):
        index = int(rng.integers(tree.n_weights))
        moved = weights.copy()
        moved[index] *= np.exp(0.3 * rng.standard_normal())
        proposed = function.propose(index, moved[index])
        np.testing.assert_allclose(proposed, TreeEvaluation(tree, moved**2, Z, X).gram() @ alpha, atol=1e-11)
        if rng.random() < 0.5:
            function.accept()
            weights = moved
        np.testing.assert_allclose(function.values, TreeEvaluation(tree, weights**2, Z, X).gram() @ alpha, atol=1e-11)


def test_annealing_returns_the_best_weights_it_saw(rng):
    tree = make_tree(3, 2)
    X, Z, alpha = rng.uniform(-1, 1, (40, 2)), rng.uniform(-1, 1, (30, 2)), rng.standard_normal((40, 1))
    function = FixedFunction(tree, rng.uniform(0.3, 1.0, tree.n_weights), Z, X, alpha, np.float64)
    seen = []

    def error(values):
        seen.append(float(np.mean((values[:, 0] - Z[:, 0]) ** 2)))
        return seen[-1]

    best = anneal(function, error, 200, rng, lambda: False)
    assert best == min(seen) < seen[0]
    assert error(function.values) == pytest.approx(best, rel=1e-12)


def test_functions_are_trained_at_the_lam_that_the_risk_was_measured_at():
    X, y = friedman(60)
    problem = learning(2, X, y)
    start = problem.start(0)
    far, there = (np.append(start[:-1], log_lam) for log_lam in (-500.0, np.log(1e-10) - 50.0))
    assert problem.certificate(far).value == pytest.approx(problem.certificate(there).value)
    np.testing.assert_allclose(problem.function(far).values(X), problem.function(there).values(X))


@pytest.mark.parametrize("m", [60, 150])
def test_a_descent_of_a_risk_ends_before_it_fits_the_rows(m):
    X, y = friedman(m + 400)
    y = y + 0.2 * np.random.default_rng(0).standard_normal(m + 400)
    problem = learning(8, X[:m], y[:m])

    def ended(**settings):
        found = problem.solve(QuasiNewton(**settings), random_state=0)
        return found, float(np.mean((found.function.values(X[m:])[:, 0] - y[m:]) ** 2))

    (found, error), (longer, worse) = ended(), ended(stall_tol=1e-3)
    assert found.status is Status.EARLY_STOPPED
    assert found.n_iter < longer.n_iter
    assert found.value > longer.value  # of the risk; the error is another matter
    assert error < worse
    gains = -np.diff([record.upper for record in found.history[-11:]]).sum()
    assert gains <= found.value / np.sqrt(m)


SOLVERS = {
    "quasi-newton": lambda: ("quasi-newton", 15),
    "stochastic": lambda: (Stochastic(size=90, max_iter=25), None),
    "annealing": lambda: (Annealing(schedule=SHORT), None),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", SOLVERS)
def test_every_search_lowers_every_risk(loss, how):
    X, y = friedman()
    problem = learning(4, X, np.where(y > 0, 1.0, -1.0) if "hinge" in loss else y, loss)
    solver, max_iter = SOLVERS[how]()
    solution = problem.solve(solver, max_iter=max_iter, random_state=0)
    assert solution.value < (0.97 if how == "annealing" else 0.9) * problem.certificate(problem.start(0)).value
    assert solution.certificate.value == pytest.approx(solution.verify().value, rel=1e-6)
    if how == "quasi-newton":
        assert solution.status in (Status.ITERATION_LIMIT, Status.STALLED, Status.STATIONARY)
    else:  # a schedule has come to its end, or was cut
        assert solution.status is Status.COMPLETED
        assert problem.solve(solver, max_iter=2, random_state=0).status is Status.ITERATION_LIMIT
    if how == "annealing":
        assert set(solution.trace) == {"seconds", "D1", "D2", "D3"}
        assert {len(values) for values in solution.trace.values()} == {SHORT.rounds * SHORT.passes}
        best = [record.upper for record in solution.history]
        assert best[-1] == solution.trace["D3"].min()
        assert (np.diff(best[1:]) <= 0).all()


def test_descent_from_where_the_risk_is_flat_takes_no_step_larger_than_the_weights():
    """Thyroid, 300 rows, the published search to its end: a slope of 1e-200 made steps of 1e200 where it ended."""
    slopes, tried = iter([1e-200, 1.0, *[1e-3] * 20]), []

    def risk(rows, weights):
        tried.append(weights)
        return -float(len(tried))

    there = SimpleNamespace(weights=np.ones(3), schedule=Schedule(gradient_steps=10), parts=(None, None, None))
    there.slope = lambda: (-float(len(tried)), next(slopes) * np.array([-1.0, 1.0, 1.0]))
    there.is_over, there.risk_of_weights = lambda: False, risk
    _Search._descend(there)
    sizes = [np.linalg.norm(weights) for weights in [np.ones(3), *tried]]
    assert len(tried) == 10
    assert all(later <= 2.01 * earlier for earlier, later in pairwise(sizes))
    assert max(weights.max() for weights in tried) <= np.exp(8.0)


@pytest.mark.parametrize("seed", range(3))
def test_annealing_does_not_lose_what_it_finds_to_a_weight_that_nothing_depends_on(seed):
    """The weight of a constant column wanders; where it was beyond the family the start had been the answer."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))
    y = np.sin(3.0 * X[:, 0])
    X[:, 1] = 0.5
    problem = OuterLearning(Trees(1), LeastSquares(0.1, intercept=False), HeldOut(1), X, y)
    schedule = Schedule(rounds=4, passes=5, first_annealing=300, later_annealing=150, n_lams=5, n_gammas=5)
    found = problem.solve(Annealing(schedule=schedule, random_state=seed), random_state=seed)
    assert found.status is Status.COMPLETED
    assert found.theta[:-1].max() <= 8.0
    assert np.mean((found.decision_function(X) - y) ** 2) < 1e-5


def test_parts_that_are_shuffled_again_keep_both_classes(rng):
    """Four of ninety rows have the other label: one of fifty shuffles had left them all in one part."""
    y = np.where(np.arange(90) < 4, 1.0, -1.0)
    problem = OuterLearning(Trees(2), LOSSES["hinge"], HeldOut(1), rng.uniform(-1.0, 1.0, (90, 2)), y)
    train, move, choose = _parts(problem, rng)
    for _ in range(200):
        train, move = _halves(problem, train, move, rng)
        assert [np.unique(y[part]).size for part in (train, move, choose)] == [2, 2, 2]


def test_a_search_begins_with_any_point_of_the_family_and_refuses_others():
    """The largest weight, which nothing depends on, is no reason for the others to stay."""
    X, y = friedman(60)
    X[:, 0] = 0.5
    problem = OuterLearning(Trees(1), LOSSES["least_squares"], HeldOut(1), X, y)
    start = problem.start(0)
    start[0] = 8.0
    search = Annealing(start, SHORT, random_state=0).start(problem, 1e-4, None).memory
    search.trained, before = search._train(), search.weights
    search._descend()
    assert np.abs(np.log(search.weights / before))[1:].max() > 1e-3
    start[0] = 8.5
    for solver in ("annealing", "quasi-newton", "stochastic", "restarts"):
        with pytest.raises(InvalidInputError, match=r"to 8.5 has no kernel of Trees.*start=None draws one"):
            problem.solve(solver, start=start, random_state=0)
    with pytest.raises(InvalidInputError, match=r"to 8.5 has no kernel of Trees"):
        problem.train(start)


@pytest.mark.parametrize("n_gammas", [1, 2, 3])
def test_no_width_is_trained_with_twice(n_gammas, monkeypatch):
    X, y = friedman(60)
    problem = OuterLearning(Trees(1), LOSSES["least_squares"], HeldOut(1), X, y)
    search = Annealing(schedule=Schedule(1, 1, 1, 1, 1, 2, n_gammas), random_state=0).start(problem, 1e-4, None).memory
    seen, path = [], search._path
    monkeypatch.setattr(search, "_path", lambda K, lams: seen.append(K) or path(K, lams))
    search._train()
    apart = [np.abs(K - other).max() for k, K in enumerate(seen) for other in seen[:k]]
    assert len(seen) == {1: 1, 2: 3, 3: 3}[n_gammas]
    assert min(apart, default=1.0) > 1e-3


@pytest.mark.parametrize("how", ["annealing", "quasi-newton", "stochastic"])
@pytest.mark.parametrize("unit", [1e-4, 1e-160])
def test_features_that_vary_too_little_for_weights_of_the_family_are_refused(unit, how):
    X, y = friedman(60)
    problem = OuterLearning(Trees(2), LOSSES["least_squares"], HeldOut(1), unit * X, y)
    with pytest.raises(InvalidInputError, match=r"vary so little.*rescale the features"):
        problem.solve(how, max_iter=3, random_state=0)


def test_annealing_is_for_trees_and_criteria_that_choose_lam():
    X, y = friedman(60)
    for problem, said in [
        (OuterLearning(Widths(Gaussian()), LOSSES["least_squares"], LeaveOneOut(), X, y), "weights of trees"),
        (OuterLearning(Trees(2), LOSSES["least_squares"], TrainingValue(), X, y), "it chooses lam"),
        (OuterLearning(Trees(2, tied=[[0, 1]]), LOSSES["least_squares"], HeldOut(3), X, y), "some are tied"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            problem.solve("annealing")


def test_learned_weights_leave_out_what_does_not_matter():
    X, y = friedman(400)
    T, t = friedman(1000, seed=1)
    problem = learning(1, X, y)
    solution = problem.solve(random_state=0)
    weights = np.exp(solution.theta[:-1])
    assert weights[5:].max() < weights[:5].min()
    start = problem.function(problem.start(0)).decision_function(T)
    assert np.mean((solution.decision_function(T) - t) ** 2) < 0.5 * np.mean((start - t) ** 2)
    assert solution.kernel.depth == 1


def test_a_search_that_cannot_improve_returns_its_start():
    X, y = friedman(80)
    best = learning(2, X, y).solve("quasi-newton", random_state=0, max_iter=300)
    far = learning(2, X, y).solve(Annealing(schedule=Schedule(1, 1, 1, 1, 1, 1, 1)), start=best.theta, random_state=0)
    assert far.status in (Status.STALLED, Status.COMPLETED)
    assert far.value <= best.value
    if far.status is Status.STALLED:
        np.testing.assert_array_equal(far.theta, best.theta)


@pytest.mark.parametrize("solver", [Stochastic(size=100, max_iter=10**6), "annealing"])
def test_time_limit_returns_the_best_so_far_with_a_warning(solver):
    X, y = friedman(300)
    problem = learning(4, X, y)
    with pytest.warns(ConvexKernelsWarning, match="time limit"):
        solution = problem.solve(solver, max_time=0.2, random_state=0)
    assert solution.status is Status.TIME_LIMIT
    assert solution.value <= problem.certificate(problem.start(0)).value


def test_checkpoints_are_written_and_continued_from(tmp_path, monkeypatch):
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    X, y = friedman(120)
    file = tmp_path / "weights.npz"
    problem = learning(2, X, y)
    first = problem.solve(Stochastic(size=60, max_iter=20), random_state=0, checkpoint=file)
    with np.load(file) as known:
        assert any(np.array_equal(known[name], first.theta) for name in known)
    again = problem.solve(Stochastic(size=60, max_iter=1), random_state=0, checkpoint=file)
    assert 0.0 < np.abs(again.theta - first.theta).max() < 0.2  # one step from there
    other = learning(3, X, y).solve("stochastic", max_iter=1, random_state=0, checkpoint=file)
    assert len(other.theta) > len(first.theta)  # another problem with the same rows is another piece of work
    with np.load(file) as known:
        assert any(np.array_equal(known[name], again.theta) for name in known)


def test_an_interrupted_search_takes_the_steps_that_were_left(tmp_path, monkeypatch):
    X, y = friedman(120)
    problem, search, file = learning(2, X, y), Stochastic(size=60, max_iter=8, random_state=1), tmp_path / "point.npz"
    start, step, begun, taken = Stochastic.start, Stochastic.step, [], []

    def watched(self, problem, iterate, *rest):
        taken.append(iterate.memory.taken)
        if taken == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return step(self, problem, iterate, *rest)

    monkeypatch.setattr(Stochastic, "step", watched)
    monkeypatch.setattr(Stochastic, "start", lambda self, *rest: begun.append(start(self, *rest)) or begun[-1])
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED"):
        first = problem.solve(search, checkpoint=file)
    assert first.n_iter == 3
    again = problem.solve(search, checkpoint=file)
    assert again.history[0].iteration == 3
    assert taken == [0, 1, 2, 3, 3, 4, 5, 6, 7]  # they are as short as they would have been
    np.testing.assert_array_equal(begun[1].theta, first.theta)
    ended = problem.solve(search, checkpoint=file)
    assert len(begun) == 2
    assert ended.n_iter == 0
    np.testing.assert_array_equal(ended.theta, again.theta)


class Remembering(Silent):
    def __init__(self):
        self.messages = []

    def note(self, message):
        self.messages.append(message)


def test_progress_says_when_it_will_be_over(monkeypatch):
    monkeypatch.setattr("convexkernels.clock.EVERY", 0.0)
    X, y = friedman(120)
    said = Remembering()
    learning(2, X, y).solve(Stochastic(size=60, max_iter=4), max_iter=4, random_state=0, progress=said)
    assert "step 2" in said.messages[2]
    assert " 50.0 %" in said.messages[2]
    assert all("s left" in message for message in said.messages)


@pytest.mark.parametrize(
    ("search", "m", "first", "last"),
    [
        (Stochastic(), 100, 50, 50),
        (Stochastic(), 1200, 400, 400),
        (Stochastic(), 9000, 750, 1500),
        (Stochastic(size=700), 9000, 700, 700),
        (Stochastic(groups=[np.arange(2000)]), 9000, 1500, 1500),
    ],
)
def test_first_steps_are_among_fewer_rows(search, m, first, last):
    """Where nothing else is asked for, and the search is one of the whole table."""
    assert [search.rows(m, share) for share in (0.0, 0.69, 0.7, 1.0)] == [first, first, last, last]
    assert search.rows(m) == last


def test_a_search_that_time_has_hurried_begins_its_steps_anew_when_there_is_more(tmp_path, monkeypatch):
    X, y = friedman(120)
    problem, search, file = learning(2, X, y), Stochastic(size=60, max_iter=8, random_state=1), tmp_path / "point.npz"
    step = Stochastic.step

    def hurried(self, problem, iterate, *rest):
        iterate.memory.hurries = True
        return step(self, problem, iterate, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(Stochastic, "step", hurried)
        with pytest.warns(ConvexKernelsWarning, match="time limit"):
            first = problem.solve(search, checkpoint=file)
    assert (first.status, first.n_iter) == (Status.TIME_LIMIT, 8)
    more = problem.solve(search, checkpoint=file)
    assert (more.status, len(more.history)) == (Status.COMPLETED, 9)
    assert not np.array_equal(more.theta, first.theta)
    done = problem.solve(search, checkpoint=file)
    assert (done.status, len(done.history)) == (Status.COMPLETED, 1)


def test_reports_of_steps_on_other_rows_are_means_of_the_latest(monkeypatch):
    monkeypatch.setattr("convexkernels.clock.EVERY", 0.0)
    values, evaluate = [], Stochastic._evaluate

    def watched(*arguments):
        there = evaluate(*arguments)
        values.append(there.value)
        return there

    monkeypatch.setattr(Stochastic, "_evaluate", watched)
    X, y = friedman(120)
    said = Remembering()
    solution = learning(2, X, y).solve(Stochastic(size=60, max_iter=100), random_state=0, progress=said)
    means = [np.mean(values[k - min(max(k // 2, 1), 20) : k]) for k in range(1, 101)]
    np.testing.assert_allclose([record.upper for record in solution.history[1:]], means, rtol=1e-12)
    assert f"step 100, mean value of the latest steps {means[-1]:.6g}" in said.messages[-1]


def test_architectures():
    assert PAPER_ARCHITECTURES == (1, 4, 6, 8, 10, 12, 16)
    assert make_tree(1, 3).depth == 1
    eight = make_tree(8, 5)
    assert (eight.depth, len(eight.leaves), eight.n_weights) == (2, 8, 48)
    halves = make_tree(4, 7, "random", np.random.default_rng(0))
    seen = [halves.places[i].features for i in halves.leaves]
    assert all(4 <= len(part) < 7 for part in seen)
    assert set().union(*seen) == set(range(7))
    groups = make_tree(3, 4, [[0, 1], [2, 3]])
    assert [groups.places[i].features for i in groups.leaves] == [(0, 1), (2, 3), (0, 1)]


def test_start_gives_every_leaf_its_own_scale(rng):
    X = rng.normal(size=(500, 3)) * [1.0, 0.01, 100.0]
    tree = make_tree(4, 3)
    squares = np.exp(2 * start_weights(tree, X, rng, spread=0.0))
    rates = [np.mean(np.square(X[:250] - X[250:]) @ squares[tree.places[i].weights]) for i in tree.leaves]
    # The narrow column is held back: it could otherwise decide alone.
    assert 0.05 < rates[0] < 0.45
    assert 8.0 < rates[3] / rates[0] < 12.0


def test_parts_have_their_sizes_and_all_labels(rng):
    assert [len(rows) for rows in three_parts(900, rng)] == [400, 200, 300]
    assert sorted(np.concatenate(three_parts(50, rng))) == list(range(50))
    y = np.where(np.arange(60) < 6, 1.0, -1.0)[None, :]
    for train, held_out in split_rows(y, 3, rng):
        assert (y[0, train] > 0).sum() == 4
        assert (y[0, held_out] > 0).sum() == 2


X20, Y20 = np.linspace(-1, 1, 40).reshape(20, 2), np.where(np.arange(20) % 2, 1.0, -1.0)
ONE_RARE = np.where(np.arange(20) == 3, 1.0, -1.0)
REFUSED = [
    (lambda: learning(0, X20, Y20), "no kernel has depth 0"),
    (lambda: learning([], X20, Y20), "empty"),
    (lambda: learning([[0], []], X20, Y20), "empty"),
    (lambda: learning([[0], [2]], X20, Y20), "unknown feature 2"),
    (lambda: learning([[0], 1], X20, Y20), "both"),
    (lambda: learning("deep", X20, Y20), "number of nodes"),
    (lambda: make_tree(4, 2, "some"), "subsets"),
    (lambda: make_tree(4, 2, []), "subsets is empty"),
    (lambda: make_tree(4, 2, [[0], []]), "a group of subsets is empty"),
    (lambda: learning(4, X20, 2.0 * Y20, "hinge"), "labels -1 and \\+1"),
    (lambda: learning(4, X20, Y20, sample_weight=np.zeros(20)), "sample_weight"),
    (lambda: learning(4, X20, ONE_RARE).solve("annealing"), "in too few rows"),
    (lambda: learning(4, X20[:3], Y20[:3], "hinge").solve(), "too few"),
    (lambda: learning(4, X20[:5], Y20[:5]).solve("annealing"), "three parts"),
    (lambda: learning(4, X20, Y20).solve("random"), "solver must be"),
    (lambda: learning(4, X20, Y20).solve(start=[0.0]), "start must be"),
    (lambda: learning(4, X20, Y20).solve(max_time=0.0), "max_time"),
    (lambda: Schedule(0), "rounds"),
    (lambda: Annealing(schedule=5), "schedule must be a Schedule"),
]


@pytest.mark.parametrize(("attempt", "phrase"), REFUSED)
def test_bad_input_is_refused(attempt, phrase):
    with pytest.raises(InvalidInputError, match=phrase):
        attempt()


def test_moons_with_noise_features_are_separated():
    X, y = make_two_moons(300, noise=0.15, n_noise_features=3, random_state=0)
    T, t = make_two_moons(500, noise=0.15, n_noise_features=3, random_state=1)
    problem = OuterLearning(Trees(2), LOSSES["hinge"], HeldOut(3), X, y.astype(float))
    solution = problem.solve(random_state=0, max_iter=30)
    assert np.mean(np.sign(solution.decision_function(T)) == t) > 0.95


def test_a_search_on_groups_ends_where_its_steps_do(rng):
    X = rng.uniform(-1, 1, (120, 2))
    y = np.where(np.arange(120) < 60, np.sin(3.0 * X[:, 0]), rng.standard_normal(120))
    problem = OuterLearning(Trees(2), LeastSquares(0.01, intercept=False), LeaveOneOut(), X[:60], y[:60])
    begun = problem.solve(Stochastic(max_iter=30), random_state=0).theta
    both = OuterLearning(Trees(2), LeastSquares(0.01, intercept=False), LeaveOneOut(), X, np.r_[y[:60], 3.0 * y[60:]])
    # Certificates look at all rows, where those of the group are not what is learned from.
    found = both.solve(Stochastic(max_iter=10, groups=[np.arange(60)]), start=begun, random_state=0)
    assert not np.array_equal(found.theta, begun)
    assert both.certificate(found.theta, None).value > both.certificate(begun, None).value
