"""Margins, inseparability and the perceptron, against quadratic and linear programmes and exhaustive
search."""

from dataclasses import replace

import numpy as np
import pytest

from tests.certificate import exact_geometry, forge, margin_cases


def measured(case: forge.Case) -> float:
    report = case.verify()
    assert report.holds, report.reason
    return report.verdicts[-1].measured


@pytest.mark.parametrize("seed", range(30))
def test_lower_and_upper_margin_enclose_the_best_one(seed):
    lower, upper = margin_cases.margin_case(seed), margin_cases.margin_case(seed, "upper")
    best = exact_geometry.best_margin(lower, lower.claim.params["intercept"])
    low, high = measured(lower), measured(upper)
    assert low <= best * (1 + 1e-9)
    assert best <= high * (1 + 1e-9)
    assert high - low <= 1e-2 * best


def test_a_margin_by_hand():
    # Columns are points; class 1 is x >= 2, class 0 is x <= 0: the best line is x = 1, margin 1.
    X, y = np.array([[0.0, 0.0], [-1.0, 5.0], [2.0, 1.0], [3.0, -4.0]]), np.array([0, 0, 1, 1])
    fitted = forge.model([[1.0, 0.0]], -1.0, [0, 1])
    params = {"intercept": True, "radius": 5.1}
    lower = forge.Case((forge.claim("margin.bounds", 1.0 - 1e-12, "lower", params=params),), fitted, X, y).seal()
    assert measured(lower) == pytest.approx(1.0, rel=1e-12)
    witness = {"positive": np.array([2]), "positive_weight": np.array([7.0])}
    witness |= {"negative": np.array([0]), "negative_weight": np.array([0.5])}
    upper = forge.claim("margin.bounds", 1.2, "upper", params=params, witness=witness)
    assert measured(replace(lower, claims=(upper,), sealed=None)) == pytest.approx(np.hypot(2, 1) / 2, rel=1e-12)
    for claim, word in (
        (
            replace(
                upper,
                witness=witness | {"negative": np.array([1])},
                params={"intercept": True, "radius": 5.0},
            ),
            "radius",
        ),
        (replace(upper, witness=witness | {"negative": np.array([3])}), "other class"),
        (replace(upper, witness=witness | {"negative_weight": np.array([-0.5])}), "non-negative"),
        (replace(upper, witness=witness | {"negative": np.array([9])}), "do not exist"),
        (replace(upper, value=1.1), "claimed"),
        (forge.claim("margin.bounds", 1.0 + 1e-9, "lower", params=params), "claimed"),
        (forge.claim("margin.bounds", 0.0, "lower", params=params), "above 0"),
    ):
        report = replace(lower, claims=(claim,), sealed=None).verify()
        assert word in report.reason


def test_one_class_against_the_rest():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = 0.2 * rng.standard_normal((30, 2)) + np.array([[4.0, 0], [0, 4], [-4, -4]])[y]
    fitted = forge.model(np.array([[1.0, -0.5], [-0.5, 1.0], [-1.0, -1.0]]), np.zeros(3), [0, 1, 2])
    for k in range(3):
        side = np.where(y == k, 1.0, -1.0)
        values = X @ fitted.coef_[k]
        margin = (values[side > 0].min() - values[side < 0].max()) / 2 / np.linalg.norm(fitted.coef_[k])
        params = {"intercept": True, "radius": 8.0, "class": k}
        case = forge.Case(
            (forge.claim("margin.bounds", margin * (1 - 1e-9), "lower", params=params),), fitted, X, y
        ).seal()
        assert measured(case) == pytest.approx(margin, rel=1e-12)
        borrowed = case.with_claim(params=params | {"class": (k + 1) % 3}, witness={"w": fitted.coef_[k]})
        assert not borrowed.verify().holds
        assert not case.with_claim(params=params | {"class": 3}).verify().holds


@pytest.mark.parametrize("seed", range(8))
def test_error_floor_of_half_spaces_against_exhaustive_search(seed):
    case = margin_cases.inseparable_case(seed)
    sets = measured(case)
    side = np.where(case.y == 1, 1.0, -1.0)
    assert sets == 1 + seed % 3
    if sets < 3:
        assert exact_geometry.fewest_errors(case.X, side) >= sets


def test_a_separable_set_is_never_called_inseparable():
    rng = np.random.default_rng(4)
    accepted = 0
    for _ in range(300):
        X, y = rng.integers(-2, 3, size=(8, 2)).astype(float), rng.integers(0, 2, 8)
        rows = rng.permutation(8)[: rng.integers(2, 5)]
        intercept = bool(rng.integers(2))
        witness = {"rows": rows, "set": np.zeros(len(rows), dtype=np.int64)}
        stated = forge.claim(
            "inseparability", 1.0, "lower", params={"form": "ii", "intercept": intercept}, witness=witness
        )
        report = forge.Case((stated,), forge.model(np.ones((1, 2)), 0.0, [0, 1]), X, y).seal().verify()
        if report.holds:
            accepted += 1
            assert not exact_geometry.separable(X[rows], np.where(y[rows] == 1, 1.0, -1.0), intercept)
    assert accepted > 5


def test_almost_inseparable_is_not_inseparable():
    """A float residual of 1e-17 is not an exact zero."""
    case = margin_cases.inseparable_case(0)
    X = case.X.copy()
    X[0, 1] += 2.0**-50  # the crossing segments no longer meet in the plane's rational sense at the same weights
    rows = np.array([0, 1, 2])  # three points: a segment and a point off it
    witness = {"rows": rows, "set": np.zeros(3, dtype=np.int64)}
    off = replace(case, X=X, sealed=None).with_claim(witness=witness, value=1.0)
    assert "inseparable" in off.verify().reason


@pytest.mark.parametrize("seed", range(12))
def test_perceptron_replay(seed):
    case = margin_cases.perceptron_case(seed)
    assert measured(case) >= case.claim.params["updates"]
    sequence, params, witness = case.claim.witness["sequence"], case.claim.params, case.claim.witness
    shorter = case.with_claim(
        params=params | {"updates": len(sequence) - 1}, witness=witness | {"sequence": sequence[:-1]}
    )
    assert "replaying" in shorter.verify().reason
    longer = params | {"updates": len(sequence) + 2}
    padded = witness | {"sequence": np.concatenate([sequence, sequence[-1:], sequence[-1:]])}
    assert not case.with_claim(params=longer, witness=padded).verify().holds
    assert "margin" in case.with_claim(params=params | {"margin": params["margin"] * 1.01}).verify().reason
    assert "radius" in case.with_claim(params=params | {"radius": params["radius"] * 0.99}).verify().reason


def test_updates_on_rows_that_were_right_are_not_mistakes():
    """Three equal steps in one direction reach the same model as one mistake and two needless updates."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    params = {"updates": 3, "margin": 1.0 - 1e-9, "radius": 1.0 + 1e-9, "intercept": False, "rate": 1.0}
    witness = {"sequence": np.array([0, 0, 0]), "separator": np.array([1.0])}
    stated = forge.claim("perceptron.mistakes", 4.0, params=params, witness=witness)
    case = forge.Case((stated,), forge.model([[3.0]], 0.0, [0, 1]), X, y).seal()
    assert "classified correctly" in case.verify().reason
