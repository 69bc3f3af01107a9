"""Training speed on MNIST against the same model in plain PyTorch on the same processor, in one run.

    python -m benchmarks.spectral.speed --data FOLDER [--steps 150] [--threads 2]

The model: 60,000 x 784, D = 2,000 pairs of frequencies, logistic loss on ten classes, Adam on all parameters. The peer
is autograd with torch.optim.Adam, with the loops a PyTorch user would write. A fraction of an epoch is timed and scaled
up, each contender in processes of its own, alternately. Then whole runs with batches of 32, 256 and 512, of as many
epochs each, show what larger batches cost in accuracy.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.spectral.rivals import read
from convexkernels import LeastSquares, OuterLearning, SpectralKernelClassifier, SpectralMaps, Training, warm_up
from convexkernels.backend import Backend
from convexkernels.criteria import TrainingValue
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import score_loss
from convexkernels.spectral.options import SETTINGS
from convexkernels.spectral.training import MULTITHREADED_BATCH, TrainingRun
from convexkernels.threads import threads_for

D, SIGMA = 2000, 0.05


def ours(X, Y, setting, batch, backend):
    """A function that makes one step of the library."""
    rng = np.random.default_rng(0)
    problem = SpectralLearning.stated(
        X, Y, score_loss("logistic"), SETTINGS[setting], lam1=1e-6, lam2=0.0, backend=backend
    )
    drawn = SpectralMap.draw(X.shape[1], D, stationary=False, feature_map="phi", rng=rng, backend=backend).scaled(SIGMA)
    point = SpectralPoint(drawn, backend.array(np.zeros((D, 10))), backend.array(np.zeros(10)))
    training = TrainingRun(problem, point, Training(batch, 0.03, 10), rng)
    order = backend.there(rng.permutation(len(X)))

    def step(i):
        rows = order[(i * batch) % (len(X) - batch) :][:batch]
        with threads_for(batch, enough=MULTITHREADED_BATCH):  # as an epoch does
            return training.step(rows, 0.1)

    return step


def plain_torch(X, Y, batch):
    """A function that makes one step of the same model, written for PyTorch."""
    import torch

    torch.manual_seed(0)
    X, y = torch.tensor(X), torch.tensor(Y.argmax(axis=1))
    first, second = (torch.nn.Parameter(SIGMA * torch.randn(X.shape[1], D)) for _ in range(2))
    phase, W, c = 2 * np.pi * torch.rand(D), torch.nn.Parameter(torch.zeros(D, 10)), torch.nn.Parameter(torch.zeros(10))
    optimizer = torch.optim.Adam([first, second, W, c], lr=1e-3)
    order = torch.randperm(len(X))

    def step(i):
        rows = order[(i * batch) % (len(X) - batch) :][:batch]
        x = X[rows]
        features = (torch.cos(x @ first + phase) + torch.cos(x @ second + phase)) / (2 * D) ** 0.5
        loss = torch.nn.functional.cross_entropy(features @ W + c, y[rows]) + 1e-6 * (W * W).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


CONTENDERS = {
    "numpy, NSKL": lambda X, Y, batch: ours(X, Y, "NSKL", batch, Backend()),
    "numpy, ASKL": lambda X, Y, batch: ours(X, Y, "ASKL", batch, Backend()),
    "tensors, NSKL": lambda X, Y, batch: ours(X, Y, "NSKL", batch, Backend(device="cpu")),
    "plain PyTorch": plain_torch,
}


def time_steps(name, batch, n_steps, threads, folder):
    """Median wall time and mean processor time of a step, in seconds; to be called in a process of its own."""
    if "numpy" not in name:
        import torch

        torch.set_num_threads(threads)
    warm_up()
    with threadpool_limits(threads), threads_for(1, alone=threads > 1, enough=1):
        step = CONTENDERS[name](np.load(folder / "X.npy"), np.load(folder / "Y.npy"), batch)
        step(0)
        step(1)
        seconds, cpu = np.empty(n_steps), time.process_time()
        for i in range(n_steps):
            began = time.perf_counter()
            step(i + 2)
            seconds[i] = time.perf_counter() - began
    return float(np.median(seconds)), (time.process_time() - cpu) / n_steps


def compare_steps(X, Y, options):
    """Each contender in processes of its own, alternately: waiting threads of one library slow the others."""
    names = list(CONTENDERS) if find_spec("torch") else list(CONTENDERS)[:2]
    with TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        np.save(folder / "X.npy", X)
        np.save(folder / "Y.npy", Y)
        for batch in (32, 256, 512):
            n_steps = max(2, options.steps * 32 // batch)
            found = {name: [] for name in names}
            for _ in range(options.rounds):
                for name in names:
                    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                        job = pool.submit(time_steps, name, batch, n_steps, options.threads, folder)
                        found[name].append(job.result())
            report(batch, {name: np.median(pairs, axis=0) for name, pairs in found.items()}, len(X))


def report(batch, found, m):
    for name, (wall, cpu) in found.items():
        ratio = f", {wall / found['plain PyTorch'][0]:.2f} of plain PyTorch" if "plain PyTorch" in found else ""
        print(
            f"batch {batch:>3}, {name:<14} {1e3 * wall:7.2f} ms a step ({1e3 * cpu:.2f} of processor), "
            f"{wall * m / batch:6.1f} s an epoch{ratio}",
            flush=True,
        )


def compare_batches(X, y, options):
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[: options.rows], rows[-10_000:]
    for batch in (32, 256, 512):
        model = SpectralKernelClassifier(
            n_components=D, sigma=SIGMA, training=Training(batch_size=batch, max_epochs=options.epochs), random_state=0
        )
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X[train], y[train])
        print(
            f"batch {batch:>3}, {options.epochs} epochs on {len(train)} rows: {time.perf_counter() - wall:.1f} s "
            f"({time.process_time() - cpu:.1f} of processor), accuracy {100 * model.score(X[test], y[test]):.2f} %",
            flush=True,
        )


def compare_searches(options):
    """Joint training by Adam against variable projection: the same objective, both with an exact last W."""
    X, y = read(options.data, "space_ga")
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:2000], rows[2000:]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    center, spread = y[train].mean(), y[train].std()
    Y, backend = ((y - center) / spread)[:, None], Backend("float64")
    stated = SpectralLearning.stated(
        X[train], Y[train], score_loss("least_squares"), SETTINGS["NSKL"], lam1=1e-5, lam2=0.0, backend=backend
    )
    start = SpectralMap.draw(
        X.shape[1], 100, stationary=False, feature_map="psi", rng=np.random.default_rng(0), backend=backend
    ).scaled(0.35)

    def exact(spectral_map):
        return solve_inner(stated, Moments.of(spectral_map, stated))

    first = exact(start)
    found = {"as drawn": (first, 0.0)}
    for n_epochs in (20, 200):
        began = time.process_time()
        training = TrainingRun(stated, first.copy(), Training(64, 0.03, n_epochs), np.random.default_rng(0))
        training.run(n_epochs)
        point = exact(training.point.map)
        found[f"Adam, {n_epochs} epochs"] = (point, time.process_time() - began)
    for n_iter in (20, 200):
        began = time.process_time()
        outer = OuterLearning(SpectralMaps(100), LeastSquares(1e-5 * len(train)), TrainingValue(), X[train], Y[train])
        solution = outer.solve("quasi-newton", start=start.omega.ravel(), max_iter=n_iter)
        point = exact(start.with_omega(solution.theta.reshape(start.omega.shape)))
        found[f"variable projection, {n_iter} steps"] = (point, time.process_time() - began)
    for name, (point, seconds) in found.items():
        error = spread * np.sqrt(np.mean((stated.function(point).decision_function(X[test]) - Y[test]) ** 2))
        print(
            f"space_ga, 2,000 rows, D = 100, {name:<34} objective {stated.objective(point):.5f}, "
            f"test error {error:.3f}, {seconds:.1f} s of processor",
            flush=True,
        )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with mnist.csv.gz; random pixels when not given")
    parser.add_argument("--out", type=Path, help="not used: nothing is drawn")
    parser.add_argument("--steps", type=int, default=150, help="steps of 32 rows that are timed (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each contender (%(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=10_000, help="of the comparison of batch sizes; 0 leaves it out")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--searches", action="store_true", help="only compare Adam with variable projection")
    parser.add_argument("--quick", action="store_true", help="10 steps, no comparison of batch sizes")
    options = parser.parse_args(argv)
    if options.quick:
        options.steps, options.rounds, options.rows = 10, 1, 0
    if options.searches:
        with threadpool_limits(options.threads):
            compare_searches(options)
        return
    if options.data is None:
        rng = np.random.default_rng(0)
        X, y = rng.random((2000, 784), dtype=np.float32), np.arange(2000) % 10
    else:
        X, y = read(options.data, "mnist")
        X, y = X[:60_000], y[:60_000]
        X = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    Y = score_loss("logistic").targets_of(y, 10).astype(np.float32)
    compare_steps(X, Y, options)
    if options.rows:
        with threadpool_limits(options.threads):
            compare_batches(X, y, options)


if __name__ == "__main__":
    main()
