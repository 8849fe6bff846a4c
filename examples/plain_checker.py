"""A checker of one's own: certificates of logistic regressions judged in plain Python, without NumPy and without Assay
====================================================================================================================

It is written from the format alone. Files, fingerprints and the ledger are read as the specification says; signs of
scores and binomial tails are computed in rational arithmetic, losses in decimal arithmetic of 60 digits. Claims that it
has no rule for are listed as not judged, so that nobody takes them for proved.

Run `python examples/plain_checker.py model.assay train.csv holdout.csv` (no header, the label last); without files an
example is made.
"""

import ast
import csv
import hashlib
import json
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from decimal import Decimal, getcontext
from fractions import Fraction
from math import comb
from typing import Any, NamedTuple

getcontext().prec = 60
SLACK = Decimal(10) ** -40  # far above what 60 digits round away, far below any gap that is claimed


class Rejected(ValueError):
    """The file, the certificate or a claim is not what it says it is."""


class Rows(NamedTuple):
    """Rows of numbers and their labels as text."""

    X: list[list[float]]
    y: list[str]


class Model(NamedTuple):
    """A linear classifier of two classes: sign of w.x + b."""

    record: dict[str, Any]
    digest: str
    w: list[float]
    b: float
    classes: list[str]

    def margin(self, x: list[float], label: str) -> Fraction:
        """Return y (w.x + b), exactly."""
        score = sum((Fraction(w) * Fraction(v) for w, v in zip(self.w, x, strict=True)), Fraction(self.b))
        return score if label == self.classes[1] else -score


# Files and fingerprints (sections 1 and 7 of the format) ---------------------------------------------------------


def plain_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read_npy(data: bytes) -> tuple[str, list[int], bytes]:
    """Return type, shape and content of an array."""
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise Rejected("this is no array of NPY version 1.0")
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:end].decode("latin1"))
    if header["fortran_order"]:
        raise Rejected("arrays are in C order")
    return header["descr"], list(header["shape"]), data[end:]


