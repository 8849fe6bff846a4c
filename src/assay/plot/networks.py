"""Figures of networks: how the loss falls, and how the error changes with what was tried."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.plot.figures import BLUE, GREY, ORANGE, _canvas
from assay.plot.frames import Frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def loss_frame(model: Any) -> Frame:
    """Return `epoch` (1, 2, ...), `loss`, and with early stopping `score` on the rows kept out and `kept`, the epoch
    whose weights the model has."""
    check_is_fitted(model)
    if not len(getattr(model, "loss_curve_", ())):
        raise ValueError(f"{type(model).__name__}: keeps no loss curve; it must be a fitted network.")
    frame: Frame = {"epoch": np.arange(1, len(model.loss_curve_) + 1), "loss": np.array(model.loss_curve_)}
    if getattr(model, "validation_scores_", None):
        frame["score"] = np.array(model.validation_scores_)
        frame["kept"] = int(frame["score"].argmax()) + 1
    return frame


def loss_curve(model: Any) -> "Figure":
    """Draw the loss of each epoch and, with early stopping, the score on the rows kept out and where it was best."""
    frame = loss_frame(model)
    figure, (axes,) = _canvas(1)
    lines = axes.plot(frame["epoch"], frame["loss"], color=BLUE, label="loss")
    axes.set(xlabel="epoch", ylabel="loss with penalty", title="Training")
    if (frame["loss"] > 0).all() and frame["loss"].max() > 20 * frame["loss"].min():
        axes.set_yscale("log")
    axes.locator_params(axis="x", integer=True)
    if "score" in frame:
        right = axes.twinx()
        lines += right.plot(frame["epoch"], frame["score"], color=ORANGE, label="score on rows kept out")
        right.axvline(frame["kept"], color=GREY, linewidth=1, linestyle="--")
        right.set_ylabel("score")
        right.grid(visible=False)
        axes.legend(handles=lines, frameon=False)
    return figure


def trial(found: Any, name: str = "value tried") -> "Figure":
    """Draw the error of each value that `hidden_units_by_trial` or `lambda_by_cross_validation` tried, and the best."""
    figure, (axes,) = _canvas(1)
    at = np.arange(len(found.values))
    axes.plot(at, found.errors, color=BLUE, marker=".")
    best = found.values.index(found.best)
    axes.scatter([best], [found.errors[best]], color=ORANGE, zorder=3, label=f"chosen: {found.best}")
    axes.set_xticks(at, [str(value) for value in found.values])
    axes.set(xlabel=name, ylabel="error", title="Chosen by trial")
    axes.legend(frameon=False)
    return figure
