"""The vote of one pass (progressive.vote, compression.voted-perceptron): honest claims by hand, attacks on them, and
the lemmas that they rest on."""

import itertools
import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.linear_model import VotedPerceptron
from assay.theory.sequential import RATES, progressive_bound, progressive_choice, progressive_hoeffding
from assay.theory.stability import compression_bound
from tests.certificate import attacks, forge
from tests.linear_model.test_voted import counted, replay, splitmix

FIELDS = ("vectors_", "gained_", "lost_", "votes_", "constant_")


def order_of(seed, n):
    return np.arange(n) if seed is None else np.argsort(splitmix(seed, n), kind="stable")


def rebuilt(X, y, classes, constant, seed, skipped):
    """The model, places of the mistakes and weights of every hypothesis of the pass, by plain Python."""
    rows, lost, kept, places = replay(X, y, classes, constant, order_of(seed, len(X)).tolist())
    borders = np.maximum([0, *(p + 1 for p in places), len(X)], skipped)
    arrays = (X[rows], np.array(y)[rows], np.array(lost), np.diff(borders), np.array([constant]))
    named = dict(zip(FIELDS, arrays), classes_=np.arange(classes))
    return forge.Forged(family="voted.classifier", **named), places, kept, rows


def form(errors, m, rate, delta, two=2.0, half=2.0, grid=26.0, twice=2.0, once=1.0):
    """Twice the mean risk of the hypotheses, with every constant by name."""
    p = errors / m
    if rate is None:
        return two * (p + math.sqrt(math.log(half / delta) / (twice * m)))
    t = 2.0**rate
    return two * (once - math.exp(-t * p - math.log(grid / delta) / m)) / (once - math.exp(-t))


def online_case(seed, name="progressive.vote", n=120):
    rng = np.random.default_rng([seed, 20])
    classes, constant, order = 2 + seed % 2, float(seed % 3 > 0), None if seed % 4 == 0 else int(rng.integers(2**31))
    X = rng.integers(-2, 3, (n, 3)).astype(float) + (rng.normal(size=(n, 3)) if seed % 5 else 0.0)
    y = np.arange(n) % classes
    X[np.arange(n), y] += 7.0
    skipped = 0 if seed % 3 else 11
    model, places, kept, rows = rebuilt(X, y, classes, constant, order, skipped)
    params = {"rows": n, "skipped": skipped, "seed": order}
    m, errors = n - skipped, sum(p >= skipped for p in places)
    if name == "progressive.vote":
        rate = min([None, *range(-8, 5)], key=lambda r: form(errors, m, r, 0.05)) if seed % 7 else None
        params |= {"errors": errors, "rate": rate}
        value = form(errors, m, rate, 0.05)
    else:
        wrong = vote_errors(kept, model, X, y, set(rows))
        params |= {"kept": len(rows), "errors": wrong}
        value = compression_bound(wrong, n, len(rows), 0.05)
    claim = forge.claim(name, min(1.0, value + 1e-9), delta="0.05", params=params)
    return forge.Case((claim,), model, X, y).seal()


def vote_errors(kept, model, X, y, rows):
    left = [i for i in range(len(X)) if i not in rows]
    totals = counted(kept, model.votes_, X[left], float(model.constant_[0]), len(model.classes_))
    best = np.sort(totals, axis=1)
    own = totals[np.arange(len(left)), np.asarray(y)[left]]
    return int(np.sum((own < best[:, -1]) | (best[:, -1] == best[:, -2])))


CASES = {
    name: (lambda seed, name=name: online_case(seed, name))
    for name in ("progressive.vote", "compression.voted-perceptron")
}


