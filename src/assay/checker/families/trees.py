"""Trees, forests, sums of trees and votes of trees.

Nodes of all trees stand in common arrays, children of a node side by side after it: `n_features_in_`, `tree_root_`
(trees,), `node_column_`, `node_threshold_`, `node_table_`, `node_child_` (nodes,), `node_value_` (nodes, outputs),
`branch_tables_` (tables, codes); `base_score_` of a sum, `estimator_weights_` of a weighted vote or median,
`committee_` of committees. A row goes to the first child if x[column] <= threshold, else to the second; by a branch
table, to the child of its code. Not part of any claim: `node_missing_` (child of rows without a value, -1: all),
`node_weight_`, `node_impurity_` (nodes,), `column_types_` (columns,) as JSON text, or empty if all are numbers; of a
single tree fitted with weights, `leaf_rows_` (leaves,), its training rows.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from assay.checker.family import NUMBERS, TEXT, WHOLE, Family, Variant
from assay.checker.rules import pruning, tree_ensembles, trees
from assay.claims.definitions import PRIOR, UNIFORM, Definition
from assay.claims.sentences import Sentence, error_rate, part

_VOTE_MARGIN = Sentence(
    {
        "lower": "The vote gives the training rows a margin of at least {value:out6}{soft}, in shares of its weight.",
        "upper": "No weighted vote of stumps gives the training rows a margin above {value:out6}{soft}.",
        "soft": " (soft: a row counts at most {cap:.3g})",
    },
    lambda value, direction, params: {"soft": part(params["cap"] < 1, "soft")},
)


_PRODUCT = Sentence.plain(
    "The training error is at most {value:up6}, the product of the {rounds} normalisers of boosting."
)


_SIZE = Sentence.plain("The tree has {leaves} leaves and at most {depth} tests on a way down.")


_PRUNED = Sentence.plain(
    "No subtree of the grown tree ({leaves} leaves) has a {criterion:term} impurity plus {alpha:.4g} per leaf smaller "
    "by more than {value:up2}."
)


CLAIMS = {
    "D24/1": Definition("adaboost.product", trees.BoostingProduct, _PRODUCT),
    "D25/1": Definition("boosting.margin-duality", tree_ensembles.MarginDuality, _VOTE_MARGIN, (), ("upper", "lower")),
    "D27/1": Definition("tree.facts", trees.TreeSize, _SIZE),
    "D33/1": Definition("tree.pruned", pruning.PrunedTree, _PRUNED),
    "P09/1": Definition(
        "occam",
        trees.Occam,
        error_rate("{errors} errors in {rows} training rows, length of the tree's description"),
        PRIOR,
        quantity="error rate",
    ),
    "P11/1": Definition(
        "rademacher.empirical",
        tree_ensembles.StumpComplexity,
        error_rate("{errors} errors in {rows} training rows, how well stumps follow {draws} draws of random signs"),
        (*UNIFORM, "A-RNG"),
        quantity="error rate",
    ),
    "P15/1": Definition(
        "margin.boosting",
        tree_ensembles.BoostingMargin,
        error_rate("margins of {rows} training rows in the vote"),
        PRIOR,
        quantity="error rate",
    ),
    "P19/1": Definition(
        "pac-bayes.vote",
        tree_ensembles.OutOfBagVote,
        error_rate("{members} members on their out-of-bag rows, {form:term} form"),
        ("A-IID(train)", "A-CLASS", "A-BAGS", "A-RNG", "A-PRIOR", "A-DELTA"),
        quantity="error rate",
    ),
}
_TYPES = {"column_types_": TEXT, **dict.fromkeys(("node_threshold_", "node_value_"), NUMBERS)}
_TYPES |= dict.fromkeys(("node_weight_", "node_impurity_"), NUMBERS)
_NODES = {name: _TYPES.get(name, WHOLE) for name in trees.NODES}
_BASE, _WEIGHTS = {**_NODES, "base_score_": NUMBERS}, {**_NODES, "estimator_weights_": NUMBERS}

_PROBABILITIES = {
    "classifier": ("leaves",),
    "vote": ("shares",),
    "sum-classifier": ("logistic",),
    "weighted-vote": ("boosted",),
}


def _variant(kind: str, arrays: Mapping[str, tuple[str, ...]], classes: bool) -> Variant:
    single = {"leaf_rows_": _leaf_rows} if kind in ("classifier", "regressor") else {}
    more = {"member_columns_": _columns, **single}
    links = _PROBABILITIES.get(kind, ())
    return Variant(arrays, partial(trees.read_trees, kind), classes=classes, probabilities=links, more=more)


def _leaf_rows(array: Any, model: Any) -> bool:
    """Tell whether an array counts the training rows of each leaf."""
    return array.dtype.kind == "i" and array.shape == (int((model.child < 0).sum()),) and bool((array >= 0).all())


def _columns(array: Any, model: Any) -> bool:
    """Tell whether an array names the columns that each of the trees was grown on."""
    whole = array.dtype.kind == "i" and array.ndim == 2 and len(array) == len(model.root)
    return whole and bool(((array >= 0) & (array < model.columns)).all())


FAMILY = Family(
    "trees",
    {
        "classifier": _variant("classifier", _NODES, True),
        "regressor": _variant("regressor", _NODES, False),
        "vote": _variant("vote", _NODES, True),
        "mean": _variant("mean", _NODES, False),
        "committee": _variant("committee", {**_NODES, "committee_": WHOLE}, True),
        "sum-classifier": _variant("sum-classifier", _BASE, True),
        "sum-regressor": _variant("sum-regressor", _BASE, False),
        "sum-exponential": _variant("sum-exponential", _BASE, False),
        "weighted-vote": _variant("weighted-vote", _WEIGHTS, True),
        "median": _variant("median", _WEIGHTS, False),
    },
    CLAIMS,
)
