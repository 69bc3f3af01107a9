"""Searching for the weights of hierarchical kernels: risks, exact gradients, both searches, limits, and refusals."""

import numpy as np
import pytest

from convexkernels import ConvexKernelsWarning, HierarchicalLearning, InvalidInputError, Status
from convexkernels.datasets import make_friedman1, make_two_moons
from convexkernels.losses import EpsilonInsensitive, Hinge, LeastSquares
from convexkernels.outer import Schedule
from convexkernels.outer.hierarchical_annealing import FixedFunction, anneal
from convexkernels.outer.hierarchical_architecture import PAPER_ARCHITECTURES, make_tree, start_point
from convexkernels.outer.hierarchical_inner import HeldOut, epsilon_judge, hinge_judge, squared_judge
from convexkernels.outer.hierarchical_parts import split_rows, three_parts
from convexkernels.outer.hierarchical_risk import LeaveOneOut
from convexkernels.outer.hierarchical_search import load_checkpoint
from convexkernels.progress import Silent

SHORT = Schedule(rounds=3, passes=3, first_annealing=30, later_annealing=20, gradient_steps=5, n_lams=4, n_gammas=3)


def friedman(m=200, seed=0):
    X, y = make_friedman1(m, random_state=seed)
    return 2.0 * X - 1.0, (y - 14.0) / 15.0


