"""New rows of a world, what models say of them, and means over them with their standard errors."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from bench.table_worlds import TARGET, World


class Estimate(NamedTuple):
    """A quantity of the source, as so many new rows tell it."""

    value: float
    error: float


def mean(values: np.ndarray) -> Estimate:
    """Return the mean of independent draws."""
    values = np.asarray(values, dtype=np.float64)
    return Estimate(float(values.mean()), float(values.std() / np.sqrt(len(values))))


def share(events: np.ndarray) -> Estimate:
    """Return how often an event happens; also of few draws the error is not 0 (Agresti and Coull)."""
    n, k = len(events), float(np.sum(events))
    p = (k + 2) / (n + 4)
    return Estimate(k / max(1, n), float(np.sqrt(p * (1 - p) / (n + 4))))


def write(columns: dict[str, Any], path: Path) -> None:
    """Write a CSV file; None is an empty cell. No value may hold a comma, a quote or a line break."""
    table = pa.table({name: pa.array(np.asarray(values).tolist()) for name, values in columns.items()})
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="none"))


class Fresh:
    """New rows in a file, and the answers of models that read it."""

    def __init__(self, world: World, rng: np.random.Generator, rows: int, path: Path) -> None:
        self.world, self.path = world, path
        self.columns = {name: np.asarray(values) for name, values in world.draw(rng, rows).items()}
        self.y = self.columns[TARGET]
        self.labels = self.y.astype(str)
        write(self.columns, path)
        self._said: dict[tuple[int, str], np.ndarray] = {}

    def said(self, model: Any, method: str = "predict") -> np.ndarray:
        """Return what a model answers to the file."""
        key = id(model), method
        if key not in self._said:
            self._said[key] = np.asarray(getattr(model, method)(self.path))
        return self._said[key]

    def wrong(self, model: Any) -> np.ndarray:
        return self.said(model).astype(str) != self.labels

    def is_not(self, label: Any) -> np.ndarray:
        """Return where always answering a label is wrong."""
        return self.labels != str(label)

    def off(self, model: Any, clip: float = np.inf) -> np.ndarray:
        """Return the absolute errors, counted up to `clip`."""
        return np.minimum(np.abs(self.said(model) - self.y), clip)

    def off_constant(self, constant: float, clip: float = np.inf) -> np.ndarray:
        return np.minimum(np.abs(self.y - constant), clip)

    def losses(self, model: Any) -> np.ndarray:
        """Return the errors of classes, or the absolute errors of numbers."""
        return self.wrong(model).astype(np.float64) if model.task == "classify" else self.off(model)

    def over_groups(self, values: np.ndarray) -> Estimate:
        """Return the mean over new groups of the mean within a group."""
        group = np.unique(self.columns[self.world.options["group"]], return_inverse=True)[1]
        return mean(np.bincount(group, np.asarray(values, dtype=np.float64)) / np.bincount(group))

    def shuffled(self, column: str, rng: np.random.Generator) -> Path:
        """Write the rows again, one column shuffled among them."""
        path = self.path.with_name("shuffled.csv")
        write({**self.columns, column: rng.permutation(self.columns[column])}, path)
        return path
