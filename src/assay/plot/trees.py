"""Figures of trees and ensembles."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot import tree_frames as frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, PALE, _canvas, _short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LEAVES = 60
_MOST_LINES = 12


def tree(model: Any, member: int = 0) -> "Figure":
    """Draw a tree, or one tree of an ensemble: conditions at the branches, predictions at the leaves. Of a large tree
    the upper levels are drawn, and three dots where it goes on."""
    frame = frames.tree(model, member, most=_MOST_LEAVES)
    n_leaves, deepest = int(frame["leaf"].sum()), int(frame["depth"].max())
    figure, (axes,) = _canvas(1, height=1.0 + 0.9 * (deepest + 1), width=max(4.8, 1.3 * n_leaves))
    for parent, child, condition in frame["edges"]:
        ends = [frame["x"][[parent, child]], -frame["depth"][[parent, child]]]
        axes.plot(*ends, color=GREY, linewidth=1, zorder=1)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(ends[0].mean(), ends[1].mean(), _short(condition, 26), ha="center", va="center", fontsize=7, bbox=box)
    for x, depth, text, leaf, cut, code in zip(
        *(frame[name] for name in ("x", "depth", "text", "leaf", "cut", "code"))
    ):
        colour = CLASS_COLOURS[code % len(CLASS_COLOURS)] if code >= 0 else BLUE
        box = {"boxstyle": "round", "facecolor": colour if leaf else "white", "edgecolor": colour}
        words = _short(text, 14) + (" …" if cut else "") if leaf else ""
        colour = "white" if leaf else INK
        axes.text(x, -depth, words, ha="center", va="center", fontsize=8, bbox=box, color=colour, zorder=3)
    axes.set(xlim=(-0.6, n_leaves - 0.4), ylim=(-deepest - 0.5, 0.5), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(visible=False)
    return figure


def importance(
    model: Any, values: np.ndarray | None = None, names: Sequence[str] | None = None, limit: int = 20
) -> "Figure":
    """Draw the importance of the columns as bars: `feature_importances_`, or `values`."""
    frame = frames.importance(model, values, names, limit)
    figure, (axes,) = _canvas(1, height=1.2 + 0.28 * len(frame["values"]))
    at = np.arange(len(frame["values"]))
    axes.barh(at, frame["values"], color=BLUE)
    axes.set_yticks(at, [_short(name, 28) for name in frame["names"]])
    axes.invert_yaxis()
    axes.axvline(0, color=INK, linewidth=1)
    what = "decrease of impurity (share)" if values is None else "rise of the error when permuted"
    shown = f"{len(at)} largest of {frame['all']}" if len(at) < frame["all"] else "all"
    axes.set(xlabel=what, title=f"Importance of columns ({shown})")
    return figure


def out_of_bag(model: Any) -> "Figure":
    """Draw the out-of-bag error against the number of members."""
    frame = frames.out_of_bag(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["members"], frame["error"], color=BLUE, marker="." if len(frame["error"]) < 40 else "")
    axes.axhline(frame["error"][-1], color=GREY, linewidth=1, linestyle="--")
    axes.set(xlabel="members", ylabel="out-of-bag error", title="Out-of-bag error as members are added")
    axes.set_ylim(bottom=0)
    return figure


def margins(model: Any, X: Any = None, y: Any = None) -> "Figure":
    """Draw the distribution of the margins of a vote: those of the fit, or those of rows X, y."""
    frame = frames.margins(model, X, y)
    figure, (axes,) = _canvas(1)
    axes.step(frame["margin"], frame["share"], where="post", color=BLUE)
    axes.axvline(0, color=INK, linewidth=1)
    axes.axvline(
        frame["margin"][0], color=ORANGE, linewidth=1, linestyle="--", label=f"smallest {frame['margin'][0]:.3g}"
    )
    axes.set(
        xlabel="margin", ylabel="share of the rows at or below", title="Margins", xlim=(-1.05, 1.05), ylim=(0, 1.02)
    )
    axes.legend(frameon=False, loc="upper left")
    return figure


def row_weights(model: Any, X: Any, y: Any) -> "Figure":
    """Draw AdaBoost's weights of its training rows over the rounds; the rows that end heaviest as lines."""
    frame = frames.row_weights(model, X, y)
    weights = frame["weights"]
    figure, (left, right) = _canvas(2)
    heavy = np.argsort(-weights[-1], kind="stable")[:_MOST_LINES]
    for i in heavy:
        left.plot(frame["round"], weights[:, i], linewidth=1, label=f"row {i}")
    left.axhline(1 / weights.shape[1], color=GREY, linewidth=1, linestyle="--")
    left.set(xlabel="round", ylabel="weight", title="Rows that end heaviest")
    left.legend(frameon=False, fontsize=6, ncols=2)
    ordered = np.argsort(-weights[-1], kind="stable")
    shown = right.imshow(
        np.log10(np.maximum(weights[:, ordered].T, 1e-12)), aspect="auto", cmap="Blues", origin="lower"
    )
    figure.colorbar(shown, ax=right, label="log10 weight")
    right.grid(visible=False)
    right.set(xlabel="round", ylabel="rows, heaviest first", title="All rows", facecolor=PALE)
    return figure
