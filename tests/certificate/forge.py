"""Honest certificates made by hand: models without a learner, own fingerprints, own formulas; no producer.

`CASES[template](seed)` gives a small problem with one honest claim of that template, for tests and attacks.
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from assay.checker.verify import Report, verify
from assay.claims.claim import Certificate, Claim, DataReference, ModelReference
from assay.claims.definitions import definition
from assay.claims.model import StoredModel

WITHOUT_TARGET = ("centroids", "projection", "histogram", "expansion.map", *(
    f"mixture.{kind}" for kind in ("full", "tied", "diag", "spherical")
))  # fmt: skip
"""Families whose data have no target in their fingerprint."""


class Forged(SimpleNamespace):
    """A model that is nothing but its stored form: a family, arrays (names that end in _) and members."""

    family: str
    learner: str = "forged"
    parameters: Any = MappingProxyType({})
    members: tuple = ()

    @classmethod
    def copy_of(cls, fitted: Any) -> "Forged":
        """Return a fitted model as arrays that can be changed, under the same class and parameters."""
        own = fitted.stored()
        arrays = {name: np.array(value) for name, value in own.arrays.items()}
        return cls(family=own.family, learner=own.learner, parameters=own.parameters, **arrays)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in vars(self).items() if name.endswith("_")}

    def but(self, **changes: Any) -> "Forged":
        """Return another model: this one with some of its parts replaced."""
        return type(self)(**vars(self) | changes)

    def same_as(self, other: "Forged") -> bool:
        return model_digest(self.stored()) == model_digest(other.stored())

    def stored(self) -> StoredModel:
        members = tuple(member.stored() for member in self.members)
        return StoredModel(self.learner, self.family, dict(self.parameters), self.arrays, members)


@dataclass(frozen=True)
class Case:
    """All that `verify` is given. It can be changed and sealed again, as a forger who has the software would
    do."""

    claims: tuple[Claim, ...]
    model: Any
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    holdout: tuple[np.ndarray, np.ndarray] | None = None
    split: dict | None = None
    extra: tuple = ()  # further fields of the certificate
    sealed: Certificate | None = None

    @property
    def claim(self) -> Claim:
        return self.claims[-1]

    def seal(self) -> "Case":
        """Return the case with a certificate whose fingerprints fit."""
        labels = None if not hasattr(self.model, "classes_") else [str(c) for c in self.model.classes_.tolist()]
        y = None if self.model.family in WITHOUT_TARGET else self.y
        if self.split is None:
            sets = {"train": (self.X, y, self.weight)}
            if self.holdout is not None:
                sets["holdout"] = (*self.holdout, None)
        else:
            sets = {
                name: tuple(None if part is None else part[np.sort(rows)] for part in (self.X, y, self.weight))
                for name, rows in self.split.items()
            }
        data = {name: data_reference(*parts, labels) for name, parts in sets.items()}
        certificate = Certificate(self.claims, model_reference(self.model), data, split=self.split)
        return replace(self, sealed=replace(certificate, **dict(self.extra)))

    def verify(self) -> Report:
        certificate = self.sealed if self.sealed is not None else self.seal().sealed
        return verify(certificate, self.model, self.X, self.y, sample_weight=self.weight, holdout=self.holdout)

    def with_claim(self, **changes: Any) -> "Case":
        """Return the case with its last claim changed, not sealed again."""
        claims = (*self.claims[:-1], replace(self.claim, **changes))
        sealed = None if self.sealed is None else replace(self.sealed, claims=claims)
        return replace(self, claims=claims, sealed=sealed)


def model(coef: Any, intercept: Any = 0.0, classes: Any = None, family: str | None = None) -> Forged:
    """Return a linear model; whole numbers are meant as real ones."""
    numbers = [np.atleast_1d(part) for part in (coef, intercept)]
    coef, intercept = (part.astype(float) if part.dtype.kind in "iu" else part for part in numbers)
    named = {} if classes is None else {"classes_": np.asarray(classes)}
    family = family or ("linear.regressor" if classes is None else "linear.classifier")
    return Forged(family=family, coef_=coef, intercept_=intercept, **named)


def data_reference(X: Any, y: Any = None, weight: Any = None, labels: list[str] | None = None) -> DataReference:
    """Return the fingerprint of rows; without y that of a family without a target."""
    X, y = np.asarray(X, dtype="<f8") + 0.0, None if y is None else np.asarray(y)
    digests = []
    for at in range(0, len(X), 4096):
        part = slice(at, at + 4096)
        chunk = [np.ascontiguousarray(X[part]).tobytes()]
        if y is not None and labels is not None:
            chunk.append(np.array([labels.index(str(v)) for v in y[part].tolist()], dtype="<i4").tobytes())
        elif y is not None:
            chunk.append((y[part].astype("<f8") + 0.0).tobytes())
        chunk.append(b"" if weight is None else (weight[part] + 0.0).astype("<f8").tobytes())
        digests.append(hashlib.sha256(b"".join(chunk)).digest())
    header = {
        "columns": X.shape[1],
        "labels": labels,
        "rows": len(X),
        "targets": 0 if y is None else 1 if y.ndim == 1 else y.shape[1],
        "weights": weight is not None,
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    whole = hashlib.sha256(b"assay-data/1\n" + text + b"\n" + b"".join(digests)).hexdigest()
    return DataReference(whole, len(X), X.shape[1], None if labels is None else tuple(labels))


def model_reference(fitted: Any) -> ModelReference:
    """Return the fingerprint of a model, forged or fitted, by this file's own code."""
    stored = fitted if isinstance(fitted, StoredModel) else fitted.stored()
    return ModelReference(stored.learner, stored.family, model_digest(stored))


