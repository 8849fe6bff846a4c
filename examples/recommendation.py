"""Films for people who were never asked about them: recommendation as classification of pairs, with a certificate
===============================================================================================================

A row is a person and a film, its columns are all products of what is known of either (age, moods; genres, length), and
its class is whether the person liked the film. A logistic regression of such rows ranks the films for anyone, also for
new people and new films. Beside it stands what shops do without learning: the films that most people liked.

Run `python examples/recommendation.py`.
"""

from typing import NamedTuple

import numpy as np

import assay
from assay.linear_model import LogisticRegression
from assay.metrics import ClassScore, class_scores

LIKED = 1


class World:
    """People and films with a few traits each; who likes what depends on which traits meet, and on chance."""

    def __init__(self, traits: int = 5, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.meets = self.random.normal(size=(traits, traits))
        self.traits = traits

    def draw(self, count: int) -> np.ndarray:
        """Return so many people, or films."""
        return self.random.normal(size=(count, self.traits))

    def chance(self, people: np.ndarray, films: np.ndarray) -> np.ndarray:
        """Return the probability that each person likes each film, (people, films)."""
        return 1 / (1 + np.exp(-(people @ self.meets @ films.T + films[:, 0])))

    def likes(self, people: np.ndarray, films: np.ndarray) -> np.ndarray:
        """Return who liked what, 0 or 1."""
        return (self.random.random((len(people), len(films))) < self.chance(people, films)).astype(int)


def pairs(people: np.ndarray, films: np.ndarray) -> np.ndarray:
    """Return a row for each person and film: the traits of the film, and all products of both sides' traits."""
    products = np.einsum("pi,fj->pfij", people, films).reshape(len(people) * len(films), -1)
    return np.hstack([np.tile(films, (len(people), 1)), products])


class Found(NamedTuple):
    """Share of liked films among the three that are recommended, and how sure the classifier of pairs is."""

    learnt: float
    popular: float
    at_random: float
    score: ClassScore
    holds: bool
    statement: str


def recommend(people: int = 60, films: int = 30, seed: int = 0, top: int = 3) -> Found:
    """Learn from some people, and recommend films to others who were asked about none."""
    world = World(seed=seed)
    known, shelf, new = world.draw(people), world.draw(films), world.draw(200)
    liked = world.likes(known, shelf)
    model = LogisticRegression().fit(pairs(known, shelf), liked.ravel())
    truth, chance = world.likes(new, shelf), model.predict_proba(pairs(new, shelf))[:, 1].reshape(200, films)

    def share(ranks: np.ndarray) -> float:
        best = np.argsort(-ranks, axis=1)[:, :top]
        return float(np.mean(np.take_along_axis(truth, best, axis=1)))

    popular = np.broadcast_to(liked.mean(axis=0), truth.shape)
    # One film for each of the new people: rows that share a person are no independent draws.
    one, at = np.arange(200), world.random.integers(films, size=200)
    held = pairs(new, shelf).reshape(200, films, -1)[one, at], truth[one, at]
    certificate = model.certify(pairs(known, shelf), liked.ravel(), holdout=held)
    holds = assay.verify(certificate, model, pairs(known, shelf), liked.ravel(), holdout=held).holds
    score = next(each for each in class_scores(held[1], model.predict(held[0])) if each.label == LIKED)
    said = certificate.find("holdout.binomial").statement
    return Found(share(chance), share(popular), float(truth.mean()), score, holds, said)


def main() -> None:
    found = recommend()
    print("liked, of the three films that were recommended")
    print(f"  learnt from pairs {found.learnt:.0%}, most popular {found.popular:.0%}, any {found.at_random:.0%}")
    one = found.score
    print(f"of pairs said to be liked {one.precision.value:.0%} are, on new data at least {one.precision.low:.0%};")
    print(f"of liked pairs {one.recall.value:.0%} are found, on new data at least {one.recall.low:.0%}")
    print(f"the certificate {'holds' if found.holds else 'fails'}: {found.statement}")


if __name__ == "__main__":
    main()
