"""Figures of learning theory: their numbers against closed forms, counts and exact values; that they draw."""

import math

import numpy as np
import pytest

from assay import plot
from assay.plot import frames
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
