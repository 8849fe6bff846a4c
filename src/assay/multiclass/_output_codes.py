"""Output codes: a member for each bit of the classes' words, the nearest word wins (Dietterich and Bakiri 1995)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.checker.families.codes import EUCLIDEAN, HAMMING, LOSS
from assay.multiclass._codes import (
    bch_code,
    code_distance,
    corrected_bits,
    exhaustive_code,
    pairs_code,
    random_code,
    ternary_code,
)
from assay.multiclass._reductions import Reduced, reduction_card
from assay.params import Choice, Positive, refuse

_DECODING = {"hamming": HAMMING, "euclidean": EUCLIDEAN, "loss": LOSS}


@dataclass(eq=False, repr=False)
class OutputCodeClassifier(Reduced):
    """Classes by code words that correct errors: a member for each bit, the nearest word wins.

    Parameters
    ----------
    estimator, n_jobs : as `OneVsOneClassifier`
    code : "random", "exhaustive", "bch", "ternary", "pairs", or array (classes, bits) of -1, 0, +1
        Words of the classes in sorted order; rows must differ. "random" and "ternary" are the best of many draws;
        "pairs" are the members of `OneVsOneClassifier`, decoded as asked.
    code_size : float > 0
        Bits for each class of drawn and BCH codes; at least so many as tell the classes apart.
    decoding : "hamming", "euclidean" or "loss"
        By the members' bits, by the distance of their scores to the word, or by the hinge loss of their scores. Of a
        word with zeros the distance is the mean over the bits that it uses, and scores beyond -1 and 1 count as these.
    random_state : seed of drawn codes

    Attributes
    ----------
    classes_, estimators_, code_ (classes, bits)
    code_book_ : (classes, bits)
        The same in scikit-learn's form: 1, and -1, or 0 if the members have probabilities but no scores.
    distance_ : int
        The least number of bits in which two words differ.
    corrected_ : int
        How many wrong bits never change the decision by Hamming distance: floor((distance - 1) / 2) without zeros.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.multiclass import OutputCodeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OutputCodeClassifier(code="exhaustive").fit(X, y)
    >>> model.code_.shape, model.distance_, model.corrected_
    ((3, 3), 2, 0)
    """

    constraints: ClassVar = {"decoding": Choice(*_DECODING), "code_size": Positive()}
    card = reduction_card(
        "Output codes",
        "a member for each bit of a code, on threads",
    )

    estimator: Any = None
    _: KW_ONLY
    code: Any = "random"
    code_size: float = 3.0
    decoding: str = "hamming"
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def decoding_(self) -> np.ndarray:
        """How the members' answers are decoded (family `codes`)."""
        return np.array(_DECODING[self.decoding])

    @property
    def code_book_(self) -> np.ndarray:
        """The code words, one row for each class, as scikit-learn writes them."""
        check_is_fitted(self, "members_")
        scored = hasattr(self.members_[0], "decision_function")
        return np.where(self.code_ == -1, -1.0 if scored else 0.0, self.code_)

    @property
    def distance_(self) -> int:
        """The smallest number of bits in which two code words differ."""
        check_is_fitted(self, "members_")
        return code_distance(self.code_)

    @property
    def corrected_(self) -> int:
        """How many wrong bits the code corrects."""
        check_is_fitted(self, "members_")
        return max(0, corrected_bits(self.code_))

    def _code(self, classes: int) -> np.ndarray:
        bits = max(int(np.ceil(self.code_size * classes)), int(np.ceil(np.log2(classes))))
        if isinstance(self.code, str):
            random = check_random_state(self.random_state)
            made = {
                "random": lambda: random_code(classes, bits, random),
                "ternary": lambda: ternary_code(classes, bits, random),
                "exhaustive": lambda: exhaustive_code(classes),
                "pairs": lambda: pairs_code(classes),
                "bch": lambda: bch_code(classes, bits),
            }
            if self.code not in made:
                raise refuse(self, f"code must be one of {', '.join(made)}, or an array; got {self.code!r}.")
            try:
                return made[self.code]()
            except ValueError as error:
                raise refuse(self, str(error)) from error
        code = np.asarray(self.code)
        if code.ndim != 2 or len(code) != classes or not np.all(np.isin(code, (-1, 0, 1))):
            raise refuse(self, f"code must be ({classes}, bits) of -1, 0, +1; got shape {code.shape}.")
        if len(np.unique(code, axis=0)) < classes:
            raise refuse(self, "two classes have the same code word.")
        if not np.all((code == 1).any(axis=0) & (code == -1).any(axis=0)):
            raise refuse(self, "every bit needs classes on both sides; -1 and +1 must occur in each column.")
        return code.astype(np.int64)
