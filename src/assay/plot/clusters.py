"""Figures of clusterings, decompositions, mixtures and densities, hidden Markov models, topics and neighbours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from assay.plot import frames
from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, INK, ORANGE, _canvas, boundary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_PROTOTYPES = 40


def clusters(model: Any, X: Any, columns: tuple[int, int] = (0, 1)) -> "Figure":
    """Draw the rows in two columns, coloured by cluster, and the centres.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    columns : tuple of int, default=(0, 1)
        The two columns that are drawn.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.clusters(model, X, columns)
    figure, (axes,) = _canvas(1)
    colours = np.array(CLASS_COLOURS)[frame["label"] % len(CLASS_COLOURS)]
    axes.scatter(frame["x"][:, 0], frame["x"][:, 1], c=colours, s=9, linewidths=0)
    middle = frame["centers"]
    axes.scatter(middle[:, 0], middle[:, 1], c="white", s=110, marker="X", edgecolors=INK, linewidths=1.5, zorder=3)
    axes.set(xlabel=f"column {columns[0]}", ylabel=f"column {columns[1]}", title=f"{len(frame['centers'])} clusters")
    return figure


def prototypes_frame(model: Any) -> np.ndarray:
    """Return the prototypes, (k, columns), each column from 0 (the least among them) to 1 (the largest)."""
    check_is_fitted(model)
    result = np.asarray(model.prototypes_, dtype=np.float64)
    low, span = result.min(axis=0), np.ptp(result, axis=0)
    return (result - low) / np.where(span > 0, span, 1.0)


def prototypes(model: Any) -> "Figure":
    """Draw each prototype as a line over the columns, every column between its least and largest prototype.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    shares = prototypes_frame(model)
    figure, (axes,) = _canvas(1)
    for k, line in enumerate(shares[:_MOST_PROTOTYPES]):
        axes.plot(line, color=CLASS_COLOURS[k % len(CLASS_COLOURS)], marker="." if len(line) < 40 else "", label=str(k))
    if len(shares) <= len(CLASS_COLOURS):
        axes.legend(frameon=False, title="prototype")
    axes.locator_params(axis="x", integer=True)
    shown = f"{_MOST_PROTOTYPES} of " if len(shares) > _MOST_PROTOTYPES else ""
    axes.set(xlabel="column", ylabel="least to largest prototype", title=f"{shown}{len(shares)} prototypes")
    return figure


def cluster_choice(result: Any) -> "Figure":
    """Draw RMSSTD and the average silhouette width of a `cluster.sweep` against the number of clusters.

    Parameters
    ----------
    result : Sweep
        What `cluster.sweep` returned.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.cluster_choice(result)
    figure, (left, right) = _canvas(2)
    for axes, name, best, title in (
        (left, "rmsstd", frame["elbow"], "RMSSTD: the elbow"),
        (right, "silhouette", frame["widest"], "Average silhouette width: the largest"),
    ):
        axes.plot(frame["k"], frame[name], color=BLUE, marker="o", markersize=4)
        if best is not None:
            axes.axvline(best, color=ORANGE, linewidth=1)
            title += f" is at {best}"
        axes.set(xlabel="number of clusters", title=title)
    return figure


def silhouettes(X: Any, labels: Any) -> "Figure":
    """Draw the silhouette of each row, cluster by cluster, and their mean.

    Parameters
    ----------
    X : array-like
        Rows.
    labels : array-like
        Cluster of each row.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.silhouettes(X, labels)
    figure, (axes,) = _canvas(1)
    names, codes = np.unique(frame["label"], return_inverse=True)
    at = np.arange(len(codes)) + 0.02 * len(codes) * codes  # a gap between clusters
    axes.barh(at, frame["width"], height=1.0, color=np.array(CLASS_COLOURS)[codes % len(CLASS_COLOURS)])
    axes.axvline(frame["mean"], color=INK, linewidth=1, linestyle="--")
    axes.set_yticks([at[codes == k].mean() for k in range(len(names))], [str(name) for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="silhouette", title=f"Average silhouette width {frame['mean']:.3f}")
    return figure


def loadings(model: Any, most: int = 6) -> "Figure":
    """Draw the entries of the first components over the columns: what each new column is made of.

    Parameters
    ----------
    model : learner
        Fitted learner.
    most : int, default=6
        Largest number of components.

    Returns
    -------
    Figure
        The figure.
    """
    check_is_fitted(model)
    figure, (axes,) = _canvas(1)
    shares = getattr(model, "explained_variance_ratio_", None)
    for k, line in enumerate(model.components_[:most]):
        share = "" if shares is None else f", {shares[k]:.0%} of the variance"
        axes.plot(line, color=CLASS_COLOURS[k], marker="." if len(line) < 40 else "", label=f"component {k}{share}")
    axes.axhline(0, color=INK, linewidth=1)
    axes.locator_params(axis="x", integer=True)
    axes.set(xlabel="column", ylabel="entry", title=f"{min(most, len(model.components_))} of {len(model.components_)}")
    axes.legend(frameon=False)
    return figure


def explained_variance(model: Any) -> "Figure":
    """Draw the share of the variance that each component of a PCA explains, and their sum.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    frame = frames.explained_variance(model)
    figure, (axes,) = _canvas(1)
    axes.bar(frame["component"], frame["ratio"], color=BLUE, label="each")
    axes.plot(frame["component"], frame["total"], color=ORANGE, marker="o", markersize=4, label="together")
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set(xlabel="component", ylabel="share of the variance", ylim=(0, 1.05), title="Explained variance")
    axes.legend(frameon=False)
    return figure


