"""Two states of the library side by side: what estimators learn, and processor seconds of the same work.

    python -m benchmarks.states outputs --before PATH [--only NAME ...]
    python -m benchmarks.states speed --before PATH --data DIR [--only NAME ...] [--repeats 7] [--rows N]

``outputs`` fits every kind of estimator on small tables with fixed seeds, with the settings that both states offer, and
prints the largest difference of values at new points, over their largest size. ``speed`` runs the two states in turns
and compares the least of several runs; DIR holds the tables, `--rows` takes fewer of their rows.

Every run is a process of its own with one thread. Where parameters have been renamed, the names of either are tried.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parents[1]
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "NUMBA")}


def seconds(work, repeats=1):
    """The least processor time of some calls."""
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def either(now, before):
    """What can be made by the names of now, or by those of before."""
    try:
        return now()
    except (AttributeError, TypeError):
        return before()


# --- speed: each a function of the folder of tables and of the most rows, which returns seconds -------------------


def table(folder, name, rows, target="y"):
    """Features scaled to [0, 1] and labels, rows in random order."""
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    X, y = frame.drop(columns=target).to_numpy(dtype=np.float64), frame[target].to_numpy()
    order = np.random.default_rng(0).permutation(len(X))[:rows]
    low, high = X.min(axis=0), X.max(axis=0)
    return ((X - low) / np.where(high > low, high - low, 1.0))[order], y[order]


def solved(family, loss, X, y, tol, repeats=3):
    """Time from arrays to a certified solution; the first run compiles and does not count."""
    import convexkernels as ck

    work = lambda: ck.KernelLearning(family, loss, X, y).solve(tol=tol)  # noqa: E731
    work()
    return seconds(work, repeats)


def tessellated_fit(folder, rows):
    """A tessellated kernel on 614 rows of pima, C = 1, gap 1e-5."""
    import convexkernels as ck

    X, y = table(folder, "pima", min(rows, 614))
    family = ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1), trace=18.0)
    return solved(family, ck.Hinge(1.0), X, np.where(y == 1, 1.0, -1.0), 1e-5)


def tessellated_full(folder, rows):
    """With z among the monomials, on 276 rows of liver, C = 10, gap 1e-4."""
    import convexkernels as ck

    X, y = table(folder, "liver", min(rows, 276))
    family = ck.Tessellated(degree=1, box=ck.UnitBox(0.5), trace=1.0)
    return solved(family, ck.Hinge(10.0), X, np.where(y == 1, 1.0, -1.0), 1e-4)


def multiple_kernels(folder, rows):
    """455 candidates on 175 rows of ionosphere, C = 100, gap 1e-4."""
    import convexkernels as ck

    X, y = table(folder, "ionosphere", min(rows, 175))
    X = X[:, X.std(axis=0) > 0.0]
    family = ck.Candidates(ck.kernel_library(X.shape[1]), allow_duplicates=True)
    return solved(family, ck.Hinge(100.0), (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == "g", 1.0, -1.0), 1e-4)


def random_tessellated_kernels(folder, rows):
    """300 random tessellated kernels on 276 rows of liver, C = 10, gap 1e-4."""
    import convexkernels as ck

    X, y = table(folder, "liver", min(rows, 276))
    family = ck.Candidates(ck.random_tessellated_kernels(6, 300), normalize="mean")
    return solved(family, ck.Hinge(10.0), X, np.where(y == 1, 1.0, -1.0), 1e-4)


def tree(folder, rows):
    """A hierarchical kernel of 8 nodes on 7,000 rows of bank: 100 steps and the final function."""
    import convexkernels as ck

    X, y = table(folder, "bank", min(rows, 7000))
    X, y = 2.0 * X - 1.0, np.where(y == "yes", 1.0, -1.0)
    model = ck.HierarchicalGaussianRegressor(8, max_time=None, random_state=0)
    model.fit(X[:100], y[:100])
    return seconds(lambda: model.fit(X, y))


def restarts(interpolates):
    """64 restarts on 100 points of |x - y|, one process."""
    import convexkernels as ck

    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    y = 1.0 / (0.1 + np.abs(X[:, 0] - X[:, 1]))
    fixed = {"layers": [ck.Matern(order=3), ck.Polynomial(1)], "n_restarts": 64, "tol": 1e-4, "random_state": 0}
    made = ck.ConcatenatedKernelInterpolator if interpolates else ck.ConcatenatedKernelRegressor
    model = made(**fixed) if interpolates else made(lam=1e-3, mu=1e-3, **fixed)
    model.fit(X[:20], y[:20])
    return seconds(lambda: model.fit(X, y))


def cells(folder, rows, loss):
    """Voronoi cells of 2,000 rows of covtype, class 2 against the rest: 10 lams, 10 widths, one process."""

    X, y = table(folder, "covtype", min(rows, 20_000 if loss == "least_squares" else 4000))
    X, y = 2.0 * X - 1.0, np.where(y == 2, 1.0, -1.0)
    model = voronoi("SVC", loss=loss, max_cell_size=2000, scale=False)
    model.fit(X[:300], y[:300])
    return seconds(lambda: model.fit(X, y))


def spectral_epoch(folder, rows):
    """An epoch of 6,400 rows with 20 features in batches of 64, D = 1,000: what ten epochs more take, over ten."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((min(rows, 6400), 20)).astype(np.float32)
    y = (X[:, :4].sum(axis=1) + X[:, 0] * X[:, 1] > 0).astype(int)

    def fit(epochs):
        spectral("Classifier", 1000, epochs, sigma=0.2, lam1=1e-5, lam2=1e-7).fit(X, y)

    fit(1)
    return (seconds(lambda: fit(12)) - seconds(lambda: fit(2))) / 10


