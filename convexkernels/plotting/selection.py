"""What parameters were chosen by."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.criteria.comparison import Selection
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, Display, attribute_of, curve, legend


@dataclass(eq=False, repr=False)
class SelectionDisplay(Display):
    """Held-out scores or losses along the values of a parameter, with the chosen one marked.

    Where several parameters were chosen together, the one of most values is on the abscissa, and there is a line for
    each combination of the others.

    Parameters
    ----------
    selection : Selection
        ``selection_`` of an estimator.
    """

    selection: Selection

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """The choice of a fitted estimator, refused where nothing was chosen."""
        selection = attribute_of(estimator, "selection_", "an estimator that chooses parameters")
        if selection is None:
            raise InvalidInputError(
                f"{type(estimator).__name__} had nothing to choose: its regularization parameter was given, or there "
                "were too few rows; fit it without one."
            )
        if not all(map(len, selection.curve.values())):
            raise InvalidInputError(
                f"the choice of {type(estimator).__name__} was interrupted before anything was tried; fit it again."
            )
        return cls(selection)

    def plot(self, ax: Any = None) -> Self:
        """Draw the scores, and a line at the chosen value."""
        ax, table, chosen = self._draws_on(ax), self.selection.curve, self.selection.chosen
        *names, found = table
        tried = {one: list(dict.fromkeys(map(str, table[one]))) for one in names}
        name = max(names, key=lambda one: len(tried[one]))
        others = [one for one in names if one != name and len(tried[one]) > 1]
        has_numbers = isinstance(table[name], np.ndarray)
        lines: dict[str, list[tuple[float, float]]] = {}
        for k, value in enumerate(table[found].tolist()):
            label = ", ".join(_said((other, table[other][k])) for other in others)
            place = table[name][k] if has_numbers else tried[name].index(str(table[name][k]))
            lines.setdefault(label, []).append((place, value))
        for k, (label, points) in enumerate(lines.items()):
            ax.plot(*np.array(sorted(points)).T, label=label or None, **curve(k, marked=True))
        at = chosen[name] if has_numbers else tried[name].index(str(chosen[name]))
        ax.axvline(at, color=CLASS_COLORS[1], lw=1.0, ls="--", label=", ".join(map(_said, chosen.items())))
        ax.set(xlabel=name, ylabel=found)
        if has_numbers:
            ax.set_xscale("log" if table[name].min() > 0.0 else "linear")
        else:
            ax.set_xticks(range(len(tried[name])), tried[name])
        legend(ax)
        return self


def _said(entry: tuple[str, Any]) -> str:
    name, value = entry
    return f"{name} = {value:.3g}" if isinstance(value, float) else f"{name} = {value}"
