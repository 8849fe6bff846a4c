"""Scripts for scikit-learn, unchanged, with Assay's classes: the scripts, what falls back, pickles, and taking back."""

import copy
import logging
import pickle
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
import sklearn.cluster
import sklearn.kernel_ridge
import sklearn.linear_model
import sklearn.metrics
import sklearn.svm
import sklearn.tree
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils._param_validation import InvalidParameterError

import assay
from assay.patch import report, shared_names
from tests.patch_scripts import scripts

LONG = [pytest.param(one, marks=[pytest.mark.long] if one.long else [], id=one.title) for one in scripts()]
X, y = load_iris(return_X_y=True)
THEIRS = {"SVC": sklearn.svm.SVC}  # no name of this module, which would be replaced


@pytest.fixture
def patched():
    with assay.patch_sklearn() as names:
        yield names
    assert sklearn.svm.SVC is THEIRS["SVC"]


def test_there_are_sixty_scripts():
    assert len({one.title for one in scripts()}) >= 60


@pytest.mark.sampled(2)
@pytest.mark.parametrize("script", LONG)
def test_a_script_runs_unchanged(script):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    theirs = script.run()
    with assay.patch_sklearn():
        ours = script.run()
        assert not report().fallen_back or "only scikit-learn has" in script.title
    plt.close("all")
    np.testing.assert_allclose(ours, theirs, rtol=script.rtol, atol=script.atol)


def test_names_are_replaced_before_and_after_imports(monkeypatch):
    script = ModuleType("someone_s_script")
    script.Machine = THEIRS["SVC"]
    monkeypatch.setitem(sys.modules, "someone_s_script", script)
    with assay.patch_sklearn() as names:
        assert set(names.names) == set(shared_names())
        from sklearn.svm import SVC

        assert script.Machine is SVC is sklearn.svm.SVC is not THEIRS["SVC"]
        assert issubclass(SVC, assay.svm.SVC)
        assert SVC().fit(X, y).certify(X, y).claims
        assert sklearn.svm._classes.SVC is THEIRS["SVC"]
        script.late = SVC
    assert script.Machine is script.late is sklearn.svm.SVC is THEIRS["SVC"]


def test_some_names():
    assay.patch_sklearn(["SVC"])
    with assay.patch_sklearn(["SVC", "KMeans"]) as more:
        assert more.names == ("KMeans",)
        assert issubclass(sklearn.cluster.KMeans, assay.cluster.KMeans)
        assert report().patched == ("KMeans", "SVC")
    assert issubclass(sklearn.svm.SVC, assay.svm.SVC)
    assert sklearn.cluster.KMeans.__module__.startswith("sklearn")
    assay.unpatch_sklearn("SVC")
    assert sklearn.svm.SVC is THEIRS["SVC"]
    with pytest.raises(ValueError, match=r"no 'SVCs' for scikit-learn's\. Did you mean 'SVC'"):
        assay.patch_sklearn(["SVCs"])


def test_what_is_refused_is_scikit_learns_own(patched, caplog):
    model = sklearn.kernel_ridge.KernelRidge(0.1, kernel="precomputed")
    assert not type(model).__module__.startswith("sklearn")
    with caplog.at_level(logging.INFO, logger="assay.patch"):
        model.fit([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0])  # no inner products
    assert type(model).__module__ == "sklearn.kernel_ridge"
    assert isinstance(model, sklearn.kernel_ridge.KernelRidge)
    assert "KernelRidge: scikit-learn's own, because ValueError: KernelRidge: K + alpha I is not" in caplog.text
    assert list(report().fallen_back) == ["KernelRidge"]
    assert "1 x scikit-learn's own: ValueError" in str(report())


@pytest.mark.parametrize("kind", ["KernelRidge", "SGDClassifier"])  # defined in a public module, and in a private one
def test_objects_of_scikit_learn_are_pickled_and_copied_while_patched(kind):
    own = getattr(sklearn.kernel_ridge if kind == "KernelRidge" else sklearn.linear_model, kind)
    model, before = own().fit(X, y), own.__module__
    old = pickle.dumps(model)
    with assay.patch_sklearn():
        new = pickle.dumps(model)
        made = [pickle.loads(old), pickle.loads(new), copy.copy(model), copy.deepcopy(model), clone(model).fit(X, y)]
        assert b"assay" not in new
    made += [pickle.loads(new), pickle.loads(pickle.dumps(made[0]))]
    assert {type(one).__module__ for one in made} == {before}
    for one in made[:4] + made[5:]:  # copies lie elsewhere in memory, and BLAS may round a product otherwise there
        np.testing.assert_allclose(one.predict(X), model.predict(X), rtol=1e-9)


