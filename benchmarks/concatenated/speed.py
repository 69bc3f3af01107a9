"""Time of concatenated learning: restarts, one gradient, finite differences, a thousand points.

    python -m benchmarks.concatenated.speed              everything
    python -m benchmarks.concatenated.speed --only gradient differences
    python -m benchmarks.concatenated.speed --only states --before PATH      against another checkout of the library

Ratios are taken inside one run, between interleaved repetitions, because machines are shared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from convexkernels import (
    Concatenations,
    ConvexKernelsWarning,
    Gaussian,
    Interpolation,
    LeastSquares,
    Matern,
    OuterLearning,
    Polynomial,
    TensorMatern,
    TrainingValue,
    warm_up,
)
from convexkernels.datasets import make_inverse_distance
from convexkernels.solvers.nonconvex.bfgs import Limits, descend
from convexkernels.solvers.nonconvex.restarts import Restarts

PAIRS = {
    "Matern o Polynomial(1)": [Matern(2), Polynomial(1)],
    "Matern o Polynomial(2)": [Matern(2), Polynomial(2)],
    "TensorMatern o Polynomial(2)": [TensorMatern(1, smoothing=0.01), Polynomial(2)],
    "Matern o Gaussian": [Matern(2), Gaussian(0.5)],
    "Matern o Gaussian o Polynomial(1)": [Matern(2), Gaussian(0.5), Polynomial(1)],
}


def problem(layers, loss, m):
    X, y = make_inverse_distance(m, random_state=0)
    family = Concatenations(layers, widths=2, mu=1.0 if isinstance(loss, Interpolation) else 1e-3)
    return OuterLearning(family, loss, TrainingValue(), X, y)


def random_start(stated, seed):
    """A chart around a random point, and its coordinates."""
    chart = stated.gram_set.chart(stated.start(seed, 1))
    return chart, chart.u


def restarts():
    print("\n64 restarts, m = 100, D = 2, two processes (includes their start)")
    for name, layers in list(PAIRS.items())[:4]:
        for label, loss in (("Int", Interpolation()), ("Reg", LeastSquares(1e-3, intercept=False))):
            stated = problem(layers, loss, 100)
            began, cpu = time.perf_counter(), time.process_time()
            solution = stated.solve(restarts=64, random_state=0, n_jobs=2)
            wall = time.perf_counter() - began
            began = time.process_time()
            stated.solve(restarts=64, random_state=0)
            cpu = time.process_time() - began
            print(
                f"  {label} {name:<30} {wall:6.1f} s wall, {cpu:6.1f} s processor in one process, "
                f"{solution.n_iter} iterations, {solution.status.name}",
                flush=True,
            )


def gradient():
    print("\nvalue and gradient together, over the value alone (median of interleaved repetitions, one thread)")
    with threadpool_limits(1):
        for m, repeats in ((100, 200), (1000, 9)):
            for name, layers in PAIRS.items():
                stated = problem(layers, LeastSquares(1e-3, intercept=False), m)
                coordinates, u = random_start(stated, 0)
                times = np.array([one_pair(stated, coordinates, u) for _ in range(repeats)])
                value, both = np.median(times, axis=0)
                print(f"  m = {m:<5} {name:<34} {1e3 * value:8.2f} ms, {both / value:.2f} times that with gradient")


def one_pair(stated, coordinates, u):
    began = time.process_time()
    stated.evaluate(coordinates, u)
    middle = time.process_time()
    stated.evaluate(coordinates, u).gradient()
    return middle - began, time.process_time() - middle


def differences():
    """The same descent with the gradient of the library and with scipy's finite differences."""
    print("\none descent, m = 100: adjoint gradient against finite differences of the same objective, one thread")
    with threadpool_limits(1):
        for name in ("Matern o Polynomial(1)", "Matern o Polynomial(2)", "Matern o Gaussian"):
            stated = problem(PAIRS[name], LeastSquares(1e-3, intercept=False), 100)
            coordinates, u = random_start(stated, 1)

            def value(v, stated=stated, coordinates=coordinates):
                return stated.evaluate(coordinates, v).value

            def slope(v, stated=stated, coordinates=coordinates):
                return stated.evaluate(coordinates, v).gradient()

            began = time.process_time()
            *_, ours = descend(lambda v, s=stated, c=coordinates: s.evaluate(c, v), u, Limits(1e-4))
            times = [time.process_time() - began]
            ends = [ours.value]
            for jac in (slope, None):
                began = time.process_time()
                peer = minimize(value, u, jac=jac, method="BFGS", options={"maxiter": ours.n_iter + 1})
                times.append(time.process_time() - began)
                ends.append(peer.fun)
            print(
                f"  {name:<24} {u.size:>4} unknowns: {times[0]:.2f} s to {ends[0]:.6g}; scipy BFGS with the same "
                f"gradient {times[1]:.2f} s to {ends[1]:.6g}; with finite differences {times[2]:.2f} s to {ends[2]:.6g}"
                f" ({times[2] / times[0]:.0f} times ours)",
                flush=True,
            )


