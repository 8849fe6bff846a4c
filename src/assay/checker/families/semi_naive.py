"""Semi-naive Bayes: columns depend on the class and on one or two others.

Columns become slots. `n_values_` (d,), `values_` (sum,) increasing in each column, `is_cut_`, `has_gap_` (d,) of 0 and
1: a column that is cut has an interval for each number of cuts up to x, another one a slot for each of its values; one
more for missing and unknown values if it has gaps. `class_count_`, `class_prior_` (K,), `smoothing_` (1,) alpha,
`column_types_` (d,) as JSON text or empty.
`parents`: `parents_` (d,), -1 for none, `joint_counts_` (K, cells), column after column, slots of the parent by slots.
`pairs`: `pair_counts_` (K, S, S) of all slots, `min_count_` (1,). `triples`: also `triple_counts_` (K, cells), for
columns i < j the slots of i by those of j by those of all later columns.
"""

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.rules import bayes, dependence
from assay.claims.definitions import Definition

CLAIMS = {"D28/1": Definition("counts.mle", bayes.CountsOfRows, bayes.COUNTS_OF_ROWS)}
_SLOTS = {"n_values_": WHOLE, "values_": NUMBERS, "is_cut_": WHOLE, "has_gap_": WHOLE}
_REST = {"class_count_": NUMBERS, "class_prior_": NUMBERS, "smoothing_": NUMBERS, "column_types_": TEXT}
_PAIRS = {**_SLOTS, **_REST, "pair_counts_": NUMBERS, "min_count_": NUMBERS}
_PARENTS = {**_SLOTS, **_REST, "parents_": WHOLE, "joint_counts_": NUMBERS}
_LOGISTIC = ("logistic",)
FAMILY = Family(
    "semi_naive",
    {
        "parents": Variant(_PARENTS, dependence.read_parents, classes=True, probabilities=_LOGISTIC),
        "pairs": Variant(_PAIRS, dependence.read_pairs, classes=True, probabilities=_LOGISTIC),
        "triples": Variant(
            {**_PAIRS, "triple_counts_": NUMBERS}, dependence.read_triples, classes=True, probabilities=_LOGISTIC
        ),
    },
    CLAIMS,
)
