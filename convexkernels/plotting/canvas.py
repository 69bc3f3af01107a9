"""Where displays draw: axes that are given, or new ones."""

from __future__ import annotations

from typing import Any

from convexkernels.exceptions import ConvexKernelsError

__all__ = ["CLASS_COLORS", "MissingPlotExtraError", "new_axes"]

# Okabe and Ito's palette: told apart by color-blind readers and in gray.
CLASS_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")


class MissingPlotExtraError(ConvexKernelsError, ImportError):
    """Something should be drawn, but matplotlib is not installed."""


def new_axes(ax: Any = None, *, size: tuple[float, float] = (6.0, 4.2), rows: int = 1) -> Any:
    """Return `ax`, or the axes of a new figure: one, or an array of `rows` that share their abscissa.

    Raises
    ------
    MissingPlotExtraError
        When matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingPlotExtraError(
            "drawing needs matplotlib, which is not installed: pip install 'convexkernels[plot]'."
        ) from error
    if ax is not None:
        return ax
    _, ax = plt.subplots(rows, 1, figsize=size, sharex=True, layout="constrained")
    return ax
