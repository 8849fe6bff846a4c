"""Naive Bayes: classes compared by ln P(c) + sum over columns of ln P(x_j | c).

`columns`: `n_levels_` (d,), -1 for a column of numbers; `level_values_` (S,) the numbers that stand for the levels of
all columns of levels, increasing in each; `level_counts_` (K, S); `column_count_`, `theta_`, `var_` (K, p) number of
values, mean and variance of the columns of numbers, `added_` (p,) the part of the variance that is no row's;
`class_count_`, `class_prior_` (K,); `smoothing_` (alpha, m); `reads_gaps_` (1,); `column_types_` (d,) as JSON text, or
empty. `multinomial`, `complement`, `bernoulli`, `poisson`: `feature_count_` (K, d), `class_count_`, `class_prior_`
(K,), `alpha_` (d,), and `norm_` (1,), `binarize_` (1,) or (0,), or `beta_` (1,).
"""

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.rules import bayes
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence

_NORMAL = Sentence(
    {
        "": "Means and variances (divisor {divisor}) of the columns in each class are those of the {rows} training "
        "rows, what is added declared: up to {value:up1}, in units of standard deviations and variances."
    },
    lambda value, direction, params: {"divisor": "n - 1" if params["ddof"] else "n"},
)


CLAIMS = {
    "D28/1": Definition("counts.mle", bayes.CountsOfRows, bayes.COUNTS_OF_ROWS),
    "D19/4": Definition("gaussian-nb.mle", bayes.NormalColumns, _NORMAL),
}
_SIZES = {"class_count_": NUMBERS, "class_prior_": NUMBERS}
_COUNTS = {"feature_count_": NUMBERS, **_SIZES, "alpha_": NUMBERS}
_MOMENTS = dict.fromkeys(("column_count_", "theta_", "var_", "added_"), NUMBERS)
_LEVELS = {"n_levels_": WHOLE, "level_values_": NUMBERS, "level_counts_": NUMBERS}
_REST = {"smoothing_": NUMBERS, "reads_gaps_": WHOLE, "column_types_": TEXT}
_LOGISTIC = ("logistic",)
FAMILY = Family(
    "naive_bayes",
    {
        "columns": Variant(
            {**_LEVELS, **_MOMENTS, **_SIZES, **_REST}, bayes.read_columns, classes=True, probabilities=_LOGISTIC
        ),
        "multinomial": Variant(_COUNTS, bayes.read_multinomial, classes=True, probabilities=_LOGISTIC),
        "complement": Variant(
            {**_COUNTS, "norm_": WHOLE}, bayes.read_complement, classes=True, probabilities=_LOGISTIC
        ),
        "bernoulli": Variant(
            {**_COUNTS, "binarize_": NUMBERS}, bayes.read_bernoulli, classes=True, probabilities=_LOGISTIC
        ),
        "poisson": Variant({**_COUNTS, "beta_": NUMBERS}, bayes.read_poisson, classes=True, probabilities=_LOGISTIC),
    },
    CLAIMS,
)
