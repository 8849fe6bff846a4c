"""k-means and principal components beside scikit-learn and scikit-learn-intelex: times in one run, quality beside.

    python -m bench cluster --only kmeans10       one case; without --only all of them

k-means: the same starting centres for all, each algorithm of scikit-learn; the quality is the cost of the centres,
computed here. Texts are sparse rows. Mini-batches: the same draws. k-medoids: beside the package kmedoids, distances
included. PCA: five components; the quality is how far the explained variances are from those of a singular value
decomposition in double precision, relative.
"""

import argparse
import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console

from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)


def heaps(n: int, d: int, k: int, seed: int = 0) -> np.ndarray:
    """Return rows of 3 k overlapping Gaussian heaps: k centres do not fit them, so that it takes many iterations."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(3 * k, d)) * 6 / np.sqrt(d)
    return middles[rng.integers(0, 3 * k, n)] + rng.normal(size=(n, d))


def cost(X: np.ndarray, centers: np.ndarray) -> float:
    """Return the sum of squared distances to the nearest centre, in double precision."""
    from scipy.spatial.distance import cdist

    parts = (cdist(X[i : i + 8192], centers, "sqeuclidean").min(axis=1).sum() for i in range(0, len(X), 8192))
    return float(sum(parts))


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def makers(room: str, name: str, variants: dict[str, dict[str, Any]]) -> dict[str, Callable[..., Any]]:
    """Return how each contestant makes its model; ours first, peers as installed."""
    found: dict[str, Callable[..., Any]] = {}
    for package, label in (("assay", "assay"), ("sklearn", "scikit-learn"), ("sklearnex", "scikit-learn-intelex")):
        learner = getattr(importlib.import_module(f"{package}.{room}"), name, None) if _has(package) else None
        if learner is None:
            continue
        for variant, params in (variants if package == "sklearn" else {"": {}}).items():
            found[f"{label}{variant}"] = lambda *args, learner=learner, params=params, **more: learner(
                *args, **params, **more
            )
    return found


def kmeans(n: int, d: int, k: int, repeats: int) -> list:
    X = heaps(n, d, k)
    start = X[np.random.default_rng(1).choice(n, k, replace=False)].copy()
    algorithms = {" (lloyd)": {}} if k > 16 else {" (lloyd)": {}, " (elkan)": {"algorithm": "elkan"}}
    runs = [
        Contestant(name, lambda make=make: make(k, init=start, n_init=1).fit(X), peer=name != "assay")
        for name, make in makers("cluster", "KMeans", algorithms).items()
    ]
    title = f"k-means: {n:,} x {d}, k = {k}, the same start; cost of the centres"
    return compare(title, runs, lambda model: cost(X, model.cluster_centers_), better="lower", repeats=repeats)


def texts(n: int, d: int, k: int, seed: int = 0) -> Any:
    """Return texts as sparse rows of length 1: common words, and words of one of k subjects each."""
    from scipy.sparse import csr_matrix
    from sklearn.preprocessing import normalize

    rng = np.random.default_rng(seed)
    subject = rng.integers(k, size=(n, 1))
    words = np.hstack([rng.zipf(1.3, size=(n, 30)) % d, (7919 * subject + rng.zipf(1.6, size=(n, 30))) % d])
    X = csr_matrix((np.ones(words.size), (np.repeat(np.arange(n), words.shape[1]), words.ravel())), shape=(n, d))
    return normalize(X)


def sparse_kmeans(n: int, d: int, k: int, steps: int) -> list:
    """k-means on texts; one run of each, after a short one that compiles."""
    X = texts(n, d, k)
    start = X[np.random.default_rng(1).choice(n, k, replace=False)].toarray()
    made = makers("cluster", "KMeans", {"": {}})
    made.pop("scikit-learn-intelex", None)
    runs = []
    for name, make in made.items():
        make(4, n_init=1, max_iter=2).fit(X[:2000])
        run = lambda make=make: make(k, init=start, n_init=1, max_iter=steps, tol=0).fit(X)  # noqa: E731
        runs.append(Contestant(name, run, peer=name != "assay", once=True))
    title = f"k-means on texts: {n:,} x {d:,}, {X.nnz / n:.0f} words each, k = {k:,}, {steps} iterations; inertia"
    return compare(title, runs, lambda model: float(model.inertia_), better="lower", repeats=0)


def pca(n: int, d: int, repeats: int) -> list:
    X = heaps(n, d, 10)
    moved = X - X.mean(axis=0)
    true = np.linalg.svd(np.linalg.qr(moved, mode="r"), compute_uv=False)[:5] ** 2 / (n - 1)
    solvers = {" (covariance_eigh)": {"svd_solver": "covariance_eigh"}, " (full)": {"svd_solver": "full"}}
    runs = [
        Contestant(name, lambda make=make: make(5).fit(X), peer=name != "assay")
        for name, make in makers("decomposition", "PCA", solvers).items()
    ]
    title = f"PCA: {n:,} x {d}, 5 components; relative error of the explained variances"
    return compare(
        title,
        runs,
        lambda model: float(np.max(np.abs(model.explained_variance_ / true - 1))),
        better="lower",
        repeats=repeats,
    )


def mini_batch(n: int, d: int, k: int) -> list:
    X = heaps(n, d, k)
    runs = [
        Contestant(name, lambda make=make: make(k, random_state=0).fit(X), peer=name != "assay")
        for name, make in makers("cluster", "MiniBatchKMeans", {"": {}}).items()
    ]
    title = f"k-means by mini-batches: {n:,} x {d}, k = {k}, the same draws; cost of the centres"
    return compare(title, runs, lambda model: cost(X, model.cluster_centers_), better="lower", repeats=1)


def medoids(n: int, d: int, k: int, repeats: int) -> list:
    """k-medoids with the distances included; `kmedoids` gets them from scikit-learn, in either precision."""
    from assay.cluster import KMedoids

    X = heaps(n, d, k)
    runs = [Contestant("assay", lambda: KMedoids(k, random_state=0).fit(X).medoid_indices_, peer=False)]
    if importlib.util.find_spec("kmedoids") is not None:
        import kmedoids
        from sklearn.metrics import pairwise_distances

        def peer(kind: type) -> np.ndarray:
            D = pairwise_distances(X.astype(kind))
            return np.asarray(kmedoids.fasterpam(D, k, random_state=0, n_cpu=-1).medoids, dtype=np.int64)

        runs += [Contestant("kmedoids", lambda: peer(np.float64)), Contestant("kmedoids f32", lambda: peer(np.float32))]
    title = f"k-medoids: {n:,} x {d}, k = {k}, distances included; sum of distances to the medoids"

    def sum_of_distances(chosen: np.ndarray) -> float:
        from scipy.spatial.distance import cdist

        return float(cdist(X, X[chosen]).min(axis=1).sum())

    return compare(title, runs, sum_of_distances, better="lower", repeats=repeats)


def silhouettes(n: int, d: int, k: int, repeats: int) -> list:
    from sklearn.metrics import silhouette_score as peer

    from assay.metrics import silhouette_score

    X, labels = heaps(n, d, k), np.random.default_rng(2).integers(k, size=n)
    runs = [
        Contestant("assay", lambda: silhouette_score(X, labels), peer=False),
        Contestant("scikit-learn", lambda: peer(X, labels)),
    ]
    return compare(f"silhouette: {n:,} x {d} in {k} clusters; the score", runs, float, better="higher", repeats=repeats)


CASES: dict[str, Callable[[int], list]] = {
    "kmeans10": lambda repeats: kmeans(500_000, 28, 10, repeats),
    "kmeans100": lambda repeats: kmeans(500_000, 28, 100, 1),
    "kmeans784": lambda repeats: kmeans(50_000, 784, 10, repeats),
    "kmeans1000": lambda repeats: kmeans(200_000, 32, 1000, 1),
    "texts1000": lambda repeats: sparse_kmeans(100_000, 10_000, 1_000, 5),
    "texts29000": lambda repeats: sparse_kmeans(100_000, 1_000, 29_000, 2),
    "minibatch": lambda repeats: mini_batch(1_000_000, 32, 100),
    "medoids": lambda repeats: medoids(10_000, 32, 100, repeats),
    "silhouette": lambda repeats: silhouettes(20_000, 32, 64, repeats),
    "pca28": lambda repeats: pca(500_000, 28, 2 * repeats + 1),
    "pca200": lambda repeats: pca(100_000, 200, 2 * repeats + 1),
}


def main(arguments: list[str]) -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench cluster", description=__doc__, formatter_class=about)
    parser.add_argument("--only", choices=sorted(CASES), nargs="+", help="some cases; all of them without it")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each contestant (default 3)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(2.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.only is None or name in options.only:
            rows += run(options.repeats)
    console.print(f"written to {save('-'.join(['cluster', *(options.only or [])]), rows)}")
