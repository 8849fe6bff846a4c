"""Do certificates of votes that reject, and of costs at chosen thresholds, keep their promise? Known truth, end to
end."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from assay.ensemble import VotingClassifier
from assay.imbalance import CostClassifier
from assay.linear_model import LogisticRegression
from tests.certificate.test_validity import DELTAS, tally
from tests.certificate.test_validity_holdout import rows, sign_of_first

TRAIN = rows(np.random.default_rng(0), 20)
REPETITIONS = 40
SHARES = np.array([0.5, 0.625, 0.75, 0.875])  # on the grid
BETWEEN = SHARES + 0.01


def true_risk(share):
    """Return P[wrong | decided]: the score is N(-1, 1) or N(1, 1), a row is decided if |score| > logit(share)."""
    cut = np.log(share / (1 - share))
    return norm.cdf(-cut - 1) / (norm.cdf(-cut - 1) + norm.sf(cut - 1))


def chosen_share(rng, shares=SHARES, held=80):
    """selective.risk at the share that looks best on the very hold-out rows."""
    model = VotingClassifier([("sign", LogisticRegression())], voting="soft", rule="majority", n_jobs=1)
    model.fit(*TRAIN)
    model._keep([sign_of_first()])
    Xh, yh = rows(rng, held)
    p = model.vote_shares(Xh).max(axis=1)
    wrong = model.classes_[model.vote_shares(Xh).argmax(axis=1)] != yh
    best = min(shares, key=lambda t: wrong[p > t].mean() if np.any(p > t) else 1.0)
    model.share = float(best)

    def judge(delta):
        found = model.certify(*TRAIN, holdout=(Xh, yh), delta=delta, hypothesis_class_fixed=False, scores=True)
        limit = min([one.value for one in found.claims if one.name == "selective.risk"], default=1.0)
        return limit < true_risk(best), limit < 1

    return judge


def fixed_share(rng, share=0.7, held=80):
    """selective.fixed at a share that was fixed before the hold-out rows were drawn."""
    model = VotingClassifier([("sign", LogisticRegression())], voting="soft", rule="majority", n_jobs=1, share=share)
    model.fit(*TRAIN)
    model._keep([sign_of_first()])
    holdout = rows(rng, held)

    def judge(delta):
        found = model.certify(*TRAIN, holdout=holdout, delta=delta, hypothesis_class_fixed=False)
        limit = min([one.value for one in found.claims if one.name == "selective.fixed"], default=1.0)
        return limit < true_risk(share), limit < 1

    return judge


def chosen_share_between(rng):
    return chosen_share(rng, BETWEEN, 200)


COSTS = np.array([[0.0, 1.0], [3.0, 0.0]])


def chosen_threshold(rng):
    """cost.chosen: the posterior is known, so is the cost of every threshold; the best of 99 on 50 rows is taken."""
    y = rng.integers(0, 2, 50)
    X = np.column_stack([rng.normal(size=50) + 2.0 * y - 1.0, np.zeros(50)])
    model = CostClassifier(LogisticRegression(), COSTS, choose="holdout", holdout=0.5, n_jobs=1).fit(X, y)
    model._keep([sign_of_first()])  # a fixed classifier: all rows are rows that it was not fitted to
    from assay.checker.families.thresholds import matrices

    options = matrices(model.cost_)
    paid = [COSTS[y, (model.predict_proba(X) @ one).argmax(axis=1)].mean() for one in options]
    best = int(np.argmin(paid))
    model.matrix_, model.held_ = options[best], np.arange(50)  # the first fifty of any permutation of fifty rows
    cut = np.log((best + 1) / 100 / (1 - (best + 1) / 100))
    truth = 0.5 * norm.sf(cut + 1) + 1.5 * norm.cdf(cut - 1)

    def judge(delta):
        limit = min(
            [one.value for one in model.certify(X, y, delta=delta).claims if one.name == "cost.chosen"], default=3.0
        )
        return limit < truth, limit < 3

    return judge


HONEST = [fixed_share, chosen_share, chosen_share_between, chosen_threshold]


@DELTAS
@pytest.mark.parametrize("run", HONEST, ids=lambda run: run.__name__)
def test_statements_keep_their_promise(run, delta):
    violations, informative = tally(run, seed=900 + HONEST.index(run), repetitions=REPETITIONS)[delta]
    assert violations <= binom.isf(1e-6, REPETITIONS, delta)
    assert informative >= 0.5
