"""What a certificate is bound to: the whole table it splits, rows that were really held out, the problem it names."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.claims.claim import Claim
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron


def noise(seed=0, n=400, d=3):
    """Labels that have nothing to do with the columns: every classifier errs on half of new rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


def test_hold_out_errors_cannot_be_dropped_from_the_split():
    X, y = noise()
    held, kept = np.arange(200, 400), np.arange(200)
    model = LogisticRegression().fit(X[kept], y[kept])
    honest = model.certify(X, y, holdout=held)
    assert assay.verify(honest, model, X, y).holds
    right = held[model.predict(X[held]) == y[held]]
    flattering = model.certify(X[np.r_[kept, right]], y[np.r_[kept, right]], holdout=np.arange(200, 200 + len(right)))
    forged = replace(flattering, split={"train": kept, "holdout": right})
    report = assay.verify(forged, model, X, y)
    assert not report.holds
    assert "leaves out" in report.reason


@pytest.mark.parametrize("order", ["same rows", "some of them", "shuffled"])
def test_training_rows_are_no_hold_out_rows(order):
    X, y = noise(n=60, d=30)
    pick = {
        "same rows": np.arange(60),
        "some of them": np.arange(30),
        "shuffled": np.random.default_rng(1).permutation(60),
    }
    again = X[pick[order]], y[pick[order]]
    model = LogisticRegression(C=100.0).fit(X, y)
    assert not assay.verify(model.certify(X, y, holdout=again), model, X, y, holdout=again).holds


def test_repeated_rows_of_discrete_data_are_no_proof_of_cheating():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (300, 3)).astype(float), rng.integers(0, 2, 300)
    model = LogisticRegression().fit(X[:200], y[:200])
    certificate = model.certify(X[:200], y[:200], holdout=(X[200:], y[200:]))
    assert assay.verify(certificate, model, X[:200], y[:200], holdout=(X[200:], y[200:])).holds


def test_comparing_regressions_is_paid_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = X[:, 0] + rng.normal(size=600)
    model = LinearRegression().fit(X[:300], y[:300])
    held = (X[300:], y[300:])
    alone = model.certify(X[:300], y[:300], holdout=held, clip=4.0)
    tried = model.certify(X[:300], y[:300], holdout=held, clip=4.0, compared=[model.predict(held[0])] * 20)
    assert tried.find("holdout.betting").value > alone.find("holdout.betting").value
    assert "20 models" in tried.find("holdout.betting").statement
    assert tried.delta_total == alone.delta_total
    assert assay.verify(tried, model, X[:300], y[:300], holdout=held).holds
    cheap = replace(tried, claims=tuple(_unpaid(claim) for claim in tried.claims))
    report = assay.verify(cheap, model, X[:300], y[:300], holdout=held)
    assert report.holds  # the same value at compared = 1 is a weaker statement, and true


def _unpaid(claim: Claim) -> Claim:
    return replace(claim, params={**claim.params, "compared": 1}) if "compared" in claim.params else claim


def test_the_sentence_names_the_problem():
    line, sides = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    with pytest.warns(UserWarning, match="mistakes"):
        model = Perceptron(fit_intercept=False, max_iter=5).fit(line, sides)
    assert "through the origin" in model.certify(line, sides).find("inseparability").statement
    X, y = noise()
    weighted = LogisticRegression(C=0.5, class_weight={0: 2.0, 1: 3.0}).fit(X, y)
    text = weighted.certify(X, y).find("duality-gap").statement
    assert "C = 0.5" in text
    assert "2, 3" in text
    assert "free intercept" in text