def tessellated(z_degree, pulled):
    """Gram matrix or adjoint of a tessellated kernel of degree 1 on 800 points of 6 features."""
    import convexkernels as ck

    rng = np.random.default_rng(0)
    gram_set = ck.Tessellated(1, z_degree).on(rng.random((800, 6)), modulo_constants=True)
    theta, W = gram_set.initial(), rng.standard_normal((1, 800)) * (rng.random(800) < 0.5)
    work = (lambda: gram_set.adjoint(W)) if pulled else (lambda: gram_set.gram(theta))
    work()
    return seconds(work, 10)


SPEED = {
    "tessellated, pima": tessellated_fit,
    "tessellated with z, liver": tessellated_full,
    "multiple kernels, ionosphere": multiple_kernels,
    "multiple kernels, liver": random_tessellated_kernels,
    "tree, 7,000 rows": tree,
    "64 restarts, interpolation": lambda folder, rows: restarts(True),
    "64 restarts, regression": lambda folder, rows: restarts(False),
    "cells, least squares": lambda folder, rows: cells(folder, rows, "least_squares"),
    "cells, hinge": lambda folder, rows: cells(folder, rows, "hinge"),
    "spectral epoch": spectral_epoch,
    "tessellated adjoint": lambda folder, rows: tessellated(None, True),
    "tessellated adjoint, z_degree=0": lambda folder, rows: tessellated(0, True),
    "tessellated Gram": lambda folder, rows: tessellated(None, False),
    "tessellated Gram, z_degree=0": lambda folder, rows: tessellated(0, False),
}

# --- outputs: each a function that returns values at new points -----------------------------------------------------


