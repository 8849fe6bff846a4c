"""Which columns an ensemble needs, alone and together, by permuting them in the out-of-bag rows.

    I(j)     mean over members of  error with column j permuted - error,  each on the rows it did not see
    I(j, k)  the same with both columns permuted by one permutation
    H(j, k)  I(j) + I(k) - I(j, k): what the two columns share; 0 for columns that act separately on numbers

Errors are error rates, or mean squared errors. Breiman, Machine Learning 45, 2001, section 10.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.params import refuse
from assay.scan import thread_map
from assay.tree._reading import read_columns


class Analysed:
    """Mixin for ensembles that have `bags()` and `_member_values(t, X)`."""

    n_rows_: int
    seeds_: np.ndarray
    n_features_in_: int
    n_jobs: int | None

    def permutation_importances(self, X: Any, y: Any, *, n_repeats: int = 1, random_state: Any = None) -> np.ndarray:
        """Return I(j) of each column, in units of the error; X and y are the training rows.

        >>> import numpy as np
        >>> from assay.ensemble import BaggingClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 1] > 0
        >>> model = BaggingClassifier(random_state=0).fit(X, y)
        >>> int(model.permutation_importances(X, y, random_state=0).argmax())
        1
        """
        singles = [(j,) for j in range(self.n_features_in_)]
        return self._rises(X, y, singles, n_repeats, random_state)

    def interactions(self, X: Any, y: Any, *, n_repeats: int = 1, random_state: Any = None) -> np.ndarray:
        """Return H(j, k) (columns, columns), zero on the diagonal; X and y are the training rows."""
        d = self.n_features_in_
        pairs = [(j, k) for j in range(d) for k in range(j + 1, d)]
        found = self._rises(X, y, [*((j,) for j in range(d)), *pairs], n_repeats, random_state)
        shared = np.zeros((d, d))
        for (j, k), both in zip(pairs, found[d:]):
            shared[j, k] = shared[k, j] = found[j] + found[k] - both
        return shared

    def _rises(
        self, X: Any, y: Any, groups: Sequence[tuple[int, ...]], n_repeats: int, random_state: Any
    ) -> np.ndarray:
        """Return the mean rise of the out-of-bag error when the columns of each group are permuted together."""
        check_is_fitted(self)
        if self.has_nodes:  # type: ignore[attr-defined]
            self.nodes_.check(self.n_features_in_)  # type: ignore[attr-defined]
        data = read_columns(self, X, y)  # type: ignore[arg-type]
        if len(data.y) != self.n_rows_:
            raise refuse(self, f"permutations need the {self.n_rows_} training rows; got {len(data.y)} rows.")
        out = self.bags() == 0  # type: ignore[attr-defined]
        if not out.any():
            raise refuse(self, "every member saw every row; permutations need out-of-bag rows (bootstrap=True).")
        codes = np.searchsorted(self.classes_, data.y) if is_classifier(self) else data.y  # type: ignore[attr-defined]
        seeds = check_random_state(random_state).randint(2**31 - 1, size=len(out))
        X = data.dense("a permutation importance")

        def member(t: int) -> np.ndarray | None:
            held = np.flatnonzero(out[t])
            if not len(held):
                return None
            rng = np.random.default_rng(int(seeds[t]))
            return np.mean(list(self._member_rises(t, X[held], codes[held], groups, n_repeats, rng)), axis=0)

        found = thread_map(member, range(len(out)), n_jobs=self.n_jobs)
        return np.mean([one for one in found if one is not None], axis=0)

    def _member_rises(self, t: int, X, y, groups, n_repeats: int, rng: Any) -> Iterator[np.ndarray]:
        before = self._member_error(t, X, y)
        for _ in range(n_repeats):
            order = rng.permutation(len(X))
            rises = []
            for group in groups:
                changed = X.copy()
                changed[:, group] = X[np.ix_(order, group)]
                rises.append(self._member_error(t, changed, y) - before)
            yield np.array(rises)

    def _member_error(self, t: int, X: np.ndarray, y: np.ndarray) -> float:
        said = self._member_values(t, X)  # type: ignore[attr-defined]
        if is_classifier(self):
            return float((said.argmax(axis=1) != y).mean())
        return float(((said[:, 0] - y) ** 2).mean())
