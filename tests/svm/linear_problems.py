"""Random problems for linear machines, their objective from its definition, and a certificate that is checked."""

import numpy as np

import assay

HINGE = ("hinge", "squared_hinge")
TUBE = ("epsilon_insensitive", "squared_epsilon_insensitive")


def random_problem(seed):
    """Return rows with duplicates, constant and badly scaled columns; labels; a target; weights or None; C."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(6, 60)), int(random.integers(1, 8))
    X = random.normal(size=(n, d))
    if random.random() < 0.3:
        X[: n // 4] = X[n // 2 : n // 2 + n // 4]
    if random.random() < 0.3:
        X[:, 0] = 3.0
    if random.random() < 0.2:
        X[:, -1] *= 10.0
    y = (X @ random.normal(size=d) + random.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    target = X[:, 0] - X[:, -1] + random.standard_t(2, size=n)
    weight = random.uniform(0.1, 3.0, n) if random.random() < 0.4 else None
    return X, y, target, weight, float(10 ** random.uniform(-3, 3))


def objective(model, X, y, weight, params):
    """Return P at a fitted model, of two classes or of numbers, from its definition."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    s = params.get("intercept_scaling", 1.0) if params.get("fit_intercept", True) else np.inf
    f, epsilon = X @ w + b, params.get("epsilon", 0.0)
    beyond = np.maximum(1 - (2 * y - 1) * f if "hinge" in params["loss"] else np.abs(y - f) - epsilon, 0.0)
    c = params["C"] * (np.ones(len(y)) if weight is None else weight)
    return 0.5 * (w @ w + (b / s) ** 2) + c @ (beyond**2 if params["loss"].startswith("squared") else beyond)


def certified(model, X, y, weight=None):
    certificate = model.certify(X, y, sample_weight=weight)
    report = assay.verify(certificate, model, X, y, sample_weight=weight)
    assert report.holds, report.reason
    return certificate
