"""Principal components: the directions along which rows vary most.

    S = (1/n) sum_i (x_i - m)(x_i - m)',  m the mean

The k orthonormal directions that hold the largest share of trace S are the eigenvectors of its k largest eigenvalues,
and they span the k-dimensional flat that is nearest to the rows.

Claims: no flat is nearer to the rows by more than `value` (pca.optimality); on new data the mean squared distance to
        the flat is
        at most ... (projection.risk, hold-out).
Method: S is a sum over rows, formed about a point near the mean so that nothing cancels; then a symmetric eigenproblem.
        The singular value decomposition of the rows themselves keeps twice as many digits of small eigenvalues.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, svd
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.decomposition._pca import _infer_dimension
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd, svd_flip
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import Distances, Evidence
from assay.messages import Message
from assay.params import Choice, Count, Flag, Maybe, Number, check, refuse
from assay.scan import Rows, one_blas_thread, rows_per_block
from assay.scan.memory import MemoryRows
from assay.theory.rademacher import projection_bound

_WIDEST = 2_000  # columns up to which the checker encloses eigenvalues


class Flats:
    """The flats of k dimensions."""

    def __str__(self) -> str:
        return "flats of k dimensions"


class FlatLearner(Learner):
    """A learner whose model is the flat through `center_` that the rows of `components_` span."""

    family = "projection"
    figure = "loadings"
    components_: np.ndarray
    center_: np.ndarray
    centred = True  # whether the point of the flat is fitted, or the origin
    fixed_number_ = True  # whether the number of dimensions was given, not chosen by looking at the rows

    def _projected(self, X: Any, directions: np.ndarray) -> np.ndarray:
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        return np.concatenate(rows.map(_coordinates, self.center_, directions))

    def _given_coordinates(self, X: Any) -> np.ndarray:
        """Return what `inverse_transform` was given, one column for each component."""
        X, k = np.asarray(X, dtype=np.float64), len(self.components_)
        if X.ndim != 2 or X.shape[1] != k:
            raise refuse(self, f"inverse_transform takes {k} columns, one for each component; got shape {X.shape}.")
        return X

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how much nearer to the rows another flat could be."""
        d = rows.n_features
        if d > _WIDEST:
            yield NotApplicable("pca.optimality", Message("why.eigenvalue-columns", most=_WIDEST))
            return
        M = scatter_about(rows, self.center_)
        S, V, n, k = M[:-1, :-1], self.components_, rows.n_rows, len(self.components_)
        best = float(np.linalg.eigvalsh(S)[::-1][:k].clip(0.0).sum())
        apart = float(np.sum(M[:-1, -1] ** 2)) / n if self.centred else 0.0
        trace, sums = float(np.trace(S)), min(n, rows_per_block(d)) + n / rows_per_block(d)
        loss = float(np.linalg.norm(V @ V.T - np.eye(k)))
        rounding = 2.3e-16 * max(k, 1) * trace * (4 * sums + 200 * d + 1000) + 3 * loss * best
        excess = max(best - float(np.einsum("ij,jl,il->", V, S, V, optimize=True)), 0.0) + 1.01 * apart + 2 * rounding
        params = {"components": k, "centred": self.centred, "rows": n}
        yield Claim("pca.optimality", excess / n * (1 + 1e-6), params=params)

    # New data

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the squared distance of each row to the flat, and the bound of its mean for new rows."""
        reason = "" if self.fixed_number_ else Message("why.components-chosen")
        bound = partial(_distance_bound, self.components_.shape, self.centred)
        yield Distances(_distances, (self.center_, self.components_), "projection.risk", bound, reason)


def _distance_bound(
    shape: tuple[int, int], centred: bool, mean: float, sizes: Any, n: int, radius: float, delta: float
) -> tuple[dict[str, Any], float]:
    """Return parameters and value of the bound of the mean squared distance of new rows."""
    k, d = shape
    bound = projection_bound(mean, sizes.squares, sizes.fourth, n, k, d, radius, delta, fitted=centred)
    return {"components": k, "centred": centred}, bound


def scatter_about(rows: Rows, center: np.ndarray) -> np.ndarray:
    """Return the (d + 1, d + 1) sum over the rows of a a', a = (x - center, 1)."""
    with np.errstate(invalid="ignore", over="ignore"):
        return rows.sum(_scatter, center)


