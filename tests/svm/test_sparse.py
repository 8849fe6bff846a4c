"""Kernel machines on SciPy matrices: the model of the dense rows, LIBSVM, certificate, file, refusals."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as libsvm

import assay
from assay import persist, svm
from assay.svm import SVC, _base

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
FORMS = (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array)


@pytest.fixture(scope="module")
def table():
    X = sp.random(150, 40, 0.15, format="csr", random_state=0)
    score = X @ np.random.default_rng(0).normal(size=40)
    return X, score


def machine(name, room=svm, **params):
    return getattr(room, name)(**({"nu": 0.3} if "Nu" in name or name == "OneClassSVM" else {}), **params)


def target(name, score):
    return (score > np.median(score)).astype(int) if "SVC" in name else score


@pytest.mark.mission("KER-28")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_every_sparse_form_gives_the_model_of_the_dense_rows(name, form, table):
    X, score = table
    y = target(name, score)
    sparse, dense = machine(name).fit(form(X), y), machine(name).fit(X.toarray(), y)
    assert isinstance(sparse.support_vectors_, sp.csr_matrix)
    np.testing.assert_array_equal(sparse.support_vectors_.toarray(), dense.support_vectors_)
    np.testing.assert_array_equal(sparse.dual_coef_.toarray(), dense.dual_coef_)
    np.testing.assert_allclose(sparse.predict(form(X)), dense.predict(X.toarray()), atol=1e-12)
    np.testing.assert_allclose(sparse.predict(X.toarray()), dense.predict(form(X)), atol=1e-12)


@pytest.mark.mission("KER-28")
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_libsvm_on_the_same_sparse_rows(name, kernel, table):
    X, score = table
    y = target(name, score)
    ours, theirs = (machine(name, room, kernel=kernel, tol=1e-6).fit(X, y) for room in (svm, libsvm))
    read = "predict" if "SVR" in name else "decision_function"
    np.testing.assert_allclose(getattr(ours, read)(X), getattr(theirs, read)(X), atol=1e-4)
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_.toarray(), theirs.coef_.toarray(), atol=1e-4)


@pytest.mark.mission("KER-28")
@pytest.mark.parametrize("name", NAMES)
def test_certificate_and_file_of_sparse_rows(name, table, tmp_path):
    X, score = table
    y = None if name == "OneClassSVM" else target(name, score)
    model = machine(name).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    assert assay.verify(certificate, machine(name).fit(X.toarray(), y), X.toarray(), y).holds  # one and the same model
    other = X.copy()
    other.data[0] += 1.0
    assert not assay.verify(certificate, model, other, y).holds
    persist.save(model, tmp_path / "model.assay", certificate)
    loaded, pickled = persist.load(tmp_path / "model.assay").model, pickle.loads(pickle.dumps(model))
    assert isinstance(pickled.support_vectors_, sp.csr_matrix)
    np.testing.assert_array_equal(loaded.support_vectors_, model.support_vectors_.toarray())
    for again in (loaded, pickled):
        assert assay.verify(certificate, again, X, y).holds
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_changed_sparse_support_vector_is_noticed(table):
    X, score = table
    y = target("SVC", score)
    model = SVC().fit(X, y)
    certificate = model.certify(X, y)
    model.support_vectors_.data[0] *= 2
    assert not assay.verify(certificate, model, X, y).holds
    model.support_vectors_.data[0] /= 2
    assert assay.verify(certificate, model, X, y).holds
    model.support_vectors_.indices[0] = 10_000  # reads beyond the columns, unless it is looked at
    assert not assay.verify(certificate, model, X, y).holds


def test_a_dense_copy_beyond_the_free_memory_is_refused(table, monkeypatch):
    X, score = table
    needed = 8 * X.shape[0] * X.shape[1]
    monkeypatch.setattr(_base, "free_memory", lambda: 2 * needed)
    SVC().fit(X, target("SVC", score))
    monkeypatch.setattr(_base, "free_memory", lambda: 2 * needed - 8)
    with pytest.raises(ValueError, match=r"SVC: .*dense copy .* 150 x 40 .*LinearSVC"):
        SVC().fit(X, target("SVC", score))


def test_sparse_gram_matrices_and_infinite_entries_are_refused(table):
    X, score = table
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(np.eye(150)), target("SVC", score))
    bad = X.copy()
    bad.data[3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        SVC().fit(bad, target("SVC", score))


@pytest.mark.parametrize("name", [*NAMES, "LinearSVC", "LinearSVR"])
def test_every_parameter_of_scikit_learn_is_there(name):
    theirs = inspect.signature(getattr(libsvm, name)).parameters
    assert set(theirs) <= set(inspect.signature(getattr(svm, name)).parameters)


@pytest.mark.parametrize("name", NAMES)
def test_verbose_prints_progress_and_the_end(name, table, capsys):
    X, score = table
    machine(name).fit(X, target(name, score))
    assert capsys.readouterr().out == ""
    model = machine(name, verbose=True).fit(X, target(name, score))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{name}: iteration 1: dual objective ")
    assert lines[-1].startswith(f"{name}: converged, {len(model.support_)} support vectors, ")
    with pytest.raises(ValueError, match="verbose"):
        machine(name, verbose=-1).fit(X, target(name, score))