def model_digest(stored: StoredModel) -> str:
    """Return SHA-256 of a header in JSON (class, family, parameters, types and shapes, members), then the arrays."""
    listed, contents = [], b""
    for name, value in sorted(stored.arrays.items()):
        text = value.dtype.kind in "UO" and all(type(one) is str for one in value.ravel().tolist())
        kind = "text" if text else {1: "|", 2: "<", 4: "<", 8: "<"}[value.itemsize] + value.dtype.str[1:]
        listed.append(f"[{json.dumps(name)},{json.dumps(kind)},[{','.join(map(str, value.shape))}]]")
        if text:
            contents += ("[" + ",".join(map(json.dumps, value.ravel().tolist())) + "]\n").encode()
        else:
            contents += value.astype(value.dtype.newbyteorder("<")).tobytes(order="C")
    members = ",".join(f'"{model_digest(member)}"' for member in stored.members)
    parameters = json.dumps(stored.parameters, sort_keys=True, separators=(",", ":"))
    header = (
        f'{{"arrays":[{",".join(listed)}],"family":"{stored.family}","learner":"{stored.learner}",'
        f'"members":[{members}],"parameters":{parameters}}}'
    )
    return hashlib.sha256(f"assay-model/2\n{header}\n".encode() + contents).hexdigest()


def claim(template: str, value: float, direction: str = "upper", delta: str = "0", **rest: Any) -> Claim:
    return Claim(template, value, direction, delta=delta, assumptions=definition(template).assumptions, **rest)


def publish(gap: float) -> float:
    return gap * (1 + 1e-6) + 1e-12


# Problems ---------------------------------------------------------------------------------------------------


