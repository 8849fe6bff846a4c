"""Compression (compression.perceptron): models rebuilt from a few rows, by hand and by another library; attacks on the
claims."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn import svm as libsvm

import assay
from assay.kernel_model import KernelPerceptron
from assay.linear_model import Perceptron
from assay.svm import SVC
from assay.theory.stability import compression_bound
from tests.certificate import exact, forge, truths
from tests.certificate.attacks import assault

NEAR = Fraction(1, 2**30)


# The perceptron, by hand ------------------------------------------------------------------------------------


def log_choose(n, k):
    return math.log(math.comb(n, k))


def log_size(k):
    return math.log(6 / math.pi**2) - 2 * math.log(k + 1)


def log_message(counts):
    k, outputs = counts.shape
    ways = [log_choose(m - 1, k - 1) if outputs == 1 else log_choose(m + k - 1, k - 1) for m in counts.sum(axis=0)]
    return sum(log_size(int(m)) - way for m, way in zip(counts.sum(axis=0), ways))


def limit(errors, n, k, delta, log_weight):
    """Clopper and Pearson's limit at delta e^log_weight."""
    level = math.exp(math.log(delta) + log_size(k) - log_choose(n, k) + log_weight)
    return float(stats.beta.isf(level, errors + 1, n - k - errors)) if errors < n - k else 1.0


def perceptron_case(seed, classes=2):
    """A perceptron run in order on rows of small integers, so that every sum is exact."""
    rng = np.random.default_rng([seed, 31])
    n, constant = 120, bool(seed % 2)
    y = np.arange(n) % classes
    X = rng.integers(-2, 3, size=(n, 3)).astype(float)
    X[np.arange(n), y] += 9.0
    positive = [1] if classes == 2 else range(classes)
    model, counts = np.zeros((len(positive), 4)), np.zeros((n, len(positive)), dtype=int)
    table = np.hstack([X, np.full((n, 1), float(constant))])
    for h, code in enumerate(positive):
        for _ in range(30):
            for i in range(n):
                sign = 1.0 if y[i] == code else -1.0
                if sign * (table[i] @ model[h]) <= 0:
                    model[h] += 0.5 * sign * table[i]
                    counts[i, h] += 1
    kept = np.flatnonzero(counts.any(axis=1))
    fitted = forge.model(model[:, :3], model[:, 3], list(range(classes)))
    witness = {"rows": kept, "counts": counts[kept]}
    draft = forge.claim("compression.perceptron", 1.0, delta="0.05", params={"intercept": constant}, witness=witness)
    case = forge.Case((draft,), fitted, X, y)
    errors = lost_rows(case, sums_of(case, 0.5))
    value = limit(errors, n, len(kept), 0.05, log_message(counts[kept]))
    params = {"rate": 0.5, "intercept": constant, "rows": n, "kept": len(kept), "errors": errors}
    return case.with_claim(params=params, value=min(1.0, value + 1e-9)).seal()


def sums_of(case, rate):
    """The exact sums of the updates, one list of numbers per hyperplane."""
    rows, counts = (np.asarray(case.claim.witness[name]) for name in ("rows", "counts"))
    codes, found = np.array(exact.codes(case)), []
    for h in range(counts.shape[1]):
        code = 1 if counts.shape[1] == 1 else h
        total = [Fraction(0)] * (case.X.shape[1] + 1)
        for i, times in zip(rows.tolist(), counts[:, h].tolist()):
            factor = Fraction(rate) * times * (1 if codes[i] == code else -1)
            row = [*exact.rational(case.X[i]), Fraction(int(case.claim.params["intercept"]))]
            total = [a + factor * b for a, b in zip(total, row)]
        found.append(total)
    return found


def lost_rows(case, sums):
    """Rows outside whose margin is not above the tolerance, compared as squares."""
    several = 1 if len(sums) == 1 else 2
    size = max(sum(a * a for a in one) for one in sums)
    kept, lost = set(np.asarray(case.claim.witness["rows"]).tolist()), 0
    for i, (row, k) in enumerate(zip(exact.scores(case), exact.codes(case))):
        z = row[0] * (2 * k - 1) if len(row) == 1 else row[k] - max(v for j, v in enumerate(row) if j != k)
        length = sum(v * v for v in exact.rational(case.X[i])) + int(case.claim.params["intercept"])
        reach = (2 * several * NEAR) ** 2 * size * length
        lost += i not in kept and (z <= 0 or z * z <= reach)
    return lost


