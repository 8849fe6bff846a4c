"""Honest certificates made by hand: models without a learner, own fingerprints, own rows and labels; no producer."""

import hashlib
import json
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from assay.checker.verify import Report, verify
from assay.claims.claim import Certificate, Claim, DataReference, ModelReference
from assay.claims.directory import definition
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


def claim(name: str, value: float, direction: str = "upper", delta: str = "0", **rest: Any) -> Claim:
    return Claim(name, value, direction, delta=delta, assumptions=definition(name).assumptions, **rest)


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


def gap_params(loss: str, C: float, l2: float, intercept: bool, **more: Any) -> dict:
    """Return the parameters of the gap of a linear model: C sum of the losses + l2/2 |w|^2."""
    return machine_params(loss, C, l2, intercept, **{"column": 0.0, "dual": "slopes"} | more)


def machine_params(loss: str, C: float, l2: float, intercept: bool, **more: Any) -> dict:
    """Return the parameters of the gap of a kernel machine."""
    problem = {"loss": loss, "loss_params": {}, "penalty": {"L2": l2}, "C": C, "intercept": intercept}
    return problem | {"dual": "model"} | more
