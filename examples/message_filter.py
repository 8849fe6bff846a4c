"""A filter of chat messages that learns online, and a search that ranks old messages by what they are about
=========================================================================================================

Messages come one by one. The filter says what it thinks, is told the truth, and takes the message in: `partial_fit`
adds its words to the counts, so that at any time it is the filter of all messages so far. Words are hashed, so that new
ones need no new table. Run `python examples/message_filter.py`.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

import assay
from assay.metrics import class_scores
from assay.naive_bayes import MultinomialNB

KINDS = ("chat", "spam")
TALK = "hello how are you today lunch meeting tomorrow thanks see later call train weather weekend film dinner"
BAIT = "win free prize click now offer cash bonus limited winner claim credit cheap guaranteed urgent"
WORDS = HashingVectorizer(n_features=256, alternate_sign=False, norm=None)


def messages(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield messages and what they are; each borrows words from the other kind now and then."""
    rng = np.random.default_rng(seed)
    talk, bait = TALK.split(), BAIT.split()
    for _ in range(count):
        spam = rng.uniform() < 0.3
        own, other = (bait, talk) if spam else (talk, bait)
        words = [*rng.choice(own, rng.integers(3, 7)), *rng.choice(other, rng.integers(0, 3))]
        yield " ".join(words), KINDS[int(spam)]


def watch(count: int) -> tuple[MultinomialNB, list[bool], list[tuple[str, str]]]:
    """Return the filter after so many messages, whether it erred at each, and the messages."""
    model, erred, seen = MultinomialNB(), [], []
    for text, kind in messages(count):
        row = WORDS.transform([text])
        if seen:
            erred.append(bool(model.predict(row)[0] != kind))
        model.partial_fit(row, [kind], classes=KINDS)
        seen.append((text, kind))
    return model, erred, seen


def ranked(query: str, texts: list[str]) -> list[str]:
    """Return the texts by ln P(query | words of the text): each text is a class of its own, all equally probable."""
    model = MultinomialNB(alpha=0.1, fit_prior=False).fit(WORDS.transform(texts), np.arange(len(texts)))
    score = model.predict_joint_log_proba(WORDS.transform([query]))[0]
    return [texts[i] for i in np.argsort(-score, kind="stable")]


def main() -> None:
    model, erred, seen = watch(600)
    for start in (0, 100, 300, 500):
        print(f"messages {start + 1:3d} to {start + 99:3d}: {np.mean(erred[start : start + 99]):.0%} wrong")
    texts, kinds = zip(*seen, strict=True)
    X, y = WORDS.transform(texts), np.array(kinds)
    fresh, truth = zip(*messages(2_000, seed=1), strict=True)
    held = WORDS.transform(fresh), np.array(truth)
    certificate = model.certify(X, y, holdout=held)
    print(f"the certificate {'holds' if assay.verify(certificate, model, X, y, holdout=held).holds else 'fails'}:")
    for kind in ("counts.mle", "holdout.binomial"):
        print(" ", next(claim.statement for claim in certificate.claims if claim.kind == kind))
    spam = class_scores(held[1], model.predict(held[0]))[KINDS.index("spam")]
    print(f"of what it stops at least {spam.precision.low:.0%} is spam, and it finds at least {spam.recall.low:.0%}")
    print("most about 'free lunch tomorrow':", ranked("free lunch tomorrow", list(texts[:200]))[0])


if __name__ == "__main__":
    main()
