"""Model files: what is saved comes back, damage is noticed, and nothing in a file is ever run."""

import io
import json
import os
import random
import stat
import sys
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import assay
from assay import ModelFileError
from assay.claims.document import DocumentError, from_json, strict_json, to_json
from assay.linear_model import LinearRegression, LogisticRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.where(X @ [1.0, -2.0] + RNG.normal(size=40) > 0, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    model = LogisticRegression().fit(X[:30], Y[:30])
    return model, model.certify(X, Y, holdout=np.arange(30, 40))


@pytest.fixture(scope="module")
def content(fitted, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m.assay"
    assay.save(fitted[0], path, fitted[1])
    return path.read_bytes()


@pytest.fixture
def open_bytes(tmp_path):
    def load(data: bytes):
        path = tmp_path / "x.assay"
        path.write_bytes(data)
        return assay.load(path)

    return load


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(parts: dict[str, bytes]) -> bytes:
    """Return an archive with a manifest that is right for these members, as an attacker would make it."""
    manifest = json.loads(parts["manifest.json"])
    manifest["members"] = {
        name: {"bytes": len(data), "sha256": sha256(data).hexdigest()}
        for name, data in parts.items()
        if name != "manifest.json"
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in {**parts, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    return content.getvalue()


def test_round_trip_keeps_every_bit(fitted, content, open_bytes):
    model, certificate = fitted
    again, papers = open_bytes(content)
    assert type(again) is LogisticRegression
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.history_ == model.history_
    assert again.get_params() == model.get_params()
    assert (again.predict(X) == model.predict(X)).all()
    assert to_json(papers) == to_json(certificate)
    assert str(assay.verify(papers, again, X, Y)) == str(assay.verify(certificate, model, X, Y))


def test_round_trip_of_a_pipeline(tmp_path):
    table = np.column_stack([X.astype(object), np.where(X[:, 0] > 0, "a", "b")])
    encode = make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(sparse_output=False), [2]))
    model = make_pipeline(encode, LinearRegression()).fit(table, X.sum(axis=1))
    assay.save(model, tmp_path / "p.assay")
    again = assay.load(tmp_path / "p.assay")
    assert again.certificate is None
    assert np.array_equal(again.model.predict(table), model.predict(table))


def test_the_same_model_gives_the_same_bytes(fitted, content, tmp_path):
    assay.save(*fitted[:1], tmp_path / "again.assay", fitted[1])
    assert (tmp_path / "again.assay").read_bytes() == content


def test_there_is_no_pickle_in_the_file(content):
    assert set(members(content)) >= {"manifest.json", "certificate.json", "model/schema.json"}
    assert not any(data.startswith(b"\x80") for data in members(content).values())


def test_a_failed_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m.assay"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        assay.save(fitted[0], path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.assay"]


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(FunctionTransformer(os.path.basename)),
        RandomForestClassifier(2).fit(X, Y),
        LogisticRegression(C=open),
    ],
    ids=["function", "forest", "builtin"],
)
def test_save_refuses_what_load_would_refuse(model, tmp_path):
    with pytest.raises(ModelFileError, match="may not hold"):
        assay.save(model, tmp_path / "m.assay")
    assert not list(tmp_path.iterdir())


def test_a_missing_file_or_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        assay.load(tmp_path / "none.assay")
    with pytest.raises(ModelFileError, match="regular file"):
        assay.load(tmp_path)


# Hostile files


def node(loader: str, module: str, name: str, **more) -> dict:
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 987654, **more}