def test_defaults_are_those_of_the_class_that_fits(patched, monkeypatch):
    def refuse(*args, **options):
        raise ValueError("not today")

    monkeypatch.setattr(assay.patch._swap, "used", refuse)
    model = sklearn.linear_model.LogisticRegression(C=3, random_state=1).fit(X, y)
    assert (model.solver, model.max_iter, model.C, model.random_state) == ("lbfgs", 100, 3, 1)
    warm = sklearn.linear_model.LogisticRegression(solver="saga", max_iter=5).fit(X, y)
    assert (warm.solver, warm.max_iter) == ("saga", 5)


def test_what_both_refuse_has_scikit_learns_error_and_changes_nothing(patched):
    model = sklearn.svm.SVC(C=-1)
    with pytest.raises(InvalidParameterError, match="The 'C' parameter of SVC must be a float in the range"):
        model.fit(X, y)
    assert type(model) is sklearn.svm.SVC
    assert vars(model) == vars(sklearn.svm.SVC(C=-1))
    assert report().fallen_back == {}


def test_a_model_that_has_learnt_does_not_change_its_class(patched):
    model = sklearn.linear_model.SGDClassifier(random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)
    assert type(model) is sklearn.linear_model.SGDClassifier


def test_pickles_name_the_class_that_made_them(patched):
    model = sklearn.svm.SVC(C=2.0)
    assert type(pickle.loads(pickle.dumps(model))) is sklearn.svm.SVC  # a worker process falls back as this one does
    assert type(copy.deepcopy(model)) is type(clone(model.fit(X, y))) is sklearn.svm.SVC
    kept = pickle.dumps(model)
    assert b"assay.svm._svc" in kept
    assert b"assay.patch" not in kept
    code = f"import pickle; print(type(pickle.loads({kept!r})).__module__)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "assay.svm._svc"
    )
    again = pickle.loads(kept)
    assert isinstance(again, sklearn.svm.SVC)
    assert (again.predict(X) == model.predict(X)).all()


def test_a_model_is_saved_and_loaded(patched, tmp_path):
    model = sklearn.tree.DecisionTreeClassifier(max_depth=2).fit(X, y)
    certificate = model.certify(X, y)
    assay.save(model, tmp_path / "tree.assay", certificate)
    again, kept = assay.load(tmp_path / "tree.assay")
    assert type(again) is assay.tree.DecisionTreeClassifier
    assert assay.verify(kept, again, X, y).holds


def test_derived_classes_are_scikit_learns(patched):
    class Mine(sklearn.svm.SVC):
        def fit(self, X, y):
            return super().fit(X, y)

    assert THEIRS["SVC"] in Mine.__mro__
    assert isinstance(Mine().fit(X, y), sklearn.svm.SVC)
    assert issubclass(Mine, sklearn.svm.SVC)


def test_functions_fall_back_too(patched):
    found = sklearn.metrics.silhouette_score(X, y)
    with pytest.raises(ValueError, match="Number of labels is 1"):
        sklearn.metrics.silhouette_score(X, np.zeros(150))
    assert report().used["silhouette_score"].ours == 1
    assay.unpatch_sklearn(["silhouette_score"])
    assert sklearn.metrics.silhouette_score(X, y) == pytest.approx(found)


def test_a_script_at_the_terminal(tmp_path):
    (tmp_path / "beside.py").write_text("number = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom beside import number\nfrom sklearn.svm import SVC\nfrom sklearn.datasets import load_iris\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], number, SVC().fit(*load_iris(return_X_y=True)).certify is not None)\n"
    )
    command = [sys.executable, "-m", "assay.patch", "--report", "--names", "SVC", str(script), "--a", "b"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['--a', 'b'] 7 True\n"
    assert "1 names of scikit-learn are Assay's: SVC." in done.stderr
    assert "SVC" in done.stderr.splitlines()[-1]