def draw(seed: int, n: int = 24, d: int = 3, kind: int | None = None) -> np.ndarray:
    """Return rows of one of several shapes: plain, badly scaled, with a constant column, with copies, fewer
    than d."""
    rng = np.random.default_rng(seed)
    kind = seed % 5 if kind is None else kind
    n = d - 1 if kind == 4 and d > 2 else n
    X = rng.standard_normal((n, d))
    if kind == 1:
        X *= 10.0 ** rng.integers(-4, 5, size=d)
    elif kind == 2:
        X[:, 0] = 1.5
    elif kind == 3:
        X[n // 2 :] = X[: n - n // 2]
    return X


def labels(seed: int, X: np.ndarray, classes: int = 2, noise: float = 1.0) -> np.ndarray:
    """Return noisy linear labels in which every class occurs, one of them sometimes once only."""
    rng = np.random.default_rng([seed, 1])
    scores = (X / np.maximum(np.abs(X).max(axis=0), 1e-300)) @ rng.standard_normal((X.shape[1], classes))
    y = (scores + noise * rng.gumbel(size=scores.shape)).argmax(axis=1)
    if seed % 7 == 3 and classes == 2:
        y[:] = 0
    y[:classes] = np.arange(classes)
    return y


def weights(seed: int, n: int) -> np.ndarray | None:
    rng = np.random.default_rng([seed, 2])
    return None if seed % 3 else rng.choice([0.5, 1.0, 2.25, 0.0], size=n, p=[0.3, 0.4, 0.2, 0.1])


def ridge_case(seed: int) -> Case:
    X = draw(seed)
    rng = np.random.default_rng([seed, 3])
    y = X @ rng.standard_normal((X.shape[1], 2)) + rng.standard_normal((len(X), 2))
    if seed % 2:
        y = y[:, 0]
    weight, alpha, intercept = weights(seed, len(X)), float(10.0 ** rng.integers(-2, 3)), bool(seed % 4 < 2)
    W, b = ridge_fit(X, y, weight, alpha, intercept)
    W = W * (1 + 10.0 ** -int(rng.integers(3, 17)) * rng.standard_normal(W.shape))
    gap = float(ridge_gap(X, y, weight, alpha, intercept, W, b))
    params = gap_params("squared", 1.0, alpha, intercept)
    return Case((claim("D04/1", publish(gap) + 1e-9, params=params),), model(W, b), X, y, weight).seal()


def gap_params(loss: str, C: float, l2: float, intercept: bool, **more: Any) -> dict:
    """Return the parameters of the gap of a linear model: C sum of the losses + l2/2 |w|^2."""
    return machine_params(loss, C, l2, intercept, **{"column": 0.0, "dual": "slopes"} | more)


def machine_params(loss: str, C: float, l2: float, intercept: bool, **more: Any) -> dict:
    """Return the parameters of the gap of a kernel machine."""
    problem = {"loss": loss, "loss_params": {}, "penalty": {"L2": l2}, "C": C, "intercept": intercept}
    return problem | {"dual": "model"} | more


def ridge_fit(X, y, weight, alpha, intercept):
    s = np.ones(len(X)) if weight is None else weight
    mean = (s @ X) / s.sum() if intercept else np.zeros(X.shape[1])
    mean_y = (s @ y) / s.sum() if intercept else 0.0 * y[0]
    A = X - mean
    W = np.linalg.solve(A.T @ (A * s[:, None]) + alpha * np.eye(X.shape[1]), A.T @ ((y - mean_y).T * s).T)
    return np.ascontiguousarray(W.T), np.atleast_1d(mean_y - mean @ W)


def ridge_gap(X, y, weight, alpha, intercept, W, b):
    s = np.ones(len(X)) if weight is None else weight
    r = y.reshape(len(X), -1) - (X @ np.atleast_2d(W).T + b)
    mean = (s @ r) / s.sum() if intercept else 0 * r[0]
    v = X.T @ ((r - mean) * s[:, None])
    return (0.5 * s.sum() * mean**2).sum() + ((v - alpha * np.atleast_2d(W).T) ** 2).sum() / (2 * alpha)


def logistic_case(seed: int, classes: int = 2) -> Case:
    X = draw(seed)
    rng = np.random.default_rng([seed, 4])
    y = labels(seed, X, classes) if len(X) >= classes else np.arange(len(X)) % classes
    weight, C, intercept = weights(seed, len(X)), float(10.0 ** rng.integers(-2, 2)), bool(seed % 4 < 2)
    if weight is not None:
        weight[:classes] = 1.0
    class_weight = [float(v) for v in rng.choice([0.5, 1.0, 3.0], size=classes)] if seed % 5 == 0 else None
    c = (
        C
        * (np.ones(len(X)) if weight is None else weight)
        * (1.0 if class_weight is None else np.array(class_weight)[y])
    )
    W, b = logistic_fit(X, y, c, intercept, classes)
    W = W * (1 + 10.0 ** -int(rng.integers(3, 17)) * rng.standard_normal(W.shape))
    template, gap_of = ("D04/1", logistic_gap) if classes == 2 else ("D09/1", multinomial_gap)
    params = {"C": C, "intercept": intercept, "class_weight": class_weight}
    params = gap_params("logistic", l2=1.0, **params) if classes == 2 else params
    published = claim(template, publish(gap_of(X, y, c, intercept, W, b)) * 1.001 + 1e-9, params=params)
    names = np.array(["no", "yes", "zebra"][:classes])
    return Case((published,), model(W, b, names), X, names[y], weight).seal()


def logistic_fit(X, y, c, intercept, classes):
    outputs, d = (1 if classes == 2 else classes), X.shape[1]
    Z = np.hstack([X, np.full((len(X), 1), float(intercept))])
    own = np.where(y == 1, 1.0, -1.0)[:, None] if classes == 2 else np.eye(classes)[y]

    def value(t):
        T = t.reshape(outputs, d + 1)
        s = Z @ T.T
        if classes == 2:
            loss, pull = np.logaddexp(0, -own * s)[:, 0], -own * expit(-own * s)
        else:
            loss, pull = (
                logsumexp(s, axis=1) - (own * s).sum(axis=1),
                np.exp(s - logsumexp(s, axis=1)[:, None]) - own,
            )
        G = (pull * c[:, None]).T @ Z
        G[:, :d] += T[:, :d]
        G[:, d] *= intercept
        return c @ loss + 0.5 * np.sum(T[:, :d] ** 2), G.ravel()

    found = minimize(
        value, np.zeros(outputs * (d + 1)), jac=True, method="L-BFGS-B", options={"gtol": 1e-12, "ftol": 0}
    )
    T = found.x.reshape(outputs, d + 1)
    return T[:, :d].copy(), T[:, d] * intercept


def logistic_gap(X, y, c, intercept, W, b):
    sign = np.where(y == 1, 1.0, -1.0)
    z = sign * (X @ W[0] + b[0])
    p = expit(-z)
    if intercept:
        up, down = (c * p)[sign > 0].sum(), (c * p)[sign < 0].sum()
        p = p * np.where(sign > 0, min(1, down / up), min(1, up / down))
    kl = np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0) + (1 - p) * np.log1p(-p) + np.logaddexp(0, -z) + p * z
    return float(np.sum(c * np.maximum(kl, 0)) + 0.5 * np.sum((W[0] - X.T @ (c * p * sign)) ** 2))