_AROUND = np.linspace(0, 2 * np.pi, 100)


def ellipses(model: Any, columns: tuple[int, int] = (0, 1), spread: float = 2.0) -> list[np.ndarray]:
    """Return for each component the border (100, 2) of its region in two columns: `spread` standard deviations away.

    Parameters
    ----------
    model : learner
        Fitted learner.
    columns : tuple of int, default=(0, 1)
        The two columns that are drawn.
    spread : float, default=2.0
        Number of standard deviations.

    Returns
    -------
    list of ndarray
        Points of the border of each component.
    """
    at = list(columns)
    circle = spread * np.stack([np.cos(_AROUND), np.sin(_AROUND)])
    covariances = _matrices(model)[:, at][:, :, at]
    return [mean[at] + (np.linalg.cholesky(S) @ circle).T for mean, S in zip(model.means_, covariances, strict=True)]


def components(model: Any, X: Any = None, columns: tuple[int, int] = (0, 1)) -> "Figure":
    """Draw each Gaussian component in two columns as the ellipse at two standard deviations, over the rows if given;
    of one column its density.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like or None
        Rows to draw below; None: none.
    columns : tuple of int, default=(0, 1)
        The two columns that are drawn.

    Returns
    -------
    Figure
        The figure.
    """
    figure, (axes,) = _canvas(1)
    if model.means_.shape[1] == 1:
        return _curves(model, figure, axes)
    if X is not None:
        label = np.asarray(model.predict(X)) if hasattr(model, "predict") else np.zeros(len(X), dtype=int)
        if label.dtype.kind not in "iu":
            label = np.unique(label, return_inverse=True)[1]
        points = np.asarray(X)
        colours = np.array(CLASS_COLOURS)[label % len(CLASS_COLOURS)]
        axes.scatter(points[:, columns[0]], points[:, columns[1]], c=colours, s=6, linewidths=0, alpha=0.5)
    owners = getattr(model, "component_class_", np.arange(len(model.means_)))
    for owner, border, weight in zip(owners, ellipses(model, columns), _shares(model), strict=True):
        axes.plot(*border.T, color=CLASS_COLOURS[owner % len(CLASS_COLOURS)], linewidth=1 + 3 * float(weight))
    axes.set(xlabel=f"column {columns[0]}", ylabel=f"column {columns[1]}", title=f"{len(model.means_)} components")
    return figure


def _curves(model: Any, figure: "Figure", axes: "Axes") -> "Figure":
    means, deviations = model.means_[:, 0], np.sqrt(_matrices(model)[:, 0, 0])
    x = np.linspace((means - 4 * deviations).min(), (means + 4 * deviations).max(), 400)
    for k, (mean, deviation, share) in enumerate(zip(means, deviations, _shares(model), strict=True)):
        bell = np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
        axes.plot(x, share * bell, color=CLASS_COLOURS[k % len(CLASS_COLOURS)])
    axes.set(xlabel="column 0", ylabel="p(x)", title=f"{len(means)} components")
    return figure


