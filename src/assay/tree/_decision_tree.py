"""Decision trees for classification and regression.

    grow    at each node the split with the largest decrease of impurity (gain), or C4.5's gain ratio, until
    nodes are pure
    prune   see `_pruning`
    predict class shares, or the mean, of the leaf that a row reaches

Complete numeric columns are split by compiled code that tries every border; nominal columns, missing values and the
gain ratio take the general way (`_general`). Both find the same splits where both apply.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, label_classes
from assay.card import Card
from assay.certificate.claim import Claim, NotApplicable
from assay.certificate.risk import Statement
from assay.fitlog import FitLog
from assay.params import choice, count, number, refuse
from assay.scan import Rows, rows
from assay.tree import _pruning as pruning
from assay.tree import _rules
from assay.tree._claims import grown_part, occam_statement, pruning_fact, shortened, stump_statement, tree_space
from assay.tree._exact import Limits, encode, grow_exact
from assay.tree._general import Method, grow_general
from assay.tree._nodes import Nodes, TreeModel
from assay.tree._predict import clipped_errors, leaves, mean_values, squared_error
from assay.tree._reading import Read, nominal_levels, read_columns
from assay.tree._spaces import OfAnySize

if TYPE_CHECKING:
    from assay.table import ColumnType

_PRUNING = (None, "pre", "reduced_error", "pessimistic", "cost_complexity")


def feature_count(owner: Any, d: int) -> int:
    """Return how many columns `max_features` asks for: a number, a share, "sqrt", "log2" (floor, at least 1)
    or None (all)."""
    asked = owner.max_features
    if asked is None:
        return d
    if asked == "sqrt":
        return max(1, int(np.sqrt(d)))
    if asked == "log2":
        return max(1, int(np.log2(d)))
    if isinstance(asked, float) and 0 < asked <= 1:
        return max(1, int(asked * d))
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1:
        return min(int(asked), d)
    raise refuse(
        owner,
        f'max_features must be None, "sqrt", "log2", a share in (0, 1] or a count; got {asked!r}.',
    )


def row_count(owner: Any, name: str, n: int, low: int) -> int:
    """Return a number of rows given as such or, as a float in (0, 1], as a share of n."""
    value = getattr(owner, name)
    if isinstance(value, float) and 0 < value <= 1:
        return max(low, int(np.ceil(value * n)))
    return count(owner, name, low=low)


class DecisionTree(TreeModel, Learner):
    """What both kinds of tree share."""

    criterion: str
    max_features: Any
    thresholds: str = "midpoint"

    def _grow(self, data: Read, n_classes: int) -> Nodes:
        """Return the unpruned tree."""
        n, d = data.X.shape
        levels = nominal_levels(self)
        limits = self._limits(data, d)
        plain = not levels and self.criterion != "gain_ratio" and not np.isnan(data.X).any()
        if plain and self.criterion == "absolute_error":
            from assay.tree._absolute import grow_absolute

            rng = check_random_state(self.random_state)
            return grow_absolute(data.X, data.y, data.weight, limits, rng, self.n_jobs)
        if plain:
            seed = (
                int(check_random_state(self.random_state).randint(2**31 - 1))
                if limits.max_features < d or limits.random
                else 0
            )
            codes = encode(data.X, self.n_jobs)
            return grow_exact(
                codes, data.y, data.weight, np.arange(n), n_classes, self.criterion, limits, seed, self.n_jobs
            )
        if (
            self.criterion in ("absolute_error", "friedman_mse", "poisson")
            or limits.max_features < d
            or limits.max_leaves
            or limits.min_weight_leaf > 0
            or limits.random
        ):
            raise refuse(
                self,
                "nominal columns, missing values and gain_ratio go with gain, gain_ratio, entropy, log_loss, "
                "gini or squared_error, "
                "all columns, the best split, and no limit on the number or weight of leaves; change these, or encode "
                "the columns.",
            )
        weight = np.ones(n) if data.weight is None else data.weight
        return grow_general(
            data.X,
            data.y,
            weight,
            Method(
                self.criterion,
                self.split,
                self.missing,
                levels,
                n_classes,
                limits.min_samples_leaf,
                limits.min_samples_split,
                limits.max_depth,
                limits.min_decrease,
            ),
        )

    def _limits(self, data: Read, d: int) -> Limits:
        n = len(data.y)
        total = float(n if data.weight is None else data.weight.sum())
        choice(self, "split", ("multiway", "binary"))
        choice(self, "missing", ("fractional", "direction"))
        choice(self, "splitter", ("best", "random"))
        return Limits(
            row_count(self, "min_samples_leaf", n, 1),
            number(self, "min_weight_fraction_leaf", low=0.0, high=0.5) * total,
            row_count(self, "min_samples_split", n, 2),
            2**31 if self.max_depth is None else count(self, "max_depth"),
            0 if self.max_leaf_nodes is None else count(self, "max_leaf_nodes", low=2),
            number(self, "min_impurity_decrease", low=0.0) * total,
            feature_count(self, d),
            self.splitter == "random",
        )

    def fit_read(self, data: Read, columns: "tuple[ColumnType, ...] | None", classes: np.ndarray | None) -> Any:
        """Fit to rows that an ensemble has read: codes in nominal columns, labels as positions in `classes`."""
        self.columns_, self.n_features_in_ = columns, data.X.shape[1]
        if classes is not None:
            self.classes_ = classes
        self._fit(data.X, data, 0 if classes is None else len(classes), None)
        return self

    def _fit(self, X: Any, data: Read, n_classes: int, validation: Any) -> None:
        self._check(data.y)
        choice(self, "pruning", _PRUNING)
        number(self, "ccp_alpha", low=0.0)
        needs = self.pruning in ("pre", "reduced_error")
        grown = None
        if not needs:
            nodes = self._grow(data, n_classes)
        if self.pruning == "cost_complexity":
            self.ccp_alpha_ = self._chosen_alpha(data, n_classes)
            grown, nodes = nodes, pruning.cost_complexity(nodes, self._risk(nodes), self.ccp_alpha_)
        elif needs:
            data, held = self._validation(data, validation)
            nodes = self._grow(data, n_classes)
            if self.pruning == "pre":
                nodes = pruning.pre_pruned(nodes, held.X, held.y)
            else:
                nodes = pruning.reduced_error(nodes, held.X, held.y, bool(self.prune_ties))
        elif self.pruning == "pessimistic":
            nodes = pruning.pessimistic(nodes, number(self, "confidence", low=0.0, high=0.5, open_low=True))
        if self.ccp_alpha > 0 and self.pruning != "cost_complexity":
            grown, nodes = nodes, pruning.cost_complexity(nodes, self._risk(nodes), float(self.ccp_alpha))
        nodes = self._placed(nodes, data.X)
        self.trees_ = nodes.as_dict()
        self.__dict__.pop("grown_", None)
        if grown is not None:
            plain = not np.any(grown.table >= 0) and not np.isnan(data.X).any()
            self.grown_ = grown_part(grown, nodes) if plain else {}
        with FitLog(self, 1, X, data.y) as log:
            log.step(float(self._risk(nodes)[nodes.child < 0].sum()), 0.0)

    def _placed(self, nodes: Nodes, X: np.ndarray) -> Nodes:
        """Return the tree with its thresholds where the parameter wants them."""
        choice(self, "thresholds", ("midpoint", "short"))
        if self.thresholds == "midpoint":
            return nodes
        if np.any(nodes.table >= 0) or np.isnan(X).any():
            raise refuse(self, 'thresholds="short" needs numeric columns without missing values.')
        return shortened(nodes, X)

    def _validation(self, data: Read, given: Any) -> tuple[Read, Read]:
        """Return the rows to grow on and those to prune on: the pair given, or a share of the rows."""
        if given is not None:
            held = read_columns(self, *given)
            return data, Read(held.X, self._codes(held.y), None)
        share = number(self, "validation_fraction", low=0.0, high=1.0, open_low=True)
        kept, held_rows = train_test_split(
            np.arange(len(data.y)),
            test_size=share,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
        )
        return data.take(np.sort(kept)), data.take(np.sort(held_rows))

    def _risk(self, nodes: Nodes) -> np.ndarray:
        """Return R(t): impurity times share of the weight."""
        return nodes.impurity * nodes.weight / nodes.weight[0]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> pruning.Path:
        """Return alphas, impurities and numbers of leaves of all subtrees that are optimal for some alpha."""
        data, n_classes = self._read(X, y, sample_weight)
        self._check(data.y)
        nodes = self._grow(data, n_classes)
        return pruning.pruning_path(nodes, self._risk(nodes))[0]

    def _chosen_alpha(self, data: Read, n_classes: int) -> float:
        """Return the alpha, between two of the path, with the smallest cross-validated error (the largest
        such alpha)."""
        nodes = self._grow(data, n_classes)
        path = pruning.pruning_path(nodes, self._risk(nodes))[0]
        tried = np.append(np.sqrt(path.ccp_alphas[:-1] * path.ccp_alphas[1:]), path.ccp_alphas[-1])
        smallest = int(np.bincount(data.y).min()) if n_classes else len(data.y)
        kind = StratifiedKFold if n_classes and smallest > 1 else KFold
        folds = kind(max(2, min(5, smallest if kind is StratifiedKFold else len(data.y))), shuffle=True, random_state=0)
        losses = np.zeros(len(tried))
        for fit, held in folds.split(data.X, data.y):
            part = data.take(fit)
            full = self._grow(part, n_classes)
            by_node = self._node_losses(full, data.y[held])
            if data.weight is not None:
                by_node = by_node * data.weight[held]
            losses += pruning.path_losses(full, self._risk(full), tried, data.X[held], by_node)
        return float(tried[np.flatnonzero(losses <= losses.min() + 1e-9 * len(data.y))[-1]])

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the size of the tree and, if it was pruned by cost-complexity, that no subtree costs less."""
        nodes = self.nodes_
        size = int(np.count_nonzero(nodes.child < 0))
        yield Claim("D27/1", float(size), params={"leaves": size, "depth": int(nodes.depths().max())})
        yield from pruning_fact(self, rows)

    # What the fitted tree says
    # ----------------------------------------------------------------------------------------

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return mean_values(self.nodes_.check(self.n_features_in_), read_columns(self, X).X, self.n_jobs)

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches; numeric columns without missing values only."""
        check_is_fitted(self)
        data = read_columns(self, X)
        if np.any(self.nodes_.table >= 0) or np.isnan(data.X).any():
            raise refuse(
                self,
                "apply needs numeric columns without missing values: other rows may reach several leaves.",
            )
        return leaves(self.nodes_.check(self.n_features_in_), data.X, self.n_jobs)[:, 0]

    def get_depth(self) -> int:
        """Return the number of splits on the longest way down."""
        return int(self.nodes_.depths().max())

    def get_n_leaves(self) -> int:
        return int(np.count_nonzero(self.nodes_.child < 0))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the decrease of impurity by all splits."""
        check_is_fitted(self)
        return impurity_importances(self.nodes_, self.n_features_in_)

    def _words(self) -> _rules.Words:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [c.name for c in self.columns_] if self.columns_ else [f"x{i}" for i in range(self.n_features_in_)]
        levels = {i: column.levels for i, column in enumerate(self.columns_ or ()) if column.kind == "nominal"}
        return _rules.Words([str(name) for name in names], levels, getattr(self, "classes_", None))

    def to_text(self) -> str:
        """Return the tree as indented text; the weight of the training rows of a leaf in brackets."""
        return _rules.as_text(self.nodes_, self._words())

    def to_rules(self) -> list[_rules.RuleLine]:
        """Return one rule for each leaf."""
        return _rules.as_rules(self.nodes_, self._words())

    def to_html(self) -> str:
        """Return the tree as nested lists that can be folded."""
        return _rules.as_html(self.nodes_, self._words())

    def to_svg(self) -> str:
        """Return a picture of the tree."""
        return _rules.as_svg(self.nodes_, self._words())

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def known_rows(learner: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Return rows as a fitted tree sees them, for a certificate."""
    data = read_columns(learner, X, y, sample_weight)
    if np.isnan(data.X).any():
        raise refuse(
            learner,
            "X contains NaN; certificates need complete rows, because the checker reads numbers alone.",
        )
    known = rows(data.X, data.y, data.weight, n_jobs=learner.n_jobs)
    return known.encoded(learner.classes_) if isinstance(learner, ClassifierMixin) else known


def impurity_importances(nodes: Nodes, n_columns: int) -> np.ndarray:
    """Return, for each column, the decrease of impurity by its splits, mean over trees, scaled to sum 1."""
    load = nodes.impurity * nodes.weight
    inner = np.flatnonzero(nodes.child >= 0)
    below = np.array([load[c : c + k].sum() for c, k in zip(nodes.child[inner], nodes.n_children[inner])])
    bounds = np.append(nodes.root, len(load))
    tree = np.searchsorted(bounds, inner, side="right") - 1
    drops = (load[inner] - below) / np.maximum(nodes.weight[nodes.root[tree]], 1e-300)
    found = np.zeros((len(nodes.root), n_columns))
    np.add.at(found, (tree, nodes.column[inner]), drops)
    totals = found.sum(axis=1, keepdims=True)
    mean = np.where(totals > 0, found / np.where(totals > 0, totals, 1.0), 0.0).mean(axis=0)
    return mean / mean.sum() if mean.sum() > 0 else mean


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

    family = "tree-classifier"
    classes_: np.ndarray
    card = Card(
        name="Decision tree classifier",
        zh="决策树",
        mission=tuple(f"TRE-{i:02d}" for i in (*range(1, 14), *range(15, 20), 22, 23)),
        task="classify",
        model=OfAnySize("trees of any size"),
        strategy="impurity or gain ratio; pruning by validation, confidence limits or cost-complexity",
        algorithm="greedy splits, exact borders by counting or sorting codes",
        guarantee=("tree.facts", "occam", "vc", "rademacher.empirical"),
    )

    def __init__(
        self,
        *,
        criterion: str = "gini",
        split: str = "binary",
        missing: str = "direction",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        pruning: str | None = None,
        ccp_alpha: float = 0.0,
        confidence: float = 0.25,
        prune_ties: bool = False,
        validation_fraction: float = 0.3,
        nominal: Any = None,
        thresholds: str = "midpoint",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.split = split
        self.missing = missing
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.confidence = confidence
        self.prune_ties = prune_ties
        self.validation_fraction = validation_fraction
        self.nominal = nominal
        self.thresholds = thresholds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> "DecisionTreeClassifier":
        """Fit to rows X (array or frame, with nominal columns and missing values) and labels y."""
        data, n_classes = self._read(X, y, sample_weight)
        self._fit(X, data, n_classes, validation)
        return self

    def _check(self, y: np.ndarray) -> None:
        choice(self, "criterion", ("gini", "entropy", "log_loss", "gain", "gain_ratio"))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Read, int]:
        data = read_columns(self, X, y, sample_weight, reset=True)
        known = rows(data.X, data.y)
        self.classes_ = label_classes(self, known)
        weight = data.weight
        if self.class_weight is not None:
            factor = compute_sample_weight(self.class_weight, data.y)
            weight = factor if weight is None else weight * factor
        return Read(data.X, self._codes(data.y), weight), len(self.classes_)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        at = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        return at.astype(np.int64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the shares of the classes in the leaf of each row."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most frequent class of the leaf; the first of equals."""
        shares = self._values(X)
        return self.classes_[shares.argmax(axis=1)]

    def count_errors(self, rows: Rows) -> tuple[int, int]:
        """Return the number of errors on `rows`, twice: comparisons are exact."""
        wrong = 0
        for block in rows.blocks():
            shares = mean_values(self.nodes_, block.X, self.n_jobs)
            wrong += int(np.count_nonzero(shares.argmax(axis=1) != block.y))
        return wrong, wrong

    def space(self, rows: Rows) -> Any:
        """Return the class of trees with as many leaves; sizes share delta, since the data chose the size."""
        return tree_space(self.nodes_, self.n_features_in_, len(self.classes_))

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound from the length of the tree's description and, for stumps, from random signs."""
        yield from occam_statement(self, rows)
        yield from stump_statement(self, rows)

    def _node_losses(self, nodes: Nodes, y: np.ndarray) -> np.ndarray:
        """Return (nodes, rows): 1 where the class of a node is not that of the row."""
        return (nodes.value.argmax(axis=1)[:, None] != y[None, :]).astype(np.float64)


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

    family = "tree-regressor"
    card = Card(
        name="Decision tree regressor",
        zh="回归树",
        mission=("TRE-14",),
        task="regress",
        model=OfAnySize("trees of any size"),
        strategy="squared or absolute error, Friedman's or Poisson's criterion; cost-complexity pruning",
        algorithm="greedy splits, exact borders by counting or sorting codes",
        guarantee=(),
    )

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        split: str = "binary",
        missing: str = "direction",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        pruning: str | None = None,
        ccp_alpha: float = 0.0,
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.split = split
        self.missing = missing
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.nominal = nominal
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DecisionTreeRegressor":
        """Fit to rows X (array or frame, with nominal columns and missing values) and numbers y."""
        data, n_classes = self._read(X, y, sample_weight)
        self._fit(X, data, n_classes, None)
        return self

    def _check(self, y: np.ndarray) -> None:
        choice(self, "criterion", ("squared_error", "absolute_error", "friedman_mse", "poisson"))
        choice(self, "pruning", (None, "cost_complexity"))
        if self.criterion == "poisson" and (y.min() < 0 or not y.sum() > 0):
            raise refuse(self, "the Poisson criterion needs numbers y >= 0 that are not all zero.")

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Read, int]:
        return read_columns(self, X, y, sample_weight, reset=True), 0

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the leaf of each row; its median with "absolute_error"."""
        return self._values(X)[:, 0]

    def clipped_errors(self, rows: Rows, clip: float) -> np.ndarray:
        """Return min(|y - f(x)|, clip) of each row, rounded up."""
        return clipped_errors(rows, lambda X: mean_values(self.nodes_, X, self.n_jobs), 0.0, clip)

    def squared_error(self, rows: Rows) -> tuple[float, float]:
        """Return an interval that holds the mean squared error on `rows`."""
        return squared_error(self.clipped_errors(rows, np.inf), 0.0)

    def _node_losses(self, nodes: Nodes, y: np.ndarray) -> np.ndarray:
        """Return (nodes, rows): squared (or absolute) error of a node's value for the row."""
        gap = nodes.value - y[None, :]
        return np.abs(gap) if self.criterion == "absolute_error" else gap**2


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
