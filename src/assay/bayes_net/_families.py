"""The cost of a family, a node with its parents: what a search adds up.

    LL, AIC, BIC     f |B| - LL: f = 0, 1, (ln n) / 2, or any number; |B| parameters, LL largest log-likelihood (nats)
    BDeu             - ln of the probability of the rows, tables drawn evenly, `equivalent_sample_size` rows in advance

Each is a sum over families, so that a change of one edge is known from one or two of them. Costs are kept.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from assay.bayes_net._gaussian import Fitted, GaussianFamilies
from assay.bayes_net._reading import Coded
from assay.scan import thread_map

MOST_CELLS = 2**24
"""Entries of a family's table, at most; a family with more is not looked at."""
_GROUP = 2**16  # entries of tables that are counted side by side
_POWERS = 2**20


def factor_of(score: Any, n: float) -> float:
    """Return f of a score f |B| - LL; -1 for BDeu."""
    if isinstance(score, str):
        return {"ll": 0.0, "aic": 1.0, "bic": 0.5 * np.log(n), "mdl": 0.5 * np.log(n), "bdeu": -1.0}[score]
    return float(score)


class Families:
    """Costs of families of these rows; smaller is better."""

    def __init__(self, data: Coded, factor: float, samples: float, n_jobs: int | None = None):
        self.data, self.factor, self.samples, self.n_jobs = data, factor, samples, n_jobs
        self.sizes, self.d = np.maximum(data.sizes, 1), len(data.sizes)
        self.numbers = data.sizes == 0
        self.gaussians: dict[int, GaussianFamilies] = {}
        self.slack = 0.0  # how far rounding can move the cost of a number's family that was looked at
        self.known: dict[tuple[int, tuple[int, ...]], float] = {}
        self.grown: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}  # with each other node as one more parent

    @cached_property
    def powers(self) -> np.ndarray:
        """c ln c of every count there can be, up to a million."""
        counts = np.arange(min(self.data.n_rows + 1, _POWERS), dtype=np.float64)
        return counts * np.log(np.maximum(counts, 1.0))

    def cost(self, child: int, parents: Sequence[int]) -> float:
        """Return the cost of one family; infinite if its table is too large."""
        parents = tuple(sorted(parents))
        key = (child, parents)
        if key not in self.known:
            near = (self.grown.get((child, parents[:k] + parents[k + 1 :])) for k in range(len(parents)))
            found = [row[j] for row, j in zip(near, parents) if row is not None and not np.isnan(row[j])]
            self.known[key] = float(found[0]) if found else self._cost(child, parents)
        return self.known[key]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        return float(sum(self.cost(child, above) for child, above in enumerate(parents)))

    def additions(self, child: int, parents: Sequence[int], others: Sequence[int]) -> np.ndarray:
        """Return the cost of the child's family with each of `others` added; infinite elsewhere."""
        parents = tuple(sorted(parents))
        row = self.grown.setdefault((child, parents), np.full(self.d, np.nan))
        missing = [j for j in others if np.isnan(row[j])]
        if self.numbers[child]:
            for j in missing:
                row[j] = self._cost(child, tuple(sorted((*parents, j))))
        elif missing:
            found = np.full(self.d, np.inf)
            self._count(child, parents, [j for j in missing if not self.numbers[j]], found, None)
            row[missing] = found[missing]
        result = np.full(self.d, np.inf)
        result[others] = row[others]
        return result

    def pairs(self) -> None:
        """Learn the cost of every family with one parent, both directions from one table, on threads."""
        nodes = [i for i in range(self.d) if not self.numbers[i]]
        rows = {i: self.grown.setdefault((i, ()), np.full(self.d, np.nan)) for i in nodes}

        def work(i: int) -> tuple[np.ndarray, np.ndarray]:
            out, back = np.full(self.d, np.inf), np.full(self.d, np.inf)
            self._count(i, (), [j for j in nodes if j > i], out, back)
            return out, back

        for i, (out, back) in zip(nodes, thread_map(work, nodes, n_jobs=self.n_jobs)):
            for j in nodes:
                if j > i:
                    rows[i][j], rows[j][i] = out[j], back[j]

    def regression(self, child: int, parents: Sequence[int]) -> Fitted:
        """Return the best table of a number, from the rows that have it; its parents are sorted and lack no value."""
        key = child if self.data.holes[child] else -1
        if key not in self.gaussians:
            rows = np.flatnonzero(~np.isnan(self.data.numbers[child])) if key >= 0 else None
            self.gaussians[key] = GaussianFamilies(self.data if rows is None else self.data.take(rows))
        return self.gaussians[key].fit(child, parents)

    def table(self, child: int, parents: Sequence[int]) -> np.ndarray:
        """Return the counts of a family with states, one axis for each sorted parent, the last for the child."""
        parents = sorted(parents)
        shape = [int(self.sizes[one]) for one in (*parents, child)]
        if np.prod([float(size) for size in shape]) > MOST_CELLS:
            raise MemoryError(f"the table of a node with {len(parents)} parents would have more than 2^24 entries.")
        counts = np.bincount(self._config(child, parents), self.data.weight, minlength=int(np.prod(shape)))
        return counts.reshape(shape)

    def _config(self, child: int, parents: Sequence[int]) -> np.ndarray:
        """Return the number of each row's combination of parents and child, the child fastest."""
        found = np.zeros(self.data.n_rows, dtype=np.int32)
        for node in (*parents, child):
            found *= np.int32(self.sizes[node])
            found += self.data.codes[node]
        return found

    def _cost(self, child: int, parents: tuple[int, ...]) -> float:
        if self.numbers[child]:
            states = [one for one in parents if not self.numbers[one]]
            if np.prod([float(self.sizes[one]) for one in states]) > MOST_CELLS:
                return np.inf
            fitted = self.regression(child, parents)
            self.slack = max(self.slack, fitted.slack)
            return max(self.factor, 0.0) * fitted.table.size - fitted.log_likelihood
        if any(self.numbers[one] for one in parents):
            return np.inf
        if self.data.weight is not None:
            return self._weighted_cost(child, parents)
        found = np.full(self.d, np.inf)
        if parents:
            self._count(child, parents[:-1], [parents[-1]], found, None)
            return float(found[parents[-1]])
        from assay.bayes_net._count_loop import family_score

        counts = np.bincount(self.data.codes[child], minlength=self.sizes[child])
        return float(family_score(counts, 0, 1, self.sizes[child], 1, False, self.factor, self.samples, self.powers))

    def _weighted_cost(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the cost of a family with states, of rows with weights."""
        if np.prod([float(self.sizes[one]) for one in (*parents, child)]) > MOST_CELLS:
            return np.inf
        counts = self.table(child, parents).reshape(-1, self.sizes[child])
        (q, r), rows = counts.shape, counts.sum(axis=1)
        if self.factor < 0:
            a, b = self.samples / q, self.samples / (q * r)
            inner = gammaln(b + counts) - gammaln(b)
            return float((gammaln(a + rows) - gammaln(a)).sum() - inner.sum())
        return float(xlogy(rows, rows).sum() - xlogy(counts, counts).sum() + self.factor * (r - 1) * q)

    def _count(
        self, child: int, parents: tuple[int, ...], others: list[int], out: np.ndarray, back: np.ndarray | None
    ) -> None:
        """Write costs of families with one of `others` added, group by group of tables that fit a cache."""
        from assay.bayes_net._count_loop import scores_with

        if self.data.weight is not None:
            for j in others:
                out[j] = self._weighted_cost(child, tuple(sorted((*parents, j))))
                if back is not None:
                    back[j] = self._weighted_cost(j, (child,))
            return
        q = float(np.prod([float(self.sizes[one]) for one in parents]))
        cells = q * self.sizes[child]
        others = [j for j in others if cells * self.sizes[j] <= MOST_CELLS]
        if not others or cells > MOST_CELLS:
            return
        config = self._config(child, parents)
        while others:
            lengths = np.cumsum([int(cells * self.sizes[j]) for j in others])
            many = max(1, int(np.searchsorted(lengths, _GROUP, side="right")))
            group, others = np.array(others[:many]), others[many:]
            starts = np.concatenate([[0], lengths[: many - 1]]).astype(np.int64)
            counts = np.zeros(int(lengths[many - 1]), dtype=np.int32)
            scores_with(
                config, self.data.codes, child, int(q), group, self.sizes, starts, counts, back is not None,
                self.factor, self.samples, self.powers, out, out if back is None else back,
            )  # fmt: skip
