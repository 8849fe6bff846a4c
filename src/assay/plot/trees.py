"""Figures of trees and ensembles, of rejection and of costs; numbers come from the functions ending in `_frame`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from assay.metrics.diversity import MEASURES, kappa_error, pairwise
from assay.plot import tree_frames as frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, PALE, _canvas, _short, default

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MOST_LEAVES = 60
_MOST_LINES = 12


def tree(model: Any, member: int = 0) -> "Figure":
    """Draw a tree, or one tree of an ensemble: conditions at the branches, predictions at the leaves. Of a large tree
    the upper levels are drawn, and three dots where it goes on.

    Parameters
    ----------
    model : learner
        Fitted tree or ensemble of trees.
    member : int, default=0
        Number of the tree.

    Returns
    -------
    Figure
        The figure.
    """
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
    """Draw the importance of the columns as bars: `feature_importances_`, or `values`.

    Parameters
    ----------
    model : learner
        Fitted learner.
    values : ndarray or None
        Importance of each column; None: `feature_importances_`.
    names : sequence of str or None
        Names of the columns; None: those of the fit, or their numbers.
    limit : int, default=20
        Largest number of bars.

    Returns
    -------
    Figure
        The figure.
    """
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
    """Draw the out-of-bag error against the number of members.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.out_of_bag(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["members"], frame["error"], color=BLUE, marker="." if len(frame["error"]) < 40 else "")
    axes.axhline(frame["error"][-1], color=GREY, linewidth=1, linestyle="--")
    axes.set(xlabel="members", ylabel="out-of-bag error", title="Out-of-bag error as members are added")
    axes.set_ylim(bottom=0)
    return figure


def margins(model: Any, X: Any = None, y: Any = None) -> "Figure":
    """Draw the distribution of the margins of a vote: those of the fit, or those of rows X, y.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like or None
        Rows; None: the training rows.
    y : array-like or None
        Labels of the rows.

    Returns
    -------
    Figure
        The figure.
    """
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
    """Draw AdaBoost's weights of its training rows over the rounds; the rows that end heaviest as lines.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.

    Returns
    -------
    Figure
        The figure.
    """
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


def diversity_frame(model: Any, X: Any, y: Any) -> dict[str, np.ndarray]:
    """Return `kappa` and mean `error` of every pair of members on the rows."""
    result = kappa_error(model, X, y)
    return {"kappa": result.kappa, "error": result.error}


def kappa_errors(model: Any, X: Any, y: Any) -> "Figure":
    """Draw the kappa-error diagram of an ensemble: a point for each pair of members; low is accurate, left is
    diverse.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.

    Returns
    -------
    Figure
        The figure.
    """
    frame = diversity_frame(model, X, y)
    figure, (axes,) = _canvas(1)
    axes.scatter(frame["kappa"], frame["error"], s=12, color=BLUE, alpha=0.6)
    axes.set(xlabel="kappa of two members", ylabel="mean error of the two", title="Diversity and accuracy of members")
    return figure


def diversity_matrices(model: Any, X: Any, y: Any = None) -> "Figure":
    """Draw disagreement, correlation, Q and kappa of every pair of members as four maps; with labels y members agree
    if both are right or both are wrong. What has no value is left white.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like or None
        Labels; None: members agree if they say the same.

    Returns
    -------
    Figure
        The figure.
    """
    result = pairwise(model, X, y)
    figure, panels = _canvas(2, down=2, height=7.2)
    for axes, name in zip(panels, MEASURES):
        least = 0.0 if name == "disagreement" else -1.0
        axes.grid(visible=False)
        shown = axes.imshow(getattr(result, name), vmin=least, vmax=1.0, cmap="viridis" if least == 0 else "coolwarm")
        axes.set(title=f"{name}, mean {result.means[name]:.2f}", xlabel="member", ylabel="member")
        figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure


def code_matrix(model: Any) -> "Figure":
    """Draw the code of a reduction to two classes: a row for each class, a column for each member, which tells the
    classes of +1 (orange) from those of -1 (blue); classes that it never saw are white.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = _canvas(1)
    axes.grid(visible=False)
    axes.imshow(model.code_, vmin=-1, vmax=1, cmap=ListedColormap([BLUE, "white", ORANGE]), aspect="auto")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_yticks(range(len(model.classes_)), [_short(label) for label in model.classes_])
    distance = getattr(model, "distance_", None)
    more = "" if distance is None else f": distance {distance}, corrects {model.corrected_} wrong bits"
    axes.set(xlabel="member", ylabel="class", title=f"Code{more}")
    return figure


def members_frame(model: Any) -> dict[str, Any]:
    """Return `names` and `weights` of the members of a vote or mean."""
    check_is_fitted(model)
    weights = np.asarray(model.vote_weights_, dtype=np.float64)
    names = [name for name, item in getattr(model, "estimators", None) or () if item != "drop"]
    kinds = [f"{type(item).__name__} {t + 1}" for t, item in enumerate(getattr(model, "estimators_", weights))]
    return {"names": names if len(names) == len(weights) else kinds, "weights": weights / weights.sum()}


def members(model: Any) -> "Figure":
    """Draw the share of each member in a vote or mean, at most the thirty largest.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = members_frame(model)
    order = np.argsort(-frame["weights"], kind="stable")[:30]
    figure, (axes,) = _canvas(1, height=1.2 + 0.28 * len(order))
    axes.barh(np.arange(len(order)), frame["weights"][order], color=BLUE)
    axes.set_yticks(np.arange(len(order)), [_short(frame["names"][t], 28) for t in order])
    axes.invert_yaxis()
    axes.set(xlabel="share of the vote", title=f"{len(order)} of {len(frame['weights'])} members")
    return figure


