"""Maps and restricted Boltzmann machines beside MiniSom, torchsom and scikit-learn: times in one run, quality beside
each.

    python -m bench networks                  all cases
    python -m bench networks --only online    one of them

Maps are judged by the mean distance of the rows to their nearest prototype, all computed here; all start from the
same rows, and online ones have the same laws of rate and radius. Machines make the same steps from the same random
numbers, and are judged by the pseudo-likelihood of the rows. In small batches rounding grows to another path within
three passes, so the mean over several seeds counts.
"""

import argparse
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from scipy.spatial.distance import cdist
from sklearn import neural_network as peer

from assay import neural_network as ours
from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)
SEEDS = 5


def clouds(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Return rows of 30 clouds."""
    rng = np.random.default_rng(seed)
    return rng.normal(scale=4, size=(30, d))[rng.integers(30, size=n)] + rng.normal(size=(n, d))


def quantisation(X: np.ndarray) -> Any:
    """Return the judge of maps: the mean distance of rows to their nearest prototype."""
    return lambda W: float(np.sqrt(cdist(X, W.reshape(-1, X.shape[1]), "sqeuclidean").min(axis=1)).mean())


def case_online(repeats: int) -> list:
    X, side = clouds(20_000, 16), 20
    first = X[np.random.default_rng(1).choice(len(X), side * side, replace=False)]
    title = "map 20 x 20, 20,000 x 16, row by row, one pass; mean distance to the nearest prototype"

    def assay() -> np.ndarray:
        options = {"learning_rate_end": 0.0, "radius": 5.0, "radius_end": 1.0, "decay": "linear", "max_iter": 1}
        model = ours.SelfOrganizingMap((side, side), algorithm="online", init=first, random_state=0, **options)
        return model.fit(X).prototypes_

    def minisom() -> np.ndarray:
        from minisom import MiniSom

        som = MiniSom(
            side, side, X.shape[1], sigma=5.0, learning_rate=0.5, decay_function="linear_decay_to_zero",
            sigma_decay_function="linear_decay_to_one", random_seed=0,
        )  # fmt: skip
        som._weights = first.reshape(side, side, -1).copy()
        som.train(X, len(X), random_order=True)
        return som.get_weights()

    runs = [Contestant("assay", assay, peer=False)]
    runs += [Contestant("MiniSom", minisom)] if find_spec("minisom") else []
    return compare(title, runs, quantisation(X), better="lower", repeats=repeats)


def case_batch(repeats: int) -> list:
    X, side, passes = clouds(20_000, 16), 20, 20
    first = X[np.random.default_rng(1).choice(len(X), side * side, replace=False)]
    title = f"map 20 x 20, 20,000 x 16, batch, {passes} passes; mean distance to the nearest prototype"

    def assay() -> np.ndarray:
        options = {"radius": 5.0, "radius_end": 0.7, "max_iter": passes, "tol": 0.0}
        return ours.SelfOrganizingMap((side, side), init=first, **options).fit(X).prototypes_

    def torchsom() -> np.ndarray:
        import torch
        from torchsom import SOM

        rows = torch.as_tensor(X, dtype=torch.float32)
        som = SOM(x=side, y=side, num_features=X.shape[1], epochs=passes, batch_size=len(X), sigma=5.0, device="cpu")
        som.initialize_weights(rows, mode="pca")
        som.fit(rows)
        return som.weights.detach().numpy().astype(float)

    runs = [Contestant("assay", assay, peer=False)]
    runs += [Contestant("torchsom", torchsom)] if find_spec("torchsom") and find_spec("torch") else []
    return compare(title, runs, quantisation(X), better="lower", repeats=repeats)


def _machines(room: Any, params: dict[str, Any], X: np.ndarray) -> list:
    return [room.BernoulliRBM(**params, random_state=seed).fit(X) for seed in range(SEEDS)]


def _pseudo_likelihood(models: list, X: np.ndarray) -> float:
    """Return the mean over machines, and print each."""
    found = [float(model.score_samples(X).mean()) for model in models]
    console.print(f"{type(models[0]).__module__.split('.')[0]}, pseudo-likelihood by seed: {np.round(found, 2)}")
    return float(np.mean(found))


def case_rbm(repeats: int) -> list:
    rng = np.random.default_rng(0)
    parts = (rng.uniform(size=(8, 256)) < 0.3).astype(float)
    X = np.minimum((rng.uniform(size=(20_000, 8)) < 0.4) @ parts, 1.0)
    rows = []
    for size in (10, 100):
        title = f"restricted Boltzmann machine, 20,000 x 256, 128 hidden, batch {size}, 3 passes, pseudo-likelihood"
        title += f"; sum of the times and mean of {SEEDS} seeds"
        params = {"n_components": 128, "learning_rate": 0.02, "batch_size": size, "n_iter": 3}
        runs = [
            Contestant(name, lambda room=room, p=params: _machines(room, p, X), peer=name != "assay")
            for name, room in (("assay", ours), ("scikit-learn", peer))
        ]
        rows += compare(title, runs, lambda models: _pseudo_likelihood(models, X), better="higher", repeats=repeats)
    return rows


CASES = {name.removeprefix("case_"): run for name, run in list(globals().items()) if name.startswith("case_")}


def main(arguments: list[str]) -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench networks", description=__doc__, formatter_class=about)
    parser.add_argument("--only", choices=sorted(CASES), nargs="+", help="some cases; all of them without it")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each contestant (default 3)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(2.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.only is None or name in options.only:
            rows += run(options.repeats)
    console.print(f"written to {save('-'.join(['networks', *(options.only or [])]), rows)}")
