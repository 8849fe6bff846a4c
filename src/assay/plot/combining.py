"""Figures of ensembles, of rejection and of costs; the numbers come from the functions ending in `_frame`."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.metrics.diversity import MEASURES, kappa_error, pairwise
from assay.plot.figures import BLUE, ORANGE, _canvas, _short, default

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def diversity_frame(model: Any, X: Any, y: Any) -> dict[str, np.ndarray]:
    """Return `kappa` and mean `error` of every pair of members on the rows."""
    found = kappa_error(model, X, y)
    return {"kappa": found.kappa, "error": found.error}


def kappa_errors(model: Any, X: Any, y: Any) -> "Figure":
    """Draw the kappa-error diagram of an ensemble: a point for each pair of members; low is accurate, left is
    diverse."""
    frame = diversity_frame(model, X, y)
    figure, (axes,) = _canvas(1)
    axes.scatter(frame["kappa"], frame["error"], s=12, color=BLUE, alpha=0.6)
    axes.set(xlabel="kappa of two members", ylabel="mean error of the two", title="Diversity and accuracy of members")
    return figure


def diversity_matrices(model: Any, X: Any, y: Any = None) -> "Figure":
    """Draw disagreement, correlation, Q and kappa of every pair of members as four maps; with labels y members agree
    if both are right or both are wrong. What has no value is left white."""
    found = pairwise(model, X, y)
    figure, panels = _canvas(2, down=2, height=7.2)
    for axes, name in zip(panels, MEASURES):
        least = 0.0 if name == "disagreement" else -1.0
        axes.grid(visible=False)
        shown = axes.imshow(getattr(found, name), vmin=least, vmax=1.0, cmap="viridis" if least == 0 else "coolwarm")
        axes.set(title=f"{name}, mean {found.means[name]:.2f}", xlabel="member", ylabel="member")
        figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure


def code_matrix(model: Any) -> "Figure":
    """Draw the code of a reduction to two classes: a row for each class, a column for each member, which tells the
    classes of +1 (orange) from those of -1 (blue); classes that it never saw are white."""
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
    names = [name for name, one in getattr(model, "estimators", None) or () if one != "drop"]
    kinds = [f"{type(one).__name__} {t + 1}" for t, one in enumerate(getattr(model, "estimators_", weights))]
    return {"names": names if len(names) == len(weights) else kinds, "weights": weights / weights.sum()}


def members(model: Any) -> "Figure":
    """Draw the share of each member in a vote or mean, at most the thirty largest."""
    frame = members_frame(model)
    order = np.argsort(-frame["weights"], kind="stable")[:30]
    figure, (axes,) = _canvas(1, height=1.2 + 0.28 * len(order))
    axes.barh(np.arange(len(order)), frame["weights"][order], color=BLUE)
    axes.set_yticks(np.arange(len(order)), [_short(frame["names"][t], 28) for t in order])
    axes.invert_yaxis()
    axes.set(xlabel="share of the vote", title=f"{len(order)} of {len(frame['weights'])} members")
    return figure


def final_member(model: Any) -> "Figure":
    """Draw the learner that combines what the members of a stack say."""
    return _of(model, model.final_estimator_)


def wrapped(model: Any) -> "Figure":
    """Draw the learner that a wrapper has fitted and asks."""
    return _of(model, model.estimator_)


def _of(model: Any, inner: Any) -> "Figure":
    if not hasattr(inner, "figure"):
        raise ValueError(f"{type(model).__name__}: {type(inner).__name__} is no learner of Assay that draws itself.")
    return default(inner)


def rejection_frame(model: Any, X: Any, y: Any, delta: float = 0.05) -> dict[str, np.ndarray]:
    """Return `coverage`, `error` and `limit` at every share that a vote could be asked for, where rows are decided."""
    found = model.selective_risk(X, y, delta)
    some = found.coverage > 0
    return {name: getattr(found, name)[some] for name in ("threshold", "coverage", "error", "limit")}


def rejection(model: Any, X: Any, y: Any, delta: float = 0.05) -> "Figure":
    """Draw the error among decided rows against the share decided, with the limit that holds for all shares at once;
    X and y are rows that nothing was chosen on."""
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
    found = model.cost_curve(X, y, delta)
    return {"threshold": found.threshold, "cost": found.cost, "limit": found.limit, "chosen": model.threshold_}


def costs(model: Any, X: Any, y: Any, delta: float = 0.05) -> "Figure":
    """Draw the mean cost against the threshold, with the limit that holds for all thresholds at once; X and y are rows
    that the classifier was not fitted to."""
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