def truth(case):
    """Decide from the definitions whether the claim follows from the pass that it names."""
    claim, params, n = case.claim, case.claim.params, len(case.X)
    if claim.name not in CASES or (case.weight is not None and np.any(case.weight != 1)):
        return False
    if params["rows"] != n or not 0 <= params["skipped"] < n or not 0 <= claim.value <= 1:
        return False
    codes = np.array([[str(c) for c in case.model.classes_.tolist()].index(str(v)) for v in case.y.tolist()])
    constant, classes = float(case.model.constant_[0]), len(case.model.classes_)
    own, places, kept, rows = rebuilt(case.X, codes, classes, constant, params["seed"], params["skipped"])
    if not all(np.array_equal(getattr(own, name), getattr(case.model, name)) for name in FIELDS):
        return False
    delta = float(claim.delta)
    if claim.name == "progressive.vote":
        errors = sum(p >= params["skipped"] for p in places)
        bound = form(errors, n - params["skipped"], params["rate"], delta)
        return params["errors"] == errors and (claim.value >= min(1.0, bound) * (1 - 1e-12))
    wrong = vote_errors(kept, own, case.X, codes, set(rows))
    fits = params["kept"] == len(rows) and wrong <= params["errors"] <= n - len(rows)
    return fits and claim.value >= compression_bound(params["errors"], n, len(rows), delta) * (1 - 1e-9)


def changed(model, rng):
    other = deepcopy(model)
    name = FIELDS[rng.integers(len(FIELDS))]
    part, which = getattr(other, name), rng.integers(3)
    i = rng.integers(len(part))
    if name == "vectors_":
        part[i, rng.integers(part.shape[1])] += rng.choice([1e-12, 1.0, -0.5])
    elif name == "constant_":
        part[0] = 1 - part[0]
    elif which == 0:
        part[i] += rng.choice([-1, 1])
    elif which == 1:
        setattr(other, name, rng.permutation(part))
    else:  # two updates change places
        j = rng.integers(len(other.gained_))
        for field in ("vectors_", "gained_", "lost_"):
            getattr(other, field)[[i % len(other.gained_), j]] = getattr(other, field)[[j, i % len(other.gained_)]]
    return other


def order_forged(case, rng):
    """The same rows in another order, sealed again: the sequence is part of the claim."""
    order = rng.permutation(len(case.X))
    return attacks.resealed(case, X=case.X[order], y=case.y[order])


def seed_forged(case, rng):
    return case.with_claim(params=case.claim.params | {"seed": [None, int(rng.integers(2**31))][rng.integers(2)]})


TABLES = attacks.tables(changed, order_forged, seed_forged)


