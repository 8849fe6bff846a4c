"""Hidden Markov models beside hmmlearn: one start, ten steps of EM, the log-likelihood beside the time.

    python -m bench hmm --only gaussian         one case; without --only all
    python -m bench hmm --repeats 3

hmmlearn runs with both of its implementations, in logarithms (its default) and scaled. The judge computes the
log-likelihood of what each contestant returns by hmmlearn's own `score`, in logarithms.
"""

import argparse
import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.harness import Contestant, compare, save, touch_memory

STEPS = 10


def gaussian() -> tuple[np.ndarray, int, dict[str, np.ndarray]]:
    """Return 100,000 rows of 4 columns drawn from 8 states, and a start."""
    from assay.hmm import GaussianHMM

    rng, k = np.random.default_rng(0), 8
    true = GaussianHMM(k)
    true.startprob_, true.transmat_ = np.full(k, 1 / k), (np.full((k, k), 0.02) + 0.84 * np.eye(k))
    true.means_ = 2 * rng.normal(size=(k, 4))
    true.covars_ = np.ones((k, 4))
    X, _ = true.sample(100_000, random_state=0)
    start = {"startprob_": np.full(k, 1 / k), "transmat_": np.full((k, k), 1 / k), "means_": X[: 100 * k : 100]}
    return X, k, {**start, "covars_": np.full((k, 4), 4.0)}


def categorical() -> tuple[np.ndarray, int, dict[str, np.ndarray]]:
    """Return 200,000 symbols of 32 kinds drawn from 16 states, and a start."""
    from assay.hmm import CategoricalHMM

    rng, k, symbols = np.random.default_rng(0), 16, 32
    true = CategoricalHMM(k)
    true.startprob_, true.transmat_ = np.full(k, 1 / k), rng.dirichlet(np.full(k, 0.3), k)
    true.emissionprob_ = rng.dirichlet(np.full(symbols, 0.3), k)
    X, _ = true.sample(200_000, random_state=1)
    start = {"startprob_": np.full(k, 1 / k), "transmat_": rng.dirichlet(np.ones(k), k)}
    return X, k, {**start, "emissionprob_": rng.dirichlet(np.ones(symbols), k)}


def poisson() -> tuple[np.ndarray, int, dict[str, np.ndarray]]:
    """Return 100,000 rows of 2 counts drawn from 8 states, and a start."""
    from assay.hmm import PoissonHMM

    rng, k = np.random.default_rng(0), 8
    true = PoissonHMM(k)
    true.startprob_, true.transmat_ = np.full(k, 1 / k), (np.full((k, k), 0.02) + 0.84 * np.eye(k))
    true.lambdas_ = rng.gamma(2.0, 6.0, (k, 2))
    X, _ = true.sample(100_000, random_state=0)
    start = {"startprob_": np.full(k, 1 / k), "transmat_": np.full((k, k), 1 / k)}
    return X, k, {**start, "lambdas_": rng.gamma(2.0, 6.0, (k, 2))}


CASES: dict[str, Callable[[], tuple[np.ndarray, int, dict[str, np.ndarray]]]] = {
    "gaussian": gaussian,
    "categorical": categorical,
    "poisson": poisson,
}


def run(name: str, repeats: int) -> list[dict[str, Any]]:
    """Time STEPS steps of EM from one start."""
    from hmmlearn import hmm as peer

    from assay import hmm

    X, k, start = CASES[name]()
    kind = f"{name.capitalize()}HMM"

    def fit(learner: Any, **options: Any) -> Any:
        model = learner(k, init_params="", n_iter=STEPS, tol=-1e300, **options)
        for part, value in start.items():
            setattr(model, part, value)
        return model.fit(X)

    def quality(model: Any) -> float:
        judge = getattr(peer, kind)(k)
        for part in start:
            value = getattr(model, part)
            setattr(judge, part, np.array([np.diag(one) for one in value]) if part == "covars_" else value)
        return float(judge.score(X))

    contestants = [
        Contestant("assay", lambda: fit(getattr(hmm, kind)), peer=False),
        Contestant("hmmlearn, scaled", lambda: fit(getattr(peer, kind), implementation="scaling")),
        Contestant("hmmlearn, logarithms", lambda: fit(getattr(peer, kind)), once=True),
    ]
    title = f"{name}: {X.shape[0]:,} x {X.shape[1]}, {k} states, {STEPS} steps of EM"
    return compare(title, contestants, quality, better="higher", repeats=repeats)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench hmm", description=__doc__)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    touch_memory(2)
    rows: list[dict[str, Any]] = []
    for name in CASES if options.only is None else [options.only]:
        rows += run(name, options.repeats)
    if options.only is None:
        save("hmm", rows)
