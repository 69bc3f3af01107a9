"""A fit that is killed and begun again repeats no search that has ended, no choice and no training."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import convexkernels as ck
from convexkernels import checkpoint
from convexkernels.clock import Clock
from convexkernels.estimators.concatenated import settings as concatenated
from convexkernels.estimators.convex.fold import Fold
from convexkernels.estimators.hierarchical import stacking, training
from convexkernels.solvers.convex.held_out_path import HeldOutPath
from convexkernels.solvers.nonconvex import restarts
from convexkernels.spectral import preparation

FEW = ck.TreeSearch(max_iter=5, n_restarts=2)
PRODUCTS = ck.TreeSelection(combine="one", training=ck.AllRows(method="iterative"))
LANDMARKS = ck.TreeSelection(combine="one", training=ck.AllRows(method="landmarks", n_landmarks=20))

# What is fitted, and what has ended before a kill: functions that the fit calls, and never again.
KILLED = {
    "weights of norms": (
        ck.ConcatenatedKernelRegressor(n_restarts=1, cv=2),
        [(concatenated, "suited_weights"), (restarts, "descended")],
    ),
    "stack": (
        ck.HierarchicalGaussianRegressor(2, search=FEW, selection=ck.TreeSelection(combine="stack")),
        [(ck.OuterLearning, "train"), (stacking, "path_residuals"), (stacking, "fit")],
    ),
    "folds of architectures": (
        ck.HierarchicalGaussianRegressor((1, 2), search=FEW, selection=ck.TreeSelection(2, combine="one")),
        [(ck.OuterLearning, "train")],
    ),
    "products": (
        ck.HierarchicalGaussianRegressor(2, search=FEW, selection=PRODUCTS),
        [(HeldOutPath, "follow")],
    ),
    "landmarks": (ck.HierarchicalGaussianRegressor(2, search=FEW, selection=LANDMARKS), [(training, "lams_and_risks")]),
    "C": (ck.TessellatedSVR(tol=1e-2), [(ck.KernelLearning, "on_rows"), (Fold, "error")]),
    "sigma": (
        ck.SpectralKernelRegressor(n_components=20, training=ck.Training(max_epochs=2)),
        [(preparation, "choose_width")],
    ),
}


def counting(monkeypatch, places, end=None):
    """How often each of some functions is called from now on; call number `end` kills."""
    calls = {name: 0 for _, name in places}
    for place, name in places:
        monkeypatch.setattr(place, name, counted(getattr(place, name), name, calls, end))
    return calls


def counted(function, name, calls, end):
    def call(*arguments, **options):
        calls[name] += 1
        if calls[name] == end:
            raise SystemExit
        return function(*arguments, **options)

    return call


def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 2))
    return X, np.sin(3.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(60)


@pytest.mark.filterwarnings("ignore::convexkernels.ConvexKernelsWarning")
@pytest.mark.parametrize("name", KILLED)
def test_what_has_ended_before_a_kill_is_not_done_again(name, tmp_path, monkeypatch):
    estimator, ended = KILLED[name]
    X, y = table()
    model = clone(estimator).set_params(checkpoint=tmp_path / "fit.npz", max_time=None)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    with monkeypatch.context() as patched:
        calls = counting(patched, ended)
        patched.setattr(type(model), "_finish", killed)  # all is done by then
        with pytest.raises(SystemExit):
            clone(model).fit(X, y)
        assert min(calls.values()) > 0
    calls = counting(monkeypatch, ended)
    again = clone(model).fit(X, y)
    assert set(calls.values()) == {0}
    monkeypatch.undo()
    plain = clone(model).set_params(checkpoint=None).fit(X, y)
    np.testing.assert_allclose(again.predict(X), plain.predict(X), atol=2e-2 * np.ptp(y))


def killed(*arguments):
    raise SystemExit


def test_searches_that_differ_in_their_seed_are_known_apart(tmp_path):
    X, y = table()
    problem, search = (
        ck.OuterLearning(ck.Trees(2), ck.LeastSquares(0.1), ck.LeaveOneOut(), X, y),
        ck.TreeSearch("quasi-newton", max_iter=5),
    )
    found = [
        [search.run(problem, seed, None, Clock(None, checkpoint=file)).theta for seed in (0, 1, 0)]
        for file in (None, checkpoint.Checkpoint.of(tmp_path / "fit.npz", X, y, None))
    ]
    np.testing.assert_array_equal(*found)
    assert not np.array_equal(found[0][0], found[0][1])


def test_restarts_that_have_ended_before_a_kill_are_not_searched_again(tmp_path, monkeypatch):
    X, y = table()
    layers = [ck.Matern(2), ck.Polynomial(1)]
    plain = ck.ConcatenatedKernelRegressor(layers, lam=1e-3, mu=1e-3, n_restarts=5, random_state=0)
    model, place = clone(plain).set_params(checkpoint=tmp_path / "fit.npz"), [(restarts, "descended")]
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    with monkeypatch.context() as patched:
        calls = counting(patched, place)
        plain.fit(X, y)
        assert calls["descended"] == 9  # five coarse ones, and the best four to the end
    for _ in range(2):  # three descents have ended before each kill
        with monkeypatch.context() as patched:
            counting(patched, place, end=4)
            with pytest.raises(SystemExit):
                clone(model).fit(X, y)
    calls = counting(monkeypatch, place)
    again = clone(model).fit(X, y)
    assert calls["descended"] == 3
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))


@pytest.mark.parametrize("solver", ["conjugate-gradients", "dense"])
def test_an_end_that_was_known_says_which_rows_were_held_out(solver, tmp_path):
    X, y = table()
    problem = ck.FixedKernel(ck.Gaussian(3.0), ck.LeastSquares(1e-2), X, y)
    first, again = (problem.solve(solver, checkpoint=tmp_path / "fit.npz", random_state=0) for _ in range(2))
    assert again.n_iter == 0
    assert first.trace.keys() == again.trace.keys()
    assert "held_out_values" in again.trace
    for name, found in first.trace.items():
        np.testing.assert_array_equal(again.trace[name], found)


@pytest.mark.parametrize("feature_map", ["phi", "psi"])
def test_frequencies_of_another_seed_are_others(feature_map, tmp_path):
    X, y = table()
    first, plain = (
        ck.SpectralKernelRegressor(
            n_components=10, feature_map=feature_map, training=ck.Training(max_epochs=2), random_state=seed
        )
        for seed in (0, 1)
    )
    first.set_params(checkpoint=tmp_path / "fit.npz").fit(X, y)
    other = clone(plain).set_params(checkpoint=tmp_path / "fit.npz").fit(X, y)
    np.testing.assert_array_equal(other.predict(X), plain.fit(X, y).predict(X))


def test_files_that_take_long_are_written_less_often(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for took, due in ((0.1, 5.0), (1.0, 20.0)):
        kept = checkpoint.Checkpoint(tmp_path / "fit.npz", 0)
        with monkeypatch.context() as patched:
            patched.setattr(np, "savez", lambda *file, took=took, **numbers: now.__setitem__(0, now[0] + took))
            kept.write()
        (tmp_path / "fit.npz").unlink()
        now[0] += 0.9 * due
        assert not kept.is_due
        now[0] += 0.2 * due
        assert kept.is_due


def test_files_hold_numbers_only(tmp_path):
    X = np.random.default_rng(0).random((40, 2))
    ck.TessellatedSVR(tol=1e-2, checkpoint=tmp_path / "fit.npz").fit(X, X[:, 0])
    with np.load(tmp_path / "fit.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "bifU" for name in file.files)
