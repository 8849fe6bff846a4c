"""Truncated singular value decomposition: the flat through the origin that is nearest to the rows.

    X = U diag(s) V';  of all matrices of rank k, the first k terms are the nearest to X (Eckart & Young 1936).

Claims: no flat of k dimensions through the origin is nearer to the rows by more than `value` (pca.optimality); on new
        data the
        mean
        squared distance to it is at most ... (projection.risk, hold-out): the origin is not fitted, so that the bound
        is smaller.
Method: eigenvectors of X'X, a sum over rows; a sketch or Lanczos iterations for wide or sparse rows.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import svds
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd, svd_flip
from sklearn.utils.validation import check_is_fitted

from assay.base import read_rows, require_finite
from assay.card import Card
from assay.decomposition._pca import FlatLearner, Flats, scatter_about
from assay.fitlog import FitLog
from assay.params import Choice, Count, Number, check, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows

_NARROW = 1_000  # algorithm="auto": X'X up to so many columns


class RankedSVD(NamedTuple):
    """U (m, r), singular values (r,) falling, V' (r, n), of a matrix whose rank was found to be r.

    Parameters
    ----------
    U : ndarray
        Left singular vectors.
    singular_values : ndarray
        Singular values, falling.
    Vt : ndarray
        Right singular vectors, one in each row.
    """

    U: np.ndarray
    singular_values: np.ndarray
    Vt: np.ndarray

    @property
    def rank(self) -> int:
        """The number of singular values that are not zero."""
        return len(self.singular_values)


def svd_with_rank(S: Any, tol: float | None = None) -> RankedSVD:
    """Return S = U diag(s) V' without the singular values that are at most `tol` times the largest.

    None stands for the rounding of a decomposition, max(m, n) 2^-52. A scatter matrix of columns that depend on each
    other has singular values that would be zero without rounding; these are cut.

    Parameters
    ----------
    S : array-like
        A matrix.
    tol : float or None
        Relative size of singular values that count as zero; None: rounding.

    Returns
    -------
    RankedSVD
        The decomposition.

    Examples
    --------
    >>> svd_with_rank([[2.0, 2.0], [2.0, 2.0]]).rank
    1
    """
    S = np.asarray(S, dtype=np.float64)
    if S.ndim != 2 or not np.isfinite(S).all():
        raise ValueError(f"svd_with_rank: S must be a matrix of finite numbers; got shape {S.shape}.")
    tol = max(S.shape, default=0) * 2.0**-52 if tol is None else tol
    if not 0 <= tol < 1:
        raise ValueError(f"svd_with_rank: tol must be a number in [0, 1); got {tol!r}.")
    U, s, Vt = np.linalg.svd(S, full_matrices=False)
    r = int(np.count_nonzero(s > tol * s.max(initial=0.0)))
    return RankedSVD(U[:, :r], s[:r], Vt[:r])


@dataclass(eq=False, repr=False)
class TruncatedSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FlatLearner):
    """Dimension reduction by the largest singular values; rows are not centred, and may be sparse.

    Parameters
    ----------
    n_components : int
        Dimensions kept, at most the number of columns.
    algorithm : "auto", "gram", "randomized" or "arpack"
        "gram": eigenvectors of X'X, also of files and Dask; half the digits of singular values are lost far below
        the largest. "randomized": a sketch with n_iter power iterations. "arpack": Lanczos iterations to tolerance
        `tol`. "auto" is "gram" up to 1,000 columns, else "randomized".
    n_iter, n_oversamples : int
        Of "randomized".
    power_iteration_normalizer : "auto", "QR", "LU" or "none"
        Of "randomized": how directions are kept apart between power iterations.
    tol : float >= 0
        Of "arpack"; 0 is machine precision.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None uses all cores.

    Attributes
    ----------
    components_ : (n_components, d)
        Orthonormal directions.
    singular_values_ : (n_components,)
    explained_variance_, explained_variance_ratio_ : (n_components,)
        Variance of each transformed column (divisor n), and its share of the variance of all columns.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.decomposition import TruncatedSVD
    >>> model = TruncatedSVD(n_components=1).fit([[3.0, 4.0], [6.0, 8.0], [-3.0, -4.0]])
    >>> model.components_.round(6), model.singular_values_.round(6)
    (array([[0.6, 0.8]]), array([12.247449]))
    """

    centred = False
    card = Card(
        name="Truncated singular value decomposition",
        task="transform",
        model=Flats(),
        strategy="squared distance of the rows to a flat of k dimensions through the origin",
        algorithm="eigenvectors of X'X, randomised sketch or Lanczos iterations",
        guarantee=("pca.optimality", "projection.risk"),
    )

    constraints: ClassVar = {
        "n_components": Count(),
        "algorithm": Choice("auto", "gram", "randomized", "arpack"),
        "n_iter": Count(low=0),
        "n_oversamples": Count(low=0),
        "power_iteration_normalizer": Choice("auto", "QR", "LU", "none"),
        "tol": Number(low=0.0),
    }

    n_components: int = 2
    _: KW_ONLY
    algorithm: str = "auto"
    n_iter: int = 5
    n_oversamples: int = 10
    power_iteration_normalizer: str = "auto"
    random_state: Any = None
    tol: float = 0.0
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "TruncatedSVD":
        """Find the directions of the rows X; y is not used."""
        check(self)
        k, algorithm = self.n_components, self.algorithm
        rows = read_rows(self, X, y)
        if k > rows.n_features:
            raise refuse(self, f"n_components must be at most the number of columns, {rows.n_features}; got {k}.")
        if algorithm == "auto":
            narrow = rows.n_features <= _NARROW or not isinstance(rows, MemoryRows)
            algorithm = "gram" if narrow or k >= min(rows.n_rows, rows.n_features) else "randomized"
        with FitLog(self, 1, X, None) as log:
            directions = self._directions(rows, k, algorithm)
            self.components_ = np.ascontiguousarray(svd_flip(None, directions, u_based_decision=False)[1])
            self._measure(rows)
            log.step(self._left, 0.0)
        return self

    def _directions(self, rows: Rows, k: int, algorithm: str) -> np.ndarray:
        """Return the k directions as rows, largest singular value first."""
        if algorithm == "gram":
            M = scatter_about(rows, np.zeros(rows.n_features))
            if not np.isfinite(M).all():
                require_finite(rows, self)
            return eigh(M[:-1, :-1], driver="evd", check_finite=False)[1].T[::-1][:k]
        if not isinstance(rows, MemoryRows):
            raise refuse(self, f"algorithm={algorithm!r} needs the rows in memory; 'gram' streams them.")
        require_finite(rows, self)
        A, random_state = rows.X, check_random_state(self.random_state)
        if algorithm == "arpack":
            if k >= min(A.shape):
                raise refuse(
                    self, f"algorithm='arpack' finds fewer than min(rows, columns) = {min(A.shape)} components."
                )
            start = random_state.uniform(-1, 1, min(A.shape))
            return svds(A.astype(np.float64), k, tol=self.tol, v0=start)[2][::-1]
        k = min(k, *A.shape)
        given = {name: getattr(self, name) for name in ("n_iter", "n_oversamples", "power_iteration_normalizer")}
        return randomized_svd(A, k, random_state=random_state, **given)[2]

    def _measure(self, rows: Rows) -> None:
        """Set singular values and variances from the rows as they are seen along the directions."""
        projected = self._projected(rows, self.components_)
        whole = np.array(rows.map(lambda block: [block.X.sum(axis=0), np.square(block.X).sum(axis=0)])).sum(axis=0)
        n = rows.n_rows
        self.singular_values_ = np.linalg.norm(projected, axis=0)
        self.explained_variance_ = projected.var(axis=0)
        variance = max(float(np.sum(whole[1] / n - (whole[0] / n) ** 2)), 0.0)
        self.explained_variance_ratio_ = self.explained_variance_ / max(variance, 1e-300)
        self._left = max(float(whole[1].sum() - np.sum(self.singular_values_**2)), 0.0) / n

    @property
    def center_(self) -> np.ndarray:  # type: ignore[override]
        """The origin, through which the flat goes."""
        return np.zeros(self.components_.shape[1])

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of each row along the directions, (n, n_components)."""
        check_is_fitted(self)
        return self._projected(X, self.components_)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows of the flat whose coordinates are X, (n, d)."""
        check_is_fitted(self)
        return self._given_coordinates(X) @ self.components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