def multinomial_gap(X, y, c, intercept, W, b):
    scores = X @ W.T + b
    log_q = scores - logsumexp(scores, axis=1, keepdims=True)
    own, p = np.eye(len(W))[y], np.exp(log_q)
    if intercept:
        have, want = c @ p, c @ own
        t = min(1.0, float(np.min(want / have)))
        p = t * p + (want - t * have) / c.sum()
    kl = np.sum(np.where(p > 0, p * (np.log(np.maximum(p, 1e-300)) - log_q), 0), axis=1)
    return float(np.sum(c * np.maximum(kl, 0)) + 0.5 * np.sum((W - ((own - p) * c[:, None]).T @ X) ** 2))


def enclosure_case(seed: int) -> Case:
    base = logistic_case(seed * 4 + 2)  # without intercept
    gap = base.claim
    value = math.sqrt(2 * gap.value) * (1 + 1e-9)
    scores = base.X @ base.model.coef_[0]
    fixed = int(np.sum(np.abs(scores) > np.linalg.norm(base.X, axis=1) * value * (1 + 1e-9) + 1e-9))
    params = {"gap": "D04/1", "strength": 1.0, "fixed_rows": fixed}
    return replace(base, claims=(gap, claim("D15/1", value, params=params)), sealed=None).seal()


def least_squares_case(seed: int) -> Case:
    X = draw(seed, kind=seed % 4)
    rng = np.random.default_rng([seed, 5])
    intercept, weight = (
        bool(seed % 2) and seed % 4 != 2,
        None if seed % 3 else weights(seed * 3, len(X)) + 0.25,
    )
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X)) + intercept
    W, b = ridge_fit(X, y, weight, 0.0, intercept)
    W = W * (1 + 10.0 ** -int(rng.integers(3, 17)) * rng.standard_normal(W.shape))
    center = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    A = np.hstack([X - center, np.ones((len(X), 1))]) if intercept else X - center
    exponents = -np.frexp(np.linalg.norm(A, axis=0))[1].astype(np.int64)
    A = A * np.ldexp(1.0, exponents)
    s = np.ones(len(X)) if weight is None else weight
    mu = 0.5 * float(np.linalg.eigvalsh(A.T @ (A * s[:, None]))[0])
    g = A.T @ (s * (y - X @ W - b))
    witness = {"center": center, "exponents": exponents}
    params = {"form": "a", "objective": "squared", "intercept": intercept, "mu": mu}
    return Case(
        (claim("D05/1", publish(g @ g / (2 * mu) * 1.001), params=params, witness=witness),),
        model(W, b),
        X,
        y,
        weight,
    ).seal()


