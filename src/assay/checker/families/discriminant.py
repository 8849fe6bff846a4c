"""Gaussian classes: linear and quadratic discriminants.

`linear`: `coef_`, `intercept_`, `classes_` as in the linear family. `quadratic`: scores <u, A u> + <w, u> + b,
u = x - c, with `center_` (d,), `quadratic_` (K, d, d), `linear_` (K, d), `constant_` (K,); K = 1 for two classes.

Class means and covariances recomputed from the rows, the Gaussian classifier that they define, and Fisher's
criterion: no direction has a larger ratio of scatter between classes to scatter within (claim lda.optimality).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from assay.checker.family import NUMBERS, SINGLE, Family, Variant
from assay.checker.numerics import Sums, U, above, gamma, is_psd_after, largest, norm_above
from assay.checker.predictors import Linear, Quadratic
from assay.checker.record import Refused, Rejected, number
from assay.checker.rule import Rule, View
from assay.checker.rules.linear_models import read_linear
from assay.claims.definitions import Definition
from assay.claims.sentences import Part, Sentence, part

WIDEST = 64.0
"""A scaled column has a variance from 1 / WIDEST to WIDEST, so that an error in its units says something."""


class ClassMoments:
    """Class means in a first pass over the rows, covariances about them in a second.

    Columns are multiplied by `scale`, powers of two: one row (1, d) for a matrix that all classes share, "pooled"
    (scatter over n), "equal" (mean of the covariances) or "priors" (their mean under `priors`), or one row per class
    (K, d) for a matrix each.
    """

    def __init__(self, classes: int, scale: np.ndarray, kind: str, priors: np.ndarray | None = None):
        self.classes, self.scale, self.kind, self.priors = classes, scale, kind, priors
        groups, d = scale.shape
        self.counts, self.sums = np.zeros(classes), [Sums(d) for _ in range(classes)]
        self.means: Any = None
        self.within, self.longest, self.adds = np.zeros((groups, d, d)), 0, 0

    def add(self, view: View) -> None:
        codes = view.codes
        if np.any(codes < 0):
            raise Rejected("there are labels which the model does not know")
        met = np.unique(codes)
        if self.means is None:
            for code in met:
                self.sums[code].add(view.X[codes == code])
            self.counts += np.bincount(codes, minlength=self.classes)
            return
        A = (view.X - self.means[codes]) * np.sqrt(self.share[codes])[:, None]
        for group in met if len(self.scale) > 1 else [0]:
            B = (A[codes == group] if len(self.scale) > 1 else A) * self.scale[group]
            self.within[group] += B.T @ B
        self.longest, self.adds = max(self.longest, len(A)), self.adds + 1

    def next_pass(self) -> bool:
        """Close a pass; True after the first."""
        if self.means is not None:
            return False
        rows = self.counts.sum()
        if np.any(self.counts < 1) or rows <= self.classes:
            raise Rejected("it needs a row of each class, and more rows than classes")
        self.means = np.array([sums.value for sums in self.sums]) / self.counts[:, None]
        error = np.array([sums.error for sums in self.sums]) / self.counts[:, None] + 2 * U * np.abs(self.means)
        self.mean_error = above(error * self.scale)
        self.share = np.full(self.classes, 1.0 / rows)
        if self.kind == "priors":
            if self.priors is None:
                raise Rejected("a mean of the covariances under priors needs the priors")
            self.share = self.priors / self.counts
        elif self.kind != "pooled":
            self.share = 1.0 / (self.counts * (self.classes if self.kind == "equal" else 1))
        return True

    def matrix(self, group: int = 0) -> tuple[np.ndarray, float]:
        """Return a covariance of scaled columns and a bound of its error in norm.

        Scatter about rounded means exceeds the exact one by n_k |mean error|^2 at most.
        """
        W, own = self.within[group], slice(group, group + 1) if len(self.scale) > 1 else slice(None)
        off = (self.counts * self.share)[own] @ np.sum(self.mean_error[own] ** 2, axis=1)
        trace = above(float(np.trace(W)), len(W) + 8)
        return W, gamma(self.longest + self.adds + 24) * trace + above(float(off), len(W) + 16)

    def shrunk(self, shrinkage: float, group: int = 0) -> tuple[np.ndarray, float]:
        """Return (1 - s) W + s tr(W) / d I, the trace taken in the rows' own units."""
        W, slack = self.matrix(group)
        squares, d = self.scale[group] ** 2, len(W)
        spread = float(np.sum(np.diag(W) / squares)) / d
        loose = shrinkage * above(float(np.max(squares) * np.sum(slack / squares)) / d)
        return _mixture(W, slack + loose, shrinkage, shrinkage * spread * squares)

    def mixed(self, share: float, group: int) -> tuple[np.ndarray, float]:
        """Return (1 - r) W + r I, the identity in the rows' own units."""
        W, slack = self.matrix(group)
        return _mixture(W, slack, share, share * self.scale[group] ** 2)


