"""Monomials as columns: scikit-learn's, and the degree from which on they separate quadrants and checkerboards."""

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import assay
from assay.datasets.worked import checkerboard, four_quadrants
from assay.linear_model import LinearSeparator
from assay.preprocessing import PolynomialTransform, monomial_count

pytestmark = pytest.mark.filterwarnings("ignore::assay.linear_model.InseparableWarning")


@pytest.mark.parametrize(("d", "degree"), [(1, 4), (2, 3), (5, 2), (3, 1)])
def test_monomials_are_those_of_scikit_learn(d, degree):
    X = np.random.default_rng(0).normal(size=(20, d))
    for bias in (True, False):
        ours, peer = (
            PolynomialTransform(degree, include_bias=bias).fit(X),
            PolynomialFeatures(degree, include_bias=bias).fit(X),
        )
        np.testing.assert_allclose(ours.transform(X), peer.transform(X), rtol=1e-13)
        assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
        assert ours.transform(X).shape[1] == monomial_count(d, degree) - (not bias)


@parametrize_with_checks([PolynomialTransform(), PolynomialTransform(3, include_bias=False)])
def test_the_transform_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


def test_a_transform_that_does_not_fit_is_refused_with_its_size():
    X = np.zeros((1000, 300))
    with pytest.raises(ValueError, match=r"C\(308, 8\) = \d+ columns.*GiB"):
        PolynomialTransform(8).fit(X)
    assert monomial_count(300, 8) == pytest.approx(np.prod([float(300 + k) for k in range(1, 9)]) / 40320, rel=1e-12)


def smallest_degree(X, y, most):
    """Return the least degree whose monomials separate the labels, found by linear programmes."""
    for degree in range(1, most + 1):
        Z = PolynomialTransform(degree, include_bias=False).fit_transform(X)
        if LinearSeparator().fit(Z, y).separable_:
            return degree
    return most + 1


@pytest.mark.mission("LIN-57", "LIN-58")
def test_quadrants_need_degree_two():
    X, y = four_quadrants(80, gap=0.05)
    np.testing.assert_array_equal(np.sign(X[:, 0] * X[:, 1]), y)
    line = LinearSeparator().fit(X, y)
    assert line.separable_ is False
    assert assay.verify(line.certify(X, y), line, X, y).holds
    assert smallest_degree(X, y, 3) == 2
    Z = PolynomialTransform(2, include_bias=False).fit_transform(X)
    curve = LinearSeparator().fit(Z, y)
    w = curve.coef_[0] / np.abs(curve.coef_).max()
    assert w[3] == pytest.approx(1)  # the weight of x1 x2
    assert (y * (Z @ curve.coef_[0] + curve.intercept_[0]) > 0).all()
    assert assay.verify(curve.certify(Z, y), curve, Z, y).holds


@pytest.mark.mission("LIN-59")
def test_finer_checkerboards_need_higher_degrees():
    degrees = [smallest_degree(*checkerboard(k, per_cell=2), 8) for k in (2, 3)]
    assert degrees[0] == 2
    assert degrees[1] > 2
