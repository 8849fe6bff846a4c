"""Decision trees and extremely randomised trees: classes or numbers."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn import tree as scikit
from sklearn.base import ClassifierMixin, RegressorMixin

from assay.card import Card
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Predictions, Votes
from assay.guarantees.ledger import Statement
from assay.params import Choice, Flag, Number, check, refuse
from assay.scan import Rows
from assay.tree._claims import OfAnySize, occam_statement, stump_statement, tree_space
from assay.tree._decision_tree import DecisionTree, counts_of
from assay.tree._nodes import Nodes
from assay.tree._predict import mean_values, most_frequent, split_outputs
from assay.tree._reading import Read, nominal_levels, read_columns, read_labelled
from assay.tree.growth._nominal import Method, column_splits, impurity
from assay.tree.growth._records import Limits


@dataclass(eq=False, repr=False)
class DecisionTreeClassifier(ClassifierMixin, DecisionTree):
    """A decision tree that predicts classes.

    Parameters
    ----------
    criterion : "gini", "entropy", "log_loss", "gain" or "gain_ratio"
        Impurity whose decrease is largest; "entropy", "log_loss" and "gain" are the same (ID3), "gain_ratio"
        is C4.5's.
    split : "binary" or "multiway"
        Whether a nominal column is split in two (a subset of levels against the rest) or has a branch for
        each level.
    missing : "direction" or "fractional"
        Rows without the value tested go to the branch where they fit best, or to all branches with C4.5's
        weights.
    pruning : None, "pre", "reduced_error", "pessimistic" or "cost_complexity"
        "pre" and "reduced_error" judge on validation rows: `fit(..., validation=(X, y))`, or
        `validation_fraction` of the rows.
        "cost_complexity" chooses alpha by cross-validation; a fixed `ccp_alpha` prunes without.
    confidence : float in (0, 1/2]
        C4.5's confidence for "pessimistic" pruning.
    prune_ties : bool
        Whether "reduced_error" also cuts where validation accuracy stays the same.
    nominal : positions of nominal columns of an array; a frame says so by its types.
    monotonic_cst : -1, 0 or 1 for each column, optional
        Where it is 1 (-1), the share of the second of two classes (the number that a regressor predicts) never falls
        (rises) with the column. Numeric columns without missing values only.
    thresholds : "midpoint" or "short"
        Half-way between two neighbouring values, or the number between them that takes the fewest bits to write: the
        same predictions on the training rows, and a tighter bound of the error by the length of the description.
    splitter, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features,
    max_leaf_nodes,
    min_impurity_decrease, class_weight, ccp_alpha, random_state
        As in scikit-learn.

    Attributes
    ----------
    classes_, feature_importances_, trees_ (arrays), columns_ (types of the columns, None if all numeric)

    Examples
    --------
    >>> from assay.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"])
    >>> print(model.to_text())
    x0 <= 2.5: no (2)
    x0 > 2.5: yes (2)
    """

    family = "trees.classifier"
    constraints: ClassVar = {
        "criterion": Choice("gini", "entropy", "log_loss", "gain", "gain_ratio"),
        "pruning": Choice(None, "pre", "reduced_error", "pessimistic", "cost_complexity"),
        "confidence": Number(low=0.0, high=0.5, open_low=True),
        "prune_ties": Flag,
        "validation_fraction": Number(low=0.0, high=1.0, open_low=True),
        "thresholds": Choice("midpoint", "short"),
    }
    card = Card(
        name="Decision tree classifier",
        task="classify",
        model=OfAnySize("trees of any size"),
        strategy="impurity or gain ratio; pruning by validation, confidence limits or cost-complexity",
        algorithm="greedy splits, exact thresholds by counting or sorting codes",
        guarantee=("tree.facts", "tree.pruned", "occam", "vc", "rademacher.empirical"),
        input=("numbers", "nominal", "missing"),
    )

    _: KW_ONLY
    criterion: str = "gini"
    class_weight: Any = None
    confidence: float = 0.25
    prune_ties: bool = False
    validation_fraction: float = 0.3
    thresholds: str = "midpoint"

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True, *, validation: Any = None
    ) -> "DecisionTreeClassifier":
        """Fit to rows X (array, sparse matrix or frame, with nominal columns and missing values) and labels y, of one
        output or (rows, outputs). Rows are always checked."""
        check(self)
        data, n_classes = self._read(X, y, sample_weight)
        self._fit(X, data, n_classes, validation)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Read, np.ndarray]:
        data = read_labelled(self, X, y, sample_weight, one_class=True)
        return data, counts_of(self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
        return tags

    def _codes(self, y: np.ndarray) -> np.ndarray:
        at = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        return at.astype(np.int64)

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Return the shares of the classes in the leaf of each row; a list of them for several outputs."""
        return split_outputs(self._values(X), self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return split_outputs(np.log(self._values(X)), self.classes_)

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        """Return the most frequent class of the leaf, the first of equals; (rows, outputs) for several outputs."""
        return most_frequent(self._values(X), self.classes_)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes: comparisons are exact."""
        yield Votes(_majority, (self.nodes_,))

    def space(self, rows: Rows) -> Any:
        """Return the class of trees with as many leaves; sizes share delta, since the data chose the size."""
        return tree_space(self.nodes_, self.n_features_in_, len(self.classes_))

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound from the length of the tree's description and, for stumps, from random signs."""
        yield from occam_statement(self, rows)
        yield from stump_statement(self, rows)

    def _losses(self, value: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return 1 where the class of a node with these shares is not that of the row."""
        return (value.argmax() != y).astype(np.float64)


@dataclass(eq=False, repr=False)
class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """A decision tree that predicts numbers: the mean (or median) of the leaf.

    Parameters
    ----------
    criterion : "squared_error", "absolute_error", "friedman_mse" or "poisson"
        As in scikit-learn. "absolute_error" compares exact weighted medians and predicts the median of the leaf.

    The other parameters and the attributes are those of `DecisionTreeClassifier`; pruning by
    "cost_complexity" only.

    Examples
    --------
    >>> from assay.tree import DecisionTreeRegressor
    >>> DecisionTreeRegressor(max_depth=1).fit([[1.0], [2.0], [3.0]], [1.0, 1.0, 4.0]).predict([[0.0], [9.0]])
    array([1., 4.])
    """

    family = "trees.regressor"
    constraints: ClassVar = {
        "criterion": Choice("squared_error", "absolute_error", "friedman_mse", "poisson"),
        "pruning": Choice(None, "cost_complexity"),
    }
    card = Card(
        name="Decision tree regressor",
        task="regress",
        model=OfAnySize("trees of any size"),
        strategy="squared or absolute error, Friedman's or Poisson's criterion; cost-complexity pruning",
        algorithm="greedy splits, exact thresholds by counting or sorting codes",
        guarantee=("tree.facts",),
        input=("numbers", "nominal", "missing"),
    )

    _: KW_ONLY
    criterion: str = "squared_error"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> "DecisionTreeRegressor":
        """Fit to rows X (array, sparse matrix or frame, with nominal columns and missing values) and numbers y, of one
        output or (rows, outputs). Rows are always checked."""
        check(self)
        data, n_classes = self._read(X, y, sample_weight)
        self._fit(X, data, n_classes, None)
        return self

    def _check_target(self, y: np.ndarray) -> None:
        if self.criterion != "poisson":
            return
        if y.min() < 0:
            raise refuse(self, "Some value(s) of y are negative which is not allowed for Poisson regression.")
        if not y.sum() > 0:
            raise refuse(self, "Sum of y is not positive which is necessary for Poisson regression.")

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Read, np.ndarray]:
        if self.criterion == "poisson" and isinstance(y, (list, np.ndarray)):
            self._check_target(np.asarray(y, dtype=np.float64))
        return read_columns(self, X, y, sample_weight, reset=True), counts_of(None)

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        """Return the mean of the leaf of each row, its median with "absolute_error"; (rows, outputs) for several."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> np.ndarray:
        """Return the mean prediction at the grid over the other columns, by the tree alone; scikit-learn's partial
        dependence asks for it."""
        result, columns = np.zeros(len(grid)), np.asarray(target_features, dtype=np.intp)
        self.tree_.compute_partial_dependence(np.ascontiguousarray(grid, dtype=np.float32), columns, result)
        return result

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions: values of leaves, which do not round."""
        yield Predictions(_leaf_values, (self.nodes_,))

    def _losses(self, value: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the squared (or absolute) error of a node's value for each row."""
        gap = value[0] - y
        return np.abs(gap) if self.criterion == "absolute_error" else gap**2


def _majority(block: Block, nodes: Nodes) -> np.ndarray:
    return mean_values(nodes, block.X, 1).argmax(axis=1)


def _leaf_values(block: Block, nodes: Nodes) -> tuple[np.ndarray, float]:
    return mean_values(nodes, block.X, 1), 0.0


@dataclass(eq=False, repr=False)
class ExtraTreeClassifier(DecisionTreeClassifier):
    """An extremely randomised tree that predicts classes; `ExtraTreesClassifier` makes a forest of such.

    Parameters and attributes are those of `DecisionTreeClassifier`; `splitter` and `max_features` have other defaults.

    Examples
    --------
    >>> from assay.tree import ExtraTreeClassifier
    >>> ExtraTreeClassifier(random_state=0).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[1.0], [4.0]])
    array([0, 1])
    """

    card = Card(
        name="Extremely randomised tree classifier",
        task="classify",
        model=OfAnySize("trees of any size"),
        strategy="impurity among random splits",
        algorithm="random columns and thresholds at each node",
        guarantee=("tree.facts", "tree.pruned", "occam", "vc", "rademacher.empirical"),
        input=("numbers", "nominal", "missing"),
        role="named",
    )

    _: KW_ONLY
    splitter: str = "random"
    max_features: Any = "sqrt"


@dataclass(eq=False, repr=False)
class ExtraTreeRegressor(DecisionTreeRegressor):
    """An extremely randomised tree that predicts numbers; `ExtraTreesRegressor` makes a forest of such.

    Parameters and attributes are those of `DecisionTreeRegressor`; `splitter` and `max_features` have other defaults.

    Examples
    --------
    >>> from assay.tree import ExtraTreeRegressor
    >>> ExtraTreeRegressor(random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 1.0, 4.0]).predict([[1.0], [9.0]])
    array([1., 4.])
    """

    card = Card(
        name="Extremely randomised tree regressor",
        task="regress",
        model=OfAnySize("trees of any size"),
        strategy="squared or absolute error, Friedman's or Poisson's criterion, among random splits",
        algorithm="random columns and thresholds at each node",
        guarantee=("tree.facts",),
        input=("numbers", "nominal", "missing"),
        role="named",
    )

    _: KW_ONLY
    splitter: str = "random"
    max_features: Any = 1.0


# Tools that ask for scikit-learn's classes (export, plots, partial dependence) read ours by `tree_`.
scikit.DecisionTreeClassifier.register(DecisionTreeClassifier)
scikit.DecisionTreeRegressor.register(DecisionTreeRegressor)
scikit.ExtraTreeClassifier.register(ExtraTreeClassifier)
scikit.ExtraTreeRegressor.register(ExtraTreeRegressor)


class ID3(DecisionTreeClassifier):
    """Quinlan's ID3: information gain, a branch for each level of a nominal column, no pruning.

    >>> from assay.tree import ID3
    >>> import pandas as pd
    >>> print(ID3().fit(pd.DataFrame({"sky": ["clear", "cloud", "clear"]}), [1, 0, 1]).to_text())
    sky = clear: 1 (2)
    sky = cloud: 0 (1)
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        pruning: str | None = None,
        validation_fraction: float = 0.3,
        prune_ties: bool = False,
        missing: str = "fractional",
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gain",
            split="multiway",
            missing=missing,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            validation_fraction=validation_fraction,
            prune_ties=prune_ties,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class C45(DecisionTreeClassifier):
    """Quinlan's C4.5: gain ratio among columns of at least average gain, fractional missing values,
    pessimistic pruning.

    `min_samples_leaf` is the weight that at least two branches must have (2 in C4.5).

    >>> from assay.tree import C45
    >>> model = C45().fit([[1.0], [2.0], [3.0], [4.0], [None]], ["no", "no", "yes", "yes", "yes"])
    >>> model.predict([[0.0], [9.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 2,
        pruning: str | None = "pessimistic",
        confidence: float = 0.25,
        validation_fraction: float = 0.3,
        prune_ties: bool = False,
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gain_ratio",
            split="multiway",
            missing="fractional",
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            confidence=confidence,
            validation_fraction=validation_fraction,
            prune_ties=prune_ties,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class CART(DecisionTreeClassifier):
    """Breiman's CART: Gini, two branches, cost-complexity pruning with alpha chosen by cross-validation.

    >>> from sklearn.datasets import load_iris
    >>> from assay.tree import CART
    >>> CART().fit(*load_iris(return_X_y=True)).get_n_leaves()
    5
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        pruning: str | None = "cost_complexity",
        missing: str = "direction",
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gini",
            split="binary",
            missing=missing,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class ColumnScore(NamedTuple):
    """Gain and intrinsic value in bits, gain ratio, Gini index, and the threshold of a numeric column (None
    if nominal).

    Parameters
    ----------
    gain : float
        Information gain, in bits.
    intrinsic_value : float
        Entropy of the branches, in bits.
    gain_ratio : float
        Gain over intrinsic value.
    gini_index : float
        Weighted Gini impurity of the branches.
    threshold : float or None
        Threshold of a numeric column; None: nominal.
    """

    gain: float
    intrinsic_value: float
    gain_ratio: float
    gini_index: float
    threshold: float | None


def column_scores(X: Any, y: Any, *, nominal: Any = None) -> list[ColumnScore | None]:
    """Return the score of each column as a split of all rows, None for a column with one value.

    gain = rho (Ent - sum r_v Ent_v), intrinsic value = -sum r_v log2 r_v, Gini index = sum r_v Gini_v, over
    the rows whose value is
    known (a share rho of all); a nominal column has a branch for each level, a numeric one two.

    Parameters
    ----------
    X : array-like
        Rows.
    y : array-like
        Labels.
    nominal : array-like or None
        Which columns are nominal; None: none.

    Returns
    -------
    list of ColumnScore or None
        The scores, None for a column with one value.

    Examples
    --------
    >>> column_scores([[1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "b"])[0]
    ColumnScore(gain=1.0, intrinsic_value=1.0, gain_ratio=1.0, gini_index=0.0, threshold=2.5)
    """
    reader = DecisionTreeClassifier(nominal=nominal)
    data, counts_of_outputs = reader._read(X, y, None)
    n_classes = int(counts_of_outputs[0])
    levels = nominal_levels(reader)
    method = Method("gain", "multiway", "fractional", levels, n_classes, Limits())
    results: list[ColumnScore | None] = []
    rows = data.dense("column_scores")
    for f, split in enumerate(column_splits(rows, data.y, np.ones(len(data.y)), method)):
        if split is None:
            results.append(None)
            continue
        x = rows[:, f]
        known = ~np.isnan(x)
        branch = x[known].astype(int) if split.threshold is None else (x[known] > split.threshold).astype(int)
        counts = np.zeros((levels.get(f, 2), n_classes))
        np.add.at(counts, (branch, data.y[known]), 1)
        shares = counts.sum(axis=1) / known.sum()
        iv = float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())
        gini = float((shares * impurity(counts, "gini")).sum())
        results.append(ColumnScore(split.gain, iv, split.ratio, gini, split.threshold))
    return results
