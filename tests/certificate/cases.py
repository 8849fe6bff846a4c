"""Small problems with one honest claim each, by its name, for tests and attacks: `CASES[name](seed)`."""

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
    "data.identity": identity_case,
    "train.errors": errors_case,
    "train.error-floor": floor_case,
    "duality-gap": hinge_case,
    "suboptimality": least_squares_case,
    "suboptimality b": stationary_case,
    "duality-gap ridge": ridge_case,
    "duality-gap logistic": logistic_case,
    "multinomial.gap": lambda seed: logistic_case(seed, 3),
    "margin.bounds": margin_case,
    "margin.bounds upper": lambda seed: margin_case(seed, "upper"),
    "inseparability": inseparable_case,
    "inseparability class": lambda seed: inseparable_case(seed, 3),
    "solution.enclosure": enclosure_case,
    "perceptron.mistakes": perceptron_case,
    "gaussian.mle": gaussian_case,
    "holdout.binomial": holdout_case,
    "holdout.empirical-bernstein": clipped_case,
    "holdout.selection": lambda seed: holdout_case(seed, "holdout.selection"),
    "vc": vc_case,
}
