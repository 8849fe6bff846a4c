"""Texts as counts of words: the dictionary, one-hot codes of its words, bags of words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.params import Choice, Flag, check, refuse

LETTERS = r"[^\W\d_]+"
"""What a word is in the notes: a run of letters, of any script; texts are split at everything else."""


_MOST_CHOICES = 3


def check_pattern(owner: Any) -> None:
    """Refuse a regular expression that may take for ever to find that a short text has no such word: one that repeats
    what can be read in two ways, refers back, or leaves many choices. A model file must not hold one."""
    try:
        choices = _choices(re._parser.parse(owner.pattern))  # type: ignore[attr-defined]
    except (re.error, RecursionError, OverflowError) as error:
        raise refuse(owner, f"pattern is no regular expression: {error}.") from None
    if choices > _MOST_CHOICES:
        raise refuse(
            owner,
            f"a model file holds patterns with at most {_MOST_CHOICES} repetitions and alternatives, none of them "
            f"within a repetition, and without references; got {owner.pattern[:60]!r}.",
        )


def _choices(part: Any) -> int:
    """Return how many repetitions and alternatives a part of a pattern has; too many if a repetition has one in it."""
    total = 0
    for name, held in part:
        kind, inner = str(name), sum(map(_choices, _parts(held)))
        if "REPEAT" in kind:
            inner = _MOST_CHOICES + 1 if inner and held[1] > 1 else inner + 1
        total += _MOST_CHOICES + 1 if kind.startswith("GROUPREF") else inner + (kind == "BRANCH")
    return total


def _parts(held: Any) -> Iterator[Any]:
    """Yield the parts of a pattern within what an operation holds."""
    if isinstance(held, re._parser.SubPattern):  # type: ignore[attr-defined]
        yield held
    elif isinstance(held, (tuple, list)):
        for item in held:
            yield from _parts(item)


@dataclass(eq=False, repr=False)
class Dictionary(TransformerMixin, Learner):
    """The words of texts in sorted order; a text becomes the number of times that each occurs in it.

    Parameters
    ----------
    analyzer : "word" or "char"
        Words, or runs of characters: the way to read Chinese without a segmenter.
    ngram_range : pair of int
        Lengths of the runs of words or characters that count.
    min_df, max_df : int or float
        A word is kept if at least / at most so many texts (a float: such a share of them) have it.
    lowercase : bool
    pattern : str
        Regular expression of a word; `LETTERS` by default. scikit-learn's vectorisers take it as `token_pattern`.

    Attributes
    ----------
    words_ : (n_words,)
        Sorted, so that the same texts in any order give the same columns.

    Examples
    --------
    >>> from assay.feature_extraction import Dictionary
    >>> book = Dictionary().fit(["To be, or not to be"])
    >>> book.words_.tolist(), book.transform(["be to be"]).toarray().tolist()
    (['be', 'not', 'or', 'to'], [[2.0, 0.0, 0.0, 1.0]])
    >>> book.one_hot("or").tolist(), book.word([0, 0, 1, 0])
    ([0.0, 0.0, 1.0, 0.0], 'or')
    """

    family = "features.dictionary"
    constraints: ClassVar = {"analyzer": Choice("word", "char"), "lowercase": Flag}

    _: KW_ONLY
    analyzer: str = "word"
    ngram_range: Any = (1, 1)
    min_df: float = 1
    max_df: float = 1.0
    lowercase: bool = True
    pattern: str = LETTERS

    def fit(self, texts: Iterable[str], y: Any = None) -> "Dictionary":
        """Collect the words of the texts."""
        check(self)
        if not isinstance(self.pattern, str):
            raise refuse(self, f"pattern must be a regular expression as text; got {self.pattern!r}.")
        seen: Counter[str] = Counter()
        count = 0
        for text in self._texts(texts):
            seen.update(set(self.tokens(text)))
            count += 1
        least, most = self._limit("min_df", count), self._limit("max_df", count)
        words = sorted(word for word, texts_with in seen.items() if least <= texts_with <= most)
        if not words:
            raise refuse(self, f"no word is left of {len(seen)} in {count} texts; look at min_df, max_df and pattern.")
        self.words_ = np.array(words)
        self._derive()
        return self

    def _derive(self) -> None:
        words = self.words_.tolist()
        self._place = {word: j for j, word in enumerate(words)}
        self._longest = max(len(word) if self.analyzer == "char" else word.count(" ") + 1 for word in words)
        if self._from_file:
            self._range()
            check_pattern(self)

    def stored(self) -> Any:
        """Return the fitted dictionary as plain data."""
        check_pattern(self)
        return super().stored()

    def _range(self) -> tuple[int, int]:
        pair = tuple(self.ngram_range) if isinstance(self.ngram_range, (tuple, list)) else ()
        if (
            len(pair) != 2
            or not all(isinstance(part, (int, np.integer)) for part in pair)
            or not 1 <= pair[0] <= pair[1]
        ):
            raise refuse(self, f"ngram_range must be two whole numbers, 1 <= low <= high; got {self.ngram_range!r}.")
        return int(pair[0]), int(pair[1])

    def _limit(self, name: str, count: int) -> float:
        value = getattr(self, name)
        share = isinstance(value, (float, np.floating))
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float, np.number))
            or value < 0
            or (share and value > 1)
        ):
            raise refuse(self, f"{name} must be a number of texts, or a share in [0, 1]; got {value!r}.")
        return float(value) * count if share else float(value)

    def _texts(self, texts: Any) -> Iterator[str]:
        if isinstance(texts, str):
            raise refuse(self, "a list of texts is wanted, not one text.")
        for i, text in enumerate(np.asarray(texts, dtype=object).ravel() if hasattr(texts, "dtype") else texts):
            if not isinstance(text, str):
                raise refuse(self, f"text {i} (counted from 0) is a {type(text).__name__}, not a str.")
            yield text

    def tokens(self, text: str) -> list[str]:
        """Return the words, or runs of words or characters, of one text, in order.

        Parameters
        ----------
        text : str
            The text.
        """
        return self._tokens(text, len(text))

    def _tokens(self, text: str, longest: int) -> list[str]:
        """Return the runs of at most so many words or characters."""
        text = text.lower() if self.lowercase else text
        low, high = self._range()
        result = re.sub(r"\s+", " ", text) if self.analyzer == "char" else re.findall(self.pattern, text)
        join = "".join if self.analyzer == "char" else " ".join
        lengths = range(low, min(high, longest, len(result)) + 1)
        return [join(result[i : i + n]) for n in lengths for i in range(len(result) - n + 1)]

    def transform(self, texts: Iterable[str]) -> csr_array:
        """Return how often each word occurs in each text, (n, n_words), sparse; other words are not counted."""
        check_is_fitted(self)
        columns: list[int] = []
        values: list[float] = []
        starts = [0]
        for text in self._texts(texts):
            counts = Counter(self._place[token] for token in self._tokens(text, self._longest) if token in self._place)
            for column in sorted(counts):
                columns.append(column)
                values.append(float(counts[column]))
            starts.append(len(columns))
        return csr_array((values, columns, starts), shape=(len(starts) - 1, len(self.words_)), dtype=np.float64)

    def one_hot(self, word: str) -> np.ndarray:
        """Return the unit vector of a word; one that is not in the dictionary is refused.

        Parameters
        ----------
        word : str
            A word of the dictionary.
        """
        check_is_fitted(self)
        if word not in self._place:
            raise refuse(self, f"the word {word!r} is not in the dictionary of {len(self.words_)} words.")
        return np.eye(1, len(self.words_), self._place[word])[0]

    def word(self, code: Any) -> str:
        """Return the word of a unit vector.

        Parameters
        ----------
        code : array-like
            A unit vector.
        """
        check_is_fitted(self)
        code = np.asarray(code, dtype=np.float64)
        if code.shape != self.words_.shape or np.count_nonzero(code) != 1 or code.max() != 1:
            raise refuse(self, f"a code has {len(self.words_)} entries, one of which is 1 and the others 0.")
        return str(self.words_[int(code.argmax())])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the words."""
        check_is_fitted(self)
        return self.words_.astype(object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags
