"""Topics beside scikit-learn and tomotopy: time to the same perplexity of held-out words, and tokens per second.

    python -m bench topics --repeats 1

5,000 documents of 120 words over 5,000 words, drawn from 50 topics; 500 more documents are held out. The judge infers
the topics of each held-out document from half of its words, by one procedure for all (the variational steps of Assay at
the contestant's topics), and computes the perplexity of the other half. Each contestant runs for several numbers of
passes. For each peer the goal is its best perplexity, and the times compared are those of the fastest runs, of the peer
and of Assay, that come within 1 % of it.
"""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.harness import save, touch_memory

TOPICS, WORDS, LENGTH, ALPHA, ETA = 50, 5000, 120, 0.1, 0.01


def corpus(documents: int, seed: int = 0) -> sp.csr_array:
    """Return counts of words of documents drawn from the model."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(99).dirichlet(np.full(WORDS, 0.02), TOPICS)
    theta = rng.dirichlet(np.full(TOPICS, ALPHA), documents)
    return sp.csr_array(np.stack([rng.multinomial(LENGTH, one @ topics) for one in theta]))


def judged(topics: np.ndarray, held: sp.csr_array) -> float:
    """Return the perplexity of hidden words of held-out documents; topics (TOPICS, WORDS)."""
    from assay.decomposition import LatentDirichletAllocation

    judge = LatentDirichletAllocation(TOPICS, doc_topic_prior=ALPHA, topic_word_prior=ETA, max_iter=0, random_state=0)
    judge.fit(held)
    judge.components_ = 1e9 * (topics + 1e-6)  # so many words that the distribution of each topic is its mean
    return judge.heldout_perplexity(held)


def assay_fit(X: sp.csr_array, passes: int, **options: Any) -> np.ndarray:
    from assay.decomposition import LatentDirichletAllocation

    priors = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    return LatentDirichletAllocation(TOPICS, max_iter=passes, random_state=0, **priors, **options).fit(X).topics_


def sklearn_fit(X: sp.csr_array, passes: int) -> np.ndarray:
    from sklearn.decomposition import LatentDirichletAllocation

    priors = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    model = LatentDirichletAllocation(TOPICS, max_iter=passes, random_state=0, n_jobs=2, **priors).fit(X)
    return model.components_ / model.components_.sum(axis=1, keepdims=True)


def tomotopy_fit(texts: list[list[str]], passes: int) -> np.ndarray:
    import tomotopy

    model = tomotopy.LDAModel(k=TOPICS, alpha=ALPHA, eta=ETA, seed=1)
    for text in texts:
        model.add_doc(text)
    model.train(passes, workers=2, show_progress=False)
    found = np.zeros((TOPICS, WORDS))
    places = np.array([int(word) for word in model.used_vocabs])
    for k in range(TOPICS):
        found[k, places] = model.get_topic_word_dist(k)
    return found


def contestants(X: sp.csr_array) -> Iterator[tuple[str, Callable[[int], np.ndarray], tuple[int, ...]]]:
    """Yield name, fit for a number of passes, and the numbers to try; the peers first."""
    if importlib.util.find_spec("tomotopy") is not None:
        texts = [[str(w) for w in np.repeat(row.indices, row.data)] for row in (X[[i]] for i in range(X.shape[0]))]
        yield "tomotopy, 2 workers", lambda passes: tomotopy_fit(texts, passes), (200, 25, 50, 100)
    yield "scikit-learn, batch", lambda passes: sklearn_fit(X, passes), (40, 10, 20)
    yield "assay, Gibbs", lambda passes: assay_fit(X, passes, method="gibbs"), (10, 15, 20, 30, 50, 100, 200)
    yield "assay, batch", lambda passes: assay_fit(X, passes), (5, 10, 20, 40)


def timed(fit: Callable[[int], np.ndarray], passes: int, held: sp.csr_array, repeats: int) -> tuple[float, float]:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        topics = fit(passes)
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds)), judged(topics, held)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench topics", description=__doc__)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(1)
    X, held = corpus(options.documents), corpus(500, seed=1)
    for method in ("gibbs", "variational"):
        assay_fit(X[:200], 2, method=method)  # compile
    rows: list[dict[str, Any]] = []
    for name, fit, numbers in contestants(X):
        for passes in numbers:
            seconds, perplexity = timed(fit, passes, held, options.repeats)
            speed = X.sum() * passes / seconds
            rows.append({"name": name, "passes": passes, "seconds": seconds, "quality": perplexity, "tokens/s": speed})
            told = f"{name:22} {passes:4} passes {seconds:8.2f} s  perplexity {perplexity:8.2f}"
            print(f"{told}  {speed / 1e6:6.2f} M tokens/s", flush=True)
    summary(rows)
    save("topics", rows)


def summary(rows: list[dict[str, Any]]) -> None:
    """Print for each peer how long it and Assay take to the peer's best perplexity, and the ratio."""
    own = [row for row in rows if row["name"].startswith("assay")]
    for name in dict.fromkeys(row["name"] for row in rows if row not in own):
        runs = [row for row in rows if row["name"] == name]
        goal = 1.01 * min(row["quality"] for row in runs)
        peer = min((row for row in runs if row["quality"] <= goal), key=lambda row: row["seconds"])
        reached = [row for row in own if row["quality"] <= goal]
        if not reached:
            print(f"{name}: perplexity {goal:.1f} is not reached")
            continue
        best = min(reached, key=lambda row: row["seconds"])
        ratio = peer["seconds"] / best["seconds"]
        print(f"to {goal:.1f}: {name} {peer['seconds']:.2f} s, {best['name']} {best['seconds']:.2f} s: {ratio:.1f}x")
