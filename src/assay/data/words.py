"""Free text becomes words: which ones a column's texts have, and which of them an encoding looks for.

A word is a longest run of letters and digits, without regard to case. A text either has a word or it has not.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

MOST_WORDS = 200
"""Words that an encoding looks for in a column."""
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text.

    >>> words_of("Room 12, sea-view!")
    ['room', '12', 'sea', 'view']
    """
    return _WORD.findall(text.casefold())


def is_prose(texts: Sequence[str], rows: int) -> bool:
    """Tell whether a column of names is free text: many different ones, of four words and more."""
    if len(texts) <= 20 or len(texts) < 0.2 * rows:
        return False
    step = max(len(texts) // 500, 1)
    return float(np.mean([len(words_of(text)) for text in texts[::step]])) >= 4.0


def commonest(texts: Sequence[str], counts: np.ndarray) -> list[str]:
    """Return the words that most rows have, in alphabetical order; `counts` are the rows of each text.

    A word that all rows have, or a single one, tells nothing and is taken only if there is no other.
    """
    rows: Counter[str] = Counter()
    for text, count in zip(texts, counts.tolist(), strict=True):
        rows.update(dict.fromkeys(words_of(text), count) if count else {})
    total = int(counts.sum())
    telling = {word: n for word, n in rows.items() if 1 < n < total} or rows
    return sorted(sorted(telling, key=lambda word: (-telling[word], word))[:MOST_WORDS])


def has_words(texts: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """Return (texts, words) doubles: 1 where a text has the word, else 0."""
    place = {word: j for j, word in enumerate(words)}
    result = np.zeros((len(texts), len(words)))
    for i, text in enumerate(texts):
        for word in words_of(text):
            if word in place:
                result[i, place[word]] = 1.0
    return result