def stationary_case(seed: int) -> Case:
    base = logistic_case(seed, 2 if seed % 2 else 3)
    weight, params = base.weight, base.claim.params
    names = base.model.classes_.tolist()
    y = np.array([names.index(v) for v in base.y])
    c = np.ones(len(y)) if weight is None else weight
    c = c * (1.0 if params["class_weight"] is None else np.array(params["class_weight"])[y])
    intercept, W, b = params["intercept"], base.model.coef_, base.model.intercept_
    Z = np.hstack([base.X, np.ones((len(base.X), 1))]) if intercept else base.X
    scores = base.X @ W.T + b
    if len(names) == 2:
        sign = np.where(y == 1, 1.0, -1.0)
        pull = (sign * expit(-sign * scores[:, 0]))[:, None]
    else:
        pull = np.eye(3)[y] - np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    norm = float(np.linalg.norm(Z.T @ (pull * c[:, None])))
    stated = {
        "form": "b",
        "objective": "logistic" if len(names) == 2 else "multinomial",
        "intercept": intercept,
        "radius": 2.5,
    }
    stated["class_weight"] = params["class_weight"]
    return replace(base, claims=(claim("D05/1", publish(norm * 2.5) + 1e-9, params=stated),), sealed=None).seal()


def hinge_case(seed: int) -> Case:
    """A linear SVM by its dual, as an instance of the generic gap."""
    X = draw(seed)
    y = labels(seed, X) if len(X) > 1 else np.array([0, 1])
    sign, intercept, C = np.where(y == 1, 1.0, -1.0), bool(seed % 2), 0.5
    A = sign[:, None] * X
    constraints = [{"type": "eq", "fun": lambda a: a @ sign, "jac": lambda a: sign}] if intercept else []
    found = minimize(
        lambda a: (0.5 * np.sum((A.T @ a) ** 2) - a.sum(), A @ (A.T @ a) - 1),
        np.full(len(X), 1e-3),
        jac=True,
        bounds=[(0, C)] * len(X),
        constraints=constraints,
        method="SLSQP" if intercept else "L-BFGS-B",
    )
    alpha = np.clip(found.x, 0, C)
    w = A.T @ alpha
    z = X @ w
    b = float((sign - z)[np.argmin(np.abs(alpha - C / 2))]) if intercept else 0.0
    repaired = alpha.copy()
    if intercept:
        up, down = alpha[sign > 0].sum(), alpha[sign < 0].sum()
        repaired = alpha * np.where(sign > 0, min(1, down / up), min(1, up / down))
    s = 1 - sign * (z + b)
    gap = 0.5 * np.sum((w - A.T @ repaired) ** 2) + np.sum(np.maximum((C - repaired) * s, -repaired * s))
    params = gap_params("hinge", C, 1.0, intercept, class_weight=None, dual="witness")
    stated = claim("D04/1", publish(float(gap)) + 1e-10, params=params, witness={"theta": alpha * sign})
    return Case((stated,), model(w[None, :], b, [0, 1]), X, y).seal()


def errors_case(seed: int) -> Case:
    X = draw(seed, n=30)
    y = labels(seed, X, 2 + seed % 2) if len(X) > 2 else np.arange(len(X))
    rng = np.random.default_rng([seed, 6])
    K = 1 if y.max() < 2 else 3
    W, b = rng.standard_normal((K, X.shape[1])), rng.standard_normal(K)
    scores = X @ W.T + b
    guess = (scores[:, 0] > 0).astype(int) if K == 1 else scores.argmax(axis=1)
    wrong = int(np.sum(guess != y))
    params = {"set": "train", "rows": len(X), "loss": "zero-one", "low": wrong}
    return Case((claim("D02/1", float(wrong), params=params),), model(W, b, np.arange(2 if K == 1 else 3)), X, y).seal()


def identity_case(seed: int) -> Case:
    base = errors_case(seed)
    stated = claim("D01/1", float(len(base.X)), "lower", params={"set": "train"})
    return replace(base, claims=(stated,), sealed=None).seal()


def floor_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 7])
    X = rng.integers(0, 2, size=(30, 3)).astype(float)
    y = rng.integers(0, 3, size=30)
    _, group = np.unique(X, axis=0, return_inverse=True)
    floor = sum(np.sum(group == g) - np.bincount(y[group == g]).max() for g in np.unique(group))
    witness = {"rows": np.arange(30), "group": group.astype(np.int64)}
    stated = claim("D03/1", float(floor), "lower", params={"rows": 30}, witness=witness)
    return Case((stated,), model(rng.standard_normal((3, 3)), np.zeros(3), [0, 1, 2]), X, y).seal()


