"""AdaBoost as a member: how the checker reads its probabilities and its score, with the error of the reading."""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import assay
from assay.checker.family import read_model
from assay.checker.record import Rejected
from assay.checker.rules.members import BALANCE, BOOSTED, COUNTS, LOGISTIC, Reading
from assay.ensemble import AdaBoostClassifier, StackingClassifier, VotingClassifier
from assay.imbalance import CostClassifier, ThresholdClassifier
from assay.linear_model import LogisticRegression
from assay.multiclass import OneVsOneClassifier, OneVsRestClassifier


def table(name):
    X, y = {"iris": load_iris, "cancer": load_breast_cancer}[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


MEMBERS = [("boosted", AdaBoostClassifier(n_estimators=12)), ("linear", LogisticRegression())]
MANY = np.ones((3, 3)) - np.eye(3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["iris", "cancer"])
@pytest.mark.parametrize(
    ("model", "links"),
    [
        (VotingClassifier(MEMBERS, voting="soft"), [BOOSTED, LOGISTIC]),
        (VotingClassifier(MEMBERS, voting="soft", rule="majority"), [BOOSTED, LOGISTIC]),
        (StackingClassifier(MEMBERS, cv=2), [BOOSTED, LOGISTIC]),
        (ThresholdClassifier(AdaBoostClassifier(n_estimators=9)), [BOOSTED]),
        (OneVsRestClassifier(AdaBoostClassifier(n_estimators=5)), [BALANCE]),
        (OneVsOneClassifier(AdaBoostClassifier(n_estimators=5)), [BALANCE]),
    ],
    ids=["soft", "majority", "stacking", "threshold", "rest", "pairs"],
)
def test_models_with_boosted_members_are_certified(model, links, name):
    X, y = table(name)
    cut = len(y) * 2 // 3
    model = model.fit(X[:cut], y[:cut])
    assert model.links_.tolist() == np.resize(links, len(model.links_)).tolist()
    given = {"holdout": (X[cut:], y[cut:])}
    found = model.certify(X[:cut], y[:cut], **given)
    report = assay.verify(found, model, X[:cut], y[:cut], **given)
    assert report.holds, report.reason
    wrong = [one for one in found.claims if one.name == "train.errors"]
    assert wrong[-1].params["low"] <= np.sum(model.predict(X[cut:]) != y[cut:]) <= wrong[-1].value


@pytest.mark.filterwarnings("ignore")
def test_a_cost_classifier_of_boosted_votes():
    X, y = table("iris")
    model = CostClassifier(AdaBoostClassifier(n_estimators=9), MANY).fit(X[:90], y[:90])
    given = {"holdout": (X[90:], y[90:])}
    assert assay.verify(model.certify(X[:90], y[:90], **given), model, X[:90], y[:90], **given).holds


@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_the_reading_is_the_formula_within_its_error(name):
    """In 50 digits, and with the alphas of the member itself: P(k | x) ~ exp(K F_k / (W (K - 1)^2))."""
    X, y = table(name)
    model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    predictor = read_model(model.stored(), any_size=True)
    K, at = len(model.classes_), X[:40]
    values, errors = Reading(predictor, BOOSTED, K).values(at)
    np.testing.assert_allclose(values, model.predict_proba(at), rtol=0, atol=1e-13)
    votes = np.stack([one.predict(at) for one in model.estimators_], axis=1)
    alphas = [Decimal(alpha) for alpha in model.estimator_weights_.tolist()]
    with localcontext(prec=50):
        for i, row in enumerate(votes):
            F = [sum((a for a, vote in zip(alphas, row) if vote == k), Decimal(0)) for k in range(K)]
            terms = [(K * f / (sum(alphas) * (K - 1) ** 2)).exp() for f in F]
            for k in range(K):
                off = abs(terms[k] / sum(terms) - Decimal(float(values[i, k])))
                assert off <= Decimal(float(errors[i, k])) < Decimal("1e-10")
    if K == 2:
        reading = Reading(predictor, BALANCE, 2)
        balance, slack = reading.values(at)
        np.testing.assert_allclose(balance[:, 0], model.decision_function(at), rtol=0, atol=1e-13)
        assert np.all(np.abs(balance[:, 0] - model.decision_function(at)) <= slack[:, 0])


class Fixed:
    """A predictor with given scores."""

    binary, kind = False, ""

    def __init__(self, scores):
        self.given = np.asarray(scores, dtype=float)

    def scores(self, X, largest):
        return self.given, np.full(self.given.shape[1], 1e-14)

    def row_errors(self, X):
        return np.full(self.given.shape, 1e-14)


@pytest.mark.parametrize("link", [COUNTS, BALANCE, BOOSTED])
def test_negative_scores_divided_by_a_sum_that_nearly_vanishes_decide_nothing(link):
    """s = (1e6, -1e6 + 1e-9): the quotients have no digit that rounding leaves alone."""
    reading = Reading(Fixed([[1e6, -1e6 + 1e-9]]), link, 2)
    _, error = reading.values(np.zeros((1, 1)))
    assert error.min() >= 1


class TestForged:
    X, y = table("cancer")

    @pytest.fixture
    def model(self):
        return VotingClassifier(MEMBERS, voting="soft").fit(self.X[:380], self.y[:380])

    def other(self, model, links):
        stored = model.stored()
        return replace(stored, arrays={**stored.arrays, "links_": np.asarray(links, dtype=np.int64)})

    @pytest.mark.parametrize("links", [[7, 7], [8, 2], [9, 2], [5, 2], [7, 8], [[7, 2]]])
    def test_links_that_do_not_go_with_their_members(self, model, links):
        with pytest.raises(Rejected):
            read_model(self.other(model, links))

    @pytest.mark.parametrize("link", [LOGISTIC, COUNTS])
    def test_another_reading_of_the_votes_is_another_model(self, model, link):
        """Softmax of the raw votes, or their shares, would let the boosted member outvote the other one."""
        right, forged = read_model(model.stored()), read_model(self.other(model, [link, LOGISTIC]))
        largest = np.abs(self.X).max(axis=0)
        assert np.abs(right.scores(self.X, largest)[0] - forged.scores(self.X, largest)[0]).max() > 0.1
        found = model.certify(self.X[:380], self.y[:380])
        changed = VotingClassifier(MEMBERS, voting="soft").fit(self.X[:380], self.y[:380])
        changed._links = np.array([link, LOGISTIC])
        assert not assay.verify(found, changed, self.X[:380], self.y[:380]).holds

    def test_a_file_with_another_reading_is_not_loaded(self, model, tmp_path):
        changed = VotingClassifier(MEMBERS, voting="soft").fit(self.X[:380], self.y[:380])
        changed._links = np.array([COUNTS, LOGISTIC])
        assay.save(changed, tmp_path / "model.assay")
        with pytest.raises(ValueError, match="contradict"):
            assay.load(tmp_path / "model.assay")