def truth(case):
    claim, params, n = case.claim, case.claim.params, len(case.X)
    if claim.name != "compression.perceptron":
        return truths.truth(case)
    kept, counts = np.asarray(claim.witness["rows"]), np.asarray(claim.witness["counts"])
    if len(set(kept.tolist())) != len(kept) or kept.max() >= n or params["kept"] != len(kept):
        return False
    if counts.min() < (1 if counts.shape[1] == 1 else 0) or not 0 <= claim.value <= 1:
        return False
    sums = sums_of(case, params["rate"])
    model = np.column_stack([np.atleast_2d(case.model.coef_), case.model.intercept_])
    for own, one in zip(exact.rational(model), sums):
        apart, size = sum((a - b) ** 2 for a, b in zip(own, one)), sum(a * a for a in one)
        if apart > NEAR**2 * size:
            return False
    stated = params["rows"] == n and lost_rows(case, sums) <= params["errors"] <= n - len(kept)
    bound = limit(params["errors"], n, len(kept), float(claim.delta), log_message(counts)) if stated else 2.0
    return claim.value == 1 or claim.value >= bound * (1 - 1e-9)


CASES = {"two classes": perceptron_case, "three classes": lambda seed: perceptron_case(seed, 3)}


@pytest.mark.parametrize("name", CASES)
def test_honest_claims_hold_and_smaller_ones_do_not(name):
    for seed in range(6):
        case = CASES[name](seed)
        assert truth(case)
        assert case.verify().holds, case.verify().reason
        assert case.claim.value < 0.9
        assert not case.with_claim(value=case.claim.value * (1 - 1e-6) - 2e-9).verify().holds


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    assert sum(assault(CASES[name], truth, 12, seed=0).values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_a_hundred_per_operator(name):
    assert sum(assault(CASES[name], truth, 100, seed=1).values()) > 0


def test_the_learner_states_the_theorem():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, 3))
    X[:, 0] += 4 * (2 * y - 1)
    for shuffle in (True, False):
        model = Perceptron(random_state=0, shuffle=shuffle).fit(X, y)
        certificate = model.certify(X, y)
        assert assay.verify(certificate, model, X, y).holds
        claim = certificate.find("compression.perceptron")
        rows, times = np.unique(np.concatenate(model.updates_), return_counts=True)
        assert np.array_equal(claim.witness["rows"], rows)
        assert np.array_equal(claim.witness["counts"][:, 0], times)
        k = len(rows)
        wrong = int(np.sum(np.delete(model.predict(X) != y, rows)))
        expected = compression_bound(wrong, 500, k, float(claim.delta), log_message=log_message(times[:, None]))
        assert claim.value == pytest.approx(expected, abs=1e-8)


def test_many_updates_say_nothing_in_words():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = Perceptron(max_iter=20, random_state=0).fit(X, y).certify(X, y)
    assert "compression.perceptron" in {name for name, _ in certificate.unreported}
    assert "rebuild" in next(gap.reason for gap in certificate.not_applicable if gap.name == "compression.perceptron")


# Support vectors --------------------------------------------------------------------------------------------


def machine(kernel, rng, n=300, **options):
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) * 0.7
    X[:, 0] += 2 * (2 * y - 1)
    X[:, 1] += 0.3
    model = SVC(kernel=kernel, **options).fit(X, y)
    return model, X, y


KERNELS = pytest.mark.parametrize(
    ("kernel", "options"),
    [
        ("linear", {}),
        ("rbf", {"gamma": 0.3}),
        ("rbf", {}),
        ("laplacian", {"gamma": 0.3}),
        ("poly", {"gamma": 0.2, "coef0": 1.0, "degree": 2}),
        ("rbf", {"gamma": 0.3, "class_weight": "balanced"}),
    ],
)


@KERNELS
def test_the_machine_of_the_support_vectors_is_where_the_claim_says(kernel, options):
    """Another library solves the problem of the support vectors alone; its w is within `slope` of the model's."""
    model, X, y = machine(kernel, np.random.default_rng(2), **options)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("compression.support-vectors")
    balanced = options.get("class_weight") == "balanced"
    assert claim.params["told"] == (options == {} and kernel == "rbf") + 2 * balanced
    kept = np.sort(model.support_)
    gram = model._kernel()
    alone = libsvm.SVC(kernel="precomputed", C=1.0, tol=1e-10, class_weight=dict(enumerate(model.class_weight_))).fit(
        gram(X[kept]), y[kept]
    )
    beta = np.zeros(len(kept))
    beta[alone.support_] = alone.dual_coef_[0]
    beta[np.searchsorted(kept, model.support_)] -= model.dual_coef_[0]
    apart = math.sqrt(max(0.0, float(beta @ gram(X[kept]) @ beta)))
    assert apart <= claim.params["slope"]
    offset = claim.params["side"] * claim.params["offset"] * claim.params["step"]
    assert abs(offset - model.intercept_[0]) <= claim.params["step"] / 2
    paid = 2 * math.log(41) + math.log(1.5 * (claim.params["offset"] + 1) * (claim.params["offset"] + 2))
    weight = -paid - 64 * math.log(2) * claim.params["told"]
    expected = limit(claim.params["errors"], len(X), len(kept), float(claim.delta), weight)
    assert claim.value == pytest.approx(expected, abs=1e-7)


