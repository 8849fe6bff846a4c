"""What every learner of the registry is: its task, its kind of learning, and how it meets bad rows."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_clusterer, is_outlier_detector, is_regressor

import assay
from assay.registry import kinds
from tests.contract.test_contract import example, small

LEARNERS = pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)


def quiet(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


@pytest.mark.mission("CON-46")
@LEARNERS
def test_each_task_answers_to_its_name(learner):
    model, task = example(learner), learner.card.task
    assert is_classifier(model) == (task == "classify")
    assert is_regressor(model) == (task == "regress")
    assert is_clusterer(model) == (task == "cluster")
    if task == "transform":
        assert hasattr(model, "transform")
    if task == "density":
        assert is_outlier_detector(model) or hasattr(model, "score_samples")


@pytest.mark.mission("CON-39")
@LEARNERS
def test_kinds_are_those_of_the_interface(learner):
    model = example(learner)
    X, y = small(model)
    found = kinds(learner)
    assert len(found & {"supervised", "unsupervised"}) == 1
    if "unsupervised" in found:
        quiet(lambda: clone(model).fit(X))
    else:
        with pytest.raises((ValueError, TypeError)):
            quiet(lambda: clone(model).fit(X, None))
    assert ("online" in found) == hasattr(model, "partial_fit")
    if "online" in found:
        options = {"classes": np.unique(y)} if is_classifier(model) else {}
        once = quiet(lambda: clone(model).set_params(random_state=0).partial_fit(X[:45], y[:45], **options))
        before = once.coef_.copy()
        quiet(lambda: once.partial_fit(X[45:], y[45:]))
        assert not np.array_equal(before, once.coef_)


@pytest.mark.mission("CON-01")
@LEARNERS
def test_rows_are_remembered_and_bad_ones_refused(learner):
    model = example(learner)
    X, y = small(model)
    found = quiet(lambda: clone(model).fit(X, y))
    assert found.n_features_in_ == 4
    if is_classifier(model):
        assert set(found.classes_) == set(y)
        with pytest.raises(ValueError, match=r"label|class"):
            found.certify(X, np.where(np.arange(len(y)) == 3, "quince", y.astype("<U6")))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        found.predict(X[:, :3]) if hasattr(found, "predict") else found.transform(X[:, :3])
    with pytest.raises(ValueError, match=r"[Ee]xpected 2D array|Reshape|2D"):
        quiet(lambda: clone(model).fit(X[:, 0], y))
    if "supervised" in kinds(learner):
        with pytest.raises(ValueError, match=r"inconsistent|length|rows"):
            quiet(lambda: clone(model).fit(X, y[:-1]))
    spoilt = X.copy()
    spoilt[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"inf"):
        quiet(lambda: clone(model).fit(spoilt, y))
