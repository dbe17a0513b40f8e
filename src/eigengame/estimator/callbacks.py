"""scikit-learn's callbacks, where its version has them: each pass is a task, each batch a task within."""

from __future__ import annotations

from typing import Any

from eigengame.solver.events import Progress

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


class CallbackWatcher:
    """Tells an estimator's callbacks how its fit goes on.

    Parameters
    ----------
    estimator : estimator with `set_callbacks`
    batches : int or None
        Batches of a pass, where known.
    """

    def __init__(self, estimator: Any, batches: int | None) -> None:
        self.estimator, self.batches = estimator, batches
        self.fit = estimator._init_callback_context(max_subtasks=None)
        self.fit.call_on_fit_task_begin(estimator=estimator)
        self.current: Any = None

    def batch(self, at: Progress) -> bool:
        """Tell of one batch, or of the end of a pass; say whether a callback wants to stop."""
        if at.ended:
            ended, self.current = self.current, None
            return ended is not None and bool(ended.call_on_fit_task_end(estimator=self.estimator))
        if self.current is None:
            name = f"pass {at.number}: {at.task}"
            self.current = self.fit.subcontext(task_name=name, max_subtasks=self.batches)
            self.current.call_on_fit_task_begin(estimator=self.estimator)
        one = self.current.subcontext(task_name="batch")
        one.call_on_fit_task_begin(estimator=self.estimator)
        return bool(one.call_on_fit_task_end(estimator=self.estimator))

    def end(self, outcome: Any) -> None:
        """Tell that the fit is over."""
        self.fit.call_on_fit_task_end(estimator=self.estimator)


def callback_watchers(estimator: Any, batches: int | None) -> list[CallbackWatcher]:
    """Return who tells the estimator's callbacks, if it has any."""
    listening = getattr(estimator, "_skl_callbacks", None)
    return [CallbackWatcher(estimator, batches)] if listening else []
