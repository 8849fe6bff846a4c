"""Figures of Bayes classifiers: what each class says of each column."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.plot.figures import CLASS_COLOURS, _canvas, _short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 4
_MOST_WORDS = 12


class ColumnShares(NamedTuple):
    """What a panel shows: P(level | class) (K, levels) by level, or a density (K, points) over numbers."""

    name: str
    levels: list[str]
    at: np.ndarray
    shares: np.ndarray


def tables_frame(model: Any, columns: Sequence[int] | None = None) -> list[ColumnShares]:
    """Return what each class says of the columns: shares of levels, normal densities of numbers, or of counts the words
    that tell the classes apart most."""
    if hasattr(model, "feature_count_"):
        return [_words(model)]
    names = _names(model)
    chosen = range(min(len(names), _MOST_PANELS)) if columns is None else columns
    shares = model.shares_ if hasattr(model, "shares_") else [_exp(table) for table in model.tables_]
    return [_panel(model, j, names[j], shares[j]) for j in chosen]


def tables(model: Any, columns: Sequence[int] | None = None) -> "Figure":
    """Draw for each class the shares of levels, or the density of numbers, of the columns given (the first four)."""
    frames = tables_frame(model, columns)
    figure, panels = _canvas(len(frames))
    K = len(model.classes_)
    for axes, frame in zip(panels, frames, strict=True):
        for k, label in enumerate(model.classes_):
            colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
            if frame.levels:
                places = np.arange(len(frame.levels)) + (k - (K - 1) / 2) * 0.8 / K
                axes.bar(places, frame.shares[k], 0.8 / K, color=colour, label=_short(label))
                axes.set_xticks(range(len(frame.levels)), [_short(level) for level in frame.levels], rotation=45)
            else:
                axes.plot(frame.at, frame.shares[k], color=colour, label=_short(label))
        axes.set(title=_short(frame.name, 30), ylabel="P(value | class)" if frame.levels else "p(value | class)")
    panels[0].legend(frameon=False)
    return figure


def _panel(model: Any, j: int, name: str, shares: np.ndarray | None) -> ColumnShares:
    return _normal(model, j, name) if shares is None else _levels(model, j, name, shares)


def _exp(table: np.ndarray | None) -> np.ndarray | None:
    return None if table is None else np.exp(table)


def _names(model: Any) -> list[str]:
    d = model.n_features_in_
    return [str(name) for name in getattr(model, "feature_names_in_", [f"column {j}" for j in range(d)])]


def _words(model: Any) -> ColumnShares:
    weights, names = model.feature_log_prob_, _names(model)
    finite = np.where(np.isfinite(weights), weights, np.min(weights, where=np.isfinite(weights), initial=0.0))
    best = np.argsort(-np.ptp(finite, axis=0), kind="stable")[:_MOST_WORDS]
    return ColumnShares("columns that tell most", [names[j] for j in best], best, np.exp(-np.abs(finite[:, best])))


def _levels(model: Any, j: int, name: str, shares: np.ndarray) -> ColumnShares:
    column = None if model.columns_ is None else model.columns_[j]
    found = list(column.levels) if column is not None and column.kind != "numeric" else []
    if not found and not hasattr(model, "is_cut_"):
        first = int(np.maximum(model.n_levels_[:j], 0).sum())
        found = [f"{value:g}" for value in model.level_values_[first : first + shares.shape[1]]]
    if not found:
        first = int(model.n_values_[:j].sum())
        values = [f"{value:g}" for value in model.values_[first : first + model.n_values_[j]]]
        found = ["less", *(f">= {value}" for value in values)] if model.is_cut_[j] else values
    found += ["missing"] * (shares.shape[1] - len(found))
    return ColumnShares(name, found, np.arange(len(found)), shares)


def _normal(model: Any, j: int, name: str) -> ColumnShares:
    at = int(np.sum(model.n_levels_[:j] < 0))
    theta, deviation = model.theta_[:, at], np.sqrt(model.var_[:, at])
    x = np.linspace((theta - 3 * deviation).min(), (theta + 3 * deviation).max(), 200)
    apart = (x - theta[:, None]) / deviation[:, None]
    return ColumnShares(name, [], x, np.exp(-0.5 * apart**2) / (np.sqrt(2 * np.pi) * deviation[:, None]))