def margin_case(seed: int, direction: str = "lower") -> Case:
    """Two clusters on either side of a hyperplane; the witness is a direction or a point of each hull."""
    rng = np.random.default_rng([seed, 8])
    X = rng.standard_normal((20, 3))
    normal = rng.standard_normal(3)
    side = np.where(np.arange(20) % 2, 1.0, -1.0)
    intercept = [True, False, "augmented"][seed % 3]
    X += np.outer(side * 3 - (X @ normal) / (normal @ normal), normal / np.linalg.norm(normal)) + (
        0.5 if intercept else 0
    )
    Z = np.hstack([X, np.ones((20, 1))]) if intercept == "augmented" else X
    w, lam = hard_margin(Z, side, intercept is True)
    radius = float(np.linalg.norm(Z, axis=1).max()) * (1 + 1e-9)
    params = {"intercept": intercept, "radius": radius}
    fitted = model(w[None, :3], w[3] if intercept == "augmented" else 0.0, [0, 1])
    if direction == "lower":
        scores = Z @ w
        least = scores[side > 0].min(), -scores[side < 0].max()
        value = (sum(least) / 2 if intercept is True else min(least)) / np.linalg.norm(w) * (1 - 1e-9)
        stated = claim("D13/1", float(value), "lower", params=params, witness={"w": w})
    else:
        value, witness = hull_distance(Z, side, lam, intercept is True)
        stated = claim("D13/1", publish(value), "upper", params=params, witness=witness)
    return Case((stated,), fitted, X, (side > 0).astype(int)).seal()


