"""CalibratedClassifierCV against scikit-learn's, by definition, by certificate, and its claim against a known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn import calibration as peer
from sklearn import linear_model as scikit_linear
from sklearn import naive_bayes as scikit_bayes
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import assay
from assay.calibration import CalibratedClassifierCV
from assay.calibration._calibrated import calibration_error_upper
from assay.calibration._maps import fit_maps
from assay.linear_model import LogisticRegression
from assay.naive_bayes import GaussianNB
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier

BASES = {
    "probabilities": (GaussianNB(), scikit_bayes.GaussianNB()),
    "scores": (
        LogisticRegression(tol=1e-12),
        scikit_linear.LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000),
    ),
}
METHODS = ("sigmoid", "isotonic", "temperature")


def rows(classes, n=900):
    X, y = make_classification(n, 6, n_informative=4, n_classes=classes, flip_y=0.1, random_state=classes)
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


@pytest.mark.parametrize("ensemble", [True, False], ids=["ensemble", "one"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("base", sorted(BASES))
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_scikit_learns(classes, base, method, ensemble):
    X, y, new, _ = rows(classes)
    ours, theirs = BASES[base]
    names = np.array(["b", "c", "a"])[y]
    weight = 0.5 + np.arange(len(y)) % 3
    model = CalibratedClassifierCV(ours, method=method, ensemble=ensemble, cv=4).fit(X, names, weight)
    expected = peer.CalibratedClassifierCV(theirs, method=method, ensemble=ensemble, cv=4).fit(X, names, weight)
    atol = 1e-3 if method == "isotonic" and base == "scores" else 1e-5  # the steps are as steep as scores are near
    np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(new), atol=atol, rtol=0)
    assert np.mean(model.predict(new) == expected.predict(new)) > 0.99
    estimator = model.to_sklearn()
    assert type(estimator) is peer.CalibratedClassifierCV
    np.testing.assert_allclose(estimator.predict_proba(new), model.predict_proba(new), atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_maps_are_at_their_minimum(size):
    random = np.random.default_rng(0)
    t, weight = random.normal(size=300), random.uniform(0.5, 2.0, 300)
    positive = random.random(300) < expit(2 * t - 0.5)
    (points,) = fit_maps("sigmoid", size * t[:, None], positive.astype(int), np.arange(2), weight, False).points
    a, b = points[0] * [size, 1.0]
    above, below = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))
    slope = weight * (expit(-(a * t + b)) - target)
    np.testing.assert_allclose([slope @ t, slope.sum()], 0, atol=1e-9)

    z, codes = random.normal(size=(300, 4)), random.integers(0, 4, 300)
    z[np.arange(300), codes] += 1.0
    (points,) = fit_maps("temperature", z, codes, np.arange(4), weight, False).points
    losses = [
        -weight @ np.log(softmax(points[0, 0] * factor * z, axis=1)[np.arange(300), codes])
        for factor in (0.999, 1.0, 1.001)
    ]
    assert losses[1] == min(losses)


def test_a_temperature_stays_within_its_bounds():
    z, codes = np.array([[5.0, 0.0], [0.0, 5.0]] * 4), np.array([0, 1] * 4)
    for answers, limit in ((codes, 10.0), (1 - codes, -10.0)):
        (points,) = fit_maps("temperature", z, answers, np.arange(2), None, False).points
        assert points[0, 0] == pytest.approx(math.exp(limit))


def recount(shares, y, bins=10):
    """The expected calibration error on rows, row by row."""
    total = dict.fromkeys(range(bins), 0.0)
    for p, label in zip(shares.tolist(), y.tolist()):
        said, hit = (p[1], label == 1) if len(p) == 2 else (max(p), p.index(max(p)) == label)
        total[min(bins - 1, max(0, int((said - 2.0**-20) * bins)))] += hit - said
    return sum(map(abs, total.values())) / len(y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("base", [*sorted(BASES), "leaves"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_certificate_holds_and_forgeries_do_not(classes, base, method, tmp_path):
    X, y, new, truth = rows(classes)
    estimator = DecisionTreeClassifier(max_depth=4, random_state=0) if base == "leaves" else BASES[base][0]
    model = CalibratedClassifierCV(estimator, method=method, cv=3).fit(X, y)
    certificate = model.certify(X, y, holdout=(new, truth), scores=True)
    assert assay.verify(certificate, model, X, y, holdout=(new, truth)).holds
    claim = certificate.find("calibration.error")
    shares, log = model.predict_proba(new), math.log(2 / float(claim.delta))
    hit = truth == 1 if classes == 2 else shares.argmax(axis=1) == truth
    squares = np.mean((hit - (shares[:, 1] if classes == 2 else shares.max(axis=1))) ** 2)
    m = len(truth)
    seen = recount(shares, truth)
    exact = seen + math.sqrt(2 * squares * log / (m - 1)) + 14 * log / (3 * (m - 1))
    assert exact <= claim.value < exact + 1e-6
    brier = np.mean(0.5 * ((shares - np.eye(classes)[truth]) ** 2).sum(axis=1))
    assert brier < certificate.find("holdout.betting").value < brier + 0.15

    assay.save(model, tmp_path / "m.assay", certificate=certificate)
    loaded = assay.load(tmp_path / "m.assay").model
    assert np.array_equal(loaded.predict_proba(new), shares)

    def holds(**changed):
        claims = [replace(one, **changed) if one.name == claim.name else one for one in certificate.claims]
        forged = replace(certificate, claims=tuple(claims))
        return assay.verify(forged, model, X, y, holdout=(new, truth)).holds

    assert holds(value=claim.value + 0.01)
    assert not holds(value=claim.value * 0.999)
    assert not holds(params={**claim.params, "bins": 400})
    assert not holds(params={**claim.params, "bins": 2000})
    assert not holds(params={**claim.params, "compared": 2})


def test_a_moved_map_is_noticed():
    X, y, new, truth = rows(2)
    model = CalibratedClassifierCV(GaussianNB()).fit(X, y)
    certificate = model.certify(X, y, holdout=(new, truth))
    model.maps_[0].points[0][0, 1] += 1e-3
    assert not assay.verify(certificate, model, X, y, holdout=(new, truth)).holds


def test_a_fitted_classifier_is_taken_as_it_is():
    X, y, new, truth = rows(3)
    names = np.array(["low", "mid", "top"])
    fitted = LogisticRegression().fit(X[:200], names[y[:200]])
    model = CalibratedClassifierCV(FrozenEstimator(fitted), method="temperature").fit(X[200:], names[y[200:]])
    assert len(model.calibrated_classifiers_) == 1
    assert np.array_equal(model.predict(new), fitted.predict(new))  # a temperature changes no decision
    certificate = model.certify(X[200:], names[y[200:]], holdout=(new, names[truth]))
    assert assay.verify(certificate, model, X[200:], names[y[200:]], holdout=(new, names[truth])).holds
    assert fitted.classes_.tolist() == ["low", "mid", "top"]


def test_what_the_checker_cannot_follow_has_no_certificate():
    X, y, new, truth = rows(3)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    for member in (pipeline, SVC()):
        model = CalibratedClassifierCV(member).fit(X, y)
        assert model.score(new, truth) > 0.6
        with pytest.raises(ValueError, match=r"does not know|not a learner of Assay"):
            model.certify(X, y)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = CalibratedClassifierCV(GaussianNB(), cv=KFold(3)).fit(X, y)  # each fold lacks one class or two
    assert np.all(model.predict_proba(X) >= 0)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match="knows fewer classes"):
        model.stored()


@pytest.mark.parametrize(
    "options", [{"method": "platt"}, {"ensemble": "maybe"}, {"estimator": StandardScaler()}], ids=str
)
def test_wrong_parameters_are_refused(options):
    X, y, *_ = rows(2, 60)
    with pytest.raises(ValueError, match=next(iter(options))):
        CalibratedClassifierCV(**options).fit(X, y)


def test_weights_without_a_reader_are_named():
    class Deaf(scikit_bayes.GaussianNB):
        def fit(self, X, y):
            return super().fit(X, y)

    X, y, *_ = rows(2, 120)
    with pytest.warns(UserWarning, match="does not accept sample_weight"):
        CalibratedClassifierCV(Deaf(), cv=2).fit(X, y, np.ones(len(y)))


def test_threads_change_no_bit():
    X, y, new, _ = rows(3)
    one, two = (CalibratedClassifierCV(GaussianNB(), method="isotonic", n_jobs=k).fit(X, y) for k in (1, 2))
    assert np.array_equal(one.predict_proba(new), two.predict_proba(new))


class World:
    """Rows of a few kinds: how often each comes, the probabilities that a model gives it, and the true ones."""

    def __init__(self, seed, classes, bend):
        random = np.random.default_rng(seed)
        self.often = random.dirichlet(np.ones(12))
        logits = random.normal(scale=2.0, size=(12, classes))
        self.shares, self.truth = softmax(logits, axis=1), softmax(bend * logits, axis=1)

    def error(self):
        """The expected calibration error, summed over the kinds of rows."""
        classes = self.shares.shape[1]
        told = self.shares[:, 1] if classes == 2 else self.shares.max(axis=1)
        true = self.truth[:, 1] if classes == 2 else self.truth[np.arange(12), self.shares.argmax(axis=1)]
        at = np.minimum(np.maximum(((told - 2.0**-20) * 10).astype(int), 0), 9)
        return np.abs(np.bincount(at, self.often * (true - told), minlength=10)).sum()

    def draw(self, random, m):
        kind = random.choice(12, m, p=self.often)
        codes = (random.random(m)[:, None] > np.cumsum(self.truth[kind], axis=1)).sum(axis=1)
        return self.shares[kind], np.minimum(codes, self.truth.shape[1] - 1)


@pytest.mark.parametrize("bend", [1.0, 0.3], ids=["calibrated", "bent"])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_bound_is_below_the_truth_no_more_often_than_delta(classes, bend, long):
    """Simulated: the bound fails in at most a share delta of the samples, and is near the truth."""
    world, random, delta = World(7, classes, bend), np.random.default_rng(classes), 0.1
    times, m = (5000, 400) if long else (600, 400)
    truth = world.error()
    bounds = np.array([calibration_error_upper(*world.draw(random, m), np.zeros(m), delta) for _ in range(times)])
    assert np.mean(bounds < truth) <= delta
    assert bounds.mean() < truth + 0.2
    assert calibration_error_upper(*world.draw(random, 40_000), np.zeros(40_000), delta) < truth + 0.02
