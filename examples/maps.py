"""Colours on a map, letters by resonance, bars and stripes by a machine: networks that learn without labels
=========================================================================================================

A self-organising map lays 500 mixed colours on a grid so that like colours are neighbours. Adaptive resonance sorts
noisy letters into categories and founds new ones for letters it has not seen, without losing the old. A restricted
Boltzmann machine puts nearly all its probability on 14 of 512 pictures. Run `python examples/maps.py [folder]`; with
a folder the map and the machine's filters are drawn (needs matplotlib).
"""

import itertools
import sys
from pathlib import Path

import numpy as np

from assay.metrics import distance_correlation
from assay.neural_network import ART1, BernoulliRBM, SelfOrganizingMap

LETTERS = {
    "L": "10000100001000010000100001000011111",
    "O": "01110100011000110001100011000101110",
    "T": "11111001000010000100001000010000100",
    "X": "10001100010101000100010101000110001",
}


def colours(n: int = 500, seed: int = 0) -> np.ndarray:
    """Return colours mixed around six of them, as red, green and blue in [0, 1]."""
    rng = np.random.default_rng(seed)
    six = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1.0]])
    return np.clip(six[rng.integers(6, size=n)] + rng.normal(scale=0.15, size=(n, 3)), 0, 1)


def noisy_letters(names: str, each: int = 10, seed: int = 0) -> np.ndarray:
    """Return pictures of letters of 7 x 5 dots, one dot of each flipped."""
    rng = np.random.default_rng(seed)
    rows = np.array([[float(dot) for dot in LETTERS[name]] for name in names for _ in range(each)])
    rows[np.arange(len(rows)), rng.integers(35, size=len(rows))] += 1
    return rows % 2


def bars_and_stripes(n: int = 3) -> np.ndarray:
    """Return all n x n pictures whose rows, or columns, are each all on or all off."""
    lines = list(itertools.product((0.0, 1.0), repeat=n))
    return np.unique([np.repeat(line, n) for line in lines] + [np.tile(line, n) for line in lines], axis=0)


def main(folder: str | None = None) -> None:
    X = colours()
    som = SelfOrganizingMap((10, 10), grid="hexagonal").fit(X)
    kept = distance_correlation(X, som.transform(X))
    print(f"map: topographic error {som.topographic_error(X):.3f}, rank correlation of distances {kept:.2f}")
    old = noisy_letters("LO")
    art = ART1(vigilance=0.85).fit(old)
    before, many = art.predict(old), len(art.weights_)
    art.partial_fit(noisy_letters("TX", seed=1))
    stayed = np.mean(art.predict(old) == before)
    print(f"resonance: {many} categories of L and O, {len(art.weights_)} with T and X; {stayed:.0%} of L and O stayed")
    patterns = bars_and_stripes()
    rbm = BernoulliRBM(14, learning_rate=0.3, batch_size=14, n_iter=2000, k=3, random_state=0).fit(patterns)
    mass = np.exp(rbm.machine.log_likelihood(patterns)).sum()
    print(f"machine: probability {mass:.3f} on the {len(patterns)} bars and stripes, {14 / 512:.3f} by chance")
    if folder is not None:
        from assay import plot

        plot.u_matrix(som, X).savefig(Path(folder) / "map.png")
        plot.filters(rbm, (3, 3)).savefig(Path(folder) / "filters.png")


if __name__ == "__main__":
    main(*sys.argv[1:2])