def read_file(path: str) -> tuple[Model, dict[str, Any]]:
    """Return the model of a file, with its fingerprint computed anew, and the certificate."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    if manifest["format"] != "assay-model/2" or manifest["members"].keys() != files.keys():
        raise Rejected("the manifest does not list the files")
    for name, content in files.items():
        if manifest["members"][name] != {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}:
            raise Rejected(f"{name} is not what the manifest says")
    record = json.loads(files["model.json"])
    if record["family"] != "linear.classifier" or record["members"]:
        raise Rejected(f"this checker judges linear classifiers, not {record['family']}")
    return read_model(record, files), json.loads(files["certificate.json"])


def read_model(record: dict[str, Any], files: dict[str, bytes]) -> Model:
    """Return a linear classifier of two classes, and the digest of what it consists of."""
    arrays = {name: read_npy(files[f"arrays/{n}.npy"]) for name, n in record["arrays"].items() if isinstance(n, int)}
    if arrays.keys() != record["arrays"].keys() or arrays.keys() != {"coef_", "intercept_", "classes_"}:
        raise Rejected("this checker reads coefficients, an intercept and numbered classes")
    header = {
        "arrays": [[name, kind, shape] for name, (kind, shape, _) in sorted(arrays.items())],
        **{key: record[key] for key in ("family", "learner", "parameters")},
        "members": [],
    }
    content = b"".join(arrays[name][2] for name in sorted(arrays))
    digest = hashlib.sha256(b"assay-model/2\n" + plain_json(header).encode() + b"\n" + content).hexdigest()
    kind, (outputs, d), weights = arrays["coef_"]
    classes = [str(one) for one in struct.unpack(f"<{arrays['classes_'][1][0]}q", arrays["classes_"][2])]
    if kind != "<f8" or outputs != 1 or len(classes) != 2 or arrays["classes_"][0] != "<i8":
        raise Rejected("this checker judges two classes, with weights in double precision")
    return Model(
        record, digest, list(struct.unpack(f"<{d}d", weights)), struct.unpack("<d", arrays["intercept_"][2])[0], classes
    )


def data_digest(rows: Rows, labels: list[str]) -> str:
    """Return the fingerprint of rows: of chunks of 4,096 of them, each its numbers and its label positions."""
    header = {"columns": len(rows.X[0]), "labels": labels, "rows": len(rows.X), "targets": 1, "weights": False}
    whole = hashlib.sha256(b"assay-data/1\n" + plain_json(header).encode() + b"\n")
    for start in range(0, len(rows.X), 4096):
        numbers = [value + 0.0 for x in rows.X[start : start + 4096] for value in x]  # -0.0 is written as 0.0
        places = [labels.index(label) if label in labels else -1 for label in rows.y[start : start + 4096]]
        chunk = struct.pack(f"<{len(numbers)}d", *numbers) + struct.pack(f"<{len(places)}i", *places)
        whole.update(hashlib.sha256(chunk).digest())
    return whole.hexdigest()


# Rules (section 4): each returns whether the claim is true ----------------------------------------------------------


def errors(model: Model, rows: Rows) -> int:
    """Return the rows that are not on the right side; a score of 0 is an error."""
    return sum(label not in model.classes or model.margin(x, label) <= 0 for x, label in zip(*rows, strict=True))


def error_count(claim: dict[str, Any], model: Model, sets: dict[str, Rows]) -> bool:
    rows, asked = sets[claim["data"][0]], claim["params"]
    found = errors(model, rows)
    return asked["rows"] == len(rows.X) and asked["loss"] == "zero-one" and asked["low"] <= found <= claim["value"]


def binomial_limit(claim: dict[str, Any], model: Model, sets: dict[str, Rows]) -> bool:
    """P[Bin(m, value) <= k] <= delta, in rational arithmetic."""
    rows, p, delta = sets["holdout"], Fraction(claim["value"]), Fraction(claim["delta"])
    m, k = len(rows.X), claim["params"]["errors"]
    if claim["direction"] != "upper" or claim["params"]["rows"] != m or not errors(model, rows) <= k <= p * m:
        return False
    return p >= 1 or sum(comb(m, i) * p**i * (1 - p) ** (m - i) for i in range(k + 1)) <= delta


def logistic_gap(claim: dict[str, Any], model: Model, sets: dict[str, Rows]) -> bool:
    """1/2 |w|^2 + C sum ln(1 + exp(-z)) exceeds its minimum by at most the value.

    Any dual vector bounds the minimum from below. It is made of the slopes of the loss at the model, one side shrunk
    until they sum to zero, which a free intercept asks for.
    """
    rows, asked = sets["train"], claim["params"]
    if asked | {"C": 1} != {
        "loss": "logistic", "loss_params": {}, "penalty": {"L2": 1.0}, "C": 1, "intercept": True,
        "class_weight": None, "column": 0.0, "dual": "slopes",
    }:  # fmt: skip
        return False
    C = Decimal(asked["C"])
    w = [Decimal(value) for value in model.w]
    signs = [1 if label == model.classes[1] else -1 for label in rows.y]
    scores = [sum((a * Decimal(v) for a, v in zip(w, x)), Decimal(model.b)) for x in rows.X]
    primal = sum((a * a for a in w), Decimal(0)) / 2 + C * sum((1 + (-s * f).exp()).ln() for s, f in zip(signs, scores))
    alpha = [C / (1 + (s * f).exp()) for s, f in zip(signs, scores)]
    sides = {side: sum((a for a, s in zip(alpha, signs) if s == side), Decimal(0)) for side in (1, -1)}
    alpha = [a * min(sides.values()) / sides[s] for a, s in zip(alpha, signs)]
    v = [sum((a * s * Decimal(x[j]) for a, s, x in zip(alpha, signs, rows.X)), Decimal(0)) for j in range(len(w))]
    entropy = sum(t * t.ln() + (1 - t) * (1 - t).ln() for a in alpha if 0 < (t := a / C) < 1)
    dual = -sum((one * one for one in v), Decimal(0)) / 2 - C * entropy
    return primal - dual + SLACK <= Decimal(claim["value"])


RULES: dict[str, Callable[[dict[str, Any], Model, dict[str, Rows]], bool]] = {
    "D02/1": error_count,
    "D04/1": logistic_gap,
    "P01/1": binomial_limit,
}


def check(path: str, train: Rows, holdout: Rows) -> Iterator[tuple[str, str]]:
    """Yield the code of each claim with its verdict; raise Rejected if file, rows or ledger are not what they say."""
    model, certificate = read_file(path)
    named = {"learner": model.record["learner"], "family": model.record["family"], "digest": model.digest}
    if certificate["format"] != "assay-certificate/4" or certificate["model"] != named:
        raise Rejected("the certificate is about another model")
    sets = {"train": train, "holdout": holdout}
    for name, said in certificate["data"].items():
        if said["labels"] != model.classes or said["digest"] != data_digest(sets[name], model.classes):
            raise Rejected(f"these are not the rows of the set {name}")
    spent = [claim["delta"] for claim in certificate["claims"]] + [delta for _, delta in certificate["unreported"]]
    if sum(map(Fraction, spent)) > Fraction(certificate["delta_total"]):
        raise Rejected("the claims spend more than delta")
    for claim in certificate["claims"]:
        rule = RULES.get(claim["template"])
        yield claim["template"], "not judged" if rule is None else "proved" if rule(claim, model, sets) else "REJECTED"


def read_rows(path: str) -> Rows:
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    return Rows([[float(cell) for cell in line[:-1]] for line in lines], [line[-1] for line in lines])


def main(*files: str) -> None:
    for code, verdict in check(files[0], *map(read_rows, files[1:])) if files else example():
        print(f"{code}: {verdict}")


def example() -> Iterator[tuple[str, str]]:
    """Fit, certify and save a model with Assay, and yield what this checker says of the file."""
    import tempfile

    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    import assay
    from assay.linear_model import LogisticRegression

    X, held, y, truth = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    model = LogisticRegression().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        assay.save(model, f"{folder}/model.assay", model.certify(X, y, holdout=(held, truth)))
        sets = [Rows(rows.tolist(), [str(label) for label in labels]) for rows, labels in ((X, y), (held, truth))]
        yield from check(f"{folder}/model.assay", *sets)


if __name__ == "__main__":
    main(*sys.argv[1:])