PAYLOADS = {
    "function": node("FunctionNode", "os", "system"),
    "type": node("TypeNode", "subprocess", "Popen"),
    "object": node("ObjectNode", "this", "Anything"),
    "learner-like": node("ObjectNode", "assay.linear_model._base", "LinearModel"),
    "assay-module": node("ObjectNode", "assay.persist", "ModelFileError"),
    "sklearn-private": node("ObjectNode", "sklearn.preprocessing._data", "np"),
    "sklearn-tests": node("ObjectNode", "sklearn.preprocessing.tests.test_data", "StandardScaler"),
    "reduce": node(
        "ConstructorFromReduceNode",
        "builtins",
        "exec",
        content=node("TupleNode", "builtins", "tuple", content=[]),
    ),
    "partial": node("PartialNode", "functools", "partial", content={}),
    "method": node("MethodNode", "builtins", "str", content={"func": "format", "obj": {}}),
    "operator": node("OperatorFuncNode", "operator", "methodcaller", attrs={}),
    "cached": {"__class__": None, "__module__": None, "__loader__": "CachedNode", "__id__": 1},
    "old-loader": node("DTypeNode_v0", "os", "system"),
    "scipy": node("SparseMatrixNode", "scipy.sparse", "csr_matrix", type="scipy", file="1.npy"),
    "random": node("RandomStateNode", "numpy.random.mtrand", "RandomState", content={}),
    "not-a-node": {"__loader__": "JsonNode"},
    "json": node("JsonNode", "builtins", "str", content="[" * 10_000),
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
@pytest.mark.parametrize("place", ["root", "attribute"])
def test_unknown_types_are_refused_and_nothing_runs(payload, place, content, open_bytes, monkeypatch):
    ran = []
    monkeypatch.setattr(os, "system", lambda command: ran.append(command))
    sys.modules.pop("this", None)
    parts = members(content)
    schema = json.loads(parts["model/schema.json"])
    if place == "root":
        schema = {**payload, "protocol": schema["protocol"], "_skops_version": schema["_skops_version"]}
    else:
        schema["content"]["content"]["coef_"] = payload
    parts["model/schema.json"] = json.dumps(schema).encode()
    with pytest.raises(ModelFileError, match="not a sound model file"):
        open_bytes(forged(parts))
    assert not ran
    assert "this" not in sys.modules


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


FORGED_ARRAYS = {
    "huge": (
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}"),
        "not what its header says",
    ),
    "objects": (
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"cos\nsystem\n"),
        "its header says",
    ),
    "negative": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), "its header says"),
    "rest": (
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9)}", b"x"),
        "not what its header says",
    ),
    "code": (npy("__import__('os').system('x')"), "malformed"),
    "pickle": (b"\x80\x04\x95", "magic"),
    "empty": (b"", "magic"),
}


@pytest.mark.parametrize(("array", "reason"), FORGED_ARRAYS.values(), ids=FORGED_ARRAYS.keys())
def test_forged_arrays_are_refused(array, reason, content, open_bytes):
    parts = members(content)
    name = next(name for name in parts if name.endswith(".npy"))
    with pytest.raises(ModelFileError, match=reason):
        open_bytes(forged({**parts, name: array}))


def archive_with(*entries: tuple[zipfile.ZipInfo | str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for info, data in entries:
            archive.writestr(info, data)
    return content.getvalue()


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("model/1.npy")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "zip"),
        (b"hello", "zip"),
        (archive_with(), "manifest"),
        (archive_with(("manifest.json", bytes(10**7)), compression=zipfile.ZIP_DEFLATED), "compressed"),
        (archive_with(("../../etc/passwd", b"")), "unexpected member"),
        (archive_with(("/manifest.json", b"")), "unexpected member"),
        (archive_with((link(), b"/etc/passwd")), "link"),
        (archive_with(("manifest.json", b"[1]")), "format"),
        (archive_with(("manifest.json", b'{"format": "assay-model/2"}')), "reads 'assay-model/1'"),
        (archive_with(("manifest.json", b'{"format": NaN}')), "not a JSON number"),
        (archive_with(("manifest.json", b'{"format": 1, "format": 2}')), "repeats a key"),
        (archive_with(("manifest.json", b"[" * 10**6)), "nested"),
        (archive_with(("manifest.json", b'{"format": "assay-model/1", "members": {}}')), "no model"),
    ],
)
def test_broken_archives_are_refused_with_a_reason(data, reason, open_bytes):
    with pytest.raises(ModelFileError, match=reason):
        open_bytes(data)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members_are_refused(content, open_bytes):
    twice = io.BytesIO(content)
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("model/schema.json", b"{}")
    with pytest.raises(ModelFileError, match="repeated"):
        open_bytes(twice.getvalue())


