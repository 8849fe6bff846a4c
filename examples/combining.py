"""Why combine learners: three reasons, with numbers
=================================================

Boosting lowers the bias, bagging the variance, and an average of networks that are stuck in different minima is no
worse than they are on average.

Run `python examples/combining.py [rejection.png]`; with a file name error against coverage is drawn (needs matplotlib).
"""

import sys
from typing import Any

import numpy as np

import assay
from assay.ensemble import BaggingRegressor, HistGradientBoostingRegressor, VotingClassifier, VotingRegressor
from assay.linear_model import LogisticRegression
from assay.metrics.diversity import ambiguity
from assay.neural_network import MLPRegressor
from assay.textbook.risk import BiasVariance, bias_variance
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

GRID = np.linspace(0.05, 0.95, 25)[:, None]


def wave(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * x)


def sample(rng: np.random.Generator, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of one column and a wave with noise."""
    x = rng.uniform(size=n)
    return x[:, None], wave(x) + 0.3 * rng.normal(size=n)


def parts(runs: int = 40) -> dict[str, BiasVariance]:
    """Return bias and variance of a stump, boosted stumps, a deep tree and bagged deep trees."""
    learners = {
        "stump": DecisionTreeRegressor(max_depth=1),
        "boosted stumps": HistGradientBoostingRegressor(max_depth=1, max_iter=60, learning_rate=0.3),
        "deep tree": DecisionTreeRegressor(),
        "bagged deep trees": BaggingRegressor(n_estimators=15, random_state=0),
    }
    return {
        name: bias_variance(one, sample, GRID, wave(GRID[:, 0]), noise=0.09, runs=runs)
        for name, one in learners.items()
    }


def networks(members: int = 6) -> tuple[np.ndarray, float]:
    """Return the errors of networks that start differently and end in different minima, and that of their average.

    Each is fitted until its gradient vanishes: those with a larger error will not get better by more steps.
    """
    X, y = sample(np.random.default_rng(1), 200)
    net = {"hidden_layer_sizes": 2, "activation": "tanh", "solver": "lbfgs", "alpha": 1e-3, "tol": 1e-7}
    nets = [(f"net{k}", MLPRegressor(**net, max_iter=5000, random_state=k)) for k in range(members)]
    model = VotingRegressor(nets).fit(X, y)
    new, truth = sample(np.random.default_rng(2), 1000)
    found = ambiguity(model.transform(new), model.weights_, truth)
    alone = ((model.transform(new) - truth[:, None]) ** 2).mean(axis=0)
    return alone, found.means["ensemble_error"]


def committee() -> tuple[VotingClassifier, Any, Any]:
    """Return a vote that rejects rows on which its members do not agree, its certificate and the hold-out rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=3000) > 0.5).astype(int)
    members = [(f"tree{k}", DecisionTreeClassifier(max_depth=3, max_features=2, random_state=k)) for k in range(6)]
    model = VotingClassifier([*members, ("linear", LogisticRegression())], rule="majority", share=0.8)
    train, held = (X[:1500], y[:1500]), (X[1500:], y[1500:])
    certificate = model.fit(*train).certify(*train, holdout=held)
    assert assay.verify(certificate, model, *train, holdout=held).holds
    return model, certificate, held


def main(picture: str | None = None) -> None:
    for name, one in parts().items():
        print(f"{name}: squared bias {one.bias2:.3f}, variance {one.variance:.3f}")
    alone, together = networks()
    span = f"{alone.min():.3f} to {alone.max():.3f}, mean {alone.mean():.3f}"
    print(f"networks alone {span}; their average {together:.3f}")
    model, certificate, held = committee()
    stated = certificate.find("selective.fixed").statement
    print(f"a vote that decides {model.coverage(held[0]):.0%} of the rows: {stated}")
    if picture is not None:
        from assay.plot import rejection

        rejection(model, *held).savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
