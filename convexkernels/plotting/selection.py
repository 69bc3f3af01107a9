"""What a regularization parameter was chosen by."""

from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, Display, legend


@dataclass(eq=False, repr=False)
class SelectionDisplay(Display):
    """Held-out scores along the values of a regularization parameter, with the chosen one marked.

    Parameters
    ----------
    selection : Selection
        ``selection_`` of an estimator: `name`, `values`, `scores` and the chosen `value`.
    """

    selection: Any

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """The choice of a fitted estimator, refused where the parameter was given."""
        check_is_fitted(estimator)
        if estimator.selection_ is None:
            raise InvalidInputError(
                f"{type(estimator).__name__} had nothing to choose: its regularization parameter was given, or there "
                "were too few rows; fit it without one."
            )
        return cls(estimator.selection_)

    def plot(self, ax: Any = None) -> Self:
        """Draw the scores, and a line at the chosen value."""
        chosen = self.selection
        ax = self._draws_on(ax)
        ax.plot(chosen.values, chosen.scores, color=CLASS_COLORS[0], marker="o", ms=4)
        ax.axvline(chosen.value, color=CLASS_COLORS[1], lw=1.0, ls="--", label=f"{chosen.name} = {chosen.value:.3g}")
        ax.set(xscale="log", xlabel=chosen.name, ylabel="held-out score")
        legend(ax)
        return self
