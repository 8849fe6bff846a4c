"""Certificates of learners that see X alone: y is neither read nor part of the fingerprint."""

import json
from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.decomposition import KernelPCA
from assay.guarantees.fingerprint import data_reference
from assay.linear_model import Ridge
from assay.scan import rows
from assay.svm import OneClassSVM


def table(n=50, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("model", [KernelPCA(2, kernel="rbf"), OneClassSVM()], ids=lambda one: type(one).__name__)
def test_y_plays_no_part(model):
    X = table()
    y = np.array(["a", "b"] * 25)
    model.fit(X, y)
    with_y, without = model.certify(X, y), model.certify(X)
    assert with_y.data["train"] == without.data["train"]
    for certificate in (with_y, without):
        for given in (None, y, X[:, 0]):
            report = assay.verify(certificate, model, X, given)
            assert report.holds, report.reason
    changed = X.copy()
    changed[7, 1] += 1e-12
    assert not assay.verify(without, model, changed).holds
    assert not assay.verify(without, model, X[:-1]).holds


def test_hold_out_rows_by_number_and_as_a_pair():
    X = table()
    model = OneClassSVM().fit(X[:40])
    by_number = model.certify(X, holdout=np.arange(40, 50))
    assert assay.verify(by_number, model, X).holds
    pair = model.certify(X[:40], holdout=(X[40:], None))
    assert assay.verify(pair, model, X[:40], holdout=(X[40:], None)).holds
    assert pair.data["holdout"].digest == by_number.data["holdout"].digest


def test_fingerprint_is_that_of_the_specification():
    """The digest by hand: header with no targets, then one chunk of X (and weights)."""
    import hashlib

    X, weight = table(10), np.arange(10.0)
    for s in (None, weight):
        header = {"columns": 3, "labels": None, "rows": 10, "targets": 0, "weights": s is not None}
        text = json.dumps(header, sort_keys=True, separators=(",", ":"))
        chunk = hashlib.sha256(X.tobytes() + (b"" if s is None else s.tobytes())).digest()
        digest = hashlib.sha256(b"assay-data/1\n" + text.encode() + b"\n" + chunk).hexdigest()
        assert data_reference(rows(X, None, s), None, has_target=False).digest == digest


def test_blocks_that_are_no_whole_chunks():
    """Two chunks, fed in blocks of another size on both sides."""
    X = table(5_000, 1_100)
    model = OneClassSVM(kernel="linear", max_iter=1)
    with pytest.warns(UserWarning, match="stopped"):
        model.fit(X[:, :2])
    certificate = model.certify(X[:, :2])
    assert assay.verify(certificate, model, X[:, :2]).holds
    wide = data_reference(rows(X), None, has_target=False)
    assert wide.digest == data_reference(rows(np.asfortranarray(X), X[:, 0]), None, has_target=False).digest


def test_a_learner_with_a_target_still_needs_it():
    X = table()
    with pytest.raises(ValueError, match="y is None"):
        Ridge().fit(X, None)
    model = Ridge().fit(X, X[:, 0])
    certificate = model.certify(X, X[:, 0])
    report = assay.verify(certificate, model, X)
    assert not report.holds
    assert "y is missing" in report.reason
    # A forger cannot get rid of y by naming a family that has none: the model has other arrays.
    other = replace(certificate, model=replace(certificate.model, family="expansion.map"))
    assert not assay.verify(other, model, X).holds


def test_parquet_without_a_target_column(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    X = table()
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({name: X[:, j] for j, name in enumerate("abc")}), path)
    model = KernelPCA(2).fit(str(path))
    np.testing.assert_array_equal(model.eigenvalues_, KernelPCA(2).fit(X).eigenvalues_)
    certificate = model.certify(str(path))
    assert certificate.data["train"].digest == model.certify(X).data["train"].digest
    assert assay.verify(certificate, model, X).holds
