"""Model files: what is saved comes back, damage is noticed, and nothing in a file is ever run."""

import base64
import io
import json
import os
import random
import stat
import zipfile
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import assay
from assay import ModelFileError
from assay.claims.document import DocumentError, from_json, strict_json, to_json
from assay.ensemble import BaggingClassifier
from assay.kernels import Gaussian
from assay.linear_model import LogisticRegression, Ridge
from assay.neighbors import KNeighborsClassifier
from assay.svm import SVC

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
    assert again.get_params() == model.get_params()
    assert (again.predict(X) == model.predict(X)).all()
    assert to_json(papers) == to_json(certificate)
    assert str(assay.verify(papers, again, X, Y)) == str(assay.verify(certificate, model, X, Y))


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=np.inf),
        SVC(kernel=0.5 * Gaussian(0.7), class_weight={"no": 1.0, "yes": 2.5}),
        BaggingClassifier(LogisticRegression(C=3.0), n_estimators=3, random_state=1),
        KNeighborsClassifier(3, n_jobs=2),
        SVC(probability=True, random_state=np.random.RandomState(0)),
    ],
    ids=["infinite", "kernel and mapping", "members", "number of threads", "generator"],
)
def test_parameters_of_every_kind_come_back(model, tmp_path):
    model.fit(X, Y)
    assay.save(model, tmp_path / "m.assay")
    again = assay.load(tmp_path / "m.assay").model
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.stored().digest() == model.stored().digest()


def test_names_of_columns_come_back(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["left", "right"])
    model = Ridge().fit(frame, X.sum(axis=1))
    assay.save(model, tmp_path / "m.assay")
    again = assay.load(tmp_path / "m.assay").model
    assert again.feature_names_in_.tolist() == ["left", "right"]
    assert np.array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"left": "up"}))


def test_the_same_model_gives_the_same_bytes(fitted, content, tmp_path):
    assay.save(*fitted[:1], tmp_path / "again.assay", fitted[1])
    assert (tmp_path / "again.assay").read_bytes() == content


def test_there_is_no_pickle_in_the_file(content):
    assert set(members(content)) >= {"manifest.json", "certificate.json", "model.json"}
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
    ("model", "reason"),
    [
        (make_pipeline(StandardScaler(), LogisticRegression()), "not a learner of Assay"),
        (RandomForestClassifier(2).fit(X, Y), "not a learner of Assay"),
        (KNeighborsClassifier(metric=np.hypot).fit(X, Y), "which cannot be saved"),
        (BaggingClassifier(RandomForestClassifier(2), n_estimators=2).fit(X, Y), "RandomForestClassifier"),
    ],
    ids=["pipeline", "forest", "function", "members"],
)
def test_save_refuses_what_cannot_be_read_without_trust(model, reason, tmp_path):
    with pytest.raises(ModelFileError, match=reason):
        assay.save(model, tmp_path / "m.assay")
    assert not list(tmp_path.iterdir())


def test_an_attribute_that_shadows_a_method_is_not_stored(fitted, tmp_path):
    model = LogisticRegression().fit(X[:30], Y[:30])
    model.predict = np.float64
    assay.save(model, tmp_path / "m.assay", fitted[1])
    again = assay.load(tmp_path / "m.assay").model
    assert np.array_equal(again.predict(X), fitted[0].predict(X))


def test_a_missing_file_or_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        assay.load(tmp_path / "none.assay")
    with pytest.raises(ModelFileError, match="regular file"):
        assay.load(tmp_path)


# Hostile files


def changed(content: bytes, path: tuple, value) -> bytes:
    """Return the file with one field of model.json changed, its manifest right again."""
    parts = members(content)
    record = json.loads(parts["model.json"])
    place = record
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    parts["model.json"] = json.dumps(record).encode()
    return forged(parts)


RECORDS = {
    "another room": (("learner",), "os.system"),
    "no learner": (("learner",), "linear_model.LinearClassifier"),
    "private module": (("learner",), "linear_model._logistic.LogisticRegression"),
    "another class": (("learner",), "linear_model.Ridge"),
    "a class of the same family": (("learner",), "svm.LinearSVC"),
    "another family": (("family",), "linear.regressor"),
    "unknown family": (("family",), "nothing"),
    "a module as family": (("family",), "../os"),
    "a field more": (("extra",), 1),
    "a field less": (("members",), None),
    "parameters as list": (("parameters",), [1]),
    "a parameter more": (("parameters", "evil"), 1),
    "a parameter less": (("parameters", "C"), None),
    "unknown tag": (("parameters", "C"), {"call": "os.system"}),
    "an object of no kind": (("parameters", "C"), {"object": {"learner": "os.system", "parameters": {}}}),
    "a kernel of no kind": (("parameters", "C"), {"object": ["Function", ["os.system"]]}),
    "deep": (("parameters", "C"), json.loads("[" * 150 + "]" * 150)),
    "an array twice": (("arrays", "intercept_"), 1),
    "an array that is not there": (("arrays", "coef_"), 17),
    "a name that is a method": (("arrays", "predict"), {"text": "str", "shape": [1], "values": ["x"]}),
    "an array less": (("arrays", "coef_"), None),
    "labels twice": (("arrays", "classes_"), {"text": "str", "shape": [2], "values": ["no", "no"]}),
    "labels of another shape": (("arrays", "classes_"), {"text": "str", "shape": [3], "values": ["no", "yes"]}),
    "three labels": (("arrays", "classes_"), {"text": "str", "shape": [3], "values": ["a", "b", "c"]}),
    "members": (("members",), [{}]),
}