def test_a_changed_member_is_noticed(content, open_bytes):
    parts = members(content)
    with pytest.raises(ModelFileError, match="damaged or changed"):
        open_bytes(archive_with(*{**parts, "certificate.json": parts["certificate.json"] + b" "}.items()))


def verdict_or_error(open_bytes, data: bytes) -> str:
    try:
        model, certificate = open_bytes(data)
    except ModelFileError:
        return "refused"
    return str(assay.verify(certificate, model, X, Y))


def test_5000_random_mutations_give_an_error_or_the_same_verdict(content, open_bytes):
    honest = verdict_or_error(open_bytes, content)
    assert honest != "refused"
    rng = random.Random(1)
    seen = {"refused": 0, honest: 0}
    for _ in range(5_000):
        data = bytearray(content)
        kind = rng.randrange(4)
        if kind == 0:
            del data[rng.randrange(len(data)) :]
        elif kind == 1:
            start = rng.randrange(len(data))
            del data[start : start + rng.randint(1, 64)]
        else:
            for _ in range(rng.choice((1, 1, 1, 8))):
                data[rng.randrange(len(data))] ^= rng.randint(1, 255)
        seen[verdict_or_error(open_bytes, bytes(data))] += 1  # KeyError: another verdict
    assert seen["refused"] > 4_000


def test_1000_mutations_with_a_matching_manifest_never_crash(content, open_bytes):
    """Past the hashes, mutated schemas, arrays and certificates meet the audit, skops and the checker."""
    rng = random.Random(2)
    parts = members(content)
    names = sorted(set(parts) - {"manifest.json"})
    outcomes = []
    for _ in range(1_000):
        name = rng.choice(names)
        data = bytearray(parts[name])
        for _ in range(rng.choice((1, 1, 4))):
            data[rng.randrange(len(data))] = rng.choice(b'0123456789"{}[],:-eNx\x00\xff')
        outcomes.append(verdict_or_error(open_bytes, forged({**parts, name: bytes(data)})))
    assert outcomes.count("refused") > 200
    assert len(set(outcomes)) > 2  # some forgeries load, and the checker says no


# Certificates as text


def test_a_certificate_survives_json(fitted):
    certificate = fitted[1]
    again = from_json(to_json(certificate))
    assert [claim.statement for claim in again.claims] == [claim.statement for claim in certificate.claims]
    for mine, other in zip(certificate.claims, again.claims, strict=True):
        assert mine.value == other.value
        assert mine.delta == other.delta
        assert all(np.array_equal(mine.witness[name], other.witness[name]) for name in mine.witness)
    assert np.array_equal(again.split["holdout"], certificate.split["holdout"])


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), "assay-certificate/9", "format"),
        (("extra",), 1, "unknown"),
        (("serial",), True, "expected int"),
        (("serial",), 1.5, "expected int"),
        (("delta_total",), "2", "decimal number"),
        (("delta_total",), "1e-999999999", "decimal number"),
        (("delta_total",), "NaN", "decimal number"),
        (("claims", 0, "value"), "1", "expected float"),
        (("claims", 0, "value"), 10**400, "expected float"),
        (("claims", 0, "template"), None, "expected str"),
        (("claims", 0, "witness"), {"a": {"dtype": "|O", "shape": [1], "base64": ""}}, "array type"),
        (("claims", 0, "witness"), {"a": {"dtype": "<f8", "shape": [2**60], "base64": ""}}, "does not match"),
        (("claims", 0, "witness"), {"a": {"dtype": "<f8", "shape": [-1], "base64": ""}}, "does not match"),
        (("claims", 0, "witness"), {"a": {"dtype": "<f8", "shape": [1], "base64": "!!"}}, "base64"),
        (("split", "train"), [1, 2], "expected dict"),
        (("data", "train", "labels"), [1], "expected str"),
    ],
)
def test_reading_json_is_strict(path, value, reason, fitted):
    record = json.loads(to_json(fitted[1]))
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(DocumentError, match=reason):
        from_json(json.dumps(record))


@pytest.mark.parametrize("text", ['{"a": Infinity}', '{"a": 1e999}', '{"a": 1, "a": 2}', "[" * 40, "", "{", b"\xff"])
def test_json_that_is_not_strict_is_refused(text):
    with pytest.raises(DocumentError):
        strict_json(text)
