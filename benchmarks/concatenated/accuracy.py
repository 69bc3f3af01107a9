"""Accuracy of concatenated regression on tables, beside a cross-validated single layer with the same outer kernel.

    python -m benchmarks.concatenated.accuracy --data FOLDER [names]

FOLDER holds NAME.csv.gz with a header and the target in column y. 2,000 rows are drawn, half of them learned from.
With --deep also deep kernel learning (Wilson et al., 2016) as GPyTorch's example has it: a network of 1000, 500, 50 and
2 units under a Gaussian kernel, all parameters by Adam on the marginal likelihood (pip install gpytorch).
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from convexkernels import ConcatenatedKernelRegressor, ConvexKernelsWarning, Matern, Polynomial, warm_up
from convexkernels.datasets import load_table
from convexkernels.solvers.nonconvex.paths import PAPER_GRID

OUTER = Matern(order=2)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first-draw", type=int, default=0, help="seed of the first draw of rows")
    parser.add_argument("--restarts", type=int, default=8)
    parser.add_argument("--deep", action="store_true", help="deep kernel learning beside it")
    parser.add_argument("names", nargs="*", default=["abalone", "ccpp", "cpusmall"])
    options = parser.parse_args(argv)
    warm_up()
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    heads = ["one layer", "two layers", "deep", "lam", "mu", "one [s]", "two [s]", "deep [s]"]
    print(f"{'table':<10} {'draw':>4} " + " ".join(f"{head:>10}" for head in heads) + "  (R^2)")
    for name in options.names:
        X, y, _ = load_table(options.data / f"{name}.csv.gz", "y")
        seeds = range(options.first_draw, options.first_draw + options.draws)
        scores = [compare(name, X, y.astype(float), seed, options.restarts, options.deep) for seed in seeds]
        print(f"{name:<10} median " + " ".join(f"{score:9.4f} " for score in np.median(scores, axis=0)), flush=True)


def deep_kernel(X, y, T, seed, n_iter=100):
    """Predictions of a Gaussian process whose kernel sees the outputs of a network."""
    import gpytorch
    import torch

    torch.manual_seed(seed)
    X, y, T = (torch.as_tensor(a, dtype=torch.float32) for a in (X, y, T))
    widths = [X.shape[1], 1000, 500, 50]
    layers = [m for a, b in pairwise(widths) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(50, 2))

    class DeepKernel(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(X, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))
            self.network = network
            self.scale = gpytorch.utils.grid.ScaleToBounds(-1.0, 1.0)

        def forward(self, x):
            features = self.scale(self.network(x))
            return gpytorch.distributions.MultivariateNormal(self.mean(features), self.kernel(features))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = DeepKernel(likelihood)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model.train(), likelihood.train()
    for _ in range(n_iter):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        return model(T).mean.numpy()


def compare(name, X, y, seed, n_restarts, with_deep):
    rows = np.random.default_rng(seed).permutation(len(X))[:2000]
    X, T, y, t = train_test_split(X[rows], y[rows], test_size=0.5, random_state=seed)
    began = time.perf_counter()
    scaler, target = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
    S = scaler.transform(X)
    ridge = GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": [*PAPER_GRID, 2.0, 8.0, 32.0]}, cv=5)
    ridge.fit(OUTER(S), target.transform(y[:, None])[:, 0])
    single = target.inverse_transform(ridge.predict(OUTER(scaler.transform(T), S))[:, None])[:, 0]
    middle = time.perf_counter()
    deep = ConcatenatedKernelRegressor([OUTER, Polynomial(degree=1)], n_restarts=n_restarts, random_state=seed)
    double = make_pipeline(StandardScaler(), deep).fit(X, y)
    end = time.perf_counter()
    third = np.full(len(t), np.nan)
    if with_deep:
        values = deep_kernel(S, target.transform(y[:, None])[:, 0], scaler.transform(T), seed)
        third = target.inverse_transform(values[:, None])[:, 0]
    last = time.perf_counter()
    scores = r2_score(t, single), r2_score(t, double.predict(T)), r2_score(t, third) if with_deep else np.nan
    cells = [f"{score:10.4f}" for score in scores] + [f"{deep.lam_:10.2e}", f"{deep.mu_:10.2e}"]
    cells += [f"{seconds:10.1f}" for seconds in (middle - began, end - middle, last - end)]
    print(f"{name:<10} {seed:>4} " + " ".join(cells) + f"  {deep.solution_.status.name}", flush=True)
    return scores


if __name__ == "__main__":
    main()