@pytest.fixture
def small(rng):
    X = rng.uniform(-1, 1, (60, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(60)
    tree = make_tree([[0, 1], [1, 2], [0, 1, 2]], 3)
    point = np.append(rng.normal(0, 0.4, tree.n_weights), -1.5)
    return tree, X, y, rng.uniform(0.5, 2.0, 60), point


def differences(risk, point, h):
    return np.array([(risk(point + h * v).value - risk(point - h * v).value) / (2 * h) for v in np.eye(len(point))])


@pytest.mark.parametrize("clip", [None, 1.0, 0.3])
def test_leave_one_out_risk_is_that_of_machines_that_have_not_seen_the_row(small, clip):
    tree, X, y, weights, point = small
    Y, offset = np.column_stack([y, np.sign(y)]), np.array([0.1, -0.2])
    risk = LeaveOneOut(tree, X, Y, weights, clip, offset)
    K = tree.evaluate(np.exp(2 * point[:-1]), X).gram()
    total = 0.0
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        shifted = K[np.ix_(rest, rest)] + np.diag(risk.lam(point) / weights[rest])
        f = offset + K[i, rest] @ np.linalg.solve(shifted, Y[rest] - offset)
        f = f if clip is None else np.clip(f, -clip, clip)
        total += weights[i] / weights.sum() * np.mean((Y[i] - f) ** 2)
    assert risk(point).value == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("clip", [None, 1.0, 0.3])
def test_leave_one_out_gradient(small, clip):
    tree, X, y, weights, point = small
    risk = LeaveOneOut(tree, X, np.column_stack([y, np.sign(y)]), weights, clip)
    slopes = risk(point).gradient()
    np.testing.assert_allclose(slopes, differences(risk, point, 1e-5), atol=1e-8 * np.abs(slopes).max() + 1e-9)
    single = LeaveOneOut(tree, X, risk.Y, weights, clip, dtype=np.float32)
    np.testing.assert_allclose(single(point).gradient(), slopes, atol=1e-3 * np.abs(slopes).max())


INNER = {
    "least squares": (lambda lam, b: LeastSquares(lam, intercept=b), squared_judge, False),
    "hinge": (lambda lam, b: Hinge(0.5 / lam, intercept=b), hinge_judge, True),
    "hinge, judged by clipped squares": (lambda lam, b: Hinge(0.5 / lam, intercept=b), squared_judge, True),
    "epsilon-insensitive": (
        lambda lam, b: EpsilonInsensitive(0.5 / lam, 0.05, intercept=b),
        epsilon_judge(0.05),
        False,
    ),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("inner", INNER)
def test_gradient_through_the_inner_solve(small, inner, intercept):
    """Implicit differentiation against differences of risks whose machines are trained anew."""
    tree, X, y, weights, point = small
    make_loss, judge, labels = INNER[inner]
    Y = (np.sign(y) if labels else y)[:, None]
    folds = split_rows(Y, 2, np.random.default_rng(0))
    clip = 1.0 if "clipped" in inner else None
    risk = HeldOut(tree, X, Y, weights, folds, lambda lam: make_loss(lam, intercept), judge, clip, tol=1e-11)
    slopes = risk(point).gradient()
    np.testing.assert_allclose(slopes, differences(risk, point, 1e-6), atol=1e-5 * np.abs(slopes).max())


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
        np.testing.assert_allclose(proposed, tree.evaluate(moved**2, Z, X).gram() @ alpha, atol=1e-11)
        if rng.random() < 0.5:
            function.accept()
            weights = moved
        np.testing.assert_allclose(function.values, tree.evaluate(weights**2, Z, X).gram() @ alpha, atol=1e-11)


def test_annealing_returns_the_best_weights_it_saw(rng):
    tree = make_tree(3, 2)
    X, Z, alpha = rng.uniform(-1, 1, (40, 2)), rng.uniform(-1, 1, (30, 2)), rng.standard_normal((40, 1))
    function = FixedFunction(tree, rng.uniform(0.3, 1.0, tree.n_weights), Z, X, alpha, np.float64)
    seen = []

    def risk(values):
        seen.append(float(np.mean((values[:, 0] - Z[:, 0]) ** 2)))
        return seen[-1]

    best = anneal(function, risk, 200, rng, lambda: False)
    assert best == min(seen) < seen[0]
    assert risk(function.values) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("loss", ["least_squares", "hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("how", ["all rows", "samples", "published"])
def test_every_search_lowers_every_risk(loss, how):
    X, y = friedman()
    problem = HierarchicalLearning(4, loss, X, np.where(y > 0, 1.0, -1.0) if loss == "hinge" else y)
    options = {
        "all rows": {"search_size": 200, "max_iter": 15},
        "samples": {"search_size": 90, "max_iter": 25},
        "published": {"search": "published", "schedule": SHORT},
    }[how]
    solution = problem.solve(random_state=0, **options)
    start = problem.certificate(problem.start(random_state=0))
    assert solution.value < (0.97 if how == "published" else 0.9) * start.value
    assert solution.certificate.value == pytest.approx(solution.verify().value, rel=1e-6)
    assert solution.status in (Status.ITERATION_LIMIT, Status.STALLED, Status.STATIONARY)
    lengths = {len(values) for values in solution.risks.values()}
    assert len(lengths) == 1
    if how == "published":
        assert set(solution.risks) == {"seconds", "D1", "D2", "D3"}
        assert solution.history[-1].upper == solution.risks["D3"].min()


def test_published_search_never_raises_the_best_risk_on_its_third_part():
    X, y = friedman()
    solution = HierarchicalLearning(4, "least_squares", X, y).solve("published", schedule=SHORT, random_state=1)
    best = [record.upper for record in solution.history]
    assert len(best) == SHORT.rounds * SHORT.passes
    assert (np.diff(best) <= 0).all()


def test_learned_weights_leave_out_what_does_not_matter():
    X, y = friedman(400)
    T, t = friedman(1000, seed=1)
    problem = HierarchicalLearning(1, "least_squares", X, y)
    solution = problem.solve(random_state=0)
    weights = np.exp(solution.point[:-1])
    assert weights[5:].max() < weights[:5].min()
    start = problem.decision_function(problem.start(random_state=0), T)
    assert np.mean((solution.decision_function(T) - t) ** 2) < 0.5 * np.mean((start - t) ** 2)
    assert solution.kernel.depth == 1


def test_a_search_that_cannot_improve_returns_its_start():
    X, y = friedman(80)
    problem = HierarchicalLearning(2, "least_squares", X, y)
    best = problem.solve(random_state=0, search_size=80, max_iter=300)
    far = HierarchicalLearning(2, "least_squares", X, y).solve(
        "published",
        start=best.point,
        schedule=Schedule(1, 1, 1, 1, 1, 1, 1),
        random_state=0,
    )
    assert far.status in (Status.STALLED, Status.ITERATION_LIMIT)
    assert far.value <= best.value
    if far.status is Status.STALLED:
        np.testing.assert_array_equal(far.point, best.point)


def test_time_limit_returns_the_best_so_far_with_a_warning():
    X, y = friedman(300)
    problem = HierarchicalLearning(4, "least_squares", X, y)
    with pytest.warns(ConvexKernelsWarning, match="time limit"):
        solution = problem.solve(search_size=100, max_iter=10**6, max_time=0.2, random_state=0)
    assert solution.status is Status.TIME_LIMIT
    assert solution.value <= problem.certificate(problem.start(random_state=0)).value
    with pytest.warns(ConvexKernelsWarning, match="time limit"):
        problem.solve("published", max_time=0.2, random_state=0)


def test_checkpoints_are_written_and_continued_from(tmp_path, monkeypatch):
    monkeypatch.setattr("convexkernels.outer.hierarchical_search.EVERY", 0.0)
    X, y = friedman(120)
    file = tmp_path / "weights.npy"
    problem = HierarchicalLearning(2, "least_squares", X, y)
    first = problem.solve(search_size=60, max_iter=20, random_state=0, checkpoint=file)
    saved = load_checkpoint(file, problem.tree.n_weights + 1)
    np.testing.assert_array_equal(saved, first.point)
    again = problem.solve(search_size=60, max_iter=1, random_state=0, checkpoint=file)
    assert np.abs(again.point - first.point).max() < 0.2  # one step from there
    with pytest.raises(InvalidInputError, match="no checkpoint of a kernel with 2 weights"):
        load_checkpoint(file, 3)
    foreign = tmp_path / "table.csv"
    foreign.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"table\.csv"):
        problem.solve(search_size=60, max_iter=1, checkpoint=foreign)
    assert foreign.read_text() == "a,b\n1,2\n"
    assert load_checkpoint(tmp_path / "nothing", 3) is None


class Remembering(Silent):
    def __init__(self):
        self.messages = []

    def note(self, message):
        self.messages.append(message)


def test_progress_says_when_it_will_be_over(monkeypatch):
    monkeypatch.setattr("convexkernels.outer.hierarchical_search.EVERY", 0.0)
    X, y = friedman(120)
    said = Remembering()
    HierarchicalLearning(2, "least_squares", X, y).solve(search_size=60, max_iter=4, random_state=0, progress=said)
    assert "step 2 of 4" in said.messages[1]
    assert " 50.0 %" in said.messages[1]
    assert all("s left" in message for message in said.messages)


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
    squares = np.exp(2 * start_point(tree, X, 0.1, rng, spread=0.0)[:-1])
    rates = [np.mean(np.square(X[:250] - X[250:]) @ squares[tree.places[i].weights]) for i in tree.leaves]
    # The narrow column is held back: it could otherwise decide alone.
    assert 0.05 < rates[0] < 0.45
    assert 8.0 < rates[3] / rates[0] < 12.0


def test_parts_have_their_sizes_and_all_labels(rng):
    parts = three_parts(900, rng)
    assert [len(rows) for rows in (parts.train, parts.move, parts.choose)] == [400, 200, 300]
    again = parts.reshuffled(rng)
    assert set(again.train) | set(again.move) == set(parts.train) | set(parts.move)
    np.testing.assert_array_equal(again.choose, parts.choose)
    y = np.where(np.arange(60) < 6, 1.0, -1.0)[:, None]
    for train, held_out in split_rows(y, 3, rng):
        assert (y[train] > 0).sum() == 4
        assert (y[held_out] > 0).sum() == 2


X20, Y20 = np.linspace(-1, 1, 40).reshape(20, 2), np.where(np.arange(20) % 2, 1.0, -1.0)
ONE_RARE = np.where(np.arange(20) == 3, 1.0, -1.0)
REFUSED = [
    (lambda: HierarchicalLearning(0, "least_squares", X20, Y20), "no kernel has depth 0"),
    (lambda: HierarchicalLearning([], "least_squares", X20, Y20), "empty"),
    (lambda: HierarchicalLearning([[0], []], "least_squares", X20, Y20), "empty"),
    (lambda: HierarchicalLearning([[0], [2]], "least_squares", X20, Y20), "unknown feature 2"),
    (lambda: HierarchicalLearning([[0], 1], "least_squares", X20, Y20), "both"),
    (lambda: HierarchicalLearning("deep", "least_squares", X20, Y20), "number of nodes"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20, subsets="some"), "subsets"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20, subsets=[]), "subsets is empty"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20, subsets=[[0], []]), "a group of subsets is empty"),
    (lambda: HierarchicalLearning(4, "squared", X20, Y20), "loss must be one of"),
    (lambda: HierarchicalLearning(4, "hinge", X20, Y20, folds="leave-one-out"), "closed form for least squares"),
    (lambda: HierarchicalLearning(4, "hinge", X20, 2.0 * Y20), "labels -1 and \\+1"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20, sample_weight=np.zeros(20)), "sample_weight"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20, clip=-1.0), "clip"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, ONE_RARE, clip=1.0).solve("published"), "too small"),
    (lambda: HierarchicalLearning(4, "hinge", X20[:3], Y20[:3]).solve(), "too few"),
    (lambda: HierarchicalLearning(4, "least_squares", X20[:5], Y20[:5]).solve("published"), "three parts"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20).solve("random"), "search must be one of"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20).solve(start=[0.0]), "start must be"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20).solve(max_time=0.0), "max_time"),
    (lambda: HierarchicalLearning(4, "least_squares", X20, Y20).solve("published", schedule=Schedule(0)), "rounds"),
]


@pytest.mark.parametrize(("attempt", "phrase"), REFUSED)
def test_bad_input_is_refused(attempt, phrase):
    with pytest.raises(InvalidInputError, match=phrase):
        attempt()


def test_moons_with_noise_features_are_separated():
    X, y = make_two_moons(300, noise=0.15, n_noise_features=3, random_state=0)
    T, t = make_two_moons(500, noise=0.15, n_noise_features=3, random_state=1)
    solution = HierarchicalLearning(2, "hinge", X, y.astype(float), folds=3).solve(random_state=0, max_iter=30)
    assert np.mean(np.sign(solution.decision_function(T)) == t) > 0.95
