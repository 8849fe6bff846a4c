"""Topics beside scikit-learn and tomotopy: time to the same perplexity of held-out words, and tokens per second.

    python -m bench topics --repeats 1

5,000 documents of 120 words over 5,000 words, drawn from 50 topics; 500 more documents are held out. The judge infers
the topics of each held-out document from half of its words, by one procedure for all (the variational steps of Assay at
the contestant's topics and its alpha, which tomotopy estimates for each topic), and computes the perplexity of the
other half. Each contestant runs for several numbers of passes; the time is that of the whole fit, documents read, and
beside it stands the processor time of all threads (that of scikit-learn's worker processes is not counted, so that no
ratio is made of it). For each peer the goal is its best perplexity, and the times compared are those of the fastest
runs, of the peer and of Assay, that come within 1 % of it.
"""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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


class Found(NamedTuple):
    """Topics (TOPICS, WORDS), and alpha, one number or one for each topic."""

    topics: np.ndarray
    alpha: Any


def judged(found: Found, held: sp.csr_array) -> float:
    """Return the perplexity of hidden words of held-out documents."""
    from assay.decomposition import LatentDirichletAllocation

    judge = LatentDirichletAllocation(TOPICS, doc_topic_prior=ALPHA, topic_word_prior=ETA, max_iter=0, random_state=0)
    judge.fit(held)
    judge.components_ = 1e9 * (found.topics + 1e-6)  # so many words that the distribution of each topic is its mean
    judge.doc_topic_prior_ = found.alpha
    return judge.heldout_perplexity(held)


def assay_fit(X: sp.csr_array, passes: int, **options: Any) -> Found:
    from assay.decomposition import LatentDirichletAllocation

    priors = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    model = LatentDirichletAllocation(TOPICS, max_iter=passes, random_state=0, **priors, **options).fit(X)
    return Found(model.topics_, model.doc_topic_prior_)


def sklearn_fit(X: sp.csr_array, passes: int) -> Found:
    from sklearn.decomposition import LatentDirichletAllocation

    priors = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    model = LatentDirichletAllocation(TOPICS, max_iter=passes, random_state=0, n_jobs=2, **priors).fit(X)
    return Found(model.components_ / model.components_.sum(axis=1, keepdims=True), ALPHA)


def tomotopy_fit(texts: list[list[str]], passes: int) -> Found:
    import tomotopy

    model = tomotopy.LDAModel(k=TOPICS, alpha=ALPHA, eta=ETA, seed=1)
    for text in texts:
        model.add_doc(text)
    model.train(passes, workers=2, show_progress=False)
    found = np.zeros((TOPICS, WORDS))
    places = np.array([int(word) for word in model.used_vocabs])
    for k in range(TOPICS):
        found[k, places] = model.get_topic_word_dist(k)
    return Found(found, np.array(model.alpha, dtype=float))


def contestants(X: sp.csr_array) -> Iterator[tuple[str, Callable[[int], Found], tuple[int, ...]]]:
    """Yield name, fit for a number of passes, and the numbers to try."""
    collapsed, gibbs = {"method": "collapsed"}, {"method": "gibbs"}
    yield "assay, collapsed", lambda passes: assay_fit(X, passes, **collapsed), (10, 15, 20, 30, 50)
    yield "assay, Gibbs", lambda passes: assay_fit(X, passes, **gibbs), (5, 10, 20, 50, 100)
    yield "assay, Gibbs, priors", lambda passes: assay_fit(X, passes, optimize_interval=10, **gibbs), (50, 100)
    yield "assay, batch", lambda passes: assay_fit(X, passes), (10,)
    if importlib.util.find_spec("tomotopy") is not None:
        texts = [[str(w) for w in np.repeat(row.indices, row.data)] for row in (X[[i]] for i in range(X.shape[0]))]
        yield "tomotopy, 2 workers", lambda passes: tomotopy_fit(texts, passes), (25, 50, 100, 150, 200)
    yield "scikit-learn, batch", lambda passes: sklearn_fit(X, passes), (5, 10)


def timed(fit: Callable[[int], Found], passes: int, held: sp.csr_array, repeats: int) -> tuple[float, float, float]:
    """Return seconds, processor seconds, and the perplexity of held-out words."""
    seconds, used = [], []
    for _ in range(repeats):
        began, cpu = time.perf_counter(), time.process_time()
        found = fit(passes)
        seconds.append(time.perf_counter() - began)
        used.append(time.process_time() - cpu)
    return float(np.median(seconds)), float(np.median(used)), judged(found, held)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench topics", description=__doc__)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(1)
    X, held = corpus(options.documents), corpus(500, seed=1)
    for method in ("collapsed", "gibbs", "variational"):
        assay_fit(X[:200], 2, method=method)  # compile
    rows: list[dict[str, Any]] = []
    for name, fit, numbers in contestants(X):
        for passes in numbers:
            seconds, used, perplexity = timed(fit, passes, held, options.repeats)
            speed = X.sum() * passes / seconds
            row = {"name": name, "passes": passes, "seconds": seconds, "processor": used, "quality": perplexity}
            rows.append({**row, "tokens/s": speed})
            told = f"{name:22} {passes:4} passes {seconds:8.2f} s ({used:6.2f} processor)  perplexity {perplexity:8.2f}"
            print(f"{told}  {speed / 1e6:6.2f} M tokens/s", flush=True)
    summary(rows)
    save("topics", rows)


def summary(rows: list[dict[str, Any]]) -> None:
    """Print for each peer how long it and each way of Assay take to the peer's best perplexity, and the ratios."""
    own = list(dict.fromkeys(row["name"] for row in rows if row["name"].startswith("assay")))
    for name in dict.fromkeys(row["name"] for row in rows if row["name"] not in own):
        goal = 1.01 * min(row["quality"] for row in rows if row["name"] == name)
        peer = fastest(rows, name, goal)
        print(f"{name}, to {goal:.1f}: {peer['passes']} passes, {peer['seconds']:.2f} s")
        for mine in own:
            best = fastest(rows, mine, goal)
            if best is None:
                print(f"  {mine:22} not reached")
                continue
            told = f"{peer['seconds'] / best['seconds']:.1f}x"
            if not name.startswith("scikit-learn"):
                told += f", by processor time {peer['processor'] / best['processor']:.1f}x"
            print(f"  {mine:22} {best['passes']} passes, {best['seconds']:.2f} s: {told}")


def fastest(rows: list[dict[str, Any]], name: str, goal: float) -> Any:
    """Return the fastest run of this contestant that reaches the goal, if there is one."""
    reached = [row for row in rows if row["name"] == name and row["quality"] <= goal]
    return min(reached, key=lambda row: row["seconds"]) if reached else None