def points(m, kind="numbers"):
    """A small table, new points, and numbers or labels."""
    rng = np.random.default_rng(0)
    X, T = rng.uniform(-1.0, 1.0, (m, 3)), rng.uniform(-1.0, 1.0, (50, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.standard_normal(m)
    return (X, y, T) if kind == "numbers" else (X, (y > np.median(y)).astype(int), T)


def values(model, kind, m=80):
    """What a model says at new points, after learning from the table."""
    X, y, T = points(m, kind)
    model.fit(X, y)
    return model.predict(T) if kind == "numbers" else model.decision_function(T)


def convex(name, kind, **settings):
    """A convex estimator with all that has another default now."""
    import convexkernels as ck

    if name.startswith("MultipleKernel"):
        settings |= {"kernels": [ck.Gaussian(g) for g in (0.3, 1.0, 3.0)], "normalize": "mean"}
    else:
        settings |= {"degree": 1, "z_degree": 0, "margin": 0.5}
    model = getattr(ck, name)(tol=1e-9, max_time=None, **settings)
    if name.startswith("Tessellated") and not hasattr(model, "trace"):  # it was 1, and is a scale of the table now
        trace = model.fit(*points(80, kind)[:2]).solution_.problem.family.trace
        model.set_params(
            **{key: settings[key] * by for key, by in (("C", 1 / trace), ("lam", trace)) if key in settings}
        )
    return values(model, kind)


def hierarchical(kind, m=80, **settings):
    """A tree of four nodes, ten steps on all rows: clipping makes more of rounding with every step."""
    import convexkernels as ck

    name = "HierarchicalGaussian" + ("Regressor" if kind == "numbers" else "Classifier")
    one = either(lambda: {"selection": ck.TreeSelection(combine="one")}, dict)
    made, fixed = getattr(ck, name), {"max_time": None, "random_state": 0, **one, **settings}
    model = either(
        lambda: made(4, search=ck.TreeSearch("quasi-newton", lam=0.1, max_iter=10), **fixed),
        lambda: made(4, search="hypergradient", search_size=m, lam=0.1, max_iter=10, **fixed),
    )
    return values(model, kind, m)


def concatenated(name, kind, **settings):
    """Two layers, with the weights given; the targets of interpolation have no noise."""
    import convexkernels as ck

    fixed = {"layers": [ck.Matern(order=3), ck.Polynomial(1)], "n_restarts": 8, "tol": 1e-6, "random_state": 0}
    model = getattr(ck, "ConcatenatedKernel" + name)(**fixed, max_time=None, **settings)
    if name != "Interpolator":
        return values(model, kind, 40)
    X, _, T = points(40)
    return model.fit(X, np.abs(X[:, 0] - X[:, 1])).predict(T)


def spectral(name, n_components, epochs, dtype="float32", **settings):
    """A spectral estimator that trains for some epochs on all rows."""
    import convexkernels as ck

    made, fixed = getattr(ck, "SpectralKernel" + name), {"max_time": None, "random_state": 0, **settings}
    training = {"max_epochs": epochs, "dtype": dtype}
    return either(
        lambda: made(n_components=n_components, training=ck.Training(validation_fraction=0.0, **training), **fixed),
        lambda: made(n_features=n_components, early_stopping=False, **training, **fixed),
    )


def voronoi(name, max_cell_size=40, scale=True, candidates=10, **settings):
    """Voronoi cells without overlap, with one width for all features; as many lams as widths."""
    import convexkernels as ck

    validation = "leave-one-out" if name == "Ridge" or settings.get("loss") == "least_squares" else 5
    made, fixed = getattr(ck, "Voronoi" + name), {"max_time": None, "random_state": 0, "tol": 1e-6, **settings}
    return either(
        lambda: made(
            cells=ck.Cells("voronoi", scale=scale),
            selection=ck.CellSelection(validation, candidates, candidates, widths="isotropic"),
            max_cell_size=max_cell_size,
            **fixed,
        ),
        lambda: made(
            partition="voronoi",
            scale=scale,
            validation=validation,
            n_lams=candidates,
            n_widths=candidates,
            max_cell_size=max_cell_size,
            **fixed,
        ),
    )


FIXED = {"sigma": 0.3, "lam1": 1e-3, "lam2": 1e-4, "dtype": "float64"}
OUTPUTS = {
    "TessellatedSVC": lambda: convex("TessellatedSVC", "labels", C=1.0),
    "TessellatedSVR": lambda: convex("TessellatedSVR", "numbers", C=1.0, epsilon=0.1),
    "TessellatedRidge": lambda: convex("TessellatedRidge", "numbers", lam=0.1),
    "MultipleKernelSVC": lambda: convex("MultipleKernelSVC", "labels", C=1.0),
    "MultipleKernelSVR": lambda: convex("MultipleKernelSVR", "numbers", C=1.0, epsilon=0.1),
    "MultipleKernelRidge": lambda: convex("MultipleKernelRidge", "numbers", lam=0.1),
    "HierarchicalGaussianClassifier": lambda: hierarchical("labels"),
    "HierarchicalGaussianClassifier, hinge": lambda: hierarchical("labels", loss="hinge"),
    "HierarchicalGaussianRegressor": lambda: hierarchical("numbers"),
    "HierarchicalGaussianRegressor, epsilon": lambda: hierarchical("numbers", loss="epsilon_insensitive"),
    "ConcatenatedKernelClassifier, hinge": lambda: concatenated("Classifier", "labels", loss="hinge", lam=0.1, mu=0.1),
    "ConcatenatedKernelRegressor": lambda: concatenated("Regressor", "numbers", lam=0.1, mu=0.1),
    "ConcatenatedKernelInterpolator": lambda: concatenated("Interpolator", "numbers", mu=1.0),
    # What training starts from is another point now.
    "SpectralKernelClassifier, 5 epochs": lambda: values(spectral("Classifier", 60, 5, **FIXED), "labels"),
    "SpectralKernelRegressor, 5 epochs": lambda: values(spectral("Regressor", 60, 5, **FIXED), "numbers"),
    "SpectralKernelRegressor, no epoch": lambda: values(spectral("Regressor", 60, 0, **FIXED), "numbers"),
    "SpectralKernelRegressor, SK": lambda: values(spectral("Regressor", 60, 5, setting="SK", **FIXED), "numbers"),
    "SpectralKernelRegressor, NSK": lambda: values(spectral("Regressor", 60, 5, setting="NSK", **FIXED), "numbers"),
    # Folds charge the same lam to fewer rows now: what is chosen is another pair, what one pair teaches is not.
    "VoronoiSVC, one pair": lambda: values(voronoi("SVC", loss="hinge", candidates=1), "labels", 200),
    "VoronoiSVR, one pair": lambda: values(voronoi("SVR", candidates=1), "numbers", 200),
    "VoronoiQuantile, one pair": lambda: values(voronoi("Quantile", quantile=0.7, candidates=1), "numbers", 200),
    "VoronoiSVC, least squares": lambda: values(voronoi("SVC", loss="least_squares"), "labels", 200),
    "VoronoiRidge": lambda: values(voronoi("Ridge"), "numbers", 200),
}


def run(place, part, name, options=()):
    """One run in a process that sees the library of a state only."""
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(place)}
    command = [sys.executable, "-W", "ignore", __file__, part, "--work", name, *map(str, options)]
    done = subprocess.run(command, env=environment, cwd="/", check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} in {place}:\n{done.stderr[-2000:]}")
    return np.array(json.loads(done.stdout))


def compare_outputs(before, names):
    print(f"{'estimator':<40} {'difference over the largest value':>34}")
    for name in names:
        old, new = (run(place, "outputs", name) for place in (before, HERE))
        print(f"{name:<40} {np.abs(old - new).max() / np.abs(old).max():>34.1e}", flush=True)


def compare_speed(before, names, repeats, options):
    print(f"{'work':<34} {'before':>10} {'after':>10} {'ratio':>7}")
    for name in names:
        pairs = [[float(run(place, "speed", name, options)) for place in (before, HERE)] for _ in range(repeats)]
        old, new = np.min(pairs, axis=0)
        print(f"{name:<34} {old:>10.4f} {new:>10.4f} {new / old:>7.2f}", flush=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["outputs", "speed"])
    parser.add_argument("--before", type=Path, help="another checkout of the library")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the tables")
    parser.add_argument("--rows", type=int, default=10**6, help="most rows of a table")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    table_of = {"outputs": OUTPUTS, "speed": SPEED}[arguments.part]
    if arguments.work:
        warnings.simplefilter("ignore")
        given = () if arguments.part == "outputs" else (arguments.data, arguments.rows)
        print(json.dumps(np.asarray(table_of[arguments.work](*given)).tolist()))
        return
    if arguments.before is None:
        parser.error("--before: name the checkout to compare with")
    names, before = arguments.only or list(table_of), arguments.before.resolve()
    if set(names) - table_of.keys():
        parser.error(f"--only: there are {', '.join(table_of)}")
    if arguments.part == "outputs":
        compare_outputs(before, names)
    else:
        options = ("--data", arguments.data.resolve(), "--rows", arguments.rows)
        compare_speed(before, names, arguments.repeats, options)


if __name__ == "__main__":
    main()
