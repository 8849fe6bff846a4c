"""How delta is shared among the statements of a certificate, and which of them is named as the tightest."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import assay
from assay.claims.claim import NotApplicable
from assay.guarantees.ledger import Prepared
from assay.linear_model import LogisticRegression


def made(delta):
    raise AssertionError("shares are fixed before a statement is made")


NOT_MADE = NotApplicable("vc", "for a reason")


@pytest.mark.parametrize(
    ("training", "holdout", "expected"),
    [
        ([made], [made], {0: "1/2", 1: "1/2"}),
        ([made] * 4, [made], {0: "1/8", 1: "1/8", 2: "1/8", 3: "1/8", 4: "1/2"}),
        ([made, NOT_MADE, made], [], {0: "1/2", 2: "1/2"}),
        ([NOT_MADE], [made, made], {1: "1/2", 2: "1/2"}),
        ([NOT_MADE], [NOT_MADE], {}),
    ],
)
def test_half_for_each_kind_of_rows(training, holdout, expected):
    found = Prepared(training, holdout).shares(Decimal("0.05"))
    assert {place: Fraction(share) for place, share in found.items()} == {
        place: Fraction("0.05") * Fraction(part) for place, part in expected.items()
    }


@pytest.mark.parametrize("delta", ["0.05", "0.1", "1e-30", "0.3333333333333333"])
def test_shares_never_exceed_delta_together(delta):
    for training in range(5):
        for holdout in range(5):
            found = Prepared([made] * training, [made] * holdout).shares(Decimal(delta))
            assert len(found) == training + holdout
            assert sum(map(Fraction, found.values()), Fraction(0)) <= Fraction(delta)


def test_the_tightest_statement_is_named_and_paid_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=1200) > 0).astype(int)
    model = LogisticRegression().fit(X[:900], y[:900])
    certificate = model.certify(X[:900], y[:900], holdout=(X[900:], y[900:]))
    rates = [claim for claim in certificate.claims if claim.quantity == "error rate"]
    assert len(rates) >= 2
    assert certificate.tightest.value == min(claim.value for claim in rates)
    spent = sum(Fraction(claim.delta) for claim in rates)
    assert spent + sum(Fraction(delta) for _, delta in certificate.unreported) <= Fraction("0.05")
    assert Fraction(certificate.find("holdout.binomial").delta) == Fraction("0.025")
    text = str(certificate)
    assert text.count("the tightest of the") == 1
    assert f"{certificate.tightest.statement} Confidence" in text
    assert assay.verify(certificate, model, X[:900], y[:900], holdout=(X[900:], y[900:])).holds


def test_facts_alone_have_no_tightest_statement():
    X = np.random.default_rng(0).normal(size=(20, 30))
    y = np.arange(20) % 2
    assert LogisticRegression().fit(X, y).certify(X, y).tightest is None


def test_the_labels_of_the_holdout_rows_have_no_say_in_the_shares():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = LogisticRegression().fit(X[:200], y[:200])
    both, one = (
        model.certify(X[:200], y[:200], holdout=(X[200:], labels), scores=True)
        for labels in (y[200:], np.ones(200, dtype=int))
    )
    assert both.find("holdout.binomial").delta == one.find("holdout.binomial").delta
    assert {code for code, _ in one.unreported} >= {"holdout.auc", "holdout.thresholds"}