def final_member(model: Any) -> "Figure":
    """Draw the learner that combines what the members of a stack say.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    return _of(model, model.final_estimator_)


def wrapped(model: Any) -> "Figure":
    """Draw the learner that a wrapper has fitted and asks.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    return _of(model, model.estimator_)


def calibration_maps(model: Any) -> "Figure":
    """Draw the maps from scores to probabilities of a calibrated classifier, one for each classifier and class.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    check_is_fitted(model)
    z = np.linspace(-6.0, 6.0, 121)
    figure, (axes,) = _canvas(1)
    for start, stop in zip(model.starts_[:-1], model.starts_[1:]):
        x, y = model.points_[start:stop].T
        if model.method == "sigmoid":
            x, y = (z if x[0] == 0 else (z - y[0]) / x[0]), expit(-z if x[0] else np.full(len(z), -y[0]))
        elif model.method == "temperature":
            x, y = z / (2 * x[0]), expit(z)
        axes.plot(x, y, color=BLUE, alpha=0.7)
    axes.set(xlabel="score", ylabel="probability", ylim=(-0.02, 1.02), title="From scores to probabilities")
    return figure


def _of(model: Any, inner: Any) -> "Figure":
    if not hasattr(inner, "figure"):
        raise ValueError(f"{type(model).__name__}: {type(inner).__name__} is not a learner of Assay that draws itself.")
    return default(inner)


def rejection_frame(model: Any, X: Any, y: Any, delta: float = 0.05) -> dict[str, np.ndarray]:
    """Return `coverage`, `error` and `limit` at every share that a vote could be asked for, where rows are decided."""
    result = model.selective_risk(X, y, delta)
    some = result.coverage > 0
    return {name: getattr(result, name)[some] for name in ("threshold", "coverage", "error", "limit")}


def rejection(model: Any, X: Any, y: Any, delta: float = 0.05) -> "Figure":
    """Draw the error among decided rows against the share decided, with the limit that holds for all shares at once;
    X and y are rows that nothing was chosen on.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    delta : float, default=0.05
        Probability with which the limits may fail.

    Returns
    -------
    Figure
        The figure.
    """
    frame = rejection_frame(model, X, y, delta)
    figure, (axes,) = _canvas(1)
    axes.fill_between(frame["coverage"], frame["error"], frame["limit"], color=BLUE, alpha=0.2, step="mid")
    axes.plot(frame["coverage"], frame["error"], color=BLUE, label="on these rows")
    axes.plot(frame["coverage"], frame["limit"], color=ORANGE, label=f"limit on new data, all at once, delta {delta:g}")
    axes.set(xlabel="share of the rows decided", ylabel="errors among them", title="Error and coverage", ylim=(0, 1))
    axes.legend()
    return figure


def cost_frame(model: Any, X: Any, y: Any, delta: float = 0.05) -> dict[str, Any]:
    """Return `threshold`, mean `cost` and its `limit`, and the threshold that the model has (`chosen`)."""
    result = model.cost_curve(X, y, delta)
    return {"threshold": result.threshold, "cost": result.cost, "limit": result.limit, "chosen": model.threshold_}


def costs(model: Any, X: Any, y: Any, delta: float = 0.05) -> "Figure":
    """Draw the mean cost against the threshold, with the limit that holds for all thresholds at once; X and y are rows
    that the classifier was not fitted to.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    delta : float, default=0.05
        Probability with which the limits may fail.

    Returns
    -------
    Figure
        The figure.
    """
    frame = cost_frame(model, X, y, delta)
    figure, (axes,) = _canvas(1)
    axes.fill_between(frame["threshold"], frame["cost"], frame["limit"], color=BLUE, alpha=0.2)
    axes.plot(frame["threshold"], frame["cost"], color=BLUE, label="on these rows")
    axes.plot(
        frame["threshold"], frame["limit"], color=ORANGE, label=f"limit on new data, all at once, delta {delta:g}"
    )
    axes.axvline(frame["chosen"], color="0.5", linestyle=":", label="threshold of the model")
    name = "threshold" if len(model.classes_) == 2 else "strength of the costs"
    axes.set(xlabel=name, ylabel="mean cost", title="Cost and threshold")
    axes.legend()
    return figure
