"""The models of the folds of a table as one learner: they vote, or their mean is taken.

It reads raw rows (`data.encoding`), since each member has an encoding of its own, which the rows of its fold had no
part in. See `checker.families.folded` for what is proved of it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from assay.card import Card
from assay.checker.family import read_model
from assay.claims.model import StoredModel
from assay.data import Encoding, Schema
from assay.data.encoding import Kept, Words
from assay.learning.model import TableModel
from assay.theory.spaces import Unbounded

_SPACE = Unbounded("votes and means of models of several folds")
_HOW = "the study's own search inside the rows outside each fold"


def raw_encoding(members: Sequence[TableModel], schema: Schema) -> Encoding:
    """Return the encoding that hands over every column as it is, and each word that a member looks for."""
    words: dict[str, list[str]] = {}
    for one in members:
        for part in one.encoding.parts:
            if isinstance(part, Words):
                words[part.type.name] = sorted({*words.get(part.type.name, ()), *part.words})
    read = {column.name for one in members for column in one.columns}
    used = [column for column in schema if column.name in read]
    return Encoding([Words(one, tuple(words[one.name])) if one.name in words else Kept(one) for one in used])


class _Folded:
    """Fitted models of a table's folds, and the columns of the raw rows that they take theirs from."""

    family: ClassVar[str]
    card: ClassVar[Card]

    def __init__(self, members: Sequence[TableModel], columns: Sequence[str], words: Sequence[tuple[str, str]]) -> None:
        self.members, self.columns, self.words = list(members), list(columns), list(words)
        place: dict[Any, int] = {name: i for i, name in enumerate([*self.columns, *self.words])}
        self._places = [np.array([place[name] for name in _raw_names(one.encoding)], dtype=np.intp) for one in members]

    @property
    def n_features_in_(self) -> int:
        return len(self.columns) + len(self.words)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return of which learners it is made."""
        return {"members": [type(one.learner).__name__ for one in self.members]}

    def encoded(self, k: int, X: np.ndarray) -> np.ndarray:
        """Return raw rows as member k encodes them."""
        return self.members[k].encoding.apply_raw(np.ascontiguousarray(np.asarray(X)[:, self._places[k]]))

    def answers(self, method: str, X: np.ndarray) -> list[np.ndarray]:
        """Return what each member's learner answers."""
        return [getattr(one.learner, method)(self.encoded(k, X)) for k, one in enumerate(self.members)]

    def stored(self) -> StoredModel:
        """Return the models as plain data."""
        parameters = {"columns": self.columns, "words": [list(one) for one in self.words]}
        members = tuple(one.stored() for one in self.members)
        return StoredModel(f"learning.{type(self).__name__}", self.family, parameters, self._arrays(), members)

    def _arrays(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        return self.members[0].learner.__sklearn_tags__()


def _raw_names(encoding: Encoding) -> list[Any]:
    return [
        name
        for part in encoding.parts
        for name in ([(part.type.name, word) for word in part.words] if isinstance(part, Words) else [part.type.name])
    ]


def names_of(encoding: Encoding) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the columns that an encoding of raw rows hands over, and the words that follow."""
    names = _raw_names(encoding)
    return [one for one in names if isinstance(one, str)], [one for one in names if not isinstance(one, str)]


def _all_tell(name: str) -> Any:
    return available_if(lambda self: all(hasattr(one.learner, name) for one in self.members))


class FoldVote(_Folded):
    """The class that most models of the folds decide for, the first of equals."""

    family = "folded.classes"
    card = Card(
        name="Vote of the models of the folds", zh="各折模型的投票", task="classify",
        strategy="the mean error rate of the models, each on the fold that it was fitted without",
        guarantee=("cross-validation.mean", "cross-validation.baseline"),
        mission=(), model=_SPACE, algorithm=_HOW, input=("numbers", "nominal", "missing"),
    )  # fmt: skip

    def __init__(
        self, members: Sequence[TableModel], columns: Sequence[str], words: Sequence[tuple[str, str]],
        classes: np.ndarray,
    ) -> None:  # fmt: skip
        super().__init__(members, columns, words)
        self.classes_ = classes

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"classes_": self.classes_}

    @classmethod
    def restore(cls, stored: StoredModel, members: Sequence[Any], build: Any) -> "FoldVote":
        """Return the models that `stored` describes, after the checker has read them."""
        read_model(stored, any_size=True)
        words = [(name, word) for name, word in stored.parameters["words"]]
        return cls(members, stored.parameters["columns"], words, stored.arrays["classes_"])

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with most votes."""
        votes = np.zeros((len(X), len(self.classes_)))
        for labels in self.answers("predict", X):
            votes[np.arange(len(X)), np.searchsorted(self.classes_, labels)] += 1
        return self.classes_[votes.argmax(axis=1)]

    @_all_tell("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the probabilities that the models give each class."""
        found = np.zeros((len(X), len(self.classes_)))
        for one, shares in zip(self.members, self.answers("predict_proba", X), strict=True):
            found[:, np.searchsorted(self.classes_, one.classes_)] += shares
        return found / len(self.members)


class FoldMean(_Folded):
    """The mean of the numbers that the models of the folds predict, each moved into `range_`."""

    family = "folded.numbers"
    card = Card(
        name="Mean of the models of the folds", zh="各折模型的平均", task="regress",
        strategy="the mean absolute error of the models, each on the fold that it was fitted without",
        guarantee=("cross-validation.mean-loss", "cross-validation.median"),
        mission=(), model=_SPACE, algorithm=_HOW, input=("numbers", "nominal", "missing"),
    )  # fmt: skip

    def __init__(
        self, members: Sequence[TableModel], columns: Sequence[str], words: Sequence[tuple[str, str]],
        range_: np.ndarray,
    ) -> None:  # fmt: skip
        super().__init__(members, columns, words)
        self.range_ = range_

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"range_": self.range_}

    @classmethod
    def restore(cls, stored: StoredModel, members: Sequence[Any], build: Any) -> "FoldMean":
        """Return the models that `stored` describes, after the checker has read them."""
        read_model(stored, any_size=True)
        words = [(name, word) for name, word in stored.parameters["words"]]
        return cls(members, stored.parameters["columns"], words, stored.arrays["range_"])

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the predictions."""
        return np.mean([np.clip(one, *self.range_) for one in self.answers("predict", X)], axis=0)
