"""Comparing methods over tables: ranks, Elo, shares of the best score, and two paired tests.

Every function takes a matrix of losses (a row per table, a column per method, smaller is better), the mean over the
splits of each table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

Losses = NDArray[np.float64]
ELO_CENTER, ELO_STEP = 1000.0, 400.0


def mean_ranks(losses: Losses) -> Losses:
    """Mean rank of every method; ties share their ranks, what is missing is last."""
    return rankdata(np.where(np.isfinite(losses), losses, np.inf), axis=1).mean(0)


def shares(losses: Losses) -> Losses:
    """Mean over tables of (best loss) / (loss), 1 for the method that is best everywhere and 0 where one is missing.

    A loss of 0 counts as 1e-9, so that two methods without error are equal.
    """
    finite = np.maximum(np.where(np.isfinite(losses), losses, np.inf), 1e-9)
    return (finite.min(1, keepdims=True) / finite).mean(0)


def against(losses: Losses, k: int, other: int, margin: float = 0.0) -> tuple[int, int, int]:
    """Tables where method k wins, ties and loses by more than a margin, relative to the smaller loss."""
    a, b = losses[:, k], losses[:, other]
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    gap = margin * np.minimum(a, b)
    return int((a < b - gap).sum()), int((abs(a - b) <= gap).sum()), int((a > b + gap).sum())


def elo(losses: Losses, anchor: int, n_iter: int = 2000) -> Losses:
    """Bradley-Terry ratings on Elo's scale by maximum likelihood of all pairs on all tables, the anchor at 1000.

    Half a win and half a loss are added to every pair, so that ratings stay finite.
    """
    if losses.shape[1] < 2:
        return np.full(losses.shape[1], ELO_CENTER)
    a = np.where(np.isfinite(losses), losses, np.inf)
    wins = (a[:, :, None] < a[:, None, :]).sum(0) + 0.5 * (a[:, :, None] == a[:, None, :]).sum(0)
    wins = wins + 0.5
    np.fill_diagonal(wins, 0.0)
    games = wins + wins.T
    strength = np.ones(len(wins))
    for _ in range(n_iter):
        old = strength
        strength = wins.sum(1) / (games / (strength[:, None] + strength)).sum(1)
        strength = strength / np.exp(np.log(strength).mean())
        if np.abs(np.log(strength / old)).max() < 1e-10:
            break
    rating = ELO_STEP * np.log10(strength)
    return ELO_CENTER + rating - rating[anchor]


def wilcoxon_p(losses: Losses, k: int, other: int) -> float:
    """Two-sided p-value of the signed rank test on the log ratios of two losses."""
    change = log_ratios(losses, k, other)
    return float(wilcoxon(change).pvalue) if np.any(change != 0.0) else 1.0


def log_ratios(losses: Losses, k: int, other: int) -> Losses:
    """Logarithm of (loss of k) / (loss of the other) on tables that have both; losses below 1e-9 count as 1e-9."""
    pair = losses[:, [k, other]]
    pair = np.log(np.maximum(pair[np.isfinite(pair).all(1)], 1e-9))
    return pair[:, 0] - pair[:, 1]


def signed_rank(change: Losses, rope: float, seed: int = 0, n_draws: int = 20_000) -> tuple[float, float, float]:
    """Probabilities that the first is practically better, that they are practically equal, that it is worse.

    The Bayesian signed rank test of Benavoli, Mangili, Corani, Zaffalon and Ruggeri (2014): a Dirichlet process with
    one pseudo-observation at 0, weights of the tables drawn, and mass of all pairs of tables whose mean change is below
    -rope, within, or above.
    """
    z = np.concatenate([[0.0], change])
    pairs = z[:, None] + z
    regions = [pairs < -2.0 * rope, abs(pairs) <= 2.0 * rope, pairs > 2.0 * rope]
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(z)), n_draws)
    mass = np.stack([np.einsum("si,si->s", weights, weights @ region) for region in regions])
    winner = mass.argmax(0)
    better, equal, worse = ((winner == k).mean() for k in range(3))
    return float(better), float(equal), float(worse)