@pytest.mark.parametrize(("path", "value"), RECORDS.values(), ids=RECORDS.keys())
def test_records_of_models_are_read_strictly_and_nothing_runs(path, value, content, open_bytes, monkeypatch):
    ran = []
    monkeypatch.setattr(os, "system", lambda command: ran.append(command))
    with pytest.raises(ModelFileError, match="not a sound model file"):
        open_bytes(changed(content, path, value))
    assert not ran


def test_a_changed_parameter_is_another_model(fitted, content, open_bytes):
    """It loads, since such a model may exist, and is not the one that was certified."""
    model, certificate = open_bytes(changed(content, ("parameters", "C"), 2.0))
    assert model.C == 2.0
    assert "fingerprint" in assay.verify(certificate, model, X, Y).reason


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


FORGED_ARRAYS = {
    "huge": (
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        "not what its header says",
    ),
    "objects": (
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"),
        "another header",
    ),
    "big ends": (npy("{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", bytes(8)), "another header"),
    "by columns": (npy("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }", bytes(8)), "another header"),
    "negative": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"), "another header"),
    "rest": (
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9), }", b"x"),
        "not what its header says",
    ),
    "code": (npy("__import__('os').system('x')"), "another header"),
    "pickle": (b"\x80\x04\x95", "another header"),
    "empty": (b"", "another header"),
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
    info = zipfile.ZipInfo("arrays/1.npy")
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
        (archive_with(("manifest.json", b'{"format": "assay-model/1"}')), "reads 'assay-model/2'"),
        (archive_with(("manifest.json", b'{"format": NaN}')), "not a JSON number"),
        (archive_with(("manifest.json", b'{"format": 1, "format": 2}')), "repeats a key"),
        (archive_with(("manifest.json", b"[" * 10**6)), "nested"),
        (archive_with(("manifest.json", b'{"format": "assay-model/2", "members": {}}')), "no model"),
    ],
)
def test_broken_archives_are_refused_with_a_reason(data, reason, open_bytes):
    with pytest.raises(ModelFileError, match=reason):
        open_bytes(data)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members_are_refused(content, open_bytes):
    twice = io.BytesIO(content)
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("model.json", b"{}")
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
    """Past the hashes, mutated records, arrays and certificates meet the readers and the checker."""
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
    assert all(np.array_equal(again.split[name], certificate.split[name]) for name in ("train", "holdout"))


@pytest.mark.parametrize("rows", [5, 8, 1000])
def test_a_split_is_a_bit_for_each_row(rows, fitted):
    held = np.flatnonzero(np.random.default_rng(rows).random(rows) < 0.3)
    split = {"train": np.setdiff1d(np.arange(rows), held), "holdout": held, "seed": np.array([7])}
    text = to_json(replace(fitted[1], split=split))
    record = json.loads(text)["split"]
    bits = "".join(f"{byte:08b}" for byte in base64.b64decode(record["holdout"]))
    assert [i for i, bit in enumerate(bits) if bit == "1"] == held.tolist()
    assert len(bits) == -(-rows // 8) * 8
    assert all(np.array_equal(from_json(text).split[name], split[name]) for name in split)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), "assay-certificate/9", "format"),
        (("extra",), 1, "unknown"),
        (("data", "train", "rows"), True, "expected int"),
        (("data", "train", "rows"), 1.5, "expected int"),
        (("delta_total",), "2", "decimal number"),
        (("delta_total",), "1e-999999999", "decimal number"),
        (("delta_total",), "NaN", "decimal number"),
        (("claims", 0, "value"), "1", "expected float"),
        (("claims", 0, "value"), 10**400, "expected float"),
        (("claims", 0, "template"), None, "expected str"),
        (("claims", 0, "template"), "data.identity", "is not one"),
        (("claims", 0, "witness"), {"a": {"dtype": "|O", "shape": [1], "base64": ""}}, "array type"),
        (("claims", 0, "witness"), {"a": {"dtype": "<f8", "shape": [2**60], "base64": ""}}, "does not match"),
        (("claims", 0, "witness"), {"a": {"dtype": "<f8", "shape": [-1], "base64": ""}}, "does not match"),
        (("claims", 0, "witness"), {"a": {"dtype": "<f8", "shape": [1], "base64": "!!"}}, "base64"),
        (("split", "holdout"), [1, 2], "expected str"),
        (("split", "rows"), 10**9, "does not match"),
        (("split", "rows"), -8, "does not match"),
        (("split", "seed"), 1.5, "expected int"),
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
