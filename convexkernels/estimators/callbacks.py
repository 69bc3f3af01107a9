"""Callbacks of scikit-learn 1.9: a fit is a task, and every report of its progress is a task within it."""

from typing import Any

from convexkernels.progress import Silent, as_progress
from convexkernels.solution import Record


class Told(Silent):
    """Progress that is told to callbacks, besides where it is shown.

    A callback that asks to stop ends the search as an interrupt does: the best so far is kept.
    """

    def __init__(self, estimator: Any, context: Any, shown: Silent) -> None:
        self.estimator, self.context, self.shown = estimator, context, shown
        self._announced = False

    def start(self, title: str) -> None:
        self.shown.tol = self.tol
        self.shown.start(title)

    def record(self, record: Record) -> None:
        self.shown.record(record)
        self._tell("iteration")

    def note(self, message: str) -> None:
        self.shown.note(message)
        # The first words announce work, they do not report it.
        if self._announced:
            self._tell("report")
        self._announced = True

    def finish(self, message: str) -> None:
        self.shown.finish(message)

    def _tell(self, name: str) -> None:
        task = self.context.subcontext(task_name=name).call_on_fit_task_begin(estimator=self.estimator)
        if task.call_on_fit_task_end(estimator=self.estimator):
            raise KeyboardInterrupt


def told(estimator: Any, verbose: bool) -> Silent:
    """Where the messages of a fit go: to standard error if asked for, and to callbacks if there are any."""
    shown, context = as_progress(verbose), getattr(estimator, "_callback_fit_ctx", None)
    listening = context is not None and getattr(estimator, "_skl_callbacks", [])
    return Told(estimator, context, shown) if listening else shown
