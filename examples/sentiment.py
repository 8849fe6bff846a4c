"""Moods of short texts: bags of words, an Assay classifier, a certificate; in English and in Chinese
==================================================================================================

English is split into words. Chinese has no blanks between words: runs of one and two characters serve instead.

Run `python examples/sentiment.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import assay
from assay.feature_extraction import Dictionary
from assay.linear_model import LogisticRegression
from assay.semi_supervised import SelfTrainingClassifier

ENGLISH = {
    "glad": ("a sweet and charming film", "great fun and wonderful acting", "I love it, so warm", "truly delightful"),
    "bored": ("dull and far too long", "nothing happens, a tedious plot", "I slept, so slow and flat", "boring"),
    "angry": ("an insult, a shameless cheat", "awful, I want my money back", "offensive, hateful trash", "a disgrace"),
}  # fmt: skip
CHINESE = {
    "好": ("很好看的电影", "演员非常出色", "我很喜欢这个故事", "太精彩了，推荐"),
    "坏": ("太无聊了，看睡着了", "剧情很差，不推荐", "非常失望，浪费时间", "演得太差了"),
}
FILLERS = {
    "en": ("today", "again", "with friends", "at home", "in the evening"),
    "zh": ("今天", "昨晚", "在家", "周末"),
}


class Moods(NamedTuple):
    """What was learnt: dictionary, classifier and certificate, and the share of held-out texts that are right."""

    book: Dictionary
    model: LogisticRegression
    certificate: object
    accuracy: float


def corpus(
    phrases: dict[str, Sequence[str]], fillers: Sequence[str], n: int, seed: int = 0
) -> tuple[list[str], np.ndarray]:
    """Return texts, each a phrase or two of one mood with something neutral beside it, and the moods."""
    rng = np.random.default_rng(seed)
    moods = rng.choice(list(phrases), n)
    gap = " " if fillers[0].isascii() else ""
    texts = [gap.join([*rng.choice(phrases[mood], 2), str(rng.choice(fillers))]) for mood in moods]
    return texts, moods


def learn(texts: list[str], moods: np.ndarray, book: Dictionary, held: int) -> Moods:
    """Learn from all but the last `held` texts, which then certify the classifier."""
    bags = book.fit(texts[:-held]).transform(texts).toarray()
    train, test = bags[:-held], bags[-held:]
    model = LogisticRegression().fit(train, moods[:-held])
    certificate = model.certify(train, moods[:-held], holdout=(test, moods[-held:]), hypothesis_class_fixed=False)
    if not assay.verify(certificate, model, train, moods[:-held], holdout=(test, moods[-held:])).holds:
        raise AssertionError("the certificate does not hold")
    return Moods(book, model, certificate, float(model.score(test, moods[-held:])))


def english(n: int = 600) -> Moods:
    """Return three moods of English texts, by words."""
    return learn(*corpus(ENGLISH, FILLERS["en"], n), Dictionary(), 200)


def chinese(n: int = 400) -> Moods:
    """Return two moods of Chinese texts, by runs of one and two characters."""
    return learn(*corpus(CHINESE, FILLERS["zh"], n), Dictionary(analyzer="char", ngram_range=(1, 2)), 150)


def with_few_labels(labels: int = 6, n: int = 300) -> tuple[float, float]:
    """Return the accuracy on texts without labels: of a pipeline on the labelled ones, and of self-training with it."""
    from sklearn.pipeline import make_pipeline

    texts, moods = corpus(ENGLISH, FILLERS["en"], n, seed=1)
    marked = np.where(np.arange(n) < labels, moods.astype(object), None)
    pipeline = make_pipeline(Dictionary(), LogisticRegression())
    own = pipeline.fit(texts[:labels], moods[:labels]).predict(texts[labels:])
    taught = SelfTrainingClassifier(pipeline, threshold=0.6, max_iter=None).fit(texts, marked).predict(texts[labels:])
    return float(np.mean(own == moods[labels:])), float(np.mean(taught == moods[labels:]))


def main() -> None:
    for name, found in (("English", english()), ("Chinese", chinese())):
        bound = found.certificate.find("holdout.binomial")
        print(f"{name}: {len(found.book.words_)} columns, {found.accuracy:.1%} of held-out texts right.")
        print(f"  {bound.statement}")
        for k, mood in enumerate(found.model.classes_):
            weights = found.model.coef_[k] if len(found.model.coef_) > 1 else found.model.coef_[0] * (2 * k - 1)
            print(f"  {mood}: {', '.join(found.book.words_[np.argsort(-weights)[:5]])}")
    own, taught = with_few_labels()
    print(f"six labels: {own:.1%}; with the texts that have none: {taught:.1%}")


if __name__ == "__main__":
    main()
