"""Figures of hidden variables: the states of a sequence, the steps between them, and the words of topics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, _canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def states_frame(model: Any, X: Any, lengths: Any = None) -> dict[str, np.ndarray]:
    """Return `rows`, the decoded `states` (n,), `probabilities` of the states (n, k), and `ends` of the sequences."""
    states, probabilities = model.predict(X, lengths), model.predict_proba(X, lengths)
    ends = np.array([len(states)]) if lengths is None else np.cumsum(lengths)
    return {"rows": np.asarray(X, dtype=float), "states": states, "probabilities": probabilities, "ends": ends}


def state_sequence(model: Any, X: Any, lengths: Any = None, column: int = 0) -> "Figure":
    """Draw one column of the rows of a hidden Markov model over time, each in the colour of its decoded state, above
    the probability of each state given the whole sequence."""
    frame = states_frame(model, X, lengths)
    figure, (above, below) = _canvas(1, 5.0, down=2, width=8.0)
    time, colours = np.arange(len(frame["states"])), np.array(CLASS_COLOURS)
    above.plot(time, frame["rows"][:, column], color=GREY, linewidth=0.6)
    own = colours[frame["states"] % len(colours)]
    above.scatter(time, frame["rows"][:, column], c=own, s=10, linewidths=0, zorder=3)
    above.set(ylabel=f"column {column}", title=f"{frame['probabilities'].shape[1]} states")
    bands = [CLASS_COLOURS[k % len(colours)] for k in range(frame["probabilities"].shape[1])]
    below.stackplot(time, frame["probabilities"].T, colors=bands, step="mid")
    below.set(xlabel="row", ylabel="probability", ylim=(0, 1))
    for axes in (above, below):
        axes.set_xlim(-0.5, len(time) - 0.5)
        for end in frame["ends"][:-1]:
            axes.axvline(end - 0.5, color=GREY, linewidth=0.8, linestyle=":")
    return figure


def transitions(model: Any) -> "Figure":
    """Draw the probabilities of steps from state to state of a hidden Markov model."""
    check_is_fitted(model)
    figure, (axes,) = _canvas(1, 4.2)
    table = np.asarray(model.transmat_)
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1)
    axes.grid(False)
    for i, j in np.ndindex(table.shape) if len(table) <= 12 else ():
        axes.text(j, i, f"{table[i, j]:.2f}", ha="center", va="center", color="white" if table[i, j] > 0.6 else "black")
    axes.set(xlabel="to", ylabel="from", xticks=range(len(table)), yticks=range(len(table)), title="Steps of the chain")
    return figure


def words_frame(model: Any, names: Sequence[str] | None = None, top: int = 8) -> dict[str, Any]:
    """Return the `words` most probable in each topic, their `probabilities` (topics, top), and the topics' `shares` of
    all weight."""
    check_is_fitted(model)
    best = np.sort(-model.topics_, axis=1, kind="stable")[:, :top]
    weight = model.components_.sum(axis=1)
    return {"words": model.words(names, top=top), "probabilities": -best, "shares": weight / weight.sum()}


def topic_words(model: Any, names: Sequence[str] | None = None, top: int = 8) -> "Figure":
    """Draw the most probable words of each topic as bars, at most twelve topics, those of largest weight first."""
    frame = words_frame(model, names, top)
    order = np.argsort(-frame["shares"], kind="stable")[:12]
    across = min(len(order), 4)
    down = -(-len(order) // across)
    figure, panels = _canvas(across, 2.2 * down + 0.4, down=down, width=2.6)
    for axes, k in zip(panels, order):
        words, values = frame["words"][k], frame["probabilities"][k]
        axes.barh(range(len(words)), values, color=BLUE)
        axes.set_yticks(range(len(words)), words)
        axes.invert_yaxis()
        axes.set_title(f"topic {k}: {frame['shares'][k]:.0%}")
    for axes in panels[len(order) :]:
        axes.set_visible(False)
    return figure