FORGERIES = [
    {"C": 2.0},
    {"C": 0.5},
    {"slope": 2.0**-30},
    {"slope": 0.3},
    {"step": 2.0**-30},
    {"step": 3.0},
    {"offset": 40},
    {"side": 2},
    {"kept": 1},
    {"errors": 0.0},
    {"rows": 299},
    {"class_weight": [1.0, 5.0]},
    {"told": -1},
]


@pytest.mark.parametrize("change", FORGERIES, ids=str)
def test_forged_parameters_are_refused(change):
    model, X, y = machine("rbf", np.random.default_rng(3), gamma=0.3, tol=1e-2)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    forged = tuple(
        replace(claim, params=dict(claim.params) | change) if claim.name == "compression.support-vectors" else claim
        for claim in certificate.claims
    )
    report = assay.verify(replace(certificate, claims=forged), model, X, y)
    assert not report.holds


def test_what_is_told_must_be_paid_for():
    """gamma='scale' is told with 64 bits; the same value without paying for it is below the limit."""
    model, X, y = machine("rbf", np.random.default_rng(4))
    certificate = model.certify(X, y)
    claim = certificate.find("compression.support-vectors")
    assert claim.params["told"] == 1
    cheaper = [
        replace(one, value=0.9 * one.value) if one.name == "compression.support-vectors" else one
        for one in certificate.claims
    ]
    assert not assay.verify(replace(certificate, claims=tuple(cheaper)), model, X, y).holds


def test_where_it_does_not_apply_it_says_why():
    model, X, y = machine("rbf", np.random.default_rng(5), gamma=0.3)
    hard = SVC(C=np.inf, gamma=5.0).fit(X, y).certify(X, y)
    three = SVC(gamma=0.3).fit(X, np.arange(300) % 3).certify(X, np.arange(300) % 3)
    weighted = model.fit(X, y, np.ones(300)).certify(X, y, sample_weight=np.ones(300))
    for certificate in (hard, three, weighted):
        assert "compression.support-vectors" in {gap.name for gap in certificate.not_applicable}


# The kernel perceptron --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("options", "told"), [({"gamma": 0.2}, 0), ({"gamma": "scale"}, 1), ({"kernel": "linear"}, 0)])
def test_a_kernel_perceptron_is_rebuilt_exactly(classes, options, told):
    rng = np.random.default_rng(6)
    y = rng.integers(0, classes, 300)
    X = 0.3 * rng.normal(size=(300, 3))
    X[np.arange(300), y] += 3.0
    model = KernelPerceptron(**({"kernel": "rbf", "random_state": 0} | options)).fit(X, y)
    certificate = model.certify(X, y)
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("compression.kernel-perceptron")
    counts = np.stack([np.bincount(s, minlength=300) for s in model.updates_], axis=1)
    kept = np.flatnonzero(counts.any(axis=1))
    weight = log_message(counts[kept]) - told * 64 * math.log(2)
    wrong = int(np.sum(np.delete(model.predict(X) != y, kept)))
    assert (claim.params["kept"], claim.params["told"], claim.params["errors"]) == (len(kept), told, wrong)
    assert claim.value == pytest.approx(limit(wrong, 300, len(kept), float(claim.delta), weight), abs=1e-8)
    for change in ({"kept": len(kept) - 1}, {"rows": 299}, {"told": -1}, {"errors": -1}, {"errors": 0.0}):
        forged = [
            replace(one, params={**one.params, **change}) if one.name == "compression.kernel-perceptron" else one
            for one in certificate.claims
        ]
        assert not assay.verify(replace(certificate, claims=tuple(forged)), model, X, y).holds, change
    sharper = [
        replace(one, value=0.999 * one.value) if one.name == "compression.kernel-perceptron" else one
        for one in certificate.claims
    ]
    assert not assay.verify(replace(certificate, claims=tuple(sharper)), model, X, y).holds
