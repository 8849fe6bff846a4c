"""One source of tables whose truth can be found by drawing as many new rows as one likes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Columns = dict[str, Any]
"""Columns by name; None is an empty cell."""
Draw = Callable[[np.random.Generator, int], Columns]

QUICK = ("LogisticRegression", "MixedNB", "DecisionTreeClassifier")
QUICK_NUMBERS = ("Ridge", "KNeighborsRegressor", "DecisionTreeRegressor")
TARGET = "y"


@dataclass(frozen=True)
class World:
    """A source of rows, how many of them a study is given, the options of `assay.learn`, and what else is judged.

    `rows` are independent draws (with `group`, about so many rows of independent groups). `sort` names a column by
    which the table is written in order. `also` names what is judged beside certificate and sentence: see
    `bench.beside`. `given` makes what `assay.learn` is given of the file.
    """

    name: str
    says: str
    draw: Draw
    rows: int
    options: Mapping[str, Any] = field(default_factory=dict)
    sort: str | None = None
    also: tuple[str, ...] = ()
    given: Callable[[Path], Any] = Path

    def table(self, rng: np.random.Generator) -> Columns:
        """Return the table of a study."""
        columns = {name: np.asarray(values) for name, values in self.draw(rng, self.rows).items()}
        if self.sort is not None:
            order = np.argsort(columns[self.sort], kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
        return columns


WORLDS: dict[str, World] = {}


def world(
    rows: int, *, numbers: bool = False, sort: str | None = None, also: tuple[str, ...] = (),
    given: Callable[[Path], Any] = Path, **options: Any,
) -> Callable[[Draw], Draw]:  # fmt: skip
    """Add a world; `numbers` if its target is one, and `options` go to `assay.learn`."""

    def add(draw: Draw) -> Draw:
        name = draw.__name__.replace("_", "-")
        asked = {"learners": QUICK_NUMBERS if numbers else QUICK, "trials": 3, **options}
        WORLDS[name] = World(name, str(draw.__doc__), draw, rows, asked, sort, also, given)
        return draw

    return add


def labels(positive: np.ndarray) -> np.ndarray:
    """Return the classes "yes" and "no"."""
    return np.where(positive, "yes", "no")


def chance(rng: np.random.Generator, probability: np.ndarray) -> np.ndarray:
    """Return whether each of some events happens."""
    return rng.random(len(probability)) < probability


def logistic(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-score))


def with_gaps(rng: np.random.Generator, values: Any, share: float | np.ndarray) -> np.ndarray:
    """Return the values, a share of them missing."""
    found = np.array(values, dtype=object)
    found[rng.random(len(found)) < share] = None
    return found
