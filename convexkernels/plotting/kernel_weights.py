"""Weights of candidate kernels: by kernel, by feature, and along the price of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.plotting.canvas import CLASS_COLORS, new_axes

__all__ = ["KernelMatricesDisplay", "KernelWeightsDisplay", "RegularizationPathDisplay"]


class KernelWeightsDisplay:
    """Bars of the largest weights, or of their sums over groups of kernels.

    Parameters
    ----------
    weights : mapping of str to float
        Name of a kernel (or group) and its weight.
    largest : int
        Bars to draw; what is left is drawn as one bar.
    """

    def __init__(self, weights: Mapping[str, float], largest: int = 15) -> None:
        self.weights = dict(weights)
        self.largest = largest

    @classmethod
    def from_estimator(cls, estimator: Any, *, largest: int = 15) -> Self:
        """Weights of a fitted estimator, by kernel."""
        return cls(dict(zip(estimator.kernel_names_, estimator.weights_.tolist(), strict=True)), largest)

    @classmethod
    def by_feature(cls, estimator: Any, *, largest: int = 15) -> Self:
        """Weights of a fitted estimator, added up over the kernels that see the same columns."""
        sums: dict[str, float] = {}
        for name, weight in zip(estimator.kernel_names_, estimator.weights_.tolist(), strict=True):
            group = name.rsplit(" on ", 1)[-1]
            sums[group] = sums.get(group, 0.0) + weight
        return cls(sums, largest)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure; sets `ax_` and `figure_`."""
        ranked = sorted(self.weights.items(), key=lambda item: -item[1])
        shown = [(name, weight) for name, weight in ranked[: self.largest] if weight > 0.0]
        rest = sum(weight for _, weight in ranked) - sum(weight for _, weight in shown)
        if rest > 1e-9:
            shown.append((f"{len(ranked) - len(shown)} others", rest))
        ax = new_axes(ax, size=(6.0, 1.2 + 0.28 * len(shown)))
        places = np.arange(len(shown))[::-1]
        ax.barh(places, [weight for _, weight in shown], color=CLASS_COLORS[0])
        ax.set_yticks(places, [name if len(name) < 45 else name[:42] + "..." for name, _ in shown], fontsize=8)
        ax.set_xlabel("weight")
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RegularizationPathDisplay:
    """Weights of candidate kernels against the price of errors.

    Parameters
    ----------
    prices : sequence of float, > 0
        Values of C (or lam).
    weights : array-like of shape (n_prices, l)
    names : sequence of str
    label : str
        Name of the price.
    largest : int
        Kernels that get a color and a name: those that ever weigh most.
    """

    def __init__(
        self, prices: Sequence[float], weights: Any, names: Sequence[str], *, label: str = "C", largest: int = 6
    ) -> None:
        self.prices = np.asarray(prices, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.names = list(names)
        self.label = label
        self.largest = largest

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure; sets `ax_` and `figure_`."""
        ax = new_axes(ax)
        named = np.argsort(-self.weights.max(axis=0), kind="stable")[: self.largest].tolist()
        for k in range(self.weights.shape[1]):
            if k not in named and self.weights[:, k].max() > 1e-4:
                ax.plot(self.prices, self.weights[:, k], color="0.85", lw=0.8)
        for color, k in zip(CLASS_COLORS, named, strict=False):
            ax.plot(self.prices, self.weights[:, k], color=color, marker="o", ms=3, label=self.names[k])
        ax.set(xscale="log", xlabel=self.label, ylabel="weight", ylim=(-0.02, None))
        ax.legend(frameon=False, fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class KernelMatricesDisplay:
    """Gram matrices side by side, rows sorted by target, every one with its own scale around 0.

    Parameters
    ----------
    matrices : mapping of str to ndarray of shape (m, m)
    y : array-like of shape (m,), optional
        Target to sort the rows by.
    """

    def __init__(self, matrices: Mapping[str, Array], y: Any = None) -> None:
        self.matrices = dict(matrices)
        self.order = None if y is None else np.argsort(np.asarray(y), kind="stable")

    def plot(self) -> Self:
        """Draw a new figure; sets `axes_` and `figure_`."""
        first = new_axes(None, size=(3.0 * len(self.matrices), 3.1))
        figure = first.figure
        first.remove()
        self.axes_ = figure.subplots(1, len(self.matrices), squeeze=False)[0]
        for ax, (name, K) in zip(self.axes_, self.matrices.items(), strict=True):
            shown = K if self.order is None else K[np.ix_(self.order, self.order)]
            size = float(np.abs(shown).max()) or 1.0
            image = ax.imshow(shown, cmap="RdBu_r", vmin=-size, vmax=size, interpolation="nearest")
            ax.set_title(name, fontsize=9)
            ax.set(xticks=[], yticks=[])
            figure.colorbar(image, ax=ax, shrink=0.7)
        self.figure_ = figure
        return self
