"""Weights of candidate kernels: by kernel, by feature, and along the regularization parameter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.plotting.canvas import SEQUENTIAL, Display, attribute_of, curve, draw_bars, legend, signed_scale


@dataclass(eq=False, repr=False)
class KernelWeightsDisplay(Display):
    """Bars of the largest weights, or of their sums over groups of kernels.

    Parameters
    ----------
    weights : mapping of str to float
        Name of a kernel (or group) and its weight.
    largest : int
        Bars to draw; what is left is drawn as one bar.
    """

    weights: Mapping[str, float]
    largest: int = 15

    @classmethod
    def from_estimator(cls, estimator: Any, *, largest: int = 15) -> Self:
        """Weights of a fitted estimator, by kernel."""
        return cls(_weights(estimator), largest)

    @classmethod
    def by_feature(cls, estimator: Any, *, largest: int = 15) -> Self:
        """Weights of a fitted estimator, added up over the kernels that see the same columns."""
        sums: dict[str, float] = {}
        for name, weight in _weights(estimator).items():
            group = name.rsplit(" on ", 1)[-1]
            sums[group] = sums.get(group, 0.0) + weight
        return cls(sums, largest)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars, the largest weight on top."""
        ranked = sorted(self.weights.items(), key=lambda item: -item[1])
        shown = [(name, weight) for name, weight in ranked[: self.largest] if weight > 0.0]
        rest = sum(weight for _, weight in ranked) - sum(weight for _, weight in shown)
        if rest > 1e-9:
            shown.append((f"{len(ranked) - len(shown)} others", rest))
        names = [name if len(name) < 45 else name[:42] + "..." for name, _ in shown]
        self._draws_on(ax, size=(6.0, 1.2 + 0.28 * len(shown)))
        draw_bars(self.ax_, names, [weight for _, weight in shown], "weight of the kernel in the sum")
        return self


class RegularizationPathDisplay(Display):
    """Weights of candidate kernels against the regularization parameter.

    Parameters
    ----------
    prices : sequence of float, > 0
        Values of C (or lam).
    weights : array-like of shape (n_prices, l)
    names : sequence of str
    label : str
        Name of the parameter.
    largest : int
        Kernels that get a color and a name: those that ever weigh most.
    """

    def __init__(
        self, prices: Sequence[float], weights: Any, names: Sequence[str], *, label: str = "C", largest: int = 6
    ) -> None:
        self.prices, self.weights = np.asarray(prices, dtype=np.float64), np.asarray(weights, dtype=np.float64)
        self.names, self.label, self.largest = list(names), label, largest

    def plot(self, ax: Any = None) -> Self:
        """Draw one line per kernel; those without a name are gray."""
        ax = self._draws_on(ax, size=(7.6, 4.2))
        named = np.argsort(-self.weights.max(axis=0), kind="stable")[: self.largest].tolist()
        for k in range(self.weights.shape[1]):
            if k not in named and self.weights[:, k].max() > 1e-4:
                ax.plot(self.prices, self.weights[:, k], color="0.85", lw=0.8)
        for place, k in enumerate(named):
            ax.plot(self.prices, self.weights[:, k], label=self.names[k], **curve(place, marked=True))
        ax.set(xscale="log", xlabel=self.label, ylabel="weight of the kernel", ylim=(-0.02, None))
        legend(ax)
        return self


class KernelMatricesDisplay(Display):
    """Gram matrices side by side, rows sorted by target, each over its mean diagonal, all on one color scale.

    Parameters
    ----------
    matrices : mapping of str to ndarray of shape (m, m)
    y : array-like of shape (m,), optional
        Target to sort the rows by.
    """

    def __init__(self, matrices: Mapping[str, Array], y: Any = None) -> None:
        self.matrices = dict(matrices)
        self.order = None if y is None else np.argsort(np.asarray(y), kind="stable")

    def plot(self, axes: Any = None) -> Self:
        """Draw one panel per matrix."""
        panels = self._draws_panels(len(self.matrices), axes, size=(3.4, 3.1))
        values = {name: K / max(float(np.mean(np.diag(K))), 1e-300) for name, K in self.matrices.items()}
        largest = max(float(K.max()) for K in values.values())
        signs = [K for K in values.values() if K.min() < 0.0]
        scale = (
            signed_scale(np.stack([*values.values()])) if signs else {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": largest}
        )
        for ax, (name, K) in zip(panels, values.items(), strict=True):
            shown = K if self.order is None else K[np.ix_(self.order, self.order)]
            image = ax.imshow(shown, interpolation="nearest", **scale)
            ax.set(title=name, xticks=[], yticks=[], xlabel="points" + ("" if self.order is None else ", by target"))
        self.figure_.colorbar(image, ax=list(panels), shrink=0.8, label="kernel, over its mean diagonal")
        return self


def _weights(estimator: Any) -> dict[str, float]:
    """Weights of the candidates of a fitted estimator, by name."""
    names = attribute_of(estimator, "kernel_names_", "an estimator that weighs candidates, MultipleKernel...")
    return dict(zip(names, estimator.weights_.tolist(), strict=True))
