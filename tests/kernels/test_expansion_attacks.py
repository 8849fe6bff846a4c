"""Attacks on the claims of kernel expansions: a mutant is accepted only if what it says is still true.

A mutant changes the model, the numbers of the claim or the labels, and is sealed again with fingerprints that fit, as a
forger who has the software could do. Truth is decided from the definitions, without the proof of the claim.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from assay.decomposition import KernelPCA
from assay.discriminant_analysis import KernelDiscriminantAnalysis
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.kernels import embedding
from tests.certificate import forge

MUTANTS = 60


def draw(seed, kernel):
    random = np.random.default_rng(seed)
    X = random.normal(size=(20, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3).astype(int)
    return X, y, {"kernel": kernel, "gamma": 0.8, "degree": 2, "coef0": 1.0}


def plain(model):
    """Return the arrays that the checker reads, as an object that can be changed."""
    copy = forge.Forged.copy_of(model)
    copy.gram = model._kernel()(model.support_vectors_)
    copy.points, copy.kernel = model.support_vectors_, model._kernel()
    return copy


def mutate(model, claim, y, random):
    """Return model, claim and labels with one thing changed a little, or a lot."""
    model = model.but(**{name: np.copy(part) for name, part in model.arrays.items()})
    size = 10.0 ** random.uniform(-9, 0)
    params, value, y = dict(claim.params), claim.value, y.copy()
    which = random.integers(6)
    if which == 0:
        model.pair_coef_ = model.pair_coef_ * (1 + size * random.normal(size=model.pair_coef_.shape))
    elif which == 1:
        model.pair_coef_[:, random.integers(model.pair_coef_.shape[1])] += random.choice([-1.0, 1.0, size])
    elif which == 2:
        model.intercept_ = model.intercept_ + size * random.normal()
    elif which == 3:
        numbers = [name for name, number in params.items() if isinstance(number, float)]
        name = random.choice(numbers)
        params[str(name)] = float(params[name] * np.exp(size * random.normal()))
    elif which == 4:
        y[random.integers(len(y))] ^= 1
    value = float(value * 10.0 ** random.uniform(-3, 12)) if random.random() < 0.8 else value
    return model, replace(claim, params=params, value=value), y


def holds(model, claim, X, y):
    return forge.Case((claim,), model, X, y).verify().holds


# Truth ------------------------------------------------------------------------------------------------------


def scores(model):
    return model.gram @ model.pair_coef_[0]


def logistic_is_true(model, claim, X, y):
    C, sign = claim.params["C"], np.where(y == 1, 1.0, -1.0)
    free, l2 = claim.params["intercept"], claim.params["penalty"]["L2"]

    def objective(f, square):
        return 0.5 * l2 * square + C * np.logaddexp(0, -sign * f).sum()

    B = embedding(model.gram)

    def whitened(v):
        f = B @ v[:-1] + v[-1] * free
        pull = -C * sign / (1 + np.exp(sign * f))
        return objective(f, v[:-1] @ v[:-1]), np.append(l2 * v[:-1] + B.T @ pull, pull.sum() * free)

    best = minimize(whitened, np.zeros(len(y) + 1), jac=True, method="BFGS", options={"gtol": 1e-9}).fun
    own = objective(scores(model) + model.intercept_[0], model.pair_coef_[0] @ scores(model))
    return own - best <= claim.value + 1e-9


def mistakes_are_true(model, claim, X, y):
    beta, sign = model.pair_coef_[0], np.where(y == 1, 1.0, -1.0)
    K = model.kernel(X, model.points) + claim.params["intercept"]
    square = beta @ K[model.support_] @ beta
    margin = (sign * (K @ beta)).min() / np.sqrt(square)
    counted = np.abs(beta).sum() == claim.params["updates"] and (beta * sign[model.support_] >= 0).all()
    offset = model.intercept_[0] == beta.sum() * claim.params["intercept"]
    largest = model.kernel.diagonal(X).max() + claim.params["intercept"]
    return (
        counted
        and offset
        and margin >= claim.params["margin"] * (1 - 1e-9)
        and claim.value >= largest / margin**2 - 1e-9
    )


def components_are_true(model, claim, X, y):
    H = np.eye(len(X)) - 1 / len(X)
    G = H @ model.gram @ H
    span = np.linalg.qr(model.pair_coef_.T)[0]
    missed = np.linalg.eigvalsh(G)[-span.shape[1] :].sum() - np.trace(span.T @ G @ span)
    return missed / len(X) <= claim.value + 1e-12


def fisher_is_true(model, claim, X, y):
    ones = np.stack([y == 0, y == 1]).astype(float)
    K, mu, (p, q) = model.gram, claim.params["mu"], claim.params["priors"]
    means = ones / ones.sum(axis=1, keepdims=True) @ K
    N = K @ K - sum(one.sum() * np.outer(mean, mean) for one, mean in zip(ones, means))
    regular, apart, alpha = N + mu * np.eye(len(X)), means[1] - means[0], model.pair_coef_[0]
    best = p * q * apart @ np.linalg.solve(regular, apart)
    reached = p * q * (alpha @ apart) ** 2 / (alpha @ regular @ alpha)
    return best - reached <= claim.value + 1e-12


CLAIMS = {
    "kernel-duality-gap": (lambda settings: KernelLogisticRegression(C=3.0, **settings), logistic_is_true),
    "kernel-perceptron.mistakes": (
        lambda settings: KernelPerceptron(random_state=0, max_iter=20_000, **settings),
        mistakes_are_true,
    ),
    "kernel-pca.optimality": (lambda settings: KernelPCA(3, **settings), components_are_true),
    "kernel-lda.optimality": (lambda settings: KernelDiscriminantAnalysis(mu=0.1, **settings), fisher_is_true),
}


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("name", CLAIMS)
def test_no_false_mutant_is_accepted(name, kernel):
    make, is_true = CLAIMS[name]
    accepted = refused = 0
    for seed in range(4):
        X, y, settings = draw(seed, kernel)
        fitted = make(settings).fit(X, y)
        claim, model = fitted.certify(X, y).find(name), plain(fitted)
        assert holds(model, claim, X, y)
        assert is_true(model, claim, X, y)
        random = np.random.default_rng([seed, 1])
        for _ in range(MUTANTS // 4):
            forged, stated, labels = mutate(model, claim, y, random)
            if holds(forged, stated, X, labels):
                accepted += 1
                assert is_true(forged, stated, X, labels), stated
            else:
                refused += 1
    assert min(accepted, refused) > 5
