"""Many classes from classifiers of two: a code word of -1, 0, +1 for each class, a member for each bit.

`code_` (classes, bits): class k is the second class of member t if +1, the first if -1, and took no part if 0; `links_`
(bits,) how members are read; `decoding_`, a number: how a score of class k is made of bits s_t = +-1 (a member that is
tied: 0) and scores h_t, with M the code:

    0  hamming    sum_t M_kt s_t, the number of equal bits less that of different ones
    1  euclidean  2 sum_t M_kt h_t - sum_t M_kt^2, which differs from -|h - M_k|^2 by |h|^2 alone; of a code with zeros
                  the mean of -(min(1, max(-1, h_t)) - M_kt)^2 over the bits t that class k uses
    2  loss       -sum_t max(0, 1 - M_kt h_t)
    3  pairs      votes of the pairs, h_t > 0 for the second class, plus c / (3 |c| + 3), c = sum_t M_kt h_t
    4  largest    h_k of class k against the rest, or the probability that its member gives to it; of two classes one
                  member, whose score decides
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.bounds.holdout import divergence
from assay.checker.bounds.tails import ln
from assay.checker.family import WHOLE, Family, Variant
from assay.checker.numerics import above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.members import BALANCE, RAW, SCORE, UNKNOWN, VOTE, Combined, Reading, readings
from assay.claims.definitions import HOLDOUT, Definition
from assay.claims.sentences import error_rate

HAMMING, EUCLIDEAN, LOSS, PAIRS, LARGEST = range(5)


@dataclass(frozen=True)
class Decoded(Combined):
    """Scores of classes by their code words."""

    readings: tuple[Reading, ...]
    code: np.ndarray
    decoding: int
    classes: tuple[str, ...] | None

    @property
    def binary(self) -> bool:
        return self.decoding == LARGEST and self.code.shape[1] == 1

    def _combined(self, outputs: Any) -> tuple[np.ndarray, np.ndarray]:
        M, L = self.code.astype(float), self.code.shape[1]
        if self.decoding == HAMMING:
            bits = np.column_stack([votes[:, 1] - votes[:, 0] for votes, _ in outputs])
            unsure = np.column_stack([error[:, 0] for _, error in outputs])
            return bits @ M.T, unsure @ np.abs(M).T
        h = np.column_stack([values[:, -1] for values, _ in outputs])
        error = np.column_stack([slack[:, -1] for _, slack in outputs])
        if self.decoding == LARGEST:
            return h, error
        size = np.abs(h) @ np.abs(M).T + np.abs(M).sum(axis=1)
        slack = above(error @ np.abs(M).T, L + 4) + gamma(4 * L + 8) * size
        if self.decoding == EUCLIDEAN and not M.all():
            apart = np.square(np.clip(h, -1.0, 1.0)[:, None, :] - M) * np.abs(M)
            used = np.abs(M).sum(axis=1)
            return -apart.sum(axis=2) / used, above(4 * (error @ np.abs(M).T) / used, L + 6) + gamma(4 * L + 8) * 4
        if self.decoding == EUCLIDEAN:
            return 2 * h @ M.T - np.square(M).sum(axis=1), 2 * slack
        if self.decoding == LOSS:
            loss = np.stack([np.maximum(0.0, 1 - h * row).sum(axis=1) for row in M], axis=1)
            return -loss, slack + gamma(4 * L + 8) * L
        confidence = h @ M.T
        sure = (np.abs(h) > error) | (error == 0)
        votes = np.where(sure, np.where(h > 0, 1.0, -1.0), 0.0)
        won = np.stack([(votes * row > 0).sum(axis=1) for row in M], axis=1)
        open_votes = (~sure).astype(float) @ np.abs(M).T
        return won + confidence / (3 * (np.abs(confidence) + 1)), open_votes + above(slack / 3, 4) + 2.0**-49 * (L + 1)

    def wrong_bits(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return how many bits of each row's code word are not certainly right."""
        wrong = np.zeros(len(X), dtype=np.int64)
        for t, reading in enumerate(self.readings):
            votes, unsure = Reading(reading.member, VOTE, 2).values(X)
            bit, wanted = votes[:, 1] - votes[:, 0], self.code[codes, t]
            wrong += (wanted != 0) & ~((bit == wanted) & (unsure[:, 0] == 0))
        return wrong

    @property
    def corrected(self) -> int:
        """How many wrong bits no decoding error can come from; -1 if scores, not bits, are decoded, or if scores break
        ties that need not agree with the members' votes."""
        if self.decoding in (PAIRS, LARGEST):
            return 0 if all(reading.link >= 0 for reading in self.readings) else -1
        return corrected_bits(self.code) if self.decoding == HAMMING else -1


