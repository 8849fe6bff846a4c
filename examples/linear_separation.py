"""What a line can and cannot separate: quadrants, checkerboards, and margins that shrink exponentially
====================================================================================================

Run `python examples/linear_separation.py`. Each answer comes with a certificate that is checked again.
"""

import warnings

import numpy as np

import assay
from assay.datasets.worked import checkerboard, first_one_parity, four_quadrants
from assay.linear_model import InseparableWarning, LinearSeparator, perceptron_trace
from assay.preprocessing import PolynomialTransform, monomial_count


def smallest_degree(X: np.ndarray, y: np.ndarray, most: int = 8) -> tuple[int, LinearSeparator, np.ndarray]:
    """Return the least degree of a polynomial that separates the labels, its separator and the transformed
    rows."""
    for degree in range(1, most + 1):
        Z = PolynomialTransform(degree, include_bias=False).fit_transform(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InseparableWarning)
            model = LinearSeparator().fit(Z, y)
        if not assay.verify(model.certify(Z, y), model, Z, y).holds:
            raise AssertionError("a certificate failed")
        if model.separable_:
            return degree, model, Z
    raise ValueError(f"no polynomial of degree {most} separates these labels.")


def parity_updates(d: int) -> int:
    """Return how many updates the perceptron makes on the first-one-parity rows of dimension d."""
    X, y = first_one_parity(d)
    return len(perceptron_trace(X / np.linalg.norm(X, axis=1, keepdims=True), y, start="first").updates)


def main() -> None:
    degree, *_ = smallest_degree(*four_quadrants(80, gap=0.05))
    print(f"four quadrants: degree {degree}, {monomial_count(2, degree)} monomials")
    for k in (2, 3):
        degree, *_ = smallest_degree(*checkerboard(k, per_cell=2))
        print(f"{k} x {k} checkerboard: degree {degree}, {monomial_count(2, degree)} monomials")
    for d in range(2, 8):
        print(f"first-one parity in {d} dimensions: {parity_updates(d)} perceptron updates")


if __name__ == "__main__":
    main()
