"""What certificates of naive Bayes say, and what happens to those who forge them."""

import dataclasses
import warnings

import numpy as np
import pytest

import assay
from assay import naive_bayes as nb
from assay.checker.family import read_model
from assay.learning import learn
from tests.tree.melons import melons_with_gaps

LEARNERS = [nb.GaussianNB, nb.MultinomialNB, nb.ComplementNB, nb.BernoulliNB, nb.CategoricalNB, nb.MixedNB]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    return rng.poisson(1 + y[:, None] % [1, 2, 2, 2, 2]).clip(0, 3).astype(float), y


def claim(certificate, code):
    return next(one for one in certificate.claims if one.name == code)


def holds(model, certificate, X, y, **more):
    return assay.verify(certificate, model, X, y, **more).holds


@pytest.mark.mission("BAY-09")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: one.__name__)
class TestCounts:
    def test_they_are_those_of_the_rows(self, learner, rows):
        X, y = rows
        certificate = (model := learner().fit(X, y)).certify(X, y)
        assert claim(certificate, "counts.mle").value == 0.0
        assert "exactly those of the 2000 training rows" in str(certificate)
        assert holds(model, certificate, X, y)

    def test_of_weighted_rows_up_to_rounding(self, learner, rows):
        X, y = rows
        weight = np.random.default_rng(1).uniform(0, 2, len(y))
        model = learner().fit(X, y, sample_weight=weight)
        certificate = model.certify(X, y, sample_weight=weight)
        assert claim(certificate, "counts.mle").value == 1e-9
        assert holds(model, certificate, X, y, sample_weight=weight)

    def test_rows_in_parts_are_certified_together(self, learner, rows):
        X, y = rows
        model = learner().partial_fit(X[:900], y[:900], classes=[0, 1]).partial_fit(X[900:], y[900:])
        assert holds(model, model.certify(X, y), X, y)

    def test_one_row_more_or_less_is_found(self, learner, rows):
        X, y = rows
        model = learner().fit(X, y)
        name = "class_count_" if learner is nb.GaussianNB else "level_counts_"
        name = name if hasattr(model, name) else "feature_count_"
        if learner is nb.MixedNB:
            model = learner(nominal=[0, 1]).fit(X, y)
        counts = np.array(getattr(model, name))
        counts.flat[0] += 1
        setattr(model, name, counts)
        assert not holds(model, model.certify(X, y), X, y)

    def test_the_class_probabilities_are_what_is_said(self, learner, rows):
        X, y = rows
        model = learner().fit(X, y)
        model.class_prior_ = np.array([0.6, 0.4])
        assert not holds(model, model.certify(X, y), X, y)

    def test_a_bound_by_the_size_of_the_class(self, learner, rows):
        X, y = np.tile(rows[0], (20, 1)), np.tile(rows[1], 20)
        certificate = (model := learner().fit(X, y)).certify(X, y)
        bound = claim(certificate, "vc")
        least = {nb.GaussianNB: 11, nb.CategoricalNB: 16, nb.MixedNB: 16}.get(learner, 6)
        assert bound.params["class"] == {"class": "function-space", "dimension": least, "classes": 2}
        assert holds(model, certificate, X, y)
        smaller = dataclasses.replace(bound, params=bound.params | {"class": bound.params["class"] | {"dimension": 5}})
        forged = [smaller if one is bound else one for one in certificate.claims]
        assert not holds(model, dataclasses.replace(certificate, claims=tuple(forged)), X, y)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: one.__name__)
def test_the_checker_predicts_alike(learner, rows):
    X, y = rows
    model = learner(**{"nominal": [0, 3]} if learner is nb.MixedNB else {}).fit(X, y)
    scores, errors = read_model(model.stored()).scores(X, X.max(axis=0))
    assert np.all(np.abs(scores - model.predict_joint_log_proba(X)) <= errors + 1e-10)
    assert errors.max() < 1e-9


@pytest.mark.parametrize("learner", [nb.MultinomialNB, nb.BernoulliNB, nb.CategoricalNB])
def test_probabilities_of_zero_are_certified(learner, rows):
    X, y = rows
    X = np.column_stack([X, y, 1 - y])  # each class has a column of its own
    with pytest.warns(nb.ZeroProbabilityWarning):
        model = learner(alpha=0.0).fit(X, y)
    held = X[:50].copy()
    held[:5, -1], held[:5, -2] = 1, 1  # such rows no class can have produced
    certificate = model.certify(X, y, holdout=(held, y[:50]))
    assert holds(model, certificate, X, y, holdout=(held, y[:50]))
    assert claim(certificate, "train.errors").value == 0


class TestMoments:
    def test_wrong_ones_are_found(self, rows):
        X, y = rows
        model = nb.GaussianNB().fit(X, y)
        for name, factor in (("theta_", 1 + 1e-5), ("var_", 1 + 1e-5)):
            before = getattr(model, name)
            setattr(model, name, before * factor)
            assert not holds(model, model.certify(X, y), X, y), name
            setattr(model, name, before)
        assert holds(model, model.certify(X, y), X, y)

    def test_what_is_added_is_part_of_the_variance(self, rows):
        X, y = rows
        model = nb.GaussianNB(var_smoothing=0.5).fit(X, y)
        assert holds(model, model.certify(X, y), X, y)
        model.added_ = model.added_ / 2
        assert not holds(model, model.certify(X, y), X, y)

    def test_the_other_divisor(self, rows):
        X, y = rows
        X = np.where(np.random.default_rng(2).uniform(size=X.shape) < 0.1, np.nan, X)
        model = nb.MixedNB(ddof=1).fit(X, y)
        certificate = model.certify(X, y)
        assert claim(certificate, "gaussian-nb.mle").params["ddof"] == 1
        assert holds(model, certificate, X, y)
        model.set_params(ddof=0)
        assert not holds(model, model.certify(X, y), X, y)

    def test_equal_values_have_no_variance(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = nb.GaussianNB(var_smoothing=0.0).fit([[1.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        gaps = [one.name for one in model.certify([[1.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).not_applicable]
        assert "gaussian-nb.mle" in gaps


@pytest.mark.parametrize(
    ("learner", "name", "wrong"),
    [
        (nb.GaussianNB, "var_", -1.0),
        (nb.GaussianNB, "class_prior_", 0.9),
        (nb.MultinomialNB, "feature_count_", -1.0),
        (nb.BernoulliNB, "feature_count_", 1e6),
        (nb.CategoricalNB, "level_values_", 3.0),
        (nb.CategoricalNB, "level_counts_", -2.0),
        (nb.MixedNB, "n_levels_", -2),
    ],
)
def test_arrays_that_are_no_model(learner, name, wrong, rows):
    X, y = rows
    model = learner().fit(X, y)
    stored = model.stored()
    array = np.array(stored.arrays[name])
    array.flat[0] = wrong
    forged = dataclasses.replace(stored, arrays={**stored.arrays, name: array})
    with pytest.raises(assay.checker.record.Rejected):
        read_model(forged)


def test_learn_hands_over_levels_and_gaps():
    X, y = melons_with_gaps()
    X = X.loc[np.tile(np.arange(17), 6)].reset_index(drop=True)
    X["good"] = np.tile(y, 6)
    found = learn(X, "good", learners=["MixedNB"], workers=0, trials=1)
    assert (found.model.learner.n_levels_ > 0).all()
    seen = found.model.encode(found.table)[0]
    assert seen.shape[1] == 6
    assert np.isnan(seen).any()
