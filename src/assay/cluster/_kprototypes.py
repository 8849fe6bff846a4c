"""k-prototypes and k-modes: clusters of rows that have names in some columns, or in all.

    minimise over p_1, ..., p_k    J(p) = sum_i min_j  sum_numbers (x_if - p_jf)^2 + gamma * (names that differ)

A prototype has the mean of its rows where columns are numbers and the most frequent name where they are names (Huang
1998). A gap adds nothing to the dissimilarity, and is left out of means and modes.

Claims: the cost of the prototypes, how far each is from the means of its rows, and how many of its names are not the
        most frequent (prototypes.fixed-point); on new data the mean dissimilarity is at most ... (hold-out).
Method: nearest prototypes, then means and modes, until no row moves; neither step raises J.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np

from assay.card import Card
from assay.cluster._mixed import Mixed, MixedCells
from assay.params import Count, Maybe, NameOr, Number, refuse


@dataclass(eq=False, repr=False)
class KPrototypes(Mixed):
    """Clusters of rows with numbers in some columns and names in others.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    nominal : list of column positions, optional
        Columns of an array whose numbers are only names. A frame says it by its types: text, categories and booleans
        are names, ordered categories count as the numbers of their levels.
    gamma : float >= 0, optional
        What one differing name weighs beside squared differences; None is half the mean standard deviation of the
        numeric columns. Scale the columns first if they have different units.
    init : "k-prototypes++", "random" or (k, d) array
        First prototypes: rows far from each other, rows at random, or given, as `codes` writes them.
    n_init : int
        Runs from different starts, of which the best is kept.
    max_iter : int
        Iterations of one run, at most.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None uses all cores. It changes the time, never a bit of the result.

    Attributes
    ----------
    prototypes_ : (k, d)
        Means, and positions of names among the levels of their column (of an array: the numbers themselves).
    labels_ : (n,), cost_ : float, n_iter_ : int, gamma_ : float

    Gaps (NaN, None) add nothing to a dissimilarity and are left out of means and modes; a name that was not seen in
    `fit` counts as a gap. Certificates need complete rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from assay.cluster import KPrototypes
    >>> jobs = ["cook", "cook", None, "judge", "judge", "cook"]
    >>> table = pd.DataFrame({"age": [20.0, 22, 21, 60, 62, 64], "job": jobs})
    >>> model = KPrototypes(2, random_state=0).fit(table)
    >>> sorted((row["age"], row["job"]) for row in model.described())
    [(21.0, 'cook'), (62.0, 'judge')]
    """

    card = Card(
        name="k-prototypes",
        zh="k原型聚类",
        mission=("CLU-42",),
        task="cluster",
        model=MixedCells(),
        strategy="squared differences of numbers and weighted mismatches of names to the nearest of k prototypes",
        algorithm="nearest prototypes, then means and modes",
        guarantee=("prototypes.fixed-point",),
        input=("numbers", "nominal", "missing"),
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "gamma": Maybe(Number(low=0.0), None),
        "init": NameOr(None, "k-prototypes++", "random"),
        "n_init": Count(),
        "max_iter": Count(),
    }

    n_clusters: int = 8
    _: KW_ONLY
    nominal: Any = None
    gamma: float | None = None
    init: Any = "k-prototypes++"
    n_init: int = 5
    max_iter: int = 100
    random_state: Any = None
    n_jobs: int | None = None

    def _nominal(self, d: int) -> np.ndarray:
        found = np.zeros(d, dtype=np.int64)
        if self.columns_ is not None:
            found[[j for j, column in enumerate(self.columns_) if column.kind == "nominal"]] = 1
        at = np.asarray([] if self.nominal is None else self.nominal)
        if at.size:
            if at.ndim != 1 or at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= d:
                raise refuse(self, f"nominal must list column positions from 0 to {d - 1}; got {self.nominal!r}.")
            found[at] = 1
        return found

    def _weight(self, table: np.ndarray) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        numbers = table[:, self.nominal_columns_ == 0]
        spreads = [float(np.nanstd(column)) for column in numbers.T if not np.isnan(column).all()]
        return 0.5 * float(np.mean(spreads)) if spreads and np.mean(spreads) > 0 else 1.0


@dataclass(eq=False, repr=False)
class KModes(Mixed):
    """Clusters of rows whose columns are all names.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k.
    init : "k-modes++", "random" or (k, d) array
        First modes: rows far from each other, rows at random, or given, as `codes` writes them.
    n_init, max_iter, random_state, n_jobs
        As in `KPrototypes`.

    Attributes
    ----------
    prototypes_ : (k, d)
        Modes, as positions of names among the levels of their column (of an array: the numbers themselves).
    labels_ : (n,), cost_ : float, n_iter_ : int
        `cost_` is the number of entries that differ from those of their mode.

    Numbers of an array, and numeric columns of a frame, are taken as names. Gaps as in `KPrototypes`.

    Examples
    --------
    >>> from assay.cluster import KModes
    >>> rows = [["red", "round"], ["red", "round"], ["red", "long"], ["green", "long"], ["green", "long"]]
    >>> model = KModes(2, random_state=0).fit(rows)
    >>> sorted(tuple(row.values()) for row in model.described()), model.cost_
    ([('green', 'long'), ('red', 'round')], 1.0)
    """

    card = Card(
        name="k-modes",
        zh="k众数聚类",
        mission=("CLU-42",),
        task="cluster",
        model=MixedCells(),
        strategy="names that differ from the nearest of k modes",
        algorithm="nearest modes, then most frequent names",
        guarantee=("prototypes.fixed-point",),
        input=("numbers", "nominal", "missing"),
    )
    n_iter_: int = field(init=False)
    constraints: ClassVar = {
        "n_clusters": Count(),
        "init": NameOr(None, "k-modes++", "random"),
        "n_init": Count(),
        "max_iter": Count(),
    }

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-modes++"
    n_init: int = 5
    max_iter: int = 100
    random_state: Any = None
    n_jobs: int | None = None

    def _nominal(self, d: int) -> np.ndarray:
        return np.ones(d, dtype=np.int64)
