"""Ctrl-C in the fit that a learner begins with ends the learner's fit too."""

import os
import signal

import numpy as np
import pytest

from assay.linear_model import LogisticRegression
from assay.mixture import GaussianMixtureClassifier
from assay.semi_supervised import EntropyLogisticRegression, GaussianEM, VouchedClassifier


@pytest.mark.parametrize(
    ("model", "first"),
    [
        (GaussianEM(), GaussianMixtureClassifier),
        (EntropyLogisticRegression(), LogisticRegression),
        (VouchedClassifier(LogisticRegression(), random_state=0), LogisticRegression),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_interrupt_of_the_first_fit_is_not_swallowed(model, first, monkeypatch):
    fit = first.fit

    def interrupted(self, X, y, sample_weight=None):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(10**9):
                pass
        except KeyboardInterrupt:
            return fit(self, X, y, sample_weight)

    monkeypatch.setattr(first, "fit", interrupted)
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) % 3 == 0, -1, (X[:, 0] > 0).astype(int))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
