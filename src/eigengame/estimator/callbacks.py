"""Callbacks of scikit-learn, if its version has them: each pass is a task, each batch a subtask.

`sklearn.callback` is public. The docstring of `CallbackSupportMixin._init_callback_context` asks estimators to
call it at the beginning of `fit`, so it is used here although its name begins with an underscore. Versions of
scikit-learn before 1.9 have no callbacks, and the estimator works without them.
"""

from __future__ import annotations

import functools
from typing import Any

from eigengame.solver.passes.events import Progress
from eigengame.solver.planning.plan import Plan

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """Replacement for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return a method that calls this one: one more frame, as later versions have, for places in warnings."""

        @functools.wraps(method)
        def called(*args: Any, **options: Any) -> Any:
            return method(*args, **options)

        return called


class CallbackWatcher:
    """Calls the callbacks of an estimator.

    Parameters
    ----------
    estimator : estimator with `set_callbacks`
    rows : int or None
        Rows of a pass, if known.
    """

    def __init__(self, estimator: Any, rows: int | None) -> None:
        self.estimator, self.rows = estimator, rows
        self.batches: int | None = None
        self.fit = estimator._init_callback_context(max_subtasks=None)
        self.fit.call_on_fit_task_begin(estimator=estimator)
        self.current: Any = None

    def plan(self, plan: Plan) -> None:
        """Receive the plan of the fit, which has the number of rows of a batch."""
        self.batches = None if self.rows is None else -(-self.rows // plan.batch)

    def batch(self, at: Progress) -> bool:
        """Report one batch, or the end of a pass; return whether a callback stops the fit."""
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
        """Report the end of the fit."""
        self.fit.call_on_fit_task_end(estimator=self.estimator)


def callback_watchers(estimator: Any, rows: int | None) -> list[CallbackWatcher]:
    """Return a watcher for the callbacks of an estimator, if it has any."""
    return [CallbackWatcher(estimator, rows)] if getattr(estimator, "_skl_callbacks", None) else []
