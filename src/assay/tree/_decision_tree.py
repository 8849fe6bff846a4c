"""Decision trees for classification and regression.

    grow    at each node the split with the largest decrease of impurity (gain), or C4.5's gain ratio, until
    nodes are pure
    prune   see `_pruning`
    predict class shares, or the mean, of the leaf that a row reaches

How a tree is grown depends on what is asked: `growth._growers` has the table.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import Bunch, check_random_state

from assay.base import Learner, read_rows, streams
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.params import Choice, Count, Maybe, Number, check, refuse
from assay.scan import Rows, rows
from assay.tree import _pruning
from assay.tree._claims import grown_part, pruning_fact, shortened
from assay.tree._export import ReadableTree, require_one_target
from assay.tree._nodes import Nodes, TreeModel
from assay.tree._predict import goes_one_way
from assay.tree._reading import Read, nominal_levels, read_columns
from assay.tree.growth._growers import Request, grower_of, limits_of, monotone_signs, reads_levels

if TYPE_CHECKING:
    from assay.data.columns import ColumnType


@dataclass(eq=False, repr=False)
class DecisionTree(ReadableTree, TreeModel, Learner):  # type: ignore[override]
    """What both kinds of tree share."""

    figure = "importance"
    thresholds = "midpoint"
    reads_sparse: ClassVar = True
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

    def _grow(self, data: Read, n_classes: np.ndarray) -> Nodes:
        """Return the unpruned tree; `n_classes` (outputs,), empty for numbers."""
        request = self._request(data, n_classes)
        prepare: Any = grower_of(request).prepare
        return prepare(request)(data.weight, self.random_state)

    def _request(self, data: Read, n_classes: np.ndarray) -> Request:
        """Return what the parameters ask for on these rows; refuse what no grower serves."""
        levels, gaps = nominal_levels(self), data.has_gaps
        limits = limits_of(self, data, self.splitter == "random")
        plain = not levels and self.criterion != "gain_ratio" and (not gaps or self.missing == "direction")
        monotone = self._monotone(data, n_classes, plain)
        why = f"criterion={self.criterion!r}" if monotone is None else "monotonic_cst"
        request = Request(
            data, n_classes, self.criterion, limits, levels, gaps, monotone, self.n_jobs, why, self.split, self.missing,
            ties=self.random_state, in_parts=True,
        )  # fmt: skip
        if reads_levels(request) and (
            self.criterion in ("absolute_error", "friedman_mse", "poisson")
            or request.draws_columns
            or limits.max_leaves
            or limits.min_weight_leaf > 0
            or request.outputs > 1
        ):
            raise refuse(
                self,
                'nominal columns, gain_ratio and missing="fractional" go with gain, gain_ratio, entropy, log_loss, '
                "gini or squared_error, one output, all columns, the best split, and no limit on the number or weight "
                "of leaves; change these, or encode the columns.",
            )
        return request

    def _monotone(self, data: Read, n_classes: np.ndarray, plain: bool) -> np.ndarray | None:
        """Return the signs of the columns with which values must rise or fall; refuse what does not go with them."""
        if self.monotonic_cst is not None and data.y.ndim == 2:
            raise refuse(self, "Monotonicity constraints are not supported with multiple outputs.")
        signs = monotone_signs(self, data.rows.n_features)
        if signs is None:
            return None
        if np.any(n_classes > 2):
            raise refuse(
                self,
                "Monotonicity constraints are not supported with multiclass classification: monotonic_cst orders the "
                f"share of the second of two classes; y has {int(n_classes.max())}.",
            )
        if not plain:
            raise refuse(
                self,
                "monotonic_cst needs numeric columns, a criterion other than gain_ratio and, for missing values, "
                'missing="direction"; encode the columns, or leave monotonic_cst out.',
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
        self.columns_, self.n_features_in_ = columns, data.rows.n_features
        if classes is not None:
            self.classes_ = classes
        self._fit(data.X, data, counts_of(classes), None)
        return self

    def _fit(self, X: Any, data: Read, n_classes: np.ndarray, validation: Any) -> None:
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
        nodes = self._placed(nodes, data)
        self.keep_nodes(nodes)
        self._count_rows(data)
        self.__dict__.pop("grown_", None)
        if grown is not None:
            plain = not np.any(grown.table >= 0) and not data.has_gaps
            self.grown_ = grown_part(grown, nodes) if plain else {}
        with FitLog(self, 1, X, data.y) as log:
            log.step(float(self._risk(nodes)[nodes.child < 0].sum()), 0.0)

    def _count_rows(self, data: Read) -> None:
        """Remember how many rows each leaf has, if the weights do not tell; only scikit-learn's `tree_` asks."""
        self.__dict__.pop("leaf_rows_", None)
        nodes = self.nodes_
        if data.weight is not None and not np.any(nodes.table >= 0) and goes_one_way(nodes):
            counts = np.bincount(self._ends(data), minlength=len(nodes.child))
            self.leaf_rows_ = counts[nodes.child < 0].astype(np.int32)

    def _placed(self, nodes: Nodes, data: Read) -> Nodes:
        """Return the tree with its thresholds where the parameter wants them."""
        if self.thresholds == "midpoint":
            return nodes
        if np.any(nodes.table >= 0) or data.has_gaps:
            raise refuse(self, 'thresholds="short" needs numeric columns without missing values.')
        return shortened(nodes, data.dense('thresholds="short"'))

    def _validation(self, data: Read, given: Any) -> tuple[Read, Read]:
        """Return the rows to grow on and those to prune on: the pair given, or a share of the rows."""
        why = f"pruning={self.pruning!r}"
        if given is not None:
            held = read_columns(self, *given)
            return data, Read(self, held.dense(why), self._codes(held.y))
        kept, held_rows = train_test_split(
            np.arange(len(data.y)),
            test_size=float(self.validation_fraction),
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
        )
        return data.take(np.sort(kept), why), data.take(np.sort(held_rows), why)

    def _risk(self, nodes: Nodes) -> np.ndarray:
        """Return R(t): impurity times share of the weight."""
        return nodes.impurity * nodes.weight / nodes.weight[0]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return alphas, impurities and numbers of leaves of all subtrees that are optimal for some alpha."""
        twin = clone(self)
        check(twin)
        data, n_classes = twin._read(X, y, sample_weight)
        twin._check_target(data.y)
        nodes = twin._grow(data, n_classes)
        return Bunch(**_pruning.pruning_path(nodes, twin._risk(nodes))[0]._asdict())

    def _chosen_alpha(self, data: Read, n_classes: np.ndarray) -> float:
        """Return the alpha, between two of the path, with the smallest cross-validated error (the largest
        such alpha)."""
        nodes = self._grow(data, n_classes)
        path = _pruning.pruning_path(nodes, self._risk(nodes))[0]
        tried = np.append(np.sqrt(path.ccp_alphas[:-1] * path.ccp_alphas[1:]), path.ccp_alphas[-1])
        smallest = int(np.bincount(data.y).min()) if len(n_classes) else len(data.y)
        kind = StratifiedKFold if len(n_classes) and smallest > 1 else KFold
        folds = kind(max(2, min(5, smallest if kind is StratifiedKFold else len(data.y))), shuffle=True, random_state=0)
        losses, why = np.zeros(len(tried)), f"pruning={self.pruning!r}"
        X = data.dense(why)
        for fit, held in folds.split(np.empty(len(data.y)), data.y):
            full = self._grow(data.take(fit, why), n_classes)
            losses += _pruning.path_losses(full, self._risk(full), tried, X[held], self._fold_losses(data, held))
        return float(tried[np.flatnonzero(losses <= losses.min() + 1e-9 * len(data.y))[-1]])

    def _fold_losses(self, data: Read, held: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function that tells the weighted losses of some of the rows held out."""
        y, weight = data.y[held], np.ones(len(held)) if data.weight is None else data.weight[held]
        return lambda value, rows: self._losses(value, y[rows]) * weight[rows]

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the size of the tree and, if it was pruned by cost-complexity, that no subtree costs less."""
        nodes = self.nodes_
        size = int(np.count_nonzero(nodes.child < 0))
        yield Claim("tree.facts", float(size), params={"leaves": size, "depth": int(nodes.depths().max())})
        yield from pruning_fact(self, rows)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self.pruning is None and self.criterion != "gain_ratio"  # these judge one alone
        return tags


def counts_of(classes: Any) -> np.ndarray:
    """Return the number of classes of each output: of `classes_`, a list of such arrays, or None for numbers."""
    outputs = [] if classes is None else classes if isinstance(classes, list) else [classes]
    return np.array([len(output) for output in outputs], dtype=np.int64)


def known_rows(learner: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Return rows as a fitted tree sees them, for a certificate."""
    if learner.has_nodes:
        require_one_target(learner)
    if streams(X, y):
        known = read_rows(learner, X, y, sample_weight, reset=False)
    else:
        data = read_columns(learner, X, y, sample_weight)
        if data.has_gaps and not goes_one_way(learner.nodes_):
            raise refuse(
                learner,
                "X contains NaN; certificates need complete rows, because rows without a value go down all branches.",
            )
        known = rows(data.dense("a certificate"), data.y, data.weight, n_jobs=learner.n_jobs)
    return known.encoded(learner.classes_) if isinstance(learner, ClassifierMixin) else known
