"""Algorithms step by step on two columns of a table: each frame is a fit of our own learner, stopped after so many
iterations, so that what is drawn is what the library does.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from assay.data import read
from assay.messages import Message

ROWS, CELLS = 160, 24
Frame = dict[str, Any]


class Scene(NamedTuple):
    """Standardised points, two classes, and the grid that regions are drawn on."""

    X: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def grid(self) -> np.ndarray:
        """(CELLS^2, 2) the middles of the cells."""
        middles = (np.arange(CELLS) + 0.5) / CELLS
        a, b = (self.low[k] + middles * (self.high[k] - self.low[k]) for k in range(2))
        return np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)


def steps(which: str, sample: str, x: str, y: str, target: str) -> dict[str, Any]:
    """Return the frames of an algorithm on two columns; classes are the commonest of the target, and the rest."""
    table = read(sample)
    both = np.stack([table.column(x).data, table.column(y).data], axis=1)
    labels, classes = _two_classes(table.column(target))
    there = np.flatnonzero(np.isfinite(both).all(axis=1) & (labels >= 0))
    if len(there) < 10 or len(np.unique(labels[there])) < 2:
        raise ValueError(Message("steps.few"))
    there = there[np.sort(np.random.default_rng(0).permutation(len(there))[:ROWS])]
    mean, scale = both[there].mean(axis=0), both[there].std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    X = (both[there] - mean) / scale
    pad = 0.06 * (X.max(axis=0) - X.min(axis=0) + 1e-9)
    scene = Scene(X, labels[there], X.min(axis=0) - pad, X.max(axis=0) + pad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that is stopped says that it did not converge, and should
        frames = list(_MAKERS[which](scene))
    ends = np.array([[-1.5, -1.5], [1.5, 1.5]])
    if which != "backprop":
        ends = np.stack([scene.low, scene.high]) * scale + mean
        for frame in frames:
            frame |= {name: [_placed(part, mean, scale) for part in frame.get(name, ())] for name in _PLACES}
    return {
        "points": both[there].round(6).tolist(),
        "codes": scene.y.tolist(),
        "classes": classes if which not in ("kmeans", "em", "backprop") else [],
        "x_range": ends[:, 0].tolist(),
        "y_range": ends[:, 1].tolist(),
        "x": x if which != "backprop" else "1",
        "y": y if which != "backprop" else "2",
        "cells": CELLS,
        "frames": frames,
    }


_PLACES = ("lines", "centres", "ellipses")


def _placed(places: Any, mean: np.ndarray, scale: np.ndarray) -> Any:
    """Return places in the units of the table's columns."""
    return (np.asarray(places) * scale + mean).tolist()


def _two_classes(target: Any) -> tuple[np.ndarray, list[str]]:
    """Return 0 for the commonest class and 1 for the others (numbers: above the median), -1 for a gap."""
    data = target.data
    labels = np.full(len(data), -1)
    there = ~target.missing
    values, counts = np.unique(data[there], return_counts=True)
    if target.type.kind == "numeric" and len(values) > 20:
        middle = float(np.median(data[there]))
        labels[there] = data[there] > middle
        return labels, [f"<= {middle:.4g}", f"> {middle:.4g}"]
    common = values[np.argmax(counts)]
    labels[there] = data[there] != common
    names = [f"{v:g}" if target.type.kind == "numeric" else target.type.levels[int(v)] for v in values]
    others = [name for name, value in zip(names, values, strict=True) if value != common]
    return labels, [names[int(np.argmax(counts))], " / ".join(others[:3])]


def _regions(scene: Scene, model: Any) -> list[list[Any]]:
    return _runs(model.predict(scene.grid).reshape(CELLS, CELLS))


def _runs(cells: np.ndarray) -> list[list[Any]]:
    """Return cells of one value that lie above each other as one: column, first, end, value."""
    results = []
    for i, column in enumerate(cells.tolist()):
        first = 0
        for j in range(1, len(column) + 1):
            if j == len(column) or column[j] != column[first]:
                results.append([i, first, j, column[first]])
                first = j
    return results


def _line(scene: Scene, w: np.ndarray, b: float) -> list[Any]:
    """Return the ends of the line w.x + b = 0 within the area."""
    ends = []
    (x0, y0), (x1, y1) = scene.low, scene.high
    for x in (x0, x1):
        if w[1] and y0 <= (y := -(b + w[0] * x) / w[1]) <= y1:
            ends.append([float(x), float(y)])
    for y in (y0, y1):
        if w[0] and x0 <= (x := -(b + w[1] * y) / w[0]) <= x1:
            ends.append([float(x), float(y)])
    return [ends[:2]] if len(ends) >= 2 else []


def _frame(sentence: str, numbers: dict[str, Any], **drawn: Any) -> Frame:
    return {"said": sentence, "numbers": numbers, **drawn}


def _perceptron(scene: Scene) -> Iterator[Frame]:
    from assay.linear_model import Perceptron

    for n in range(1, 16):
        model = Perceptron(max_iter=n, shuffle=False).fit(scene.X, scene.y)
        wrong = np.flatnonzero(model.predict(scene.X) != scene.y)
        yield _frame(
            "perceptron",
            {"wrong": len(wrong), "rows": len(scene.y)},
            regions=_regions(scene, model),
            lines=_line(scene, np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])),
            rings=wrong.tolist(),
        )
        if not len(wrong):
            return


