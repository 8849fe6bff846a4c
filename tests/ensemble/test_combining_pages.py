"""The page about combining learners and its example run and show what they say."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from assay.neural_network import MLPRegressor
from tests.tree.test_examples import programme


@pytest.mark.mission("ENS-71")
def test_boosting_lowers_the_bias_and_bagging_the_variance():
    found = programme("combining").parts(runs=25)
    assert found["boosted stumps"].bias2 < 0.7 * found["stump"].bias2
    assert found["bagged deep trees"].variance < 0.7 * found["deep tree"].variance


@pytest.mark.mission("ENS-72")
def test_the_average_of_networks_in_different_minima_is_no_worse_than_their_mean():
    """The members have come to rest (one that had not would warn, which is an error here), all far below the error of a
    constant, in two different minima; the errors are worked out again from what they predict."""
    module = programme("combining")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone, together = module.networks()
    new, truth = module.sample(np.random.default_rng(2), 1000)
    assert alone.max() < 0.3 * truth.var()
    ranked = np.sort(alone)
    assert ranked[2] < 1.01 * ranked[0]  # three in the lower minimum, three in the other
    assert ranked[3] > 1.5 * ranked[2]
    assert ranked[5] < 1.01 * ranked[3]
    X, y = module.sample(np.random.default_rng(1), 200)
    net = MLPRegressor(hidden_layer_sizes=2, activation="tanh", solver="lbfgs", alpha=1e-3, tol=1e-7, max_iter=5000)
    said = np.stack([clone(net).set_params(random_state=k).fit(X, y).predict(new) for k in range(6)])
    assert alone == pytest.approx(np.square(said - truth).mean(axis=1), rel=1e-6)
    assert together == pytest.approx(np.square(said.mean(axis=0) - truth).mean(), rel=1e-6)
    assert together < 0.9 * alone.mean()


def test_a_vote_that_rejects(capsys, tmp_path):
    module = programme("combining")
    model, certificate, held = module.committee()
    assert 0.5 < model.coverage(held[0]) < 1
    assert certificate.find("selective.fixed").value < 0.3
