"""Fitted learners with a penalty: margins of several classes and of L1 balls, stability, kernel perceptrons."""

import math
from itertools import product

import numpy as np

from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.kernel_ridge import KernelRidge
from assay.linear_model import LogisticRegression
from assay.svm import LinearSVC, LinearSVR
from assay.theory import stability
from bench.worlds._case import case
from bench.worlds.machines import GRID, fitted, interval, told
from bench.worlds.margins import CORNERS


@case("margin.multiclass", "softmax regression on three directions, 10 % wrong labels, n = 3000", slow=True)
def softmax_margin(rng, delta):
    n, place = 3000, rng.integers(0, 3, 3000)
    y = np.where(rng.random(n) < 0.1, (place + rng.integers(1, 3, n)) % 3, place)
    model = fitted(LogisticRegression(n_jobs=1), CORNERS[place], y)
    bound = told(model, CORNERS[place], y, delta, "margin.multiclass")
    answers = model.predict(CORNERS)
    return bound < np.mean([0.1 if answer == k else 0.95 for k, answer in enumerate(answers)]), bound < 2 / 3


SIGNS = np.array(list(product([-1.0, 1.0], repeat=10)))


@case("margin.l1", "L1 machine on signs in ten columns, one matters, 10 % wrong labels, n = 2000")
def l1_machine(rng, delta):
    X = rng.choice([-1.0, 1.0], (2000, 10))
    y = (np.where(rng.random(2000) < 0.1, -X[:, 0], X[:, 0]) > 0).astype(int)
    model = fitted(LinearSVC(penalty="l1", C=0.01, n_jobs=1), X, y)
    bound = told(model, X, y, delta, "margin.l1")
    wrong = float(np.mean(model.decision_function(SIGNS) * SIGNS[:, 0] <= 0))
    return bound < 0.1 + 0.8 * wrong, bound < 0.5


@case("compression.kernel-perceptron", "kernel perceptron on an interval, Gaussian kernel, n = 400", slow=True)
def kernel_updates(rng, delta):
    X, y = interval(rng, 400, 0.0)
    model = fitted(KernelPerceptron(gamma=8.0, max_iter=30, random_state=0, n_jobs=1), X, y)
    bound = told(model, X, y, delta, "compression.kernel-perceptron")
    wrong = float(np.mean(model.predict(GRID) != (np.abs(GRID[:, 0] - 0.5) < 0.25)))
    return bound < wrong - 1e-3, bound < 0.8


@case("compression.kernel-perceptron", "kernel perceptron on coin labels, n = 40 (below one: informative)", slow=True)
def kernel_updates_of_noise(rng, delta):
    X, y = rng.random((40, 1)), rng.integers(0, 2, 40)
    y[:2] = 0, 1
    model = fitted(KernelPerceptron(gamma=5000.0, max_iter=50, random_state=0, n_jobs=1), X, y)
    bound = told(model, X, y, delta, "compression.kernel-perceptron")
    return bound < 0.5, bound < 1


@case(
    "stability.uniform",
    "kernel logistic regression, its claim, two points, n = 1500 (below one: informative)",
    times=0.1,
    slow=True,
)
def kernel_logistic_stability(rng, delta):
    n, side = 1500, rng.integers(0, 2, 1500)
    y = np.where(rng.random(n) < 0.02, 1 - side, side)
    X = 3.0 * (2.0 * side[:, None] - 1)
    model = KernelLogisticRegression(C=0.56 / n, kernel="rbf", gamma=1.0, fit_intercept=False, n_jobs=1)
    bound = told(fitted(model, X, y), X, y, delta, "stability.uniform")
    answers = model.predict([[-3.0], [3.0]])
    return bound < np.mean([0.02 if answer == k else 0.98 for k, answer in enumerate(answers)]), bound < 1


CIRCLE = 2 * math.pi * (np.arange(4000) + 0.5) / 4000


def beside(rng, n):
    """Points of the circle, told apart by the first coordinate, 10 % wrong labels."""
    angle = rng.uniform(0, 2 * math.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < 0.1)).astype(int)