def _mixture(W: np.ndarray, slack: float, share: float, added: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (1 - share) W with `added` on the diagonal, and a bound of its error in norm."""
    trace = above(float(np.trace(W)), len(W) + 8)
    mixed = (1 - share) * W
    mixed[np.diag_indices(len(W))] += added
    return mixed, above(2 * slack + gamma(len(W) + 16) * (trace + float(added.max())))


class GaussianClasses(Rule):
    """gaussian.mle. The listed means and covariances are those of the rows, and the model's scores are those of
    Gaussian classes with them.

    With S the exact covariance in scaled columns and S - mu I positive semidefinite, a vector u that should solve
    S u = t is within |t - S u| / mu of the solution, and a matrix P that should be the inverse of S is within
    |I - S P| / mu of it. So scores <coef, x> + b, or <u, A u> + <w, u> + b with u = x - center, are compared with the
    exact ones part by part, and the largest distance is measured.
    """

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        self.classes, self.d = len(self.model.classes), self.model.columns
        form = self.choice("form", ["linear", "quadratic", "quadratic-shrunk"])
        self.form, self.to_identity = form.partition("-")[0], form == "quadratic"
        if not isinstance(self.model, Linear if self.form == "linear" else Quadratic):
            raise Rejected(f"it needs a {self.form} classifier")
        kind = self.choice("covariance", ["pooled", "equal", "priors"]) if self.form == "linear" else "apart"
        self.shrinkage, self.mu = self.number("shrinkage", zero=True), self.number("mu")
        if self.shrinkage > 1:
            raise Rejected("shrinkage is above 1")
        self.error = self.number("error")
        groups = 1 if self.form == "linear" else self.classes
        exponents = self.witness("exponents", groups, self.d, integer=True)
        if np.any(np.abs(exponents) > 400):
            raise Refused("exponents beyond 400")
        self.scale = np.ldexp(1.0, exponents)
        self.means = self.witness("means", self.classes, self.d)
        self.covariance = self.witness("covariance", groups, self.d, self.d)
        if self.form == "quadratic":
            self.precision = self.witness("precision", groups, self.d, self.d)
        self.priors = self._priors()
        self.moments = ClassMoments(self.classes, self.scale, kind, self.priors)

    def _priors(self) -> np.ndarray | None:
        """Return the declared class probabilities, or None for the shares of the rows."""
        given = self.param("priors")
        if isinstance(given, str) and given == "rows":
            return None
        if not isinstance(given, (list, tuple)) or len(given) != self.classes:
            raise Rejected(f'priors must be "rows" or list {self.classes} numbers')
        priors = np.array([number(p, "priors") for p in given])
        if abs(math.fsum(priors) - 1) > 1e-9:
            raise Rejected("priors do not sum to 1")
        return priors / math.fsum(priors)

    def block(self, view: View) -> None:
        self.moments.add(view)

    def next_pass(self) -> bool:
        return self.moments.next_pass()

    def measure(self) -> float:
        result = self.moments
        apart = above(np.abs(self.means - result.means) * self.scale + result.mean_error, 4)
        if apart.max() > self.error:
            raise Rejected(f"error is {self.error:.3g}; a mean is off by up to {apart.max():.3g}")
        matrices = [self._matrix(group) for group in range(len(self.scale))]
        priors = result.counts / result.counts.sum() if self.priors is None else self.priors
        return self._linear(*matrices[0], priors) if self.form == "linear" else self._quadratic(matrices, priors)

    def _matrix(self, group: int) -> tuple[np.ndarray, float]:
        """Return a covariance of scaled columns, compared with the listed one, and a bound of its error in norm."""
        scale = self.scale[group]
        S, slack = (self.moments.mixed if self.to_identity else self.moments.shrunk)(self.shrinkage, group)
        if np.diag(S).min() < 1 / WIDEST or np.diag(S).max() > WIDEST:
            raise Rejected("exponents do not bring the columns to unit spread")
        apart = np.abs(self.covariance[group] * scale[:, None] * scale - S).max()
        off = float(above(apart + 4 * U * WIDEST + slack))
        if off > self.error:
            raise Rejected(f"error is {self.error:.3g}; a covariance is off by up to {off:.3g}")
        if not is_psd_after(S, above(self.mu + slack, 2)):
            raise Rejected(f"mu = {self.mu:g} is not shown to be below the least eigenvalue of a covariance")
        return S, slack

    def _linear(self, S: np.ndarray, slack: float, priors: np.ndarray) -> float:
        """Return the largest distance of a row of coefficients from the solution of S u = t, t = mean - center, or of a
        score at the center, sum p_k mean_k, from ln p - <u, t> / 2. Two classes: t is the difference of the means."""
        scale, means, result = self.scale[0], self.moments.means, self.moments
        centre = priors @ means
        size = np.abs(means).max(axis=0) * scale
        error = result.mean_error.max(axis=0) * 2 + 16 * U * (self.classes + 2) * size
        t = (means - centre) * scale
        logs, middle = np.log(priors), t / 2
        if self.linear.binary:
            t, middle, logs = t[1:] - t[:1], (t[1:] + t[:1]) / 2, logs[1:] - logs[:1]
        u = self.linear.W / scale
        worst = 0.0
        for k in range(len(u)):
            roundings = gamma(2 * self.d + 16) * (np.abs(t[k]) + np.abs(S) @ np.abs(u[k]))
            rest = norm_above(np.abs(t[k] - S @ u[k]) + 2 * error + roundings) + slack * norm_above(u[k])
            distance = float(above(rest / self.mu))
            score = float(self.linear.W[k] @ centre + self.linear.b[k] - logs[k] + u[k] @ middle[k])
            magnitude = float(np.abs(u[k]) @ (size + np.abs(middle[k]))) + abs(self.linear.b[k]) + abs(logs[k]) + 1
            off = abs(score) + gamma(2 * self.d + 32) * magnitude + float(np.abs(u[k]) @ (3 * error))
            worst = largest(worst, distance, float(above(off + distance * norm_above(np.abs(middle[k]) + error))))
        return worst

    def _quadratic(self, matrices: list[tuple[np.ndarray, float]], priors: np.ndarray) -> float:
        """Return the largest distance of A, w or b from -1/2 S^-1, S^-1 t and ln p - <t, S^-1 t> / 2 - ln det / 2, with
        t = mean - center_; two classes are compared by their difference. Units: the finest of the classes'."""
        model, finest = self.model, self.scale.max(axis=0)
        parts = [self._class_score(k, *matrices[k], float(priors[k])) for k in range(self.classes)]
        A, w, b, error = (np.array(part) for part in zip(*parts))
        if model.binary:
            A, w, b, error = A[1:] - A[:1], w[1:] - w[:1], b[1:] - b[:1], error.sum(axis=0, keepdims=True)
        worst = 0.0
        for k in range(len(A)):
            outer = np.outer(finest, finest)
            slips = 8 * U * np.array([norm_above(model.A[k] / outer), norm_above(model.w[k] / finest), abs(model.b[k])])
            gaps = np.array(
                [
                    norm_above((model.A[k] - A[k]) / outer),
                    norm_above((model.w[k] - w[k]) / finest),
                    abs(float(model.b[k] - b[k])),
                ]
            )
            worst = largest(worst, float(above(gaps + slips + error[k]).max()))
        return worst

    def _class_score(
        self, k: int, S: np.ndarray, slack: float, prior: float
    ) -> tuple[np.ndarray, np.ndarray, float, Any]:
        """Return A, w, b of the score of class k by its listed precision, in the rows' units, and how far each is from
        the exact one in the class's scaled columns."""
        scale, d = self.scale[k], self.d
        P = (self.precision[k] + self.precision[k].T) / 2 / scale[:, None] / scale
        t = (self.moments.means[k] - self.model.center) * scale
        t_error = (
            self.moments.mean_error[k] + 2 * U * (np.abs(self.moments.means[k]) + np.abs(self.model.center)) * scale
        )
        rest = np.abs(np.eye(d) - S @ P) + gamma(d + 8) * (np.eye(d) + np.abs(S) @ np.abs(P))
        distance = float(above((norm_above(rest) + slack * norm_above(P)) / self.mu))  # of P from the inverse of S
        size, length, off = norm_above(P), norm_above(np.abs(t) + t_error), norm_above(t_error)
        solved = P @ t
        volume, volume_error = _log_determinant(S, slack, self.mu)
        volume -= 2 * float(np.log(2.0) * np.sum(np.frexp(scale)[1] - 1))
        b = math.log(prior) - 0.5 * float(t @ solved) - 0.5 * volume
        reach = distance + gamma(2 * d + 16) * size
        errors = (
            reach,
            reach * length + (size + distance) * off,
            reach * length * length
            + (size + distance) * length * off * 2
            + volume_error
            + 16 * U * (abs(math.log(prior)) + abs(volume) + d * 400 + abs(b) + 1),
        )
        return -0.5 * P * np.outer(scale, scale), solved * scale, b, above(np.array(errors))


def _log_determinant(S: np.ndarray, slack: float, mu: float) -> tuple[float, float]:
    """Return ln det of a matrix that is known up to `slack` in norm and has no eigenvalue below mu, and its error.

    A factor L is taken from the library and trusted for nothing: E = S - L L' is measured, and ln det changes by at
    most d |E| / (mu - |E|).
    """
    L = np.linalg.cholesky(S)
    d = len(S)
    off = above(norm_above(np.abs(S - L @ L.T) + gamma(d + 8) * (np.abs(L) @ np.abs(L).T)) + slack)
    if off >= mu:
        raise Refused("the determinant of a covariance is not known well enough")
    logs = np.log(np.diag(L))
    return 2 * float(np.sum(logs)), float(above(d * off / (mu - off) + gamma(d + 8) * 2 * float(np.sum(np.abs(logs)))))


class FisherOptimality(Rule):
    """lda.optimality. The first pass gives the class means, the second W = sum_k omega_k S_k about them, shrunk as
    declared.

    Columns are scaled by powers of two, a change of coordinates that leaves every ratio as it is. Two
    classes: with
    u = t w, e = Delta - W u and W - mu I positive semidefinite, max J - J(w) <= |e|^2 / mu. More classes:
    tau W - B is
    positive semidefinite, so max J <= tau, and the distance from tau to J of the listed direction is
    measured.
    """

    def prepare(self) -> None:
        if self.model.classes is None:
            raise Rejected("it needs a classifier")
        self.form, self.kind = (
            self.choice("form", ["two-class", "direction"]),
            self.choice("covariance", ["pooled", "equal", "priors"]),
        )
        self.shrinkage, self.mu = self.number("shrinkage", zero=True), self.number("mu")
        if self.shrinkage > 1:
            raise Rejected("shrinkage is above 1")
        self.classes, self.d = len(self.model.classes), self.model.columns
        exponents = self.witness("exponents", self.d, integer=True)
        if np.any(np.abs(exponents) > 400):
            raise Refused("exponents beyond 400")
        self.scale = np.ldexp(1.0, exponents)
        if self.form == "direction" or self.kind == "priors":
            priors = self.param("priors")
            if not isinstance(priors, (list, tuple)) or len(priors) != self.classes:
                raise Rejected(f"priors must list {self.classes} numbers")
            self.priors = np.array([number(p, "priors") for p in priors])
        weights = self.priors / math.fsum(self.priors) if self.kind == "priors" else None
        self.moments = ClassMoments(self.classes, self.scale[None, :], self.kind, weights)
        if self.form == "two-class":
            if not self.model.binary:
                raise Rejected("it needs a model of two classes with one row of coefficients")
            self.w = self.model.W[0] / self.scale
        else:
            self.w, self.tau = self.witness("direction", self.d) / self.scale, self.number("tau")
        if not np.any(self.w):
            raise Rejected("the direction is zero")

    def block(self, view: View) -> None:
        self.moments.add(view)

    def next_pass(self) -> bool:
        return self.moments.next_pass()

    def measure(self) -> float:
        W, slack = self.moments.shrunk(self.shrinkage)
        self.means, self.mean_error = self.moments.means, self.moments.mean_error
        if not is_psd_after(W, above(self.mu + slack, 2)):
            raise Rejected(f"mu = {self.mu:g} is not shown to be below the least eigenvalue of the within-class matrix")
        return self._two_class(W, slack) if self.form == "two-class" else self._direction(W, slack)

    def _two_class(self, W: np.ndarray, slack: float) -> float:
        apart = (self.means[1] - self.means[0]) * self.scale
        apart_error = self.mean_error.sum(axis=0) + 4 * U * (np.abs(self.means) * self.scale).sum(axis=0)
        curve = float(self.w @ W @ self.w)
        t = float(self.w @ apart) / curve if curve > 0 else 0.0
        u = t * self.w
        roundings = gamma(2 * self.d + 16) * (np.abs(apart) + np.abs(W) @ np.abs(u))
        rest = norm_above(np.abs(apart - W @ u) + apart_error + roundings)
        excess = above(rest + slack * norm_above(u))
        return float(above(excess * excess / self.mu))

    def _direction(self, W: np.ndarray, slack: float) -> float:
        weight = self.priors / math.fsum(self.priors)
        centre = weight @ self.means
        apart = (self.means - centre) * self.scale * np.sqrt(weight)[:, None]
        error = (self.mean_error + self.mean_error.max(axis=0)) + 16 * U * self.classes * np.abs(self.means).max(
            axis=0
        ) * self.scale
        B = apart.T @ apart
        size, off = norm_above(apart), norm_above(error)
        rounding_error = above((2 * size + off) * off + gamma(self.classes + 16) * size * size)
        loose = above(self.tau * slack + rounding_error + gamma(8) * self.tau * float(np.trace(W)))
        if not is_psd_after(self.tau * W - B, loose):
            raise Rejected(f"tau = {self.tau:g} is not shown to bound the Fisher ratio")
        length = float(self.w @ self.w)
        roundings = gamma(2 * self.d + 16) * self.d * length
        top = float(self.w @ B @ self.w) - above(rounding_error * length + roundings * size * size)
        bottom = float(self.w @ W @ self.w) + above(slack * length + roundings * float(np.abs(W).max()))
        return float(above(self.tau - top / bottom * (1 - 8 * U) + 4 * U * self.tau))


def read_fisher(W: np.ndarray, b: np.ndarray, classes: Any) -> Linear:
    """Return the model of linear scores, which has an intercept for each of them."""
    if b.ndim != 1:
        raise Rejected(f"intercept_ has shape {b.shape}; it must have an entry for each row of coef_")
    return read_linear(W, b, classes)


def read_quadratic(center: np.ndarray, A: np.ndarray, w: np.ndarray, b: np.ndarray, classes: Any) -> Quadratic:
    """Return the model after checking that its arrays fit together."""
    K, d = 1 if len(classes) == 2 else len(classes), center.size
    if center.ndim != 1 or not d or A.shape != (K, d, d) or w.shape != (K, d) or b.shape != (K,):
        raise Rejected(f"center_ {center.shape}, quadratic_ {A.shape}, linear_ {w.shape}, constant_ {b.shape} differ")
    return Quadratic(center, A, w, b, classes)


_FISHER = Sentence(
    {
        "": "{which} reaches the largest Fisher ratio up to {value:up}: no other separates the class means better.",
        "only": "The direction",
        "first": "The first direction",
    },
    lambda value, direction, params: {"which": Part("only" if params["form"] == "two-class" else "first")},
)


_GAUSSIAN = Sentence(
    {
        "": "The scores are those of Gaussian classes with {kept}{shrunk}, fitted to the rows by maximum likelihood: "
        "means and covariances are right to {error:up1} and scores near the centre to {value:up1}, columns in units of "
        "their spread.",
        "shared": "one covariance",
        "each": "a covariance each",
        "shrunk": ", shrunk by {shrinkage:g}",
    },
    lambda value, direction, params: {
        "kept": Part("shared" if params["form"] == "linear" else "each"),
        "shrunk": part(params["shrinkage"], "shrunk"),
    },
)


def _per_class(*rest: str) -> Callable[[np.ndarray, Any], bool]:
    """Return the check that an array has a row for each class, of so many columns as the model where "d" stands."""

    def check(array: np.ndarray, model: Any) -> bool:
        return array.shape == (len(model.classes), *(model.columns for _ in rest))

    return check


def _shares(array: np.ndarray, model: Any) -> bool:
    return array.shape == (len(model.classes),) and bool((array >= 0).all()) and abs(array.sum() - 1) <= 1e-9


def _directions(array: np.ndarray, model: Any) -> bool:
    return array.ndim == 2 and len(array) == model.columns


def _square(array: np.ndarray, model: Any) -> bool:
    return array.shape == (model.columns, model.columns)


CLAIMS = {
    "D19/1": Definition("lda.optimality", FisherOptimality, _FISHER),
    "D19/3": Definition("gaussian.mle", GaussianClasses, _GAUSSIAN),
}
FAMILY = Family(
    "discriminant",
    {
        "linear": Variant(
            {"coef_": SINGLE, "intercept_": SINGLE},
            read_fisher,
            classes=True,
            probabilities=("logistic",),
            more={
                "scalings_": _directions,
                "means_": _per_class("d"),
                "sigma_": _square,
                "priors_": _shares,
            },
        ),
        "quadratic": Variant(
            {"center_": NUMBERS, "quadratic_": NUMBERS, "linear_": NUMBERS, "constant_": NUMBERS},
            read_quadratic,
            classes=True,
            probabilities=("logistic",),
            more={"means_": _per_class("d"), "sigma_": _per_class("d", "d"), "priors_": _shares},
        ),
    },
    CLAIMS,
)
