"""Small problems with one honest claim each, by its template, for tests and attacks: `CASES[template](seed)`."""

from collections.abc import Callable

from tests.certificate.count_cases import clipped_case, errors_case, floor_case, holdout_case, identity_case, vc_case
from tests.certificate.forge import Case
from tests.certificate.margin_cases import inseparable_case, margin_case, perceptron_case
from tests.certificate.optimum_cases import (
    enclosure_case,
    gaussian_case,
    hinge_case,
    least_squares_case,
    logistic_case,
    ridge_case,
    stationary_case,
)

CASES: dict[str, Callable[[int], Case]] = {
    "D01/1": identity_case,
    "D02/1": errors_case,
    "D03/1": floor_case,
    "D04/1": hinge_case,
    "D05/1": least_squares_case,
    "D05/1 b": stationary_case,
    "D04/1 ridge": ridge_case,
    "D04/1 logistic": logistic_case,
    "D09/1": lambda seed: logistic_case(seed, 3),
    "D13/1": margin_case,
    "D13/1 upper": lambda seed: margin_case(seed, "upper"),
    "D14/1": inseparable_case,
    "D14/1 class": lambda seed: inseparable_case(seed, 3),
    "D15/1": enclosure_case,
    "D17/1": perceptron_case,
    "D19/3": gaussian_case,
    "P01/1": holdout_case,
    "P04/1": clipped_case,
    "P07/1": lambda seed: holdout_case(seed, "P07/1"),
    "P10/1": vc_case,
}