def _scatter(block: Block, center: np.ndarray) -> np.ndarray:
    from assay.loops.moments import scatter

    return scatter(block.X, center)


def _coordinates(block: Block, center: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return (block.X - center) @ directions.T


def _distances(block: Block, center: np.ndarray, V: np.ndarray) -> np.ndarray:
    moved = block.X - center
    rest = moved - (moved @ V.T) @ V
    return np.einsum("ij,ij->i", rest, rest)


_NARROW, _TALL = 1_000, 10  # svd_solver="auto": the covariance for at most so many columns, and so many rows a column
_FEW_ONE_THREAD = 1_000  # the same, where a few of the components are found
_ONE_THREAD = 300  # columns up to which threads of BLAS cost more than they save
_SPARSE = 0.1  # share of entries up to which products of sparse rows are faster than of dense blocks
_FAR = 100.0  # squared mean over variance from which a covariance is not formed about zero
_SMALL = 500  # rows and columns up to which "auto" takes the whole decomposition


@dataclass(eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FlatLearner):
    """Principal component analysis.

    Parameters
    ----------
    n_components : int >= 0, float in (0, 1), "mle" or None
        Components kept: so many; as many as it takes to hold that share of the variance; as Minka's estimate of the
        dimension says; or all.
    whiten : bool
        Divide each component by its standard deviation.
    svd_solver : "auto", "full", "covariance_eigh", "arpack" or "randomized"
        "covariance_eigh": eigenvectors of the covariance matrix, a sum over rows, also of files and Dask. "full":
        singular values of the rows. "arpack": a few of them by products with the rows alone, which may be sparse.
        "randomized": a sketch, for a few components of wide rows. "auto" takes the first
        for at most 1,000 columns and ten times as many rows, else "full" for small tables or most components; of
        sparse rows it takes the first or "arpack".
    copy : bool
        Accepted; X is never written to.
    tol : float >= 0
        Of "arpack": relative error of the singular values; 0 for the precision of doubles.
    n_oversamples, iterated_power, power_iteration_normalizer : int, int or "auto", "auto", "QR", "LU" or "none"
        Of "randomized": extra directions of the sketch, power iterations, and how these are kept in bounds.
    random_state : int, RandomState or None
        Of "randomized" and "arpack".
    n_jobs : int or None
        Threads; None uses all cores.

    Attributes
    ----------
    components_ : (n_components, d)
        Orthonormal directions, largest variance first.
    explained_variance_, explained_variance_ratio_ : (n_components,)
        Variance along each (divisor n - 1), and its share of the whole.
    singular_values_ : (n_components,)
        Of the centred rows.
    mean_ : (d,)
    n_components_, n_samples_ : int
    fixed_number_ : bool
        Whether the number of components was given, not chosen by looking at the rows.
    noise_variance_ : float
        Mean variance along the directions left out.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.decomposition import PCA
    >>> X = np.array([[-1.0, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> model = PCA(n_components=1).fit(X)
    >>> model.explained_variance_ratio_.round(3)
    array([0.992])
    >>> bool(abs(model.inverse_transform(model.transform(X)) - X).max() < 0.3)
    True
    """

    more_arrays = ("explained_variance_", "noise_variance_")
    card = Card(
        name="Principal component analysis",
        task="transform",
        model=Flats(),
        strategy="squared distance of the rows to a flat of k dimensions",
        algorithm="eigenvectors of the covariance matrix, or singular value decomposition",
        guarantee=("pca.optimality", "projection.risk"),
    )

    constraints: ClassVar = {
        "copy": Flag,
        "whiten": Flag,
        "svd_solver": Choice("auto", "full", "covariance_eigh", "arpack", "randomized"),
        "tol": Number(low=0.0),
        "n_oversamples": Count(low=0),
        "iterated_power": Maybe(Count(low=0), "auto"),
        "power_iteration_normalizer": Choice("auto", "QR", "LU", "none"),
    }

    n_components: Any = None
    _: KW_ONLY
    copy: bool = True
    whiten: bool = False
    svd_solver: str = "auto"
    tol: float = 0.0
    iterated_power: Any = "auto"
    n_oversamples: int = 10
    power_iteration_normalizer: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "PCA":
        """Find the components of the rows X; y is not used."""
        rows = self._read(X, y)
        with FitLog(self, 1, X, None) as log:
            solver = self._solver(rows)
            variances, directions, total = self._solve(rows, solver)
            self._keep(rows, variances, directions, total)
            log.step(max(total - float(self.explained_variance_.sum()), 0.0), 0.0)
        return self

    def _read(self, X: Any, y: Any) -> Rows:
        check(self)
        if sp.issparse(X) and self.svd_solver in ("full", "randomized"):
            raise TypeError(
                'PCA only support sparse inputs with the "arpack" and "covariance_eigh" solvers, while '
                f'"{self.svd_solver}" was passed. See TruncatedSVD for a possible alternative.'
            )
        rows = read_rows(self, X, y)
        if rows.n_rows < 2:
            raise refuse(self, f"variance needs at least 2 rows; n_samples={rows.n_rows}.")
        self._check_components(min(rows.n_rows, rows.n_features))
        return rows

    def _check_components(self, most: int) -> None:
        k: Any = self.n_components
        if k is None or (isinstance(k, str) and k == "mle"):
            return
        least = 1 if self.svd_solver in ("arpack", "randomized") else 0
        whole = isinstance(k, Integral) and not isinstance(k, bool) and least <= int(k) <= most
        share = isinstance(k, Real) and not isinstance(k, (bool, Integral)) and 0 < float(k) < 1
        if not whole and not share:
            solver = "full" if self.svd_solver == "auto" else self.svd_solver
            raise refuse(
                self,
                f"n_components={k!r} must be between {least} and min(n_samples, n_features)={most} with "
                f"svd_solver={solver!r}, a share between 0 and 1, 'mle' or None.",
            )

    def _solver(self, rows: Rows) -> str:
        n, d = rows.n_rows, rows.n_features
        k: Any = self.n_components
        in_memory = isinstance(rows, MemoryRows)
        sparse = isinstance(rows, MemoryRows) and sp.issparse(rows.X)
        solver = self._chosen(rows, sparse) if self.svd_solver == "auto" else self.svd_solver
        if solver in ("randomized", "arpack") and k is not None and not isinstance(k, Integral):
            what = "cannot be a string" if isinstance(k, str) else "cannot be a share"
            raise refuse(self, f"n_components={k!r} {what} with svd_solver={solver!r}; give an integer or None.")
        if solver == "arpack" and isinstance(k, Integral) and int(k) >= min(n, d):
            most = f"strictly less than min(n_samples, n_features)={min(n, d)}"
            raise refuse(self, f"n_components={k} must be {most} with svd_solver='arpack'")
        if solver != "covariance_eigh" and not in_memory:
            raise refuse(self, f"svd_solver={solver!r} needs the rows in memory; 'covariance_eigh' streams them.")
        if isinstance(k, str) and n < d:
            raise refuse(self, f"n_components='mle' is only supported if n_samples >= n_features; got {n} and {d}.")
        return solver

    def _chosen(self, rows: Rows, sparse: bool) -> str:
        """Return what "auto" stands for."""
        n, d, k = rows.n_rows, rows.n_features, self.n_components
        few = isinstance(k, Integral) and int(k) < 0.8 * min(n, d)
        if sparse:
            return "arpack" if few else "covariance_eigh"
        if not isinstance(rows, MemoryRows) or (d <= _NARROW and n >= _TALL * d):
            return "covariance_eigh"
        return "full" if max(n, d) <= _SMALL or not few else "randomized"

    def _solve(self, rows: Any, solver: str) -> tuple[np.ndarray, np.ndarray, float]:
        """Return variances, falling, their directions as rows, and the variance of all columns together."""
        n, d = rows.n_rows, rows.n_features
        narrow = d <= min(n, _SMALL) and isinstance(self.n_components, Integral)
        if solver == "covariance_eigh" or (narrow and solver == "arpack" and sp.issparse(rows.X)):
            return self._of_covariance(rows)
        require_finite(rows, self)
        if solver == "arpack":
            lengths, directions, squares = self._by_arpack(rows.X)
        else:
            A = np.asarray(rows.X, dtype=np.float64)
            self.center_ = A.mean(axis=0)
            A = A - self.center_
            lengths, directions = svd(A, full_matrices=False)[1:] if solver == "full" else self._sketched(A)
            squares = float(np.sum(lengths**2 if solver == "full" else A * A))
        directions = svd_flip(None, directions, u_based_decision=False)[1]
        return lengths**2 / (n - 1), directions, squares / (n - 1)

    def _of_covariance(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the same from the covariance matrix; of a few components, if so many are asked for, alone."""
        self.center_, S = covariance(rows, self)
        n, d, k = rows.n_rows, len(S), self.n_components
        few = isinstance(k, Integral) and 0 < int(k) <= d // 4
        asked: Any = {"driver": "evr", "subset_by_index": (d - int(k), d - 1)} if few else {"driver": "evd"}
        total = float(np.trace(S))
        with one_blas_thread() if d <= (_FEW_ONE_THREAD if few else _ONE_THREAD) else nullcontext():
            variances, vectors = eigh(S, overwrite_a=True, check_finite=False, **asked)
        variances = np.maximum(variances[::-1], 0.0)
        directions = svd_flip(None, vectors.T[::-1], u_based_decision=False)[1]
        return variances[: min(n, d)], directions[: min(n, d)], total if few else float(variances.sum())

    def _sketched(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return directions of a random sketch of the centred rows, and the lengths of the rows' projections on them,
        which are what the singular values of the sketch estimate from below."""
        directions = randomized_svd(
            A,
            min(A.shape) if self.n_components is None else int(self.n_components),
            n_oversamples=self.n_oversamples,
            n_iter=self.iterated_power,
            power_iteration_normalizer=self.power_iteration_normalizer,
            flip_sign=False,
            random_state=check_random_state(self.random_state),
        )[2]
        lengths = np.linalg.norm(A @ directions.T, axis=0)
        order = np.argsort(-lengths, kind="stable")
        return lengths[order], directions[order]

    def _by_arpack(self, X: Any) -> tuple[np.ndarray, np.ndarray, float]:
        """Return singular values and directions, and the sum of squares of the centred rows, by products alone."""
        self.center_ = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        mean, (n, d), across = self.center_, X.shape, X.T
        centred = LinearOperator(
            X.shape,
            dtype=np.float64,
            matvec=lambda v: X @ np.ravel(v) - mean @ np.ravel(v),
            rmatvec=lambda u: across @ np.ravel(u) - mean * np.sum(u),
            matmat=lambda V: X @ V - mean @ V,
            rmatmat=lambda U: across @ U - np.outer(mean, U.sum(axis=0)),
        )
        k = min(n, d) - 1 if self.n_components is None else int(self.n_components)
        start = check_random_state(self.random_state).uniform(-1, 1, size=min(n, d))
        with one_blas_thread() if sp.issparse(X) else nullcontext():  # vectors between sparse products are short
            basis = 3 * k + 10 if 3 * k + 10 < min(n, d) else None
            _, lengths, directions = svds(centred, k=k, ncv=basis, tol=self.tol, v0=start)
        squares = float(X.multiply(X).sum() if sp.issparse(X) else np.sum(np.square(X, dtype=np.float64)))
        order = np.argsort(lengths)[::-1]
        return lengths[order], directions[order], max(squares - n * float(mean @ mean), 0.0)

    def _keep(self, rows: Rows, variances: np.ndarray, directions: np.ndarray, total: float) -> None:
        n, most = rows.n_rows, min(rows.n_rows, rows.n_features)
        share = variances / total if total > 0 else np.zeros_like(variances)
        k = self.n_components
        if k is None:
            k = len(variances)
        elif isinstance(k, str):
            k = int(_infer_dimension(variances, n))
        elif not isinstance(k, Integral):
            k = int(np.searchsorted(np.cumsum(share), k, side="right")) + 1
        k = min(int(k), len(variances))
        left = total - float(variances[:k].sum()) if k < most else 0.0
        self.n_samples_, self._number_at_fit = n, self.n_components
        self.components_, self.explained_variance_ = np.ascontiguousarray(directions[:k]), variances[:k].copy()
        self.explained_variance_ratio_, self.singular_values_ = share[:k].copy(), np.sqrt(variances[:k] * (n - 1))
        self.noise_variance_ = max(left, 0.0) / (most - k) if k < most else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.svd_solver in ("auto", "arpack", "covariance_eigh")
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def n_components_(self) -> int:
        """Number of components kept."""
        return len(self.components_)

    @property
    def mean_(self) -> np.ndarray:
        """The mean of the rows, through which the flat goes."""
        return self.center_

    @property
    def fixed_number_(self) -> bool:  # type: ignore[override]
        """Whether the number of components was given, not chosen by looking at the rows."""
        given = getattr(self, "_number_at_fit", self.n_components)  # what `set_params` says later is not how it came
        return given is None or isinstance(given, Integral)

    # Use

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of each row, (n, n_components)."""
        check_is_fitted(self)
        directions = self.components_ / self._deviations()[:, None] if self.whiten else self.components_
        return self._projected(X, directions)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows of the flat whose components are X, (n, d)."""
        check_is_fitted(self)
        scaled = self.components_ * self._deviations()[:, None] if self.whiten else self.components_
        return self._given_coordinates(X) @ scaled + self.mean_

    def _deviations(self) -> np.ndarray:
        deviations = np.sqrt(self.explained_variance_)
        return np.maximum(deviations, np.finfo(np.float64).eps)

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the Gaussian model: components' variances, and the noise in every direction."""
        check_is_fitted(self)
        more = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        return self.components_.T * more @ self.components_ + self.noise_variance_ * np.eye(len(self.mean_))

    def get_precision(self) -> np.ndarray:
        """Return the inverse of `get_covariance()`."""
        check_is_fitted(self)
        if self.noise_variance_ == 0.0:
            try:
                return np.linalg.inv(self.get_covariance())
            except np.linalg.LinAlgError:
                raise refuse(self, "the rows have no variance in some direction, and so no density.") from None
        less = 1 / np.maximum(self.explained_variance_, self.noise_variance_) - 1 / self.noise_variance_
        return self.components_.T * less @ self.components_ + np.eye(len(self.mean_)) / self.noise_variance_

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row in the Gaussian model (Tipping & Bishop 1999)."""
        check_is_fitted(self)
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        precision = self.get_precision()
        constant = len(self.mean_) * np.log(2 * np.pi) - np.linalg.slogdet(precision)[1]
        return np.concatenate(rows.map(_log_likelihood, self.mean_, precision, float(constant)))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(self.score_samples(X).mean())


def covariance(rows: Rows, learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance (divisor n - 1) of the rows in one pass, about the mean of the first ones."""
    if isinstance(rows, MemoryRows) and sp.issparse(rows.X) and (result := _of_entries(rows.X)) is not None:
        return result
    near = next(iter(rows.blocks())).X.mean(axis=0)
    M = scatter_about(rows, near)
    if not np.isfinite(M).all():
        require_finite(rows, learner)
    n, apart = rows.n_rows, M[:-1, -1] / rows.n_rows
    return near + apart, (M[:-1, :-1] - n * np.outer(apart, apart)) / (n - 1)


def _of_entries(X: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return mean and covariance of sparse rows from the products of their entries alone; None if entries are many, not
    finite, or a column's mean is so far from zero, in its deviations, that digits would cancel."""
    n, d = X.shape
    if X.nnz > _SPARSE * n * d:
        return None
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    S = (X.T @ X).toarray()
    variances = np.diag(S) / n - mean**2
    if not np.isfinite(S).all() or np.any(mean**2 > _FAR * variances):
        return None
    S -= n * np.outer(mean, mean)
    S /= n - 1
    return mean, S


def _log_likelihood(block: Block, mean: np.ndarray, precision: np.ndarray, constant: float) -> np.ndarray:
    moved = block.X - mean
    return -0.5 * (np.einsum("ij,ij->i", moved @ precision, moved) + constant)
