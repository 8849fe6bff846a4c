"""SPEC.md is enough to write a checker: what it says is computed here from its words alone, and compared."""

import hashlib
import json
import re
import struct
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest

import assay
from assay.checker import families
from assay.checker.family import read_model
from assay.checker.record import Rejected
from assay.claims.directory import codes, definition
from assay.cluster import KMeans
from assay.ensemble import RandomForestClassifier, VotingRegressor
from assay.linear_model import LogisticRegression, Ridge
from assay.svm import SVC

SPEC = (Path(assay.__file__).parent / "claims" / "SPEC.md").read_text(encoding="utf-8")
RNG = np.random.default_rng(8)
X = RNG.normal(size=(5000, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=5000) > 0, "größer", "kleiner")
FAMILIES = [import_module(f"assay.checker.families.{one.name}").FAMILY for one in iter_modules(families.__path__)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_shapes_of_all_arrays_are_written(family):
    prose = SPEC[SPEC.index("Shapes, ranges and predictors:") :]
    for parts in family.variants.values():
        for array in parts.arrays:
            assert f"`{array}`" in prose, array


def test_each_claim_has_a_row_with_its_name():
    prose = SPEC[SPEC.index("Parameters, witnesses and what") :].splitlines()
    rows = {row.split()[1]: row for row in prose if re.match(r"\| [A-Z]\d+/\d+ ", row)}
    known = [code for code in codes() if code[0] in "DP"]  # families of the tests have other letters
    for code in known:
        assert definition(code).name in rows[code], code
    assert set(rows) == set(known)


def _stated():
    """The parameters and witnesses that section 4 lists of each statement about new data."""
    prose = SPEC[SPEC.index("Parameters, witnesses and what") :].splitlines()
    rows = (re.split(r"(?<!\\)\|", row) for row in prose if re.match(r"\| P\d+/\d+ ", row))
    return {row[1].split()[0]: set(re.findall(r"`(\w+)`", row[2] + row[3])) for row in rows}


def _answered():
    """What section 5 says of: pairs of a claim ("all", "holdout.auc" or "holdout.paired") and the items of its row."""
    section = SPEC[SPEC.index("## 5. ") : SPEC.index("## 6. ")]
    for row in section.splitlines():
        if re.match(r"\| (all|P\d)", row):
            who, items, _ = (part.strip() for part in row.strip("| ").split(" | "))
            for one in who.split(", "):
                yield one, set(re.findall(r"`(\w+)`", items))


@pytest.mark.parametrize("code", [code for code in codes() if code[0] == "P"])
def test_whatever_a_statement_rests_on_is_derived_checked_or_declared(code):
    own = [(one, items) for one, items in _answered() if one in ("all", code, code.split("/")[0])]
    assert any(one != "all" for one, _ in own)
    assert _stated()[code] <= set().union(*(items for _, items in own)), code


@pytest.mark.parametrize("code", [code for code in codes() if code[0] == "P"])
def test_assumptions_that_the_list_names_are_those_of_the_claims(code):
    section = SPEC[SPEC.index("## 5. ") : SPEC.index("## 6. ")]
    named = set()
    for row in section.splitlines():
        who = row.strip("| ").split(" | ")[0].split(", ")
        if {"all", code, code.split("/")[0]} & set(who):
            named |= set(re.findall(r"A-[A-Z]+", row))
    assert {one.partition("(")[0] for one in definition(code).assumptions} <= named


def test_its_tables_are_generated_from_the_families():
    from assay.checker.spec import page

    assert page(SPEC) == SPEC, "run python -m assay.checker.spec"
    assert SPEC.count("<!-- generated: ") == 2


def test_each_family_has_one_row_of_shapes_and_predictor():
    prose = SPEC[SPEC.index("Shapes, ranges and predictors:") : SPEC.index("Models have at most 10,000")]
    rows = [row.split("|")[1] for row in prose.splitlines() if row.startswith("| `")]
    names = [name.strip() for row in rows for name in row.split(",")]
    known = [f"`{family.name}.{variant}".rstrip(".") + "`" for family in FAMILIES for variant in family.variants]
    assert sorted(names) == sorted(known)


def test_models_consist_of_models_as_deep_as_it_says():
    word = re.search(r"members in turn, down to (\w+) levels below the model", SPEC)[1]
    model = Ridge()
    for _ in range({"four": 4, "five": 5, "six": 6, "seven": 7}[word]):
        model = VotingRegressor([("only", model)])
    assert read_model(model.fit(X[:50], X[:50, 0]).stored()).columns == 3
    with pytest.raises(Rejected, match="members"):
        read_model(VotingRegressor([("only", model)]).fit(X[:50], X[:50, 0]).stored())


def fingerprint(stored) -> str:
    """The fingerprint of a model, written from section 1."""
    arrays = dict(sorted(stored.arrays.items()))
    types = {name: "text" if one.dtype.kind in "UO" else one.dtype.str for name, one in arrays.items()}
    header = {
        "arrays": [[name, types[name], list(one.shape)] for name, one in arrays.items()],
        "family": stored.family,
        "learner": stored.learner,
        "members": [fingerprint(member) for member in stored.members],
        "parameters": dict(stored.parameters),
    }
    text = b"assay-model/2\n" + json.dumps(header, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"
    for name, one in arrays.items():
        if types[name] == "text":
            text += json.dumps(one.ravel().tolist(), separators=(",", ":")).encode("ascii") + b"\n"
        else:
            text += one.astype(one.dtype.newbyteorder("<")).tobytes(order="C")
    return hashlib.sha256(text).hexdigest()


MODELS = [LogisticRegression(), SVC(C=0.5), RandomForestClassifier(3, max_depth=3, random_state=0)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_fingerprint_of_a_model(model):
    model.fit(X[:200], Y[:200])
    certificate = model.certify(X[:200], Y[:200])
    assert certificate.model.digest == fingerprint(model.stored())


def data_fingerprint(X, target: str, y, labels) -> str:
    """The fingerprint of rows without weights, written from section 1, number by number."""
    chunks = b""
    for start in range(0, len(X), 4096):
        part = [0.0 if value == 0 else float(value) for value in X[start : start + 4096].ravel()]
        text = struct.pack(f"<{len(part)}d", *part)
        if target:
            text += struct.pack(f"<{len(y[start : start + 4096])}{target}", *y[start : start + 4096])
        chunks += hashlib.sha256(text).digest()
    header = {"columns": X.shape[1], "labels": labels, "rows": len(X), "targets": 1 if target else 0, "weights": False}
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return hashlib.sha256(b"assay-data/1\n" + text + b"\n" + chunks).hexdigest()


def test_the_fingerprint_of_rows():
    labels = ["größer", "kleiner"]
    zeros = X.copy()
    zeros[::7, 1] = -0.0
    found = LogisticRegression().fit(zeros, Y).certify(zeros, Y).data["train"].digest
    assert found == data_fingerprint(zeros, "i", [labels.index(label) for label in Y], labels)
    numbers = X @ [1.0, 2.0, 3.0]
    found = Ridge().fit(X, numbers).certify(X, numbers).data["train"].digest
    assert found == data_fingerprint(X, "d", numbers.tolist(), None)
    found = KMeans(2, random_state=0).fit(X).certify(X).data["train"].digest
    assert found == data_fingerprint(X, "", [], None)


def key(row) -> int:
    """The key of a row, written from the words about near copies."""
    drawn = np.random.default_rng(1).integers(2**63, size=len(row), dtype="uint64").tolist()
    total = 0
    for value, r in zip(row.tolist(), drawn):
        bits = int.from_bytes(struct.pack("<d", value + 0.0), "little")
        u = ((bits + 2**41) % 2**64 >> 42) * 0x9E3779B97F4A7C15 % 2**64
        total += (u ^ (u >> 29)) * (2 * r + 1)
    return total % 2**64


def test_near_copies_are_counted_as_it_says():
    train, held = X[:300], X[300:400].copy()
    held[:4] = train[:4] * (1 + 1e-12)
    held[4:6] = train[4:6] * 1.5
    model = LogisticRegression().fit(train, Y[:300])
    certificate = model.certify(train, Y[:300], holdout=(held, Y[300:400]))
    known = {key(row) for row in train}
    assert (
        certificate.find("data.identity", set="holdout").params["near"] == sum(key(row) in known for row in held) == 4
    )


def test_a_model_file_has_the_members_that_it_lists(tmp_path):
    import zipfile

    model = LogisticRegression().fit(X[:200], Y[:200])
    assay.save(model, tmp_path / "a.assay", model.certify(X[:200], Y[:200]))
    with zipfile.ZipFile(tmp_path / "a.assay") as archive:
        names = archive.namelist()
        record, manifest = (json.loads(archive.read(name)) for name in ("model.json", "manifest.json"))
        arrays = [name for name in names if name.startswith("arrays/")]
    assert set(names) == {"manifest.json", "certificate.json", "model.json", *arrays}
    assert manifest["format"] == "assay-model/2"
    assert manifest["members"].keys() == set(names) - {"manifest.json"}
    assert record.keys() == {"learner", "family", "parameters", "arrays", "members"}
    assert {f"arrays/{place}.npy" for place in record["arrays"].values() if isinstance(place, int)} == set(arrays)