def _kmeans(scene: Scene) -> Iterator[Frame]:
    from assay.cluster import KMeans

    start = scene.X[np.random.default_rng(3).choice(len(scene.X), 3, replace=False)]
    before = start
    for n in range(1, 16):
        model = KMeans(3, init=start, n_init=1, max_iter=n, tol=0.0).fit(scene.X)
        moved = float(np.abs(model.cluster_centers_ - before).max())
        codes = ((scene.X[:, None] - before) ** 2).sum(axis=2).argmin(axis=1)
        yield _frame("kmeans", {"cost": f"{_cost(scene.X, before):.3f}"}, codes=codes.tolist(), centres=before.tolist())
        before = model.cluster_centers_
        if moved < 1e-9:
            return


def _cost(X: np.ndarray, centres: np.ndarray) -> float:
    return float(((X[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum())


def _adaboost(scene: Scene) -> Iterator[Frame]:
    from assay.ensemble import AdaBoostClassifier

    weights = np.full(len(scene.y), 1 / len(scene.y))
    for n in range(1, 16):
        model = AdaBoostClassifier(n_estimators=n, random_state=0).fit(scene.X, scene.y)
        if len(model.estimators_) < n:
            return
        wrong = model.predict(scene.X) != scene.y
        sizes = np.clip(3.2 * np.sqrt(weights * len(weights)), 1.2, 12)
        yield _frame(
            "adaboost",
            {"wrong": int(wrong.sum()), "rows": len(wrong), "members": n},
            regions=_regions(scene, model),
            sizes=sizes.round(2).tolist(),
        )
        missed = model.estimators_[n - 1].predict(scene.X) != scene.y
        error = min(max(float(weights[missed].sum()), 1e-12), 1 - 1e-12)
        weights = np.where(missed, weights / (2 * error), weights / (2 * (1 - error)))


def _smo(scene: Scene) -> Iterator[Frame]:
    from assay.svm import SVC

    before = np.zeros(len(scene.y))
    for n in (*range(1, 11), 15, 20, 30, 50, 100, 300, 1000):
        model = SVC(kernel="linear", C=1.0, max_iter=n).fit(scene.X, scene.y)
        alpha = np.zeros(len(scene.y))
        alpha[model.support_] = np.abs(np.ravel(model.dual_coef_))
        changed = np.flatnonzero(np.abs(alpha - before) > 1e-12)
        yield _frame(
            "smo",
            {"pairs": n, "support": int((alpha > 0).sum()), "changed": len(changed)},
            lines=_line(scene, np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])),
            rings=changed.tolist(),
            sizes=(3.2 + 3 * alpha).round(2).tolist(),
        )
        if not len(changed):
            return
        before = alpha


def _em(scene: Scene) -> Iterator[Frame]:
    from assay.mixture import GaussianMixture

    start = scene.X[np.random.default_rng(5).choice(len(scene.X), 3, replace=False)]
    for n in (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 40):
        model = GaussianMixture(3, means_init=start, max_iter=n, tol=1e-12, random_state=0, n_init=1).fit(scene.X)
        yield _frame(
            "em",
            {"likelihood": f"{float(model.score(scene.X)):.4f}", "n": n},
            codes=model.predict(scene.X).tolist(),
            centres=model.means_.tolist(),
            ellipses=[_ellipse(m, c) for m, c in zip(model.means_, model.covariances_)],
        )


def _ellipse(mean: np.ndarray, covariance: np.ndarray) -> list[list[float]]:
    """Return the points at twice the standard deviation."""
    values, vectors = np.linalg.eigh(covariance)
    turn = np.linspace(0, 2 * np.pi, 49)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    return (mean + 2 * (vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)).T).round(4).tolist()


def _backprop(scene: Scene) -> Iterator[Frame]:
    """The loss over the plane through the start, the end and the middle of a network's way, and the way upon it."""
    from assay.neural_network import MLPClassifier

    epochs = (1, 2, 4, 7, 12, 20, 35, 60, 100)
    made = [MLPClassifier(hidden_layer_sizes=(4,), max_iter=n, random_state=0).fit(scene.X, scene.y) for n in epochs]
    ways = np.array([_flat(model) for model in made])
    origin = ways.mean(axis=0)
    _, _, axes = np.linalg.svd(ways - origin, full_matrices=False)
    places = (ways - origin) @ axes[:2].T
    size = np.abs(places).max(axis=0) + 1e-9
    cells = (np.arange(CELLS) + 0.5) / CELLS * 3 - 1.5
    losses = np.array(
        [[_loss(made[0], origin + a * size[0] * axes[0] + b * size[1] * axes[1], scene) for b in cells] for a in cells]
    )
    shades = np.sqrt((losses - losses.min()) / max(float(np.ptp(losses)), 1e-12))
    surface = _runs(np.round(shades * 20) / 20)
    drawn = (places / size).round(4).tolist()
    for k, n in enumerate(epochs):
        loss = f"{_loss(made[0], ways[k], scene):.4f}"
        yield _frame("backprop", {"n": n, "loss": loss}, surface=surface, path=drawn[: k + 1], centres=[drawn[k]])


def _flat(model: Any) -> np.ndarray:
    return np.concatenate([np.ravel(part) for pair in zip(model.coefs_, model.intercepts_) for part in pair])


def _loss(model: Any, weights: np.ndarray, scene: Scene) -> float:
    """Return the mean log loss of the network with other weights: one hidden layer of rectified units."""
    (W, V), b = model.coefs_, model.intercepts_[0]
    parts = np.split(weights, np.cumsum([W.size, b.size, V.size]))
    hidden = np.maximum(scene.X @ parts[0].reshape(W.shape) + parts[1], 0)
    score = (hidden @ parts[2].reshape(V.shape) + parts[3])[:, -1]
    return float(np.logaddexp(0, np.where(scene.y == 1, -score, score)).mean())


_MAKERS = {
    "perceptron": _perceptron,
    "kmeans": _kmeans,
    "adaboost": _adaboost,
    "smo": _smo,
    "em": _em,
    "backprop": _backprop,
}