@pytest.mark.parametrize("name", CASES)
def test_honest_claims_hold_and_smaller_ones_do_not(name):
    informative = 0
    for seed in range(12):
        case = CASES[name](seed)
        assert truth(case)
        report = case.verify()
        assert report.holds, report.reason
        informative += case.claim.value < 0.9
        if case.claim.value < 1:
            assert not case.with_claim(value=case.claim.value * (1 - 1e-6) - 2e-9).verify().holds
    assert informative >= 6


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    assert sum(attacks.assault(CASES[name], truth, 12, 0, TABLES).values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_two_hundred_per_operator(name):
    attacks.assault(CASES[name], truth, 200, 1, TABLES)


def test_constants_off_by_ten_percent_are_noticed():
    for rate, seed in ((None, 7), (0, 1)):
        case = online_case(seed, n=300)
        params = case.claim.params | {"rate": rate}
        m, errors = 300 - params["skipped"], params["errors"]
        right = form(errors, m, rate, 0.05)
        assert case.with_claim(params=params, value=right + 1e-9).verify().holds
        names = ("two", "half", "twice") if rate is None else ("two", "grid", "once")
        for name, factor in itertools.product(names, (0.9, 1.1)):
            value = {"two": 2.0, "half": 2.0, "twice": 2.0, "grid": 26.0, "once": 1.0}[name] * factor
            wrong = form(errors, m, rate, 0.05, **{name: value})
            holds = case.with_claim(params=params, value=min(1.0, wrong)).verify().holds
            assert holds == (wrong > right), (rate, name, factor)


# What the theorem does not speak of -----------------------------------------------------------------------


def draw(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def forged(certificate, model, X, y):
    return assay.verify(replace(certificate, model=forge.model_reference(model)), model, X, y)


def altered(model, **changes):
    return forge.Forged.copy_of(model).but(**changes)


def test_the_last_hypothesis_is_refused():
    X, y = draw()
    model = VotedPerceptron(random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert forged(certificate, altered(model), X, y).holds
    last = np.zeros_like(model.votes_)
    last[-1] = len(X)
    report = forged(certificate, altered(model, votes_=last), X, y)
    assert "meets other mistakes" in str(report)


def test_several_passes_are_refused():
    """Two passes over the same rows meet fewer mistakes in the second: not the rows that were not seen before."""
    X, y = draw(n=200)
    twice = VotedPerceptron(shuffle=False).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    certificate = VotedPerceptron(shuffle=False).fit(X, y).certify(X, y)
    assert not forged(certificate, altered(twice), X, y).holds


def test_a_pass_over_sorted_rows_must_name_its_order():
    """Rows put in an order that suits them: the claim of the seed does not hold for it."""
    X, y = draw()
    sorted_rows = np.argsort(y, kind="stable")
    model = VotedPerceptron(shuffle=False).fit(X[sorted_rows], y[sorted_rows])
    assert model.progressive_error_ < 0.1
    honest = VotedPerceptron(random_state=0).fit(X, y).certify(X, y)
    claim = replace(honest.find("progressive.vote"), params=honest.find("progressive.vote").params | {"seed": None})
    for claims in ((honest.find("progressive.vote"),), (claim,)):
        assert not forged(replace(honest, claims=claims), altered(model), X, y).holds


def test_other_rows_get_a_reason():
    X, y = draw()
    model = VotedPerceptron(random_state=0).fit(X, y)
    for other in (model.certify(X[:-1], y[:-1]), model.certify(X[::-1], y[::-1])):
        reasons = {one.name: one.reason for one in other.not_applicable}
        assert "not the rows of `fit`" in reasons["progressive.vote"]
        assert "not the rows of `fit`" in reasons["compression.voted-perceptron"]


def test_labels_without_signal_have_no_bound_and_say_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    certificate = VotedPerceptron(random_state=0).fit(X, y).certify(X, y)
    reasons = {one.name: one.reason for one in certificate.not_applicable}
    assert "the bound of their vote is 1" in reasons["progressive.vote"]
    assert "progressive.vote" in {name for name, _ in certificate.unreported}


def test_the_published_value_is_the_formula():
    X, y = draw()
    model = VotedPerceptron(random_state=0, burn_in=0.2).fit(X, y)
    claim = model.certify(X, y, delta=0.1).find("progressive.vote")
    errors, m = claim.params["errors"], 480
    assert claim.value == pytest.approx(form(errors, m, claim.params["rate"], 0.05), abs=1e-8)
    others = [form(errors, m, rate, 0.05) for rate in (None, *range(-8, 5))]
    assert claim.value <= min(others) + 1e-8


# Lemmas ---------------------------------------------------------------------------------------------------


def test_the_choice_pays_for_both_forms():
    losses = np.array([1.0] * 20 + [0.0] * 180)
    chosen = progressive_choice(losses, 0.05)
    singles = [progressive_bound(losses, 0.025, rates=RATES), progressive_hoeffding(losses, 0.025)]
    assert chosen.bound == pytest.approx(min(singles))
    assert chosen.rate in RATES


@pytest.mark.parametrize("members", [1, 2, 3, 4])
def test_a_vote_errs_at_most_twice_as_often_as_its_members(members):
    """All ways in which members can be right, wrong for one class, wrong for another, or undecided."""
    for weights in ([1] * members, list(range(1, members + 1))):
        for decisions in itertools.product(("own", "other", "third", "none"), repeat=members):
            votes = {k: sum(w for w, d in zip(weights, decisions) if d == k) for k in ("own", "other", "third")}
            errs = votes["own"] <= max(votes["other"], votes["third"])
            mean = sum(w for w, d in zip(weights, decisions) if d != "own") / sum(weights)
            assert float(errs) <= 2 * mean


def test_the_mean_of_the_product_is_at_most_one_for_losses_between_zero_and_one():
    """The supermartingale by recursion, for losses 0, 1/2 and 1 and a next risk that depends on the past."""
    t, rounds = 1.3, 6

    def mean(past):
        if len(past) == rounds:
            return 1.0
        rare = 0.1 + 0.3 * (sum(past) % 1.5)
        chances = {0.0: 1 - 2 * rare, 0.5: rare, 1.0: rare} if rare < 0.5 else {1.0: 1.0}
        risk = sum(loss * chance for loss, chance in chances.items())
        factor = 1 - risk * (1 - math.exp(-t))
        return sum(c * math.exp(-t * loss) / factor * mean((*past, loss)) for loss, c in chances.items())

    assert mean(()) <= 1.0
    assert mean(()) > 0.5
