"""Gaussian mixtures beside their peers: one start, the same number of EM steps, the log-likelihood beside the time.

    python -m bench mixture --only full         one case; without --only all of them
    python -m bench mixture --only whole        start included: k-means, then EM until a step gains less than 1e-3

The judge computes the mean log-likelihood per row of what each contestant returns, by matrix products of its own.
"""

import argparse
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bench.harness import Contestant, compare, save, touch_memory

STEPS = 20


class Case(NamedTuple):
    """Rows, columns, components and the kind of covariance."""

    n: int
    d: int
    k: int
    kind: str


CASES = {
    "full": Case(200_000, 10, 8, "full"),
    "diag": Case(200_000, 10, 8, "diag"),
    "wide": Case(50_000, 50, 5, "full"),
    "many": Case(100_000, 32, 16, "full"),
    "tied": Case(200_000, 10, 8, "tied"),
    "spherical": Case(200_000, 10, 8, "spherical"),
}


def clouds(case: Case, seed: int = 0) -> np.ndarray:
    """Return rows of overlapping Gaussian clouds, each with a covariance of its own."""
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(case.k, case.d))
    shapes = rng.normal(size=(case.k, case.d, case.d)) / np.sqrt(case.d) + 0.5 * np.eye(case.d)
    z = rng.integers(0, case.k, case.n)
    X = np.empty((case.n, case.d))
    for c in range(case.k):
        X[z == c] = centers[c] + rng.normal(size=(int(np.sum(z == c)), case.d)) @ shapes[c].T
    return X


def start_of(X: np.ndarray, case: Case) -> dict[str, np.ndarray]:
    """Return the start that all contestants are given."""
    rng, v, k = np.random.default_rng(1), X.var(axis=0), case.k
    precisions = {
        "full": np.tile(np.diag(1 / v), (k, 1, 1)),
        "tied": np.diag(1 / v),
        "diag": np.tile(1 / v, (k, 1)),
        "spherical": np.full(k, 1 / v.mean()),
    }
    means = X[rng.choice(len(X), k, replace=False)]
    return {"weights_init": np.full(k, 1 / k), "means_init": means, "precisions_init": precisions[case.kind]}


def mean_log_likelihood(X: np.ndarray, weights: Any, means: Any, covariances: Any) -> float:
    """Return the mean log-likelihood per row; covariances (k, d, d)."""
    parts = []
    for w, m, S in zip(weights, means, covariances, strict=True):
        L = np.linalg.cholesky(S)
        z = np.linalg.solve(L, (X - m).T)
        parts.append(np.log(w) - 0.5 * (z**2).sum(axis=0) - np.log(np.diag(L)).sum() - 0.5 * len(m) * np.log(2 * np.pi))
    return float(np.mean(logsumexp(parts, axis=0)))


def matrices(covariances: np.ndarray, case: Case) -> np.ndarray:
    """Return covariances of any kind as (k, d, d)."""
    if case.kind in ("full", "tied"):
        return np.broadcast_to(covariances, (case.k, case.d, case.d))
    columns = covariances if case.kind == "diag" else np.repeat(covariances[:, None], case.d, axis=1)
    return columns[:, :, None] * np.eye(case.d)


def one_dal(X: np.ndarray, case: Case, start: dict[str, np.ndarray]) -> Callable[[], tuple] | None:
    """Return oneDAL's EM through daal4py, if it is installed and knows the kind."""
    if importlib.util.find_spec("daal4py") is None or case.kind not in ("full", "diag"):
        return None
    import daal4py

    storage = {"full": "full", "diag": "diagonal"}[case.kind]
    precisions = start["precisions_init"]
    covariances = [np.linalg.inv(P) if case.kind == "full" else (1 / P)[None] for P in precisions]

    def run() -> tuple:
        solver = daal4py.em_gmm(case.k, maxIterations=STEPS, accuracyThreshold=1e-300, covarianceStorage=storage)
        found = solver.compute(X, start["weights_init"][None], start["means_init"], covariances)
        shaped = np.array(found.covariances)
        return found.weights.ravel(), found.means, shaped if case.kind == "full" else shaped[:, 0]

    return run


def fixed_steps(name: str, repeats: int) -> list[dict[str, Any]]:
    """Time STEPS steps of EM from one start."""
    from sklearn.mixture import GaussianMixture as Reference

    from assay.mixture import GaussianMixture

    case = CASES[name]
    X = clouds(case)
    start = start_of(X, case)

    def fit(learner: Any) -> tuple:
        model = learner(case.k, covariance_type=case.kind, tol=0.0, max_iter=STEPS, reg_covar=1e-6, **start).fit(X)
        return model.weights_, model.means_, model.covariances_

    contestants = [
        Contestant("assay", lambda: fit(GaussianMixture), peer=False),
        Contestant("scikit-learn", lambda: fit(Reference)),
    ]
    other = one_dal(X, case, start)
    contestants += [] if other is None else [Contestant("oneDAL (daal4py)", other)]
    title = f"{name}: {case.n:,} x {case.d}, {case.k} components, {case.kind} covariances, {STEPS} steps of EM"
    return compare(
        title,
        contestants,
        lambda found: mean_log_likelihood(X, found[0], found[1], matrices(found[2], case)),
        better="higher",
        repeats=repeats,
    )


def whole(repeats: int) -> list[dict[str, Any]]:
    """Time a whole fit with its defaults, k-means start included."""
    from sklearn.mixture import GaussianMixture as Reference

    from assay.mixture import GaussianMixture

    case = CASES["full"]
    X = clouds(case)

    def fit(learner: Any) -> tuple:
        model = learner(case.k, random_state=0, max_iter=300).fit(X)
        return model.weights_, model.means_, model.covariances_

    return compare(
        f"whole: {case.n:,} x {case.d}, {case.k} components, k-means start, until a step gains less than 1e-3",
        [
            Contestant("assay", lambda: fit(GaussianMixture), peer=False),
            Contestant("scikit-learn", lambda: fit(Reference)),
        ],
        lambda found: mean_log_likelihood(X, *found),
        better="higher",
        repeats=repeats,
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench mixture", description=__doc__)
    parser.add_argument("--only", choices=[*CASES, "whole"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # nobody converges in a fixed number of steps
    touch_memory(2)
    rows: list[dict[str, Any]] = []
    for name in [*CASES, "whole"] if options.only is None else [options.only]:
        rows += whole(options.repeats) if name == "whole" else fixed_steps(name, options.repeats)
    if options.only is None:
        save("mixture", rows)
