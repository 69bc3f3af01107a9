"""Two states of the library side by side: processor seconds of the same work, alternately, the least of several runs.

    python -m benchmarks.states_speed --before PATH [--repeats 7] [--only WORK ...]

Every run is a process of its own with one thread. The work is written with what both states offer; where parameters
have been renamed, the names of either are tried.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

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


def spectral_epoch():
    """An epoch of 6,400 rows with 20 features in batches of 64, D = 1,000: what ten epochs more take, over ten."""
    import convexkernels as ck

    rng = np.random.default_rng(0)
    X = rng.standard_normal((6400, 20)).astype(np.float32)
    y = (X[:, :4].sum(axis=1) + X[:, 0] * X[:, 1] > 0).astype(int)

    def fit(epochs):
        fixed = {"sigma": 0.2, "lam1": 1e-5, "lam2": 1e-7, "random_state": 0}
        try:
            training = ck.Training(max_epochs=epochs, validation_fraction=0.0)
            model = ck.SpectralKernelClassifier(n_components=1000, training=training, **fixed)
        except AttributeError:
            model = ck.SpectralKernelClassifier(n_features=1000, early_stopping=False, max_epochs=epochs, **fixed)
        model.fit(X, y)

    fit(1)
    return (seconds(lambda: fit(12)) - seconds(lambda: fit(2))) / 10


def concatenated_regressor():
    """ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3) with 32 restarts on 100 points of |x - y|."""
    import convexkernels as ck

    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    y = 1.0 / (0.1 + np.abs(X[:, 0] - X[:, 1]))
    model = ck.ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3, n_restarts=32, random_state=0)
    model.fit(X[:20], y[:20])
    return seconds(lambda: model.fit(X, y), 2)


def tessellated(z_degree, pulled):
    """Gram matrix or adjoint of a tessellated kernel of degree 1 on 800 points of 6 features."""
    import convexkernels as ck

    rng = np.random.default_rng(0)
    gram_set = ck.Tessellated(1, z_degree).on(rng.random((800, 6)), modulo_constants=True)
    theta, W = gram_set.initial(), rng.standard_normal((1, 800)) * (rng.random(800) < 0.5)
    work = (lambda: gram_set.adjoint(W)) if pulled else (lambda: gram_set.gram(theta))
    work()
    return seconds(work, 10)


WORK = {
    "spectral epoch": spectral_epoch,
    "concatenated regressor": concatenated_regressor,
    "tessellated adjoint": lambda: tessellated(None, True),
    "tessellated adjoint, z_degree=0": lambda: tessellated(0, True),
    "tessellated Gram": lambda: tessellated(None, False),
    "tessellated Gram, z_degree=0": lambda: tessellated(0, False),
}


def run(place, name):
    """One run in a process that sees the library of a state only."""
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(place)}
    command = [sys.executable, "-W", "ignore", __file__, "--work", name]
    done = subprocess.run(command, env=environment, cwd="/", check=True, capture_output=True, text=True)
    return float(done.stdout)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout of the library")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=WORK, default=list(WORK))
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.work:
        print(WORK[arguments.work]())
        return
    if arguments.before is None:
        parser.error("--before: name the checkout to compare with")
    print(f"{'work':<34} {'before':>10} {'after':>10} {'ratio':>7}")
    for name in arguments.only:
        pairs = [(run(arguments.before.resolve(), name), run(HERE, name)) for _ in range(arguments.repeats)]
        before, after = np.min(pairs, axis=0)
        print(f"{name:<34} {before:>10.4f} {after:>10.4f} {after / before:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
