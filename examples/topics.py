"""Texts in clusters: bags of words, k-means, and the words that stand for each cluster; topics that texts mix
===========================================================================================================

Run `python examples/topics.py`.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import assay
from assay.cluster import KMeans
from assay.decomposition import LatentDirichletAllocation

TOPICS = {
    "kitchen": "bread flour oven dough butter salt recipe baking sugar yeast",
    "sea": "ship harbour sail wave anchor captain storm deck tide rope",
    "garden": "flower seed soil rose tree water leaf root spade bloom",
}


def corpus(texts: int = 60, words: int = 12, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Return short texts, most of whose words come from one topic and a few from any."""
    rng = np.random.default_rng(seed)
    vocabularies = [one.split() for one in TOPICS.values()]
    every = [word for words_of_topic in vocabularies for word in words_of_topic]
    topic = np.arange(texts) % len(vocabularies)
    drawn = [[*rng.choice(vocabularies[t], words - 3), *rng.choice(every, 3)] for t in topic]
    return [" ".join(one) for one in drawn], topic


def clustered(texts: list[str], k: int, seed: int = 0) -> tuple[np.ndarray, list[list[str]]]:
    """Return the cluster of each text, and the five words with the largest weight in each centre."""
    bags = TfidfVectorizer()
    X = bags.fit_transform(texts)  # sparse rows of length one
    model = KMeans(k, n_init=5, random_state=seed).fit(X)
    names = bags.get_feature_names_out()
    words = [names[np.argsort(-center)[:5]].tolist() for center in model.cluster_centers_]
    return model.labels_, words


def mixed(texts: list[str], k: int, seed: int = 0) -> tuple[LatentDirichletAllocation, np.ndarray, list[list[str]]]:
    """Return topics by latent Dirichlet allocation, the counts they were learnt from, and five words of each."""
    bags = CountVectorizer()
    X = bags.fit_transform(texts)
    model = LatentDirichletAllocation(k, method="gibbs", doc_topic_prior=0.1, max_iter=200, random_state=seed).fit(X)
    return model, X, model.words(bags.get_feature_names_out(), top=5)


def main() -> None:
    texts, topic = corpus()
    labels, words = clustered(texts, len(TOPICS))
    for k, best in enumerate(words):
        own = topic[labels == k]
        name = list(TOPICS)[np.bincount(own).argmax()]
        print(
            f"cluster {k}: {len(own)} texts, {np.mean(own == np.bincount(own).argmax()):.0%} {name}: {', '.join(best)}"
        )

    model, X, words = mixed(texts, len(TOPICS))
    for k, best in enumerate(words):
        print(f"topic {k}: {', '.join(best)}; coherence {model.coherence(X, top=5, measure='npmi')[k]:.2f}")
    shares = ", ".join(f"{share:.0%}" for share in model.transform(X[:1])[0])
    print(f"the first text is {shares} of them; perplexity of hidden words {model.heldout_perplexity(X):.1f}")
    certificate = model.certify(X)
    print(certificate)
    assert assay.verify(certificate, model, X).holds


if __name__ == "__main__":
    main()