def hard_margin(Z, side, free):
    """Return the direction of the largest margin and the dual weights, by the dual problem."""
    A = side[:, None] * Z
    G = A @ A.T
    constraints = [{"type": "eq", "fun": lambda a: a @ side, "jac": lambda a: side}] if free else []
    found = minimize(
        lambda a: (0.5 * a @ G @ a - a.sum(), G @ a - 1),
        np.full(len(Z), 1e-3),
        jac=True,
        bounds=[(0, None)] * len(Z),
        constraints=constraints,
        method="SLSQP" if free else "L-BFGS-B",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    lam = np.maximum(found.x, 0.0)
    return A.T @ lam, lam


def hull_distance(Z, side, lam, free):
    if not free:
        witness = {"rows": np.arange(len(Z)), "weight": lam}
        return float(np.linalg.norm((lam * side) @ Z / lam.sum())), witness
    up, down = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    gap = lam[up] @ Z[up] / lam[up].sum() - lam[down] @ Z[down] / lam[down].sum()
    witness = {"positive": up, "positive_weight": lam[up], "negative": down, "negative_weight": lam[down]}
    return float(np.linalg.norm(gap)) / 2, witness


def inseparable_case(seed: int, classes: int = 2) -> Case:
    """Segments of opposite classes that cross, in the plane: Radon sets of four points; one class of three against
    the rest if there are three."""
    rng = np.random.default_rng([seed, 9])
    sets = 1 + seed % 3
    X, y, rows, names = [], [], [], []
    for k in range(sets):
        a, b = rng.integers(-8, 9, size=2), rng.integers(1, 5, size=2)
        corners = list(a + np.array([[-b[0], 0], [b[0], 0], [0, -b[1]], [0, b[1]]]))
        rows += [len(X) + i for i in range(4)]
        names += [k] * 4
        X += corners
        y += [0, 0, 1, 1]
    X += list(rng.standard_normal((6, 2)))
    y += list(rng.integers(0, 2, size=6))
    witness = {"rows": np.array(rows), "set": np.array(names)}
    params = {"form": "ii" if sets == 1 else "iii", "intercept": True}
    fitted, labels = model(rng.standard_normal((1, 2)), 0.3, [0, 1]), np.array(y)
    if classes == 3:
        params["class"] = seed % 3
        others = rng.choice([k for k in range(3) if k != seed % 3], size=len(y))
        fitted, labels = model(rng.standard_normal((3, 2)), np.zeros(3), [0, 1, 2]), np.where(labels, seed % 3, others)
    stated = claim("D14/1", float(sets), "lower", params=params, witness=witness)
    return Case((stated,), fitted, np.array(X, dtype=float), labels).seal()


def perceptron_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 10])
    intercept, rate = bool(seed % 2), [1.0, 0.3][seed // 2 % 2]
    X = rng.standard_normal((15, 2)) * 2
    side = np.where(X @ [1.0, -0.7] + 0.4 * intercept > 0, 1.0, -1.0)
    X += np.outer(side, [0.4, -0.3])
    Z = np.hstack([X, np.ones((15, 1))]) if intercept else X
    w, sequence = np.zeros(Z.shape[1]), []
    for _ in range(200):
        for i in rng.permutation(15):
            if side[i] * (Z[i] @ w) <= 0:
                w = w + (rate * side[i]) * Z[i]
                sequence.append(i)
    separator, _ = hard_margin(Z, side, False)
    margin = float(np.min(side * (Z @ separator)) / np.linalg.norm(separator)) * (1 - 1e-9)
    radius = float(np.linalg.norm(Z, axis=1).max()) * (1 + 1e-9)
    params = {
        "updates": len(sequence),
        "margin": margin,
        "radius": radius,
        "intercept": intercept,
        "rate": rate,
    }
    witness = {"sequence": np.array(sequence, dtype=np.int64), "separator": separator}
    stated = claim("D17/1", (radius / margin) ** 2 * (1 + 1e-9), params=params, witness=witness)
    return Case((stated,), model(w[None, :2], w[2] if intercept else 0.0, [0, 1]), X, (side > 0).astype(int)).seal()


def gaussian_case(seed: int) -> Case:
    """Gaussian classes with one covariance: the discriminant of the textbook, solved in floating point."""
    rng = np.random.default_rng([seed, 15])
    K, d, n = 2 + seed % 2, 2, 26
    y = np.append(np.arange(K), rng.integers(0, K, size=n - K))
    X = (rng.standard_normal((n, d)) + rng.standard_normal((K, d))[y]) * 10.0 ** rng.integers(-3, 4, size=d)
    kind, s = ["pooled", "equal"][seed % 4 // 2], [0.0, 0.25][seed % 5 // 3]
    counts = np.bincount(y)
    means = np.array([X[y == k].mean(axis=0) for k in range(K)])
    share = np.full(n, 1 / n) if kind == "pooled" else 1 / (K * counts[y])
    S = (X - means[y]).T @ ((X - means[y]) * share[:, None])
    S = (1 - s) * S + s * np.trace(S) / d * np.eye(d)
    priors = counts / n if seed % 3 else np.full(K, 1 / K)
    centre = priors @ means
    coef = np.linalg.solve(S, (means - centre).T).T
    intercept = np.log(priors) - 0.5 * np.sum(coef * (means - centre), axis=1) - coef @ centre
    if K == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    exponents = -np.frexp(np.sqrt(np.diag(S)))[1]
    scale = np.ldexp(1.0, exponents)
    mu = float(np.linalg.eigvalsh(S * np.outer(scale, scale))[0]) / 2
    params = {"form": "linear", "covariance": kind, "shrinkage": s, "mu": mu, "error": 1e-11}
    params["priors"] = "rows" if seed % 3 else priors.tolist()
    witness = {"exponents": exponents[None].astype(np.int64), "means": means, "covariance": S[None]}
    stated = claim("D19/3", 1e-9, params=params, witness=witness)
    return Case((stated,), model(coef, intercept, range(K), "discriminant.linear"), X, y).seal()


def holdout_case(seed: int, template: str = "P01/1") -> Case:
    """A fixed classifier, counted on rows passed apart (even seeds) or cut from one table (odd seeds)."""
    rng = np.random.default_rng([seed, 11])
    X = rng.standard_normal((50, 3))
    fitted = model(rng.standard_normal((1, 3)), 0.1, [0, 1])
    guess = (X @ fitted.coef_[0] + 0.1 > 0).astype(int)
    y = np.where(rng.random(50) < 0.15, 1 - guess, guess)
    rows = rng.permutation(50)[:30]
    wrong = int(np.sum((guess != y)[rows]))
    lower = template == "P01/1" and seed % 4 == 3 and wrong > 0
    params: dict[str, Any] = {"errors": wrong, "rows": 30}
    witness = {}
    if template == "P07/1":
        others = rng.integers(0, 2, size=(4, 30))
        witness = {"predictions": np.vstack([others, guess[np.sort(rows)][None, :]]).astype(np.int32)}
        params["compared"] = 5
    delta = 0.04 / params.get("compared", 1)
    value = (
        stats.beta.ppf(delta, wrong, 31 - wrong) - 1e-9
        if lower
        else stats.beta.ppf(1 - delta, wrong + 1, 30 - wrong) + 1e-9
    )
    value = 1.0 if wrong == 30 else min(1.0, float(value))
    stated = claim(
        template,
        value,
        "lower" if lower else "upper",
        "0.04",
        params=params,
        data=("holdout",),
        witness=witness,
    )
    rest = np.setdiff1d(np.arange(50), rows)
    if seed % 2:
        return Case((stated,), fitted, X, y, split={"train": rest, "holdout": rows}).seal()
    order = np.sort(rows)
    return Case((stated,), fitted, X[rest], y[rest], holdout=(X[order], y[order])).seal()


def clipped_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 12])
    X, Xh = rng.standard_normal((20, 2)), rng.standard_normal((60, 2))
    fitted = model(rng.standard_normal(2), 0.2)
    yh = Xh @ fitted.coef_ + 0.2 + 0.5 * rng.standard_normal(60)
    clip, m = 2.0, 60
    losses = np.minimum(np.abs(yh - Xh @ fitted.coef_ - 0.2), clip)
    log = math.log(2 / 0.05)
    value = losses.mean() + math.sqrt(2 * losses.var(ddof=1) * log / m) + 7 * clip * log / (3 * (m - 1))
    params = {"clip": clip, "rows": m}
    stated = claim("P04/1", float(value) + 1e-9, delta="0.05", params=params, data=("holdout",))
    return Case((stated,), fitted, X, X @ fitted.coef_, holdout=(Xh, yh)).seal()


