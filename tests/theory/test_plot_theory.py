"""Figures of learning theory: their numbers against closed forms, counts and exact values; that they draw."""

import math

import numpy as np
import pytest

from assay import plot
from assay.plot import frames
from assay.textbook.concepts import VersionSpace
from assay.theory import rademacher
from assay.theory.spaces import Finite, HalfSpaces, Intervals, OfDimension, Stumps, Trees, Unbounded

SQUARE = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]


def test_bounds_are_the_formulas_and_fall_with_the_rows():
    rows = [50, 5_000, 500_000]
    frame = frames.bounds(HalfSpaces(2), rows, delta=0.05, training_error=0.1)
    assert list(frame["rows"]) == rows
    for n, value in zip(rows, frame["bounds"]["VC inequality"]):
        patterns = 2 * (1 + (2 * n - 1) + math.comb(2 * n - 1, 2))  # Cover's count at 2n
        exact = 0.1 + math.sqrt(8 * (math.log(patterns) + math.log(4 / 0.05)) / n)
        assert value == pytest.approx(min(1.0, exact), rel=1e-6)
    for values in frame["bounds"].values():
        assert (np.diff(values) <= 0).all()
        assert (values >= 0.1).all()


def test_bounds_without_rows_run_until_the_best_is_close():
    frame = frames.bounds(OfDimension(3), training_error=0.2)
    best = np.min(list(frame["bounds"].values()), axis=0)
    assert best[0] > 0.9
    assert best[-1] == pytest.approx(0.21, abs=1e-3)
    rare = frames.bounds(Finite(9), [10, 10**6], training_error=1e-12)["bounds"]
    assert all(values[0] > 0.1 for values in rare.values())  # a rare error is still one of the ten
    assert "finite class" in frames.bounds(Finite(100))["bounds"]


def test_a_class_known_by_its_dimension_has_the_growth_of_sauer():
    space = OfDimension(3)
    assert [space.growth(m) for m in (1, 3, 4, 5)] == [2, 8, 15, 26]
    assert space.log_growth(1000) == pytest.approx(math.log(sum(math.comb(1000, i) for i in range(4))))
    assert space.vc_dimension == 3
    assert str(space) == "a class of VC dimension 3"
    assert space.growth(40) >= HalfSpaces(2).growth(40)  # half-planes are such a class


def test_half_planes_make_all_labellings_of_a_square_but_the_two_exclusive_ors():
    frame = frames.shattering(HalfSpaces(2), SQUARE)
    missing = frame["labels"][~frame["made"]]
    assert sorted(map(tuple, missing)) == [(-1, 1, 1, -1), (1, -1, -1, 1)]
    assert frames.shattering(HalfSpaces(2), SQUARE[:3])["made"].all()


def test_intervals_cannot_leave_out_the_middle_of_three_points():
    frame = frames.shattering(Intervals(), [0.0, 1.0, 2.0])
    assert frame["labels"][~frame["made"]].tolist() == [[1, -1, 1]]
    assert (frame["points"][:, 1] == 0).all()


def test_regions_are_half_planes_with_the_labels_of_the_points():
    """Seen on a grid that holds the points themselves."""
    points = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    frame = frames.shattering(HalfSpaces(2), points, steps=17)  # axes from -1.6 to 1.6 by 0.2
    at = [int(np.argmin(np.abs(frame["x"] - value))) for value in (-1.0, 1.0)]
    np.testing.assert_allclose(frame["x"][at], [-1.0, 1.0])
    for labels, region, made in zip(frame["labels"], frame["regions"], frame["made"]):
        if made and abs(labels.sum()) == 0:  # two against two: a boundary clear of the rounding of the grid
            assert [region[j, i] for j in at for i in at] == labels.tolist()
        assert made == region.any()


def test_the_estimate_closes_in_on_the_exact_complexity():
    X = np.random.default_rng(0).normal(size=(10, 2))
    suprema = rademacher.of_space(Stumps(2), X)
    exact = rademacher.exact(suprema)
    frame = frames.rademacher(suprema, draws=2000, delta=1e-6)
    assert frame["draws"][-1] == 2000
    assert ((frame["lower"] <= exact) & (exact <= frame["upper"])).all()
    assert abs(frame["value"][-1] - exact) < 0.03


