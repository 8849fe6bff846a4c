"""A learner of a family that exists, from outside the package: a class, a reader, a variant, and nothing else.

Geometric naive Bayes: the counts of a column are failures before a success, P(x | c) = q^x (1 - q), with
q_cj = (N_cj + alpha_j) / (N_cj + alpha_j + N_c + 1). Scores are linear in the counts: sum x ln q + ln(1 - q).
"""

from dataclasses import dataclass

import numpy as np

from assay.card import Card
from assay.checker.family import NUMBERS, Variant, register_variant
from assay.checker.record import Rejected
from assay.checker.rules.bayes import CountScores, check_classes
from assay.naive_bayes._counts import CountScorer, CountsNB, LinearScores
from assay.registry import register


def read_geometric(counts, sizes, prior, alpha, classes):
    if counts.ndim != 2 or counts.shape != (len(classes), len(alpha)) or np.any(counts < 0) or np.any(alpha <= 0):
        raise Rejected("counts and alpha_ must be numbers >= 0 and > 0 that go together")
    check_classes(sizes, prior, classes)
    q = (counts + alpha) / (counts + alpha + sizes[:, None] + 1)
    absent = np.log1p(-q)
    return CountScores(np.log(q) + absent, absent, counts, sizes, prior, prior, None, classes)


register_variant(
    "naive_bayes.geometric",
    Variant(
        dict.fromkeys(("feature_count_", "class_count_", "class_prior_", "alpha_"), NUMBERS),
        read_geometric,
        classes=True,
        probabilities=("logistic",),
    ),
)


@register
@dataclass(eq=False, repr=False)
class GeometricNB(CountsNB):
    """Naive Bayes for counts of failures before a success."""

    family = "naive_bayes.geometric"
    card = Card(
        name="Geometric naive Bayes",
        task="classify",
        model=LinearScores(),
        strategy="log-likelihood of counts",
        algorithm="counting, in one pass",
        guarantee=("counts.mle",),
    )

    @property
    def feature_log_prob_(self):
        return np.log(self._q)

    @property
    def _q(self):
        some = self.feature_count_ + self.alpha_
        return some / (some + self.class_count_[:, None] + 1)

    def _scorer(self):
        absent = np.log1p(-self._q)
        return CountScorer(self.feature_log_prob_ + absent, absent, self._log_prior, self._log_prior, None)
