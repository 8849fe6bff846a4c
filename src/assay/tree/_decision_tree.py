"""Decision trees for classification and regression.

    grow    at each node the split with the largest decrease of impurity (gain), or C4.5's gain ratio, until
    nodes are pure
    prune   see `_pruning`
    predict class shares, or the mean, of the leaf that a row reaches

Complete numeric columns are split by compiled code that tries every threshold; nominal columns, missing values and the
gain ratio take the general way (`_nominal_missing`). Both find the same splits where both apply.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, read_rows, streams
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.params import Choice, Count, Maybe, Number, check, count, refuse
from assay.scan import Rows, rows
from assay.tree import _pruning, _rules
from assay.tree._claims import grown_part, pruning_fact, shortened
from assay.tree._nodes import Nodes, TreeModel
from assay.tree._predict import goes_one_way, leaves, mean_values
from assay.tree._reading import Read, nominal_levels, read_columns
from assay.tree.growth._exact import encode, grow_exact
from assay.tree.growth._nominal_missing import Method, grow_nominal_missing
from assay.tree.growth._records import Limits

if TYPE_CHECKING:
    from assay.data.columns import ColumnType


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


def limits_of(owner: Any, data: Read, random: bool) -> Limits:
    """Return the limits that the parameters of a tree or a forest set; `random`: nodes draw their thresholds."""
    n, d = data.rows.n_rows, data.rows.n_features
    total = float(n if data.weight is None else data.weight.sum())
    return Limits(
        row_count(owner, "min_samples_leaf", n, 1),
        owner.min_weight_fraction_leaf * total,
        row_count(owner, "min_samples_split", n, 2),
        2**31 if owner.max_depth is None else owner.max_depth,
        owner.max_leaf_nodes or 0,
        owner.min_impurity_decrease * total,
        feature_count(owner, d),
        random,
    )


def monotone_signs(owner: Any, d: int) -> np.ndarray | None:
    """Return `monotonic_cst` as (d,) integers, None if it constrains nothing."""
    asked = owner.monotonic_cst
    if asked is None:
        return None
    signs = np.asarray(asked)
    if signs.shape != (d,) or not np.isin(signs, (-1, 0, 1)).all():
        raise refuse(owner, f"monotonic_cst must hold -1, 0 or 1 for each of the {d} columns; got {asked!r}.")
    return signs.astype(np.int64) if signs.any() else None


@dataclass(eq=False, repr=False)
class DecisionTree(TreeModel, Learner):
    """What both kinds of tree share."""

    thresholds = "midpoint"
    _: KW_ONLY
    criterion: str
    split: str = "binary"
    missing: str = "direction"
    splitter: str = "best"
    max_depth: int | None = None
    min_samples_split: Any = 2
    min_samples_leaf: Any = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: Any = None
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    pruning: str | None = None
    ccp_alpha: float = 0.0
    nominal: Any = None
    monotonic_cst: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    constraints: ClassVar = {
        "split": Choice("multiway", "binary"),
        "missing": Choice("fractional", "direction"),
        "splitter": Choice("best", "random"),
        "max_depth": Maybe(Count()),
        "max_leaf_nodes": Maybe(Count(low=2)),
        "min_weight_fraction_leaf": Number(low=0.0, high=0.5),
        "min_impurity_decrease": Number(low=0.0),
        "ccp_alpha": Number(low=0.0),
    }

    def _grow(self, data: Read, n_classes: int) -> Nodes:
        """Return the unpruned tree."""
        n, d = data.X.shape
        levels = nominal_levels(self)
        limits = limits_of(self, data, self.splitter == "random")
        plain = not levels and self.criterion != "gain_ratio" and not data.has_gaps
        monotone = self._monotone(d, n_classes, plain)
        if plain and self.criterion == "absolute_error":
            from assay.tree.growth._absolute import grow_absolute

            rng = check_random_state(self.random_state)
            return grow_absolute(data.X, data.y, data.weight, limits, rng, self.n_jobs, monotone)
        if plain:
            seed = (
                int(check_random_state(self.random_state).randint(2**31 - 1))
                if limits.max_features < d or limits.random
                else 0
            )
            codes = encode(data.X, self.n_jobs)
            return grow_exact(
                codes,
                data.y,
                data.weight,
                np.arange(n),
                n_classes,
                self.criterion,
                limits,
                seed,
                self.n_jobs,
                monotone=monotone,
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
        return grow_nominal_missing(
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

    def _monotone(self, d: int, n_classes: int, plain: bool) -> np.ndarray | None:
        """Return the signs of the columns with which values must rise or fall; refuse what does not go with them."""
        signs = monotone_signs(self, d)
        if signs is None:
            return None
        if n_classes > 2:
            raise refuse(self, f"monotonic_cst orders the share of the second of two classes; y has {n_classes}.")
        if not plain:
            raise refuse(
                self,
                "monotonic_cst needs numeric columns without missing values, and a criterion other than gain_ratio; "
                "fill in or encode the columns, or leave monotonic_cst out.",
            )
        if self.pruning == "pessimistic":
            raise refuse(
                self,
                'monotonic_cst does not go with pruning="pessimistic", which counts errors by the shares in leaves: '
                'these are moved to keep the order; use "reduced_error" or "cost_complexity".',
            )
        return signs

    def restored(self, nodes: Nodes, like: Any, n_features: int) -> Any:
        """Return the tree as a fitted model: a member of `like`, an ensemble, with its classes and columns."""
        self.keep_nodes(nodes)
        self.n_features_in_ = n_features
        self.columns_ = like.columns_
        if hasattr(like, "classes_"):
            self.classes_ = like.classes_
        return self

    def _check_target(self, y: np.ndarray) -> None:
        """Refuse numbers y that the criterion cannot read."""

    def fit_read(self, data: Read, columns: "tuple[ColumnType, ...] | None", classes: np.ndarray | None) -> Any:
        """Fit to rows that an ensemble has read: codes in nominal columns, labels as positions in `classes`."""
        check(self)
        self.columns_, self.n_features_in_ = columns, data.X.shape[1]
        if classes is not None:
            self.classes_ = classes
        self._fit(data.X, data, 0 if classes is None else len(classes), None)
        return self

    def _fit(self, X: Any, data: Read, n_classes: int, validation: Any) -> None:
        self._check_target(data.y)
        needs = self.pruning in ("pre", "reduced_error")
        grown = None
        if not needs:
            nodes = self._grow(data, n_classes)
        if self.pruning == "cost_complexity":
            self.ccp_alpha_ = self._chosen_alpha(data, n_classes)
            grown, nodes = nodes, _pruning.cost_complexity(nodes, self._risk(nodes), self.ccp_alpha_)
        elif needs:
            data, held = self._validation(data, validation)
            nodes = self._grow(data, n_classes)
            if self.pruning == "pre":
                nodes = _pruning.pre_pruned(nodes, held.X, held.y)
            else:
                nodes = _pruning.reduced_error(nodes, held.X, held.y, bool(self.prune_ties))
        elif self.pruning == "pessimistic":
            nodes = _pruning.pessimistic(nodes, self.confidence)
        if self.ccp_alpha > 0 and self.pruning != "cost_complexity":
            grown, nodes = nodes, _pruning.cost_complexity(nodes, self._risk(nodes), float(self.ccp_alpha))
        nodes = self._placed(nodes, data.X)
        self.keep_nodes(nodes)
        self.__dict__.pop("grown_", None)
        if grown is not None:
            plain = not np.any(grown.table >= 0) and not np.isnan(data.X).any()
            self.grown_ = grown_part(grown, nodes) if plain else {}
        with FitLog(self, 1, X, data.y) as log:
            log.step(float(self._risk(nodes)[nodes.child < 0].sum()), 0.0)

    def _placed(self, nodes: Nodes, X: np.ndarray) -> Nodes:
        """Return the tree with its thresholds where the parameter wants them."""
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
        kept, held_rows = train_test_split(
            np.arange(len(data.y)),
            test_size=float(self.validation_fraction),
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
        )
        return data.take(np.sort(kept)), data.take(np.sort(held_rows))

    def _risk(self, nodes: Nodes) -> np.ndarray:
        """Return R(t): impurity times share of the weight."""
        return nodes.impurity * nodes.weight / nodes.weight[0]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> _pruning.Path:
        """Return alphas, impurities and numbers of leaves of all subtrees that are optimal for some alpha."""
        check(self)
        data, n_classes = self._read(X, y, sample_weight)
        self._check_target(data.y)
        nodes = self._grow(data, n_classes)
        return _pruning.pruning_path(nodes, self._risk(nodes))[0]

    def _chosen_alpha(self, data: Read, n_classes: int) -> float:
        """Return the alpha, between two of the path, with the smallest cross-validated error (the largest
        such alpha)."""
        nodes = self._grow(data, n_classes)
        path = _pruning.pruning_path(nodes, self._risk(nodes))[0]
        tried = np.append(np.sqrt(path.ccp_alphas[:-1] * path.ccp_alphas[1:]), path.ccp_alphas[-1])
        smallest = int(np.bincount(data.y).min()) if n_classes else len(data.y)
        kind = StratifiedKFold if n_classes and smallest > 1 else KFold
        folds = kind(max(2, min(5, smallest if kind is StratifiedKFold else len(data.y))), shuffle=True, random_state=0)
        losses = np.zeros(len(tried))
        for fit, held in folds.split(data.X, data.y):
            part = data.take(fit)
            full = self._grow(part, n_classes)
            losses += _pruning.path_losses(full, self._risk(full), tried, data.X[held], self._fold_losses(data, held))
        return float(tried[np.flatnonzero(losses <= losses.min() + 1e-9 * len(data.y))[-1]])

    def _fold_losses(self, data: Read, held: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function that tells the weighted losses of some of the rows held out."""
        y, weight = data.y[held], np.ones(len(held)) if data.weight is None else data.weight[held]
        return lambda value, rows: self._losses(value, y[rows]) * weight[rows]

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
    if streams(X, y):
        known = read_rows(learner, X, y, sample_weight, reset=False)
    else:
        data = read_columns(learner, X, y, sample_weight)
        if data.has_gaps and not goes_one_way(learner.nodes_):
            raise refuse(
                learner,
                "X contains NaN; certificates need complete rows, because rows without a value go down all branches.",
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