def test_every_figure_draws(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    exact = rademacher.of_space(Stumps(2), X)
    inexact = rademacher.Suprema(exact.n, exact.energy, exact.of, exact=False)
    drawn = [
        plot.bounds(HalfSpaces(10)),
        plot.shattering(HalfSpaces(2), SQUARE[:3]),
        plot.shattering(Intervals(), [0.0, 1.0]),
        plot.rademacher(exact),
        plot.rademacher(inexact),
    ]
    for figure in drawn:
        figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 3_000
        assert all(axes.has_data() for axes in figure.axes)
    assert len(drawn[1].axes) == 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.bounds(HalfSpaces(2), training_error=1.5), "training_error must lie"),
        (lambda: plot.bounds(HalfSpaces(2), [0]), "integer >= 1"),
        (lambda: plot.bounds(Unbounded("kernel"), [10]), "infinite capacity"),
        (lambda: plot.shattering(HalfSpaces(2), np.zeros((6, 2))), "1 to 5 points"),
        (lambda: plot.shattering(HalfSpaces(3), np.zeros((2, 3))), "line or plane"),
        (lambda: plot.rademacher(rademacher.of_l2_ball(np.eye(2)), delta=0.0), "delta must lie"),
    ],
)
def test_what_cannot_be_drawn_says_why(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_space_that_lists_no_dichotomies_says_so():
    with pytest.raises(NotImplementedError, match="cannot be listed"):
        plot.shattering(Trees(2, 3), SQUARE)


def test_tightness_shows_every_bound_of_every_certificate():
    from assay.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=1500) > 0).astype(int)
    whole = LogisticRegression().fit(X, y)
    part = LogisticRegression().fit(X[:1000], y[:1000])
    certificates = {
        "all rows": whole.certify(X, y),
        "held out": part.certify(X[:1000], y[:1000], holdout=(X[1000:], y[1000:])),
    }
    frame = frames.tightness(certificates, {"all rows": 0.1})
    at = {name: k for k, name in enumerate(frame["kinds"])}
    assert frame["bounds"][0, at["vc"]] == certificates["all rows"].find("vc").value
    assert np.isnan(frame["bounds"][0, at["holdout.binomial"]])
    assert frame["bounds"][1, at["holdout.binomial"]] == certificates["held out"].find("holdout.binomial").value
    assert frame["errors"][0] == 0.1
    assert np.isnan(frame["errors"][1])
    axes = plot.tightness(certificates, {"all rows": 0.1}).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["all rows", "held out"]
    few = LogisticRegression().fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="none of these"):
        frames.tightness({"few": few.certify(X[:10], y[:10])})


def boxes():
    """The four half-planes x > 0, x <= 0, y > 0, y <= 0."""

    def side(j, sign):
        return lambda rows: sign * np.where(np.asarray(rows)[:, j] > 0, 1, -1)

    return [side(j, sign) for j in (0, 1) for sign in (1, -1)]


def test_a_version_space_and_where_it_disagrees():
    frame = frames.version_space(VersionSpace(boxes()), [[2.0, 1.0], [-1.0, 3.0]], [1, 1])
    assert frame["sizes"] == [4, 2, 1]  # only y > 0 labels both rows +1
    grid_y = np.repeat(frame["y"][:, None], len(frame["x"]), axis=1)
    assert np.array_equal(frame["share"], (grid_y > 0).astype(float))
    one = frames.version_space(VersionSpace(boxes()), [[2.0, 1.0]], [1])
    assert set(np.unique(one["share"])) <= {0.0, 0.5, 1.0}
    figure = plot.version_space(VersionSpace(boxes()), [[2.0, 1.0], [-1.0, 3.0]], [1, 1])
    assert list(figure.axes[0].lines[0].get_ydata()) == [4, 2, 1]
    assert "1 hypotheses left" in figure.axes[1].get_title()
    with pytest.raises(ValueError, match="rows of the plane"):
        plot.version_space(VersionSpace(boxes()), [[1.0], [2.0]], [1, 1])


def test_the_information_curve_lies_between_its_limits():
    joint = np.array([[0.3, 0.1], [0.05, 0.25], [0.1, 0.2]])
    frame = frames.information_curve(joint, betas=[0.5, 0.1, 0.02])
    marginals = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert frame["relevance_limit"] == pytest.approx(float((joint * np.log(joint / marginals)).sum()))
    assert (frame["relevance"] <= frame["relevance_limit"] + 1e-9).all()
    assert (frame["relevance"] <= frame["compression"] + 1e-9).all()  # Z knows of Y only through X
    assert (np.diff(frame["compression"]) >= -1e-9).all()
    axes = plot.information_curve(joint, betas=[0.5, 0.1, 0.02]).axes[0]
    assert list(axes.lines[-1].get_xdata()) == list(frame["compression"])


def test_surrogate_losses_lie_above_the_error_they_stand_for():
    frame = frames.surrogate_losses()
    z, losses = frame["margin"], frame["losses"]
    np.testing.assert_allclose(losses["hinge"], np.maximum(0, 1 - z))
    np.testing.assert_allclose(losses["exponential"], np.exp(-z))
    for name in ("hinge", "exponential", "logistic, base 2", "squared"):
        assert np.all(losses[name] >= losses["0/1"] - 1e-12)
    figure = plot.surrogate_losses()
    assert {line.get_label() for line in figure.axes[0].get_lines()} == set(losses)


def test_structural_risk_has_a_least_bound_between_the_ends():
    h = np.arange(1, 40)
    errors = 0.4 * np.exp(-h / 5.0)
    frame = frames.structural_risk(errors, h, 5000, delta=0.05)
    terms = [math.sqrt((k * (math.log(10000 / k) + 1) + math.log(80)) / 5000) for k in h]
    np.testing.assert_allclose(frame["confidence"], terms)
    np.testing.assert_allclose(frame["bound"], errors + frame["confidence"])
    assert np.all(np.diff(frame["confidence"]) > 0)
    assert 0 < frame["best"] < len(h) - 1
    assert frame["bound"][frame["best"]] == frame["bound"].min()
    labels = {line.get_label() for line in plot.structural_risk(errors, h, 5000).axes[0].get_lines()}
    assert {"empirical risk", "confidence"} < labels
    with pytest.raises(ValueError, match="grow from at least 1"):
        frames.structural_risk(errors, h[::-1], 5000)