def thousand():
    print("\nregression, m = 1000, 8 restarts")
    for name in ("Matern o Polynomial(1)", "Matern o Polynomial(2)", "Matern o Gaussian"):
        for size in (400, None):
            stated = problem(PAIRS[name], LeastSquares(1e-3, intercept=False), 1000)
            solution = stated.solve(Restarts(8, size, random_state=0))
            searched = "all points" if size is None else f"{size} points first"
            print(
                f"  {name:<24} searched on {searched:<16} {solution.seconds:6.1f} s to {solution.value:.6g}, "
                f"{solution.status.name}, relative gradient {solution.certificate.relative_residual:.1e}",
                flush=True,
            )


# 64 restarts at N = 100 by both estimators, in whatever checkout is imported: processor seconds and final value.
ONE_DRAW = """
import sys, time, warnings
from convexkernels import ConcatenatedKernelInterpolator, ConcatenatedKernelRegressor
from convexkernels.datasets import make_inverse_distance

warnings.simplefilter("ignore")
X, y = make_inverse_distance(100, random_state=int(sys.argv[1]))
for n_restarts in (1, 64):  # the first loads what is loaded once
    models = (
        ConcatenatedKernelInterpolator(n_restarts=n_restarts, random_state=0),
        ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3, n_restarts=n_restarts, random_state=0),
    )
    for model in models:
        began = time.process_time()
        model.fit(X, y)
        if n_restarts > 1:
            print(time.process_time() - began, model.solution_.value)
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def states(before=None, draws=5):
    """The search of this checkout and of another one, in turns, each draw in a process of its own with one thread."""
    print("\n64 restarts, N = 100, one thread: processor seconds and final value (Int, Reg)")
    for name, loss in (("Int", Interpolation()), ("Reg", LeastSquares(1e-3, intercept=False))):
        stated = problem(PAIRS["Matern o Polynomial(1)"], loss, 100)
        print(f"  {name}: gradient differs from central differences by {gradient_error(stated):.1e} of its length")
    here = str(Path(__file__).resolve().parents[2])
    total = {}
    for draw in range(draws):
        for place in (before, here) if before else (here,):
            command = [sys.executable, "-c", ONE_DRAW, str(draw)]
            environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": place}
            with tempfile.TemporaryDirectory() as neutral:
                out = subprocess.run(command, env=environment, cwd=neutral, check=True, capture_output=True, text=True)
            found = np.array([line.split() for line in out.stdout.splitlines()], dtype=float)
            total[place] = total.get(place, 0.0) + found[:, 0]
            said = ", ".join(f"{seconds:.2f} s to {value:.12g}" for seconds, value in found)
            print(f"  draw {draw}, {'this one' if place == here else 'before  '}: {said}", flush=True)
    if before:
        print("  processor time over that before: Int {:.2f}, Reg {:.2f}".format(*(total[here] / total[before])))


def gradient_error(stated, step=1e-5):
    """Largest difference of slopes along ten directions from central differences, over the length of the gradient."""
    chart, u = random_start(stated, 0)
    gradient, rng = stated.evaluate(chart, u).gradient(), np.random.default_rng(0)
    worst = 0.0
    for _ in range(10):
        v = rng.standard_normal(u.size)
        v /= np.linalg.norm(v)
        up, down = (stated.evaluate(chart, u + sign * step * v).value for sign in (1.0, -1.0))
        worst = max(worst, abs((up - down) / (2.0 * step) - gradient @ v))
    return worst / np.linalg.norm(gradient)


PARTS = {"states": states, "restarts": restarts, "gradient": gradient, "differences": differences, "thousand": thousand}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--before", help="folder of another checkout, for 'states'")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    warm_up()
    for part in arguments.only:
        PARTS[part](*([arguments.before] if part == "states" else []))
