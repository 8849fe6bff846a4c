"""The training loop of a stochastic run: epoch after epoch, what was met, when it ends, which weights are kept."""

import math
from typing import Any, NamedTuple

import numpy as np

from assay.neural_network._epochs import Epochs, Memory, Progress, Table
from assay.neural_network._network import Shape, sums_of_last, unpack
from assay.params import refuse

_LEAST_RATE = 1e-6  # the "adaptive" schedule ends here


class Outcome(NamedTuple):
    """How one run from one start ended; `value` is what runs are compared by."""

    theta: np.ndarray
    value: float
    fitted: dict[str, Any]


DIVERGED = (
    "Solver produced non-finite parameter weights. The input data may contain large values and need to be preprocessed: "
    "scale the columns, or lower learning_rate_init."
)


class TrainingLoop:
    """The epochs of one run: where it stands, what it met, when it ends."""

    def __init__(
        self, model: Any, table: Table, held: Table | None, shape: Shape, theta: np.ndarray, once: bool
    ) -> None:
        self.model, self.held, self.shape, self.theta = model, held, shape, theta
        rule = model._rule()
        fresh = not (once and hasattr(model, "moments_"))
        moments = np.zeros((2, len(theta)), theta.dtype) if fresh else model.moments_.astype(theta.dtype)
        self.moments, batch = moments, model._batch(len(table.Y))
        memory = Memory(moments, 0 if fresh else model.updates_)
        self.engine = Epochs(shape, table, batch, rule, model._penalty(), memory)
        self.engine.rate = rule.rate if fresh else model.rate_
        self.rows, self.epochs, self.t = len(table.Y), 0, getattr(model, "t_", 0)
        self.curve = list(getattr(model, "loss_curve_", []))
        self.scores = None if held is None else list(model.validation_scores_ or [])
        best = -model.best_validation_score_ if held is not None else model.best_loss_
        waited = getattr(model, "waited_", 0)
        self.progress = Progress(model.tol, model.n_iter_no_change, math.inf if best is None else best, waited)
        self.lowest, self.best_theta, self._least = theta.copy(), theta.copy(), math.inf

    diverged = False  # whether a run that is judged by rows held out ended because the weights grew beyond all bounds

    @property
    def kept(self) -> np.ndarray:
        """The weights that the model would have if the run ended here."""
        return self.theta if self.held is None else self.best_theta

    def epoch(self, order: np.ndarray) -> tuple[float, float]:
        loss, norm = self.engine.run(self.theta, order)
        if not math.isfinite(loss) or not np.isfinite(self.theta).all():
            if self.scores is None or not self.epochs:
                raise refuse(self.model, f"{DIVERGED} (epoch {self.epochs + 1})")
            self.diverged = True
            self.scores.append(math.nan)
            return loss, math.inf
        self.epochs, self.t = self.epochs + 1, self.t + self.rows
        self.curve.append(loss)
        if self.model.verbose:
            print(f"Iteration {self.epochs}, loss = {loss:.8f}")
        if self.held is None:
            self.progress.judge(loss)
        else:
            self._judge_held()
        if loss < self._least:
            self._least, self.lowest = loss, self.theta.copy()
        if self.model.solver != "adam" and self.model.learning_rate == "invscaling":
            self.engine.rate = self.engine.rule.rate / (self.t + 1) ** self.model.power_t
        return loss, norm

    def _judge_held(self) -> None:
        assert self.held is not None
        assert self.scores is not None
        Z = sums_of_last(self.held.X, *unpack(self.shape.sizes, self.theta), self.shape.unit)
        score = self.model._held_score(Z, self.held.Y, self.held.weight if self.held.weight.size else None)
        self.scores.append(score)
        if self.model.verbose:
            print(f"Validation score: {score:f}")
        if self.progress.judge(-score):
            self.best_theta = self.theta.copy()

    def over(self) -> bool:
        """Tell whether the run ends; the "adaptive" schedule first takes smaller steps."""
        if not self.progress.over:
            return False
        if self.model.solver == "adam" or self.model.learning_rate != "adaptive" or self.engine.rate <= _LEAST_RATE:
            return True
        self.engine.rate /= 5.0
        self.progress.waited = 0
        return False

    def outcome(self) -> Outcome:
        judged = self.progress.best if self.held is not None else self.curve[-1] if self.curve else math.inf
        fitted = {
            "n_iter_": self.epochs,
            "t_": self.t,
            "loss_": self.curve[-1] if self.curve else math.inf,
            "loss_curve_": self.curve,
            "best_loss_": self.progress.best if self.held is None else None,
            "validation_scores_": self.scores,
            "best_validation_score_": None if self.held is None else -self.progress.best,
            "moments_": self.moments,
            "updates_": self.engine.updates,
            "rate_": self.engine.rate,
            "waited_": self.progress.waited,
            "batch_rows_": self.engine.batch,
        }
        return Outcome(self.kept, judged, fitted)