def corrected_bits(code: np.ndarray) -> int:
    """Return the number of wrong bits that Hamming decoding surely corrects: floor((distance - 1) / 2) without zeros.

    For words k and l let D bits differ, A be used by k alone and B by l alone: with w wrong bits the score of k leads
    by at least 2 D + A - B - 4 w.
    """
    used = (code != 0).astype(np.int64)
    both = code @ code.T
    shared = used @ used.T
    differ = (shared - both) // 2
    lead = 2 * differ + (used.sum(axis=1)[:, None] - shared) - (used.sum(axis=1)[None, :] - shared)
    least = int(lead[~np.eye(len(code), dtype=bool)].min())
    return max(-1, (least - 1) // 4)


def read_code(
    members: list[Predictor], code: np.ndarray, links: np.ndarray, decoding: np.ndarray, classes: Any
) -> Decoded:
    """Return the predictor after checking that the code tells the classes apart."""
    if code.ndim != 2 or code.shape != (len(classes), len(members)) or np.any(np.abs(code) > 1):
        raise Rejected("code_ must have an entry -1, 0 or 1 for each class and member")
    if len(np.unique(code, axis=0)) < len(code) or not np.all((code == 1).any(axis=0) & (code == -1).any(axis=0)):
        raise Rejected("code words must differ, and each bit must have classes on both sides")
    if decoding.shape != () or not HAMMING <= decoding <= LARGEST:
        raise Rejected("decoding_ must be 0, 1, 2, 3 or 4")
    K, L, kind = *code.shape, int(decoding)
    against_rest = np.array([[-1], [1]]) if K == 2 else 2 * np.eye(K, dtype=np.int64) - 1
    if kind == LARGEST and not (code.shape == against_rest.shape and np.array_equal(code, against_rest)):
        raise Rejected("the largest score is that of one class against the rest")
    if kind == PAIRS and (L != K * (K - 1) // 2 or not np.all(np.abs(code).sum(axis=0) == 2)):
        raise Rejected("pairs have a member for every two classes")
    by_probability = kind == LARGEST and K > 2 and not np.isin(links, (VOTE, RAW)).any()
    of_scores = (UNKNOWN, VOTE) if kind == HAMMING else (UNKNOWN, SCORE, BALANCE)
    if not np.isin(links, of_scores).all() and not by_probability:
        raise Rejected("links_ must be those of the decoding")
    return Decoded(readings(members, links, 2), code.astype(np.int64), kind, classes)


class BitErrors(Rule):
    """output-code.bits: the decoded class is wrong only where more bits are wrong than the code corrects, c: the error
    rate is at most the mean number of wrong bits divided by c + 1, and its mean share has Chernoff's bound."""

    set = "holdout"

    def prepare(self) -> None:
        if not isinstance(self.model, Decoded) or self.model.corrected < 0:
            raise Rejected("it is about a code whose bits are decoded")
        self.check_rows()
        self.delta = exact_decimal(self.claim.delta, "delta")
        if self.count("corrected") != self.model.corrected:
            raise Rejected(f"the code corrects {self.model.corrected} wrong bits")
        self.stated, self.wrong = self.count("wrong"), 0
        if self.count("bits") != self.model.code.shape[1]:
            raise Rejected(f"the code has {self.model.code.shape[1]} bits")

    def block(self, view: View) -> None:
        known = view.codes >= 0
        self.wrong += int(self.model.wrong_bits(view.X[known], view.codes[known]).sum())
        self.wrong += int(np.sum(~known)) * self.model.code.shape[1]

    def measure(self) -> float:
        L, c = self.model.code.shape[1], self.model.corrected
        if not self.wrong <= self.stated <= self.rows * L:
            raise Rejected(f"wrong is {self.stated}, recounted {self.wrong}")
        if self.claim.value >= 1:
            return self.claim.value
        q, p = Fraction(self.claim.value) * (c + 1) / L, Fraction(self.stated, self.rows * L)
        with localcontext(prec=60):
            slip = Decimal("1e-40")
            enough = p < q < 1 and divergence(p, q) - slip >= ln(1 / self.delta) / self.rows + slip
        if q < 1 and not enough:
            raise Rejected(
                f"the bound for {self.stated} wrong bits in {self.rows} rows lies above {self.claim.value:.10g}"
            )
        return self.claim.value


_SENTENCE = error_rate("{wrong} wrong bits in {rows} hold-out rows, {corrected} of {bits} are corrected")


CLAIMS = {"P43/1": Definition("output-code.bits", BitErrors, _SENTENCE, HOLDOUT, quantity="error rate")}
_ARRAYS = {"code_": WHOLE, "links_": WHOLE, "decoding_": WHOLE}
FAMILY = Family("codes", {"": Variant(_ARRAYS, read_code, classes=True, members=True)}, CLAIMS)
