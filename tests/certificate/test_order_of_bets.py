"""Bets are made in an order that nobody chooses: that of the rows' digests, whatever the order of the table."""

import hashlib
import warnings
from dataclasses import replace

import numpy as np
from scipy import stats

from assay import scan, verify
from assay.checker.identity import order_of_bets, row_digests
from assay.guarantees.fingerprint import BetOrder, drawn_order
from assay.guarantees.seal import RepeatedUseWarning
from assay.linear_model import LinearRegression
from assay.theory.concentration import betting_upper
from tests.certificate import bets

DELTA = 0.05


def made(n, seed, copies=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[n - copies :] = X[0]
    y = np.abs(X[:, 0]) + 0.0
    return X, y


def test_three_programs_derive_the_same_order():
    """Producer, checker and the tests' own; copies have one digest, and a number each."""
    X, y = made(60, 0, copies=7)
    X[3, 1], X[4, 0] = -0.0, np.nan
    expected = bets.of_rows(X, y)
    digests = row_digests(np.add(X, 0.0), None, None, y[:, None])
    assert len(set(digests)) == 53
    assert order_of_bets(digests).tolist() == expected
    assert BetOrder(scan.rows(X, y)).of_rows.tolist() == expected
    group = np.arange(60) % 9
    told = BetOrder(scan.rows(X, y)).of_groups(group).tolist()
    assert told == bets.of_groups(X, y, group)
    codes = np.where(y > 0.5, 1, np.where(y > 0.1, 0, -1))
    labels = BetOrder(scan.rows(X, codes), np.array(["no", "yes"]))
    own = row_digests(np.add(X, 0.0), codes, ("no", "yes"), None)
    assert np.array_equal(labels.of_rows, order_of_bets(own))
    text = ["yes" if code == 1 else "no" for code in codes]
    assert own[0] == bets.digest(X[0], text[0]) or codes[0] < 0


def test_the_order_is_like_a_random_one():
    """First places of 12 rows in 4,000 sets of rows: as often each."""
    firsts = []
    for seed in range(4000):
        X = np.random.default_rng(seed).normal(size=(12, 1))
        firsts.append(drawn_order(np.stack([np.frombuffer(hashlib.sha256(x).digest(), np.uint8) for x in X]))[0])
    assert stats.chisquare(np.bincount(firsts, minlength=12)).pvalue > 1e-3


def violations(order_of, trials=1000, m=60):
    """How often the bound on the mean of sorted losses is too small."""
    failed, mean = 0, np.sqrt(2 / np.pi) / 4
    for seed in range(trials):
        X = np.sort(np.abs(np.random.default_rng(seed).normal(size=(m, 1))), axis=0)
        losses = np.minimum(X[:, 0] / 4, 1.0)
        failed += betting_upper(losses[order_of(X)], DELTA) < mean
    return failed


def test_a_sorted_table_breaks_bets_in_its_order_and_none_in_that_of_digests():
    most = stats.binom.ppf(0.999, 1000, DELTA)
    assert violations(lambda X: slice(None)) > 5 * most
    assert violations(lambda X: BetOrder(scan.rows(X), has_target=False).of_rows) <= most


def regression(order):
    X, y = made(200, 1)
    noise = np.random.default_rng(2).normal(size=200)
    y = X[:, 0] + noise
    model = LinearRegression().fit(X[:100], y[:100])
    held = X[100:][order], y[100:][order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedUseWarning)
        certificate = model.certify(X[:100], y[:100], holdout=held, clip=3.0)
    return model, certificate, (X[:100], y[:100]), held


def test_the_order_of_the_table_moves_no_bit_and_no_value_below_is_accepted():
    model, first, train, held = regression(np.arange(100))
    sorted_by_loss = np.argsort(np.abs(model.predict(held[0]) - held[1]))
    for order in (sorted_by_loss, sorted_by_loss[::-1]):
        _, other, _, turned = regression(order)
        assert other.find("holdout.betting").value == first.find("holdout.betting").value
        assert verify(other, model, *train, holdout=turned).holds
        forged = [
            replace(one, value=one.value - 1e-6) if one.name == "holdout.betting" else one for one in other.claims
        ]
        assert not verify(replace(other, claims=tuple(forged)), model, *train, holdout=turned).holds