def density_frame(model: Any, X: Any, points: int = 80) -> dict[str, Any]:
    """Return a grid over the range of the rows, a tenth wider, and the density there: of one column, or of two."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] not in (1, 2):
        raise ValueError(f"density: needs rows of one or two columns; got shape {X.shape}.")
    low, high = X.min(axis=0), X.max(axis=0)
    pad = 0.1 * (high - low)
    axes = [np.linspace(a, b, points) for a, b in zip(low - pad, high + pad, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, X.shape[1])
    values = np.exp(model.score_samples(grid)).reshape((points,) * X.shape[1])
    return {"axes": axes, "density": values, "rows": X}


def density(model: Any, X: Any, points: int = 80) -> "Figure":
    """Draw the density of a model over the range of rows of one or two columns.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    points : int, default=80
        Points of the grid in each direction.

    Returns
    -------
    Figure
        The figure.
    """
    frame = density_frame(model, X, points)
    figure, (axes,) = _canvas(1)
    if len(frame["axes"]) == 1:
        axes.plot(frame["axes"][0], frame["density"], color=BLUE)
        axes.plot(frame["rows"][:, 0], np.zeros(len(frame["rows"])), "|", color=GREY)
        axes.set(xlabel="x", ylabel="p(x)", title="Density")
        return figure
    shown = axes.contourf(*frame["axes"], frame["density"].T, levels=12, cmap="Blues")
    axes.plot(*frame["rows"].T, ".", color=GREY, markersize=2)
    figure.colorbar(shown, ax=axes, label="p(x)")
    axes.set(xlabel="column 0", ylabel="column 1", title="Density")
    return figure


def _shares(model: Any) -> np.ndarray:
    """Return the weights of the components; those of classes are their priors."""
    return np.asarray(model.weights_ if hasattr(model, "weights_") else model.priors_)


def _matrices(model: Any) -> np.ndarray:
    """Return the covariances of all components, (k, d, d)."""
    if hasattr(model, "components_"):
        return np.array(model.components_.each(model.covariances_))
    return np.asarray(model.sigma_ if hasattr(model, "sigma_") else model.covariances_)


def states_frame(model: Any, X: Any, lengths: Any = None) -> dict[str, np.ndarray]:
    """Return `rows`, the decoded `states` (n,), `probabilities` of the states (n, k), and `ends` of the sequences."""
    states, probabilities = model.predict(X, lengths), model.predict_proba(X, lengths)
    ends = np.array([len(states)]) if lengths is None else np.cumsum(lengths)
    return {"rows": np.asarray(X, dtype=float), "states": states, "probabilities": probabilities, "ends": ends}


def state_sequence(model: Any, X: Any, lengths: Any = None, column: int = 0) -> "Figure":
    """Draw one column of the rows of a hidden Markov model over time, each in the colour of its decoded state, above
    the probability of each state given the whole sequence.

    Parameters
    ----------
    model : learner
        Fitted learner.
    X : array-like
        Rows.
    lengths : list of int or None
        Lengths of the sequences; None: one sequence.
    column : int, default=0
        Number of the column drawn.

    Returns
    -------
    Figure
        The figure.
    """
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
    """Draw the probabilities of steps from state to state of a hidden Markov model.

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
    """Draw the most probable words of each topic as bars, at most twelve topics, those of largest weight first.

    Parameters
    ----------
    model : learner
        Fitted learner.
    names : sequence of str or None
        The words, one for each column; None: their numbers.
    top : int, default=8
        Number of words of each topic.

    Returns
    -------
    Figure
        The figure.
    """
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


_MOST = 20_000  # rows whose neighbours are looked up for a figure


def neighbor_frame(model: Any) -> dict[str, np.ndarray]:
    """Return `distance`, sorted: how far the k-th nearest other row is from each training row (from a sample of many),
    and `share`, the share of the rows for which it is no farther."""
    rows = np.arange(0, model.n_samples_fit_, -(-model.n_samples_fit_ // _MOST))
    k = min(model.n_neighbors, model.n_samples_fit_ - 1)
    distance, index = model.kneighbors(model.fit_X_[rows], k + 1)
    itself = (index == rows[:, None]).any(axis=1)
    far = np.sort(np.where(itself, distance[:, -1], distance[:, -2]))
    return {"distance": far, "share": np.arange(1, len(far) + 1) / len(far)}


def neighbor_distances(model: Any) -> "Figure":
    """Draw how far the k-th nearest other row is, over the training rows: where the votes come from. A classifier of
    two columns is drawn by its regions.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    if hasattr(model, "fit_y_") and is_classifier(model) and model.fit_X_.shape[1] == 2 and model.fit_y_.ndim == 1:
        return boundary(model, model.fit_X_, model.classes_[model.fit_y_])
    frame = neighbor_frame(model)
    figure, (axes,) = _canvas(1)
    axes.plot(frame["distance"], frame["share"], color=BLUE)
    axes.set(
        xlabel=f"distance to neighbour {model.n_neighbors}", ylabel="share of the rows", title="How near neighbours are"
    )
    return figure


def neighbor_counts(model: Any) -> "Figure":
    """Draw how many training rows lie within the radius of each training row, itself included.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    rows = np.arange(0, model.n_samples_fit_, -(-model.n_samples_fit_ // _MOST))
    counts = [
        len(radius_neighbor) for radius_neighbor in model.radius_neighbors(model.fit_X_[rows], return_distance=False)
    ]
    figure, (axes,) = _canvas(1)
    axes.hist(counts, bins=min(50, max(counts)), color=BLUE)
    axes.set(xlabel=f"rows within {model.radius:g}", ylabel="rows", title="How many vote")
    return figure


def label_certainty(model: Any) -> "Figure":
    """Draw the largest share of a class in the labels that have spread to each row, sorted: 1 is sure.

    Parameters
    ----------
    model : learner
        Fitted learner.

    Returns
    -------
    Figure
        The figure.
    """
    sure = np.sort(model.label_distributions_.max(axis=1))[::-1]
    figure, (axes,) = _canvas(1)
    axes.plot(np.arange(1, len(sure) + 1) / len(sure), sure, color=BLUE)
    axes.set(xlabel="share of the rows", ylabel="share of the likeliest class", title="How sure the labels are")
    axes.set_ylim(0, 1.02)
    return figure
