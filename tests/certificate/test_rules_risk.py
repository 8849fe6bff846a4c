"""Statements about new data: limits exact to the last digit that matters, classes, ghost samples, clipped
losses."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from assay.guarantees.evidence import Decided
from tests.certificate import count_cases, exact_counts, forge
from tests.evidence import evidence


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["holdout.binomial", "holdout.selection"])
def test_limits_are_accepted_at_the_exact_number_and_not_inside(name, seed):
    case = count_cases.holdout_case(seed, name)
    assert case.verify().holds, case.verify().reason
    share = Fraction(1, case.claim.params.get("compared", 1))
    assert exact_counts.limit_holds(case, "holdout", share)
    inside = case.claim.value + (3e-9 if case.claim.direction == "lower" else -3e-9)
    inner = case.with_claim(value=inside)
    assert not exact_counts.limit_holds(inner, "holdout", share)
    assert not inner.verify().holds


def test_limits_by_hand():
    # No error in m rows: 1 - delta^(1/m).
    X, y = np.ones((59, 1)), np.ones(59, dtype=int)
    fitted = forge.model([[1.0]], 0.0, [0, 1])
    bound = 1 - 0.05 ** (1 / 59)
    stated = forge.claim(
        "holdout.binomial", bound + 1e-12, delta="0.05", params={"errors": 0, "rows": 59}, data=("holdout",)
    )
    case = forge.Case((stated,), fitted, X[:2], np.array([0, 1]), holdout=(X, y)).seal()
    assert case.verify().holds
    assert bound < 0.05
    assert not case.with_claim(value=bound - 1e-12).verify().holds
    assert case.with_claim(value=1.0).verify().holds
    assert not case.with_claim(value=0.0).verify().holds
    all_wrong = replace(case, holdout=(X, 1 - y), sealed=None).with_claim(params={"errors": 59, "rows": 59})
    assert not all_wrong.with_claim(value=math.nextafter(1.0, 0.0)).verify().holds
    assert all_wrong.with_claim(value=1.0).verify().holds
    lower = all_wrong.with_claim(direction="lower", value=0.05 ** (1 / 59) - 1e-12)
    assert lower.verify().holds
    assert not all_wrong.with_claim(direction="lower", value=0.05 ** (1 / 59) + 1e-12).verify().holds


def test_a_score_of_zero_counts_against_every_claim_and_so_do_ties():
    X, y = np.array([[0.0], [1.0], [-1.0]]), np.array([0, 1, 0])
    params = {"set": "train", "rows": 3, "loss": "zero-one", "low": 0}
    near = forge.model([[1.0]], 2.0**-60, [0, 1])
    X[0] = -(2.0**-60)
    case = forge.Case((forge.claim("train.errors", 1.0, params=params),), near, X, y).seal()
    assert case.verify().holds, case.verify().reason
    assert not case.with_claim(value=0.0).verify().holds
    assert not case.with_claim(params=params | {"low": 1}).verify().holds
    tied = forge.model(np.array([[1.0], [1.0], [-1.0]]), np.zeros(3), [0, 1, 2])
    tie = replace(case, model=tied, sealed=None).with_claim(value=3.0, params=params | {"low": 2})
    assert tie.verify().holds  # row 1 is tied; rows 0 and 2 are labelled 0 and score highest for 2
    assert not tie.with_claim(value=2.0).verify().holds
    assert not tie.with_claim(params=params | {"low": 3}).verify().holds


@pytest.mark.parametrize("label", [0, 1])
def test_rows_on_the_boundary_are_open_whatever_rational_arithmetic_says(label):
    """0.1 * 2 - 0.2 and 0.1 * 3 - 0.3 round to zero or near it: `predict` may say either."""
    X = np.array([[0.1, 0.2, 0.0], [0.1, 0.0, 0.3]])
    for weights, row in zip(([[2.0, -1.0, 0.0]], [[3.0, 0.0, -1.0]]), range(2)):
        params = {"set": "train", "rows": 1, "loss": "zero-one", "low": 0}
        case = forge.Case(
            (forge.claim("train.errors", 1.0, params=params),),
            forge.model(weights, 0.0, [0, 1]),
            X[row : row + 1],
            np.array([label]),
        ).seal()
        assert case.verify().holds, case.verify().reason
        assert not case.with_claim(value=0.0).verify().holds
        assert not case.with_claim(params=params | {"low": 1}).verify().holds


def test_an_outlier_does_not_blur_the_rest_of_its_block():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    X[0] = 1e140
    w = np.array([[1.0, 1.0]])
    y = (X @ w[0] > 0).astype(int)
    params = {"set": "train", "rows": 200, "loss": "zero-one", "low": 0}
    assert (
        forge.Case((forge.claim("train.errors", 0.0, params=params),), forge.model(w, 0.0, [0, 1]), X, y)
        .seal()
        .verify()
        .holds
    )


@pytest.mark.parametrize("seed", range(16))
def test_ghost_sample_bound_against_integers(seed):
    case = count_cases.vc_case(seed, n=40)
    assert case.verify().holds, case.verify().reason
    assert exact_counts.vc_holds(case)
    inner = case.with_claim(value=case.claim.value - 1e-7)
    assert not exact_counts.vc_holds(inner)
    assert not inner.verify().holds
    params = case.claim.params
    for change in (
        {"M": 3 * params["rows"]},
        {"q": 0.4},
        {"form": "a"},
        {"K": params["K"] - 1},
        {"errors": params["errors"] + 10**6},
    ):
        assert not case.with_claim(params=params | change).verify().holds
    wide = params["class"] | {"d": params["class"]["d"] + 1}
    assert not case.with_claim(params=params | {"class": wide}).verify().holds  # K is for the smaller class
    assert case.with_claim(params=params | {"K": params["K"] + 4}, value=0.9).verify().holds


def test_the_growth_function_counts_what_it_says():
    from assay.checker.bounds.tails import ln_growth
    from assay.checker.predictors import Linear

    flat = Linear(np.zeros((1, 2)), np.zeros(1), ("0", "1"))
    many = Linear(np.zeros((3, 2)), np.zeros(3), ("0", "1", "2"))
    halfspaces = {"class": "halfspaces", "d": 2, "bias": True}
    assert float(ln_growth(halfspaces, 10, flat).exp()) == pytest.approx(2 * (1 + 9 + 36))
    assert float(ln_growth(halfspaces | {"bias": False}, 10, flat).exp()) == pytest.approx(1 + 10 + 45)
    assert float(ln_growth(halfspaces | {"d": 20}, 10, flat).exp()) == pytest.approx(2**10)
    assert float(ln_growth({"class": "multiclass-halfspaces", "d": 2, "classes": 3}, 10, many).exp()) == pytest.approx(
        92.0**3
    )


@pytest.mark.parametrize(
    ("descriptor", "word"),
    [
        ({"class": "halfspaces", "d": 1, "bias": True}, "columns"),
        ({"class": "halfspaces", "d": 2, "bias": False}, "intercept"),
        ({"class": "halfspaces", "d": 2}, "bias"),
        ({"class": "halfspaces", "d": 2.0, "bias": True}, "integer"),
        ({"class": "halfspaces", "d": 10**9, "bias": True}, "at most"),
        ({"class": "boxes", "d": 2}, "unknown class"),
        ("halfspaces", "unknown class"),
        ({"class": "list", "size": 50}, "unknown class"),
    ],
)
def test_models_outside_the_class_are_rejected(descriptor, word):
    X, y = np.array([[1.0, 0], [0, 1.0], [-1.0, 0.3]]), np.array([1, 1, 0])
    fitted = forge.model([[1.0, 2.0]], 0.5, [0, 1])
    params = {"class": descriptor, "errors": 0, "rows": 3, "form": "c", "M": 12, "q": 0.5, "K": 9}
    report = forge.Case((forge.claim("vc", 1.0, delta="0.05", params=params),), fitted, X, y).seal().verify()
    assert word in report.reason
    assert not report.holds


@pytest.mark.parametrize("seed", range(9))
def test_bernstein_at_its_formula(seed):
    case = count_cases.clipped_case(seed)
    assert case.verify().holds, case.verify().reason
    assert not case.with_claim(value=case.claim.value - 3e-9).verify().holds
    assert not case.with_claim(delta="0.049").verify().holds
    assert not case.with_claim(params=case.claim.params | {"clip": 2.5}).verify().holds


def test_bernstein_uses_the_unbiased_variance():
    """With the biased variance the value is smaller by a factor near sqrt(1 - 1/m) in one term: it must
    fail."""
    case = count_cases.clipped_case(0)
    Xh, yh = case.holdout
    losses = np.minimum(np.abs(yh - Xh @ case.model.coef_ - 0.2), 2.0)
    m, log = len(losses), math.log(2 / 0.05)
    biased = losses.mean() + math.sqrt(2 * losses.var() * log / m) + 7 * 2.0 * log / (3 * (m - 1))
    assert not case.with_claim(value=float(biased) + 1e-9).verify().holds


def test_select_needs_the_models_predictions_and_its_number():
    case = count_cases.holdout_case(0, "holdout.selection")
    predictions = case.claim.witness["predictions"]
    without = case.with_claim(witness={"predictions": predictions[:-1]}, params=case.claim.params | {"compared": 4})
    assert "not among" in without.verify().reason
    fewer = case.with_claim(params=case.claim.params | {"compared": 4})
    assert "shape" in fewer.verify().reason
    alone = case.with_claim(
        witness={"predictions": predictions[-1:]},
        params=case.claim.params | {"compared": 1},
        value=float(stats.beta.ppf(1 - 0.04, case.claim.params["errors"] + 1, 30 - case.claim.params["errors"])) + 1e-9,
    )
    assert alone.verify().holds  # the search log, not the checker, knows that there were others


@pytest.mark.parametrize("kind", ["rbf", "forest", "tree", "folds"])
def test_models_without_a_dimension_are_in_no_space_of_functions(kind):
    """A machine that learns coins by heart must not pass for a half-space: the error rate is one half."""
    import assay
    from assay.claims.claim import Claim
    from assay.claims.directory import definition
    from assay.ensemble import RandomForestClassifier
    from assay.model_selection import CrossValidated
    from assay.svm import SVC
    from assay.theory.spaces import HalfSpaces
    from assay.theory.vc import ghost_sample_bound
    from assay.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    rote = {
        "rbf": SVC(gamma=1000.0, C=1e3),
        "forest": RandomForestClassifier(n_estimators=5, bootstrap=False, random_state=0),
        "tree": DecisionTreeClassifier(),
        "folds": CrossValidated(DecisionTreeClassifier(), folds=2, random_state=0),
    }[kind].fit(X, y)
    rows = rote._known_rows(X, y)
    wrong = evidence(rote, rows, Decided).count_errors(rows)[1]
    found = ghost_sample_bound(wrong, 400, HalfSpaces(2).log_growth, 0.05)
    space = {"class": "function-space", "dimension": 3, "classes": 2}
    params = {"class": space, "form": "c", "errors": wrong, "rows": 400, "M": found.M, "q": found.q, "K": found.K}
    stated = Claim("vc", found.bound + 1e-9, "upper", params, ("train",), "0.05", definition("vc").assumptions)
    honest = rote.certify(X, y)
    facts = tuple(claim for claim in honest.claims if claim.is_fact)
    report = assay.verify(replace(honest, claims=(*facts, stated), unreported=()), rote, X, y)
    assert "space of functions" in report.reason
