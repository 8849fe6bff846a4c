"""Pictures by their visual words: told apart, compared, and put into clusters without any label
=============================================================================================

Run `python examples/pictures.py`.
"""

from typing import NamedTuple

import numpy as np
from sklearn.pipeline import make_pipeline

from assay.cluster import KMeans
from assay.feature_extraction import BagOfVisualWords
from assay.kernels import HistogramIntersection
from assay.svm import SVC


def textures(n: int = 60, side: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures of stripes across, stripes down and checks, at random places and of random contrast."""
    rng = np.random.default_rng(seed)
    kind, place = np.arange(n) % 3, np.arange(side)
    out = np.empty((n, side, side))
    for i, k in enumerate(kind):
        shift, other = rng.uniform(0, 8, 2)
        down, across = (np.sin((place + moved) * 2 * np.pi / 6) for moved in (shift, other))
        pattern = (down[:, None] + 0 * across, 0 * down[:, None] + across, down[:, None] * across)[k]
        out[i] = 0.5 + rng.uniform(0.1, 0.4) * pattern
    return np.clip(out + 0.03 * rng.normal(size=out.shape), 0, 1), kind


class Found(NamedTuple):
    """Share of new pictures told apart, of pictures whose most similar one is of their kind, and purity of clusters."""

    accuracy: float
    similar: float
    purity: float


def compare(n: int = 60) -> Found:
    """Return what visual words of textures are good for."""
    pictures, kind = textures(n)
    bag = BagOfVisualWords(20, levels=0, size=6, step=1, random_state=0)
    machine = make_pipeline(bag, SVC(kernel=HistogramIntersection(), C=10.0)).fit(pictures, kind)
    rows = bag.transform(pictures)
    common = HistogramIntersection()(rows)
    np.fill_diagonal(common, -1.0)
    cluster = KMeans(3, n_init=10, random_state=0).fit(rows).labels_
    purity = sum(np.bincount(kind[cluster == k]).max() for k in range(3)) / n
    similar = float(np.mean(kind[common.argmax(axis=1)] == kind))
    return Found(float(machine.score(*textures(n, seed=1))), similar, float(purity))


def main() -> None:
    found = compare()
    print(f"new pictures told apart: {found.accuracy:.0%}")
    print(f"most similar picture of the same kind: {found.similar:.0%}")
    print(f"clusters of one kind: {found.purity:.0%} of the pictures")


if __name__ == "__main__":
    main()
