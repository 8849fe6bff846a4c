"""A student on a line whose teacher is certified: classes N(-+1, 1), a threshold each, risks by the normal law."""

import warnings

import numpy as np
from scipy.stats import norm

from assay.linear_model import LogisticRegression
from assay.neighbors import KNeighborsClassifier
from assay.semi_supervised import VouchedClassifier
from assay.theory.concentration import clopper_pearson_upper
from bench.worlds._case import case

LABELLED, UNLABELLED = 60, 120


def draw(rng, labelled=LABELLED, unlabelled=UNLABELLED):
    """Return rows and labels, of which those of the last rows are hidden."""
    y = rng.integers(0, 2, labelled + unlabelled)
    x = rng.normal(2.0 * y - 1.0)
    return x[:, None], np.where(np.arange(len(y)) < labelled, y, -1)


def risk(model):
    """Return the error rate of a threshold on new rows, half of each class."""
    w, b = float(model.coef_[0, 0]), float(model.intercept_[0])
    if w == 0:
        return 0.5
    cut, up = -b / w, w > 0
    low, high = norm.cdf(cut - 1.0), norm.sf(cut + 1.0)  # a row of class 1 below the cut, one of class 0 above it
    return 0.5 * (low + high) if up else 1 - 0.5 * (low + high)


def fitted(rng, **more):
    """Return a model fitted to fresh rows, and these."""
    while True:
        X, y = draw(rng, **more)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = VouchedClassifier(LogisticRegression(n_jobs=1), n_jobs=1, random_state=int(rng.integers(2**31)))
                return model.fit(X, y), X, y
        except ValueError:  # the split left a class without rows, which looks at no error
            continue


def bound(model, X, y, delta):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.certify(X, y, delta=delta, hypothesis_class_fixed=True)
    return next((claim.value for claim in found.claims if claim.name == "teacher.disagreement"), 1.0)


@case("teacher.disagreement", "student and teacher on a line, 60 labels, 120 rows without", times=0.25)
def honest(rng, delta):
    model, X, y = fitted(rng)
    limit = bound(model, X, y, delta)
    return limit < risk(model.estimator_), limit < 0.6


@case("teacher.disagreement", "teacher judged by rows that it remembers, labels are coins", control=True, times=0.25)
def own_rows(rng, delta):
    """The nearest row's label is right on every row that was seen, and on one half of new data."""
    x, y = rng.normal(size=(40, 1)), rng.integers(0, 2, 40)
    errors = int(np.sum(KNeighborsClassifier(1, n_jobs=1).fit(x, y).predict(x) != y))
    limit = clopper_pearson_upper(errors, 40, delta / 2) + clopper_pearson_upper(0, UNLABELLED, delta / 2)
    return limit < 0.5, True