def growth(descriptor: dict, points: int) -> int:
    d = descriptor["d"]
    if descriptor["class"] == "halfspaces" and not descriptor["bias"]:
        return sum(math.comb(points, i) for i in range(d + 1))
    affine = 2 * sum(math.comb(points - 1, i) for i in range(d + 1))
    return affine ** (descriptor["classes"] * (descriptor["classes"] - 1) // 2) if "classes" in descriptor else affine


def ghost_threshold(wrong: int, n: int, ways: int, delta: float) -> int:
    """Return the least K with P[Hyp(5n, K, n) <= wrong] <= delta / (2 ways), in floating point."""
    target = math.log(delta / 2) - math.log(ways)
    return next(K for K in range(wrong + 1, 5 * n + 1) if stats.hypergeom.logcdf(wrong, 5 * n, K, n) <= target - 1e-9)


def vc_case(seed: int, n: int = 60) -> Case:
    rng = np.random.default_rng([seed, 14])
    bias = bool(seed % 2)
    X = rng.standard_normal((n, 1 + seed % 3 // 2))
    fitted = model(rng.standard_normal((1, X.shape[1])), 0.2 * bias, [0, 1])
    guess = (X @ fitted.coef_[0] + fitted.intercept_[0] > 0).astype(int)
    y = np.where(rng.random(n) < 0.05, 1 - guess, guess)
    wrong = int(np.sum(guess != y))
    descriptor = {"class": "halfspaces", "d": X.shape[1], "bias": bias}
    K = ghost_threshold(wrong, n, growth(descriptor, 5 * n), 0.05)
    value = float(stats.beta.ppf(0.5, K - wrong, 4 * n - (K - wrong) + 1)) + 1e-9
    params = {"class": descriptor, "form": "c", "errors": wrong, "rows": n, "M": 4 * n, "q": 0.5, "K": K}
    return Case((claim("P10/1", value, delta="0.05", params=params),), fitted, X, y).seal()


CASES: dict[str, Callable[[int], Case]] = {
    "D01/1": identity_case,
    "D02/1": errors_case,
    "D03/1": floor_case,
    "D04/1": hinge_case,
    "D05/1": least_squares_case,
    "D05/1 b": stationary_case,
    "D04/1 ridge": ridge_case,
    "D04/1 logistic": logistic_case,
    "D09/1": lambda seed: logistic_case(seed, 3),
    "D13/1": margin_case,
    "D13/1 upper": lambda seed: margin_case(seed, "upper"),
    "D14/1": inseparable_case,
    "D14/1 class": lambda seed: inseparable_case(seed, 3),
    "D15/1": enclosure_case,
    "D17/1": perceptron_case,
    "D19/3": gaussian_case,
    "P01/1": holdout_case,
    "P04/1": clipped_case,
    "P07/1": lambda seed: holdout_case(seed, "P07/1"),
    "P10/1": vc_case,
}
