"""The tree of largest likelihood over the columns.

    maximise over trees T    sum over edges (i, j) of T of I(x_i, x_j)        (mutual information, in nats)

Claim:  no tree has a larger log-likelihood (Chow and Liu 1968).
Method: mutual informations from counts of pairs, then the maximum spanning tree.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.callback import with_callbacks

from assay.base import fit_log
from assay.bayes_net import _claims, _search
from assay.bayes_net._learner import NetworkDensity
from assay.bayes_net._reading import counted_rows, read_coded
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.mixture._density import log_likelihood
from assay.params import Count, Positive, check, refuse
from assay.scan import Rows


@dataclass(eq=False, repr=False)
class ChowLiu(NetworkDensity):
    """A Bayesian network whose graph is the best tree.

    Columns all have states, or are all numbers (then their mutual information is that of Gaussian columns).

    Parameters
    ----------
    root : int >= 0
        Column that has no parent; edges point away from it. The likelihood is the same for every root.
    alpha : float >= 0
        Rows added to each entry of a table.
    max_iter, tol : of EM, if entries are missing; the tree is learnt from the rows without gaps.
    nominal : None, "all" or a list of columns
        Columns whose numbers are names.
    n_jobs : int or None
        Threads; changes the time, never a bit of the result.

    Attributes
    ----------
    network_ : Network
    information_ : float
        Sum of the mutual informations along the edges, in nats per row.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.bayes_net import ChowLiu
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 500)
    >>> b = np.where(rng.random(500) < 0.1, 1 - a, a)
    >>> c = np.where(rng.random(500) < 0.2, 1 - b, b)
    >>> ChowLiu(nominal="all").fit(np.column_stack([a, b, c])).edges
    [('x0', 'x1'), ('x1', 'x2')]
    """

    card = Card(
        name="Chow-Liu tree",
        task="density",
        model="products of P(x | parent) over the nodes of a tree",
        strategy="log-likelihood of the rows",
        algorithm="maximum spanning tree of mutual informations",
        guarantee=(
            "density.log-likelihood",
            "network.counts",
            "chow-liu.optimal",
            "network.marginals",
            "network.explanation",
            "network.posterior",
        ),
    )

    constraints: ClassVar = {"root": Count(low=0), "max_iter": Count(), "tol": Positive()}

    root: int = 0
    _: KW_ONLY
    alpha: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-3
    nominal: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "ChowLiu":
        """Learn the tree of the rows X, each counted as often as `sample_weight` says; y is not used."""
        check(self)
        X, _, weight = counted_rows(self, X, None, sample_weight)
        data = read_coded(self, X, weight=weight)
        self._enough(data)
        if self.root >= len(data.sizes):
            raise refuse(self, f"root must be one of {len(data.sizes)} columns; got {self.root}.")
        if data.sizes.any() and not data.sizes.all():
            raise refuse(self, "columns with states and numbers cannot both be in a tree of this kind; see nominal=.")
        if data.holes[data.sizes == 0].any():
            raise refuse(self, "Input X contains NaN in a column of numbers; a tree of numbers is learnt without gaps.")
        with fit_log(self, self.max_iter, X, None) as log:
            whole = self._complete(data)
            weights = _search.information(self._families(whole))
            parents = _search.tree(weights, self.root)
            total = sum(weights[above[0], node] for node, above in enumerate(parents) if above)
            self.information_ = float(total / whole.total)
            self._keep(self._estimate(data, parents))
            fitted = self._usable(self._arrays()) if log.watched else {}
            if not log.step(-self.information_, 0.0, **fitted) and data.gaps:
                self._fill_gaps(data, log)
            self.n_iter_ = len(log.history)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = isinstance(self.nominal, str)
        return tags

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield likelihood, counts, that no tree is better, and marginals."""
        yield log_likelihood(self, rows)
        codes = _claims.coded_rows(self, rows)
        yield _claims.counts(self, rows, codes)
        yield _claims.tree(self, rows, codes)
        yield from _claims.queries(self)
