"""Figures of mixtures and densities: ellipses of the components, and the density itself."""

from typing import TYPE_CHECKING, Any

import numpy as np

from assay.plot.figures import BLUE, CLASS_COLOURS, GREY, _canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_AROUND = np.linspace(0, 2 * np.pi, 100)


def ellipses(model: Any, columns: tuple[int, int] = (0, 1), spread: float = 2.0) -> list[np.ndarray]:
    """Return for each component the border (100, 2) of its region in two columns: `spread` standard deviations away."""
    at = list(columns)
    circle = spread * np.stack([np.cos(_AROUND), np.sin(_AROUND)])
    covariances = _matrices(model)[:, at][:, :, at]
    return [mean[at] + (np.linalg.cholesky(S) @ circle).T for mean, S in zip(model.means_, covariances, strict=True)]


def components(model: Any, X: Any = None, columns: tuple[int, int] = (0, 1)) -> "Figure":
    """Draw each Gaussian component in two columns as the ellipse at two standard deviations, over the rows if given;
    of one column its density."""
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
    """Draw the density of a model over the range of rows of one or two columns."""
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