def circle_risk(model):
    score = model.decision_function(np.column_stack([np.cos(CIRCLE), np.sin(CIRCLE)]))
    return 0.1 + 0.8 * float(np.mean((score > 0) != (np.cos(CIRCLE) > 0))) - 1e-3  # the grid is off by less


def in_ball(model, rng, delta, n):
    X, y = beside(rng, n)
    fitted(model, X, y)
    claims = model.certify(X, y, delta=delta, radius=1.0 + 1e-9).claims
    bound = min([claim.value for claim in claims if claim.name == "stability.ball"], default=1.0)
    return bound < circle_risk(model), bound < 1


@case("stability.ball", "logistic regression on the circle, its claim, n = 6000 (below one: informative)", slow=True)
def logistic_in_ball(rng, delta):
    return in_ball(LogisticRegression(C=2e-5, fit_intercept=False, n_jobs=1), rng, delta, 6000)


@case(
    "stability.ball",
    "linear machine with intercept on the circle, its claim, n = 4000 (below one: informative)",
    slow=True,
)
def machine_in_ball(rng, delta):
    model = LinearSVC(loss="hinge", C=1e-4, intercept_scaling=0.1, n_jobs=1)
    return in_ball(model, rng, delta, 4000)


def waves(rng, n):
    """Points of the circle, y = half the first coordinate plus uniform noise."""
    angle = rng.uniform(0, 2 * math.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X, 0.5 * X[:, 0] + rng.uniform(-1, 1, n)


@case("stability", "linear support vector regression on the circle, absolute loss up to 2, n = 1000")
def regression_machine(rng, delta):
    n, C, clip = 1000, 5e-4, 2.0
    X, y = waves(rng, n)
    model = fitted(LinearSVR(C=C, fit_intercept=False, n_jobs=1), X, y)
    gap = model.certify(X, y).find("linear-svr.gap").value
    beta = stability.uniform_stability(n, 1 / (C * n), 1.0)
    loss = float(np.minimum(np.abs(y - X @ model.coef_), clip).mean())
    bound = stability.stability_bound(loss, beta, n, delta, high=clip) + stability.suboptimality_slack(gap, 1.0, 1.0)
    away = float(np.sum((model.coef_ - [0.5, 0.0]) ** 2))
    return bound < (1 + away / 2) / 2, bound < 1


@case(
    "stability",
    "kernel ridge regression, squared loss, n = 300 (below its largest value: informative)",
    slow=True,
)
def ridge_stability(rng, delta):
    """|y| <= 1, so the optimum has |f| <= sqrt(n / alpha) and residuals of at most B."""
    n = 300
    alpha, B = float(n), 2.0
    x = rng.random((n, 1))
    y = 0.5 * np.sin(6 * x[:, 0]) + rng.uniform(-0.5, 0.5, n)
    model = KernelRidge(alpha=alpha, kernel="rbf", gamma=10.0).fit(x, y)
    beta = stability.uniform_stability(n, 2 * alpha / n, 1.0, lipschitz=2 * B)
    loss = float(((y - model.predict(x)) ** 2).mean())
    bound = stability.stability_bound(loss, beta, n, delta, high=B * B) + stability.suboptimality_slack(
        1e-9, 2 * alpha / n, 1.0, 2 * B
    )
    risk = 1 / 12 + float(((model.predict(GRID) - 0.5 * np.sin(6 * GRID[:, 0])) ** 2).mean())
    return bound < risk - 1e-5, bound < B * B


@case("stability", "the same machine without the movement of the model", control=True)
def stability_unpaid(rng, delta):
    """A penalty of nothing: coin labels learnt by heart, their training loss taken for the risk."""
    x, y = rng.random((60, 1)), rng.choice([-1.0, 1.0], 60)
    model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1e5).fit(x, y)
    ramp = float(np.clip(1 - y * model.predict(x), 0, 1).mean())
    return stability.stability_bound(ramp, 0.0, 60, delta) < 0.5, True
