"""Gaussian process regression by GPyTorch: imported only where torch and gpytorch are installed."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import torch

EXACT_ROWS, POINTS, STEPS, RATE = 2000, 512, 100, 0.1


class _Model(gpytorch.models.ExactGP):  # type: ignore[misc]
    def __init__(self, X: Any, y: Any, likelihood: Any) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))
        if len(X) > EXACT_ROWS:
            points = X[torch.randperm(len(X))[:POINTS]].clone()
            kernel = gpytorch.kernels.InducingPointKernel(kernel, inducing_points=points, likelihood=likelihood)
        self.covar_module = kernel

    def forward(self, X: Any) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


class GaussianProcess:
    """A hundred steps of Adam on the marginal likelihood of standardized targets."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> GaussianProcess:
        torch.manual_seed(self.seed)
        torch.set_num_threads(1)
        self.center, self.scale = y.mean(), y.std()
        T, t = torch.tensor(X), torch.tensor((y - self.center) / self.scale)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.model = _Model(T, t, self.likelihood).double()
        self.model.train()
        value = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE)
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = -value(self.model(T), t)
            loss.backward()
            optimizer.step()
        self.model.eval()
        self.likelihood.eval()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            return self.center + self.scale * self.model(torch.tensor(X)).mean.numpy()
