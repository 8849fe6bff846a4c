"""The log of one fit: a row per iteration, callbacks told, an orderly stop on request.

`history_` of a learner is what is logged here: iteration, objective, violation (gap or gradient norm) and seconds.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

from sklearn.callback import CallbackContext


class Step(NamedTuple):
    """One iteration of a fit."""

    iteration: int
    objective: float
    violation: float
    seconds: float


class FitLog:
    """Record iterations of a fit and pass them to the learner's callbacks.

    Use as a context manager around the loop. `step` returns True when a callback asks to stop.
    """

    def __init__(self, learner: Any, max_iter: int, X: Any = None, y: Any = None, sample_weight: Any = None) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._learner, self._max_iter = learner, max_iter
        vars(learner).pop("_from_file", None)  # what is said of a fit is again about this one
        self._told = {"estimator": learner, "X": X, "y": y, "metadata": metadata}
        self.history: list[Step] = []
        self.stopped = False  # a callback asked to stop, or the keyboard interrupted
        self.ahead = False  # an iteration's task begins when the last one ended, as L-BFGS calls back; one is left over

    def __enter__(self) -> "FitLog":
        self._began = time.perf_counter()
        self._context: CallbackContext | None = None
        if getattr(self._learner, "_skl_callbacks", None) or hasattr(self._learner, "_parent_callback_ctx"):
            self._context = self._learner._init_callback_context(max_subtasks=self._max_iter + 2 * self.ahead)
            self._context.call_on_fit_task_begin(**self._told)
            self._next = self._begun() if self.ahead else None
        return self

    def _begun(self, **fitted: Any) -> CallbackContext:
        """Return the task of an iteration, begun with the attributes that there are."""
        task = self._context.subcontext(task_name="iteration")  # type: ignore[union-attr]
        task.call_on_fit_task_begin(**self._told, **fitted)
        return task

    @property
    def watched(self) -> bool:
        """True when a callback will look at the model as it stands; only then must it be made usable."""
        return self._context is not None

    def step(self, objective: float, violation: float, **fitted: Any) -> bool:
        """Log one iteration; `fitted` are the attributes that make the learner usable as it stands."""
        seconds = time.perf_counter() - self._began
        self.history.append(Step(len(self.history) + 1, float(objective), float(violation), seconds))
        if self._context is None:
            return False
        known = {"reconstruction_attributes": fitted}
        try:
            task = self._next or self._begun(**known)
            self.stopped |= bool(task.call_on_fit_task_end(**self._told, **known))
            self._next = self._begun(**known) if self.ahead else None
        except KeyboardInterrupt:  # in a callback: the same wish, said with Ctrl-C
            self.stopped = True
        return self.stopped

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Around a loop: Ctrl-C ends it, `stopped` says so, and what the loop has found so far stays."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._learner.history_ = self.history
        if self._context is not None:
            if self._next is not None and kind is None:  # an iteration that broke off has nothing to show
                self._next.call_on_fit_task_end(**self._told)
            self._context.call_on_fit_task_end(**self._told)


class Interrupts:
    """Count Ctrl-C while learners are fitted, those included that a fit answers by returning its best so far.

    A fit that is interrupted keeps what it has and returns, so that who fits several would go on with the next one.
    Use as a context manager around the loop, and end the loop when `asked` is above 0. A second Ctrl-C is for
    quitting: what runs then ends with KeyboardInterrupt, and `check` raises it if that was swallowed too.
    """

    def __init__(self) -> None:
        self.asked = 0

    def __enter__(self) -> "Interrupts":
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():  # elsewhere Python hears no signals
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        if isinstance(getattr(self._before, "__self__", None), Interrupts):  # who fits these learners counts too
            self._before(number, frame)
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed twice."""
        if self.asked > 1:
            raise KeyboardInterrupt

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


@contextmanager
def part_of_a_fit() -> Iterator[None]:
    """Around a fit within another one: Ctrl-C, which it answers by keeping its best, ends the other one too."""
    with Interrupts() as heard:
        yield
    if heard.asked:
        raise KeyboardInterrupt
