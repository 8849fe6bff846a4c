"""Oblique trees: splits <w, x> <= t found by a linear learner at each node.

    at a node   directions from a linear learner (each class against the rest) and the columns themselves; for each,
                the threshold t with the largest decrease of impurity; the best of all splits the node, a column if no
                direction does better
    predict     class shares of the leaf that a row reaches; with soft routing see `SoftTree`

The thresholds of a direction are half-way between two projected rows. Murthy, Kasif and Salzberg, JAIR 2, 1994 (OC1);
Utgoff and Brodley 1991 (linear machines at nodes).
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, label_classes, read_rows, require_finite
from assay.card import Card
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import OPEN, Evidence, Votes
from assay.params import Choice, Count, Maybe, Number, Positive, check, refuse
from assay.scan import Rows, rows, thread_map
from assay.tree._claims import OfAnySize
from assay.tree.growth._growers import row_count
from assay.tree.growth._nominal import impurity


class Cut(NamedTuple):
    """A split and the decrease of impurity times weight that it brings."""

    gain: float
    w: np.ndarray
    threshold: float


def best_threshold(z: np.ndarray, counts: np.ndarray, criterion: str, least: int) -> tuple[float, float]:
    """Return the largest decrease of impurity times weight by a threshold of z, and it (-inf: there is none).

    counts (n, classes) holds the weight of each row in the column of its class; `least` rows stay on each side.

    >>> gain, threshold = best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.eye(2)[[0, 0, 1, 1]], "gini", 1)
    >>> float(gain), float(threshold)
    (2.0, 2.5)
    """
    order = np.argsort(z, kind="stable")
    ordered, left = z[order], np.cumsum(counts[order], axis=0)[:-1]
    total = counts.sum(axis=0)
    right = np.maximum(total - left, 0.0)
    gains = total.sum() * impurity(total, criterion) - sum(
        side.sum(axis=1) * impurity(side, criterion) for side in (left, right)
    )
    middle = ordered[:-1] / 2 + ordered[1:] / 2
    open_ = (ordered[:-1] <= middle) & (middle < ordered[1:])
    open_[: least - 1] = False
    open_[len(open_) - least + 1 :] = False
    if not open_.any():
        return -np.inf, 0.0
    best = int(np.where(open_, gains, -np.inf).argmax())
    return float(gains[best]), float(middle[best])


@dataclass(eq=False, repr=False)
class ObliqueTreeClassifier(ClassifierMixin, Learner):
    """A decision tree whose nodes test linear combinations of columns.

    Parameters
    ----------
    learner : "logistic", "lda" or "perceptron"
        How a node finds its directions: penalised logistic regression, Fisher's discriminant, or the pocket
        perceptron; each class of the node against the rest, on columns scaled to deviation 1.
    criterion : "gini" or "entropy"
    max_depth, min_samples_split, min_samples_leaf, min_impurity_decrease : as in `DecisionTreeClassifier`
    routing : "hard" or "soft"
        Whether a row takes one branch at each node, or both with probabilities; a soft tree is the hard one, softened
        and trained further by gradient on its log-loss.
    temperature : float > 0
        Soft routing starts with logistic(margin / temperature), margins scaled to deviation 1 at each node; towards 0
        it is the hard tree.
    max_steps : int >= 0
        L-BFGS steps of a soft tree.
    random_state : int, RandomState or None
        Order in which the perceptron visits rows.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, node_weights_ (nodes, columns), node_threshold_ (nodes,), node_child_ (nodes,) first child or -1,
    node_value_ (nodes, classes), node_is_oblique_ (nodes,)

    Examples
    --------
    >>> import numpy as np
    >>> from assay.tree import ObliqueTreeClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    >>> model = ObliqueTreeClassifier().fit(X, X[:, 0] + X[:, 1] > 0)
    >>> model.get_depth() <= 2
    True
    """

    figure = "tree"
    constraints: ClassVar = {
        "learner": Choice("logistic", "lda", "perceptron"),
        "criterion": Choice("gini", "entropy"),
        "routing": Choice("hard", "soft"),
        "temperature": Positive(),
        "max_steps": Count(low=0),
        "max_depth": Maybe(Count()),
        "min_impurity_decrease": Number(low=0.0),
    }
    card = Card(
        name="Oblique tree classifier",
        task="classify",
        model=OfAnySize("oblique trees of any size"),
        strategy="impurity; with soft routing the log-loss",
        algorithm="linear learner at each node, exact threshold of its projection, axis-parallel splits where better",
        guarantee=(),
        most_rows=100_000,
    )

    _: KW_ONLY
    learner: str = "logistic"
    criterion: str = "gini"
    max_depth: int | None = None
    min_samples_split: Any = 2
    min_samples_leaf: Any = 1
    min_impurity_decrease: float = 0.0
    routing: str = "hard"
    temperature: float = 0.5
    max_steps: int = 100
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def family(self) -> str:  # type: ignore[override]
        return "oblique.soft" if self.routing == "soft" else "oblique.classifier"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ObliqueTreeClassifier":
        """Fit to rows X (numbers without gaps) and labels y."""
        check(self)
        known = read_rows(self, X, y, sample_weight)
        require_finite(known, self)
        blocks = list(known.blocks())
        data = np.concatenate([block.X for block in blocks])
        labels = np.concatenate([block.y for block in blocks])
        weight = np.concatenate([block.weight for block in blocks]) if known.has_weight else np.ones(len(labels))
        kept = weight > 0
        data, labels, weight = data[kept], labels[kept], weight[kept]
        named: Any = rows(data, labels)
        self.classes_ = label_classes(self, named)
        codes = np.asarray(named.encoded(self.classes_).y, dtype=np.int64)
        with FitLog(self, 1, X, y, sample_weight) as log:
            self._grow(data, codes, weight)
            if self.routing == "soft":
                self._soften(data, codes, weight)
            log.step(float((self._positions(data) != codes).mean()), 0.0)
        return self

    # Growing
    # ----------------------------------------------------------------------------------------

    def _grow(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        n, d = X.shape
        deepest = 2**31 if self.max_depth is None else self.max_depth
        smallest, least = row_count(self, "min_samples_split", n, 2), row_count(self, "min_samples_leaf", n, 1)
        decrease = self.min_impurity_decrease * weight.sum()
        counts = np.eye(len(self.classes_))[y] * weight[:, None]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        queue, depths = [np.arange(n)], [0]
        W, threshold, child, value = [], [], [], []
        at = 0
        while at < len(queue):
            inside = queue[at]
            totals = counts[inside].sum(axis=0)
            value.append(totals / totals.sum())
            cut: Any = None
            if np.count_nonzero(totals) > 1 and depths[at] < deepest and len(inside) >= max(smallest, 2 * least):
                cut = self._best(X[inside], y[inside], counts[inside], least, seed)
            splits = cut is not None and cut.gain >= max(decrease, 1e-12 * weight.sum())
            W.append(cut.w if splits else np.zeros(d))
            threshold.append(cut.threshold if splits else 0.0)
            child.append(len(queue) if splits else -1)
            if splits:
                left = X[inside] @ cut.w <= cut.threshold
                queue += [inside[left], inside[~left]]
                depths += [depths[at] + 1] * 2
            queue[at] = np.empty(0, dtype=np.int64)
            at += 1
        self.node_weights_, self.node_threshold_ = np.array(W), np.array(threshold)
        self.node_child_, self.node_value_ = np.array(child, dtype=np.int32), np.array(value)

    def _best(self, X: np.ndarray, y: np.ndarray, counts: np.ndarray, least: int, seed: int) -> Cut | None:
        """Return the best split of a node; of equals a column before a direction, then the first."""
        d = X.shape[1]
        unit = [np.eye(1, d, j)[0] for j in range(d)]
        directions = [w for w in self._directions(X, y, counts.sum(axis=1), seed) if np.abs(w).max(initial=0.0) > 0]

        def judged(w: np.ndarray) -> Cut:
            return Cut(*_placed(X @ w, counts, self.criterion, least, w))

        result = thread_map(judged, unit + directions, n_jobs=self.n_jobs if X.size > 100_000 else 1)
        usable = [cut for cut in result if np.isfinite(cut.gain)]
        if not usable:
            return None
        best = max(usable[: sum(np.isfinite(cut.gain) for cut in result[:d])], key=lambda cut: cut.gain, default=None)
        for cut in usable:
            if best is None or cut.gain > best.gain + 1e-9 * abs(best.gain):
                best = cut
        return best

    def _directions(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, seed: int) -> list[np.ndarray]:
        """Return a direction in units of the columns for each class of the node against the rest."""
        from assay.tree._oblique_directions import DIRECTIONS

        mean, deviation = X.mean(axis=0), X.std(axis=0)
        used = np.flatnonzero(deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300))
        if len(used) < 2:
            return []
        scaled = np.ascontiguousarray((X[:, used] - mean[used]) / deviation[used])
        groups = np.unique(y) if len(np.unique(y)) > 2 else np.unique(y)[1:]
        results = []
        for k in groups:
            w = np.zeros(X.shape[1])
            v = DIRECTIONS[self.learner](scaled, np.where(y == k, 1.0, -1.0), weight, seed)
            w[used] = v / deviation[used]
            length = np.abs(w).max()
            results.append(w / length if np.isfinite(length) and length > 0 else np.zeros_like(w))
        return results

    def _soften(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        W, t = self.node_weights_.copy(), self.node_threshold_.copy()
        for at, inside in self._inside(X).items():
            if self.node_child_[at] >= 0:
                scale = (X[inside] @ W[at]).std() * float(self.temperature)
                W[at], t[at] = W[at] / scale, t[at] / scale
        scores = np.log(np.maximum(self.node_value_, 1e-3))
        tree = trained(SoftTree(W, t, self.node_child_, scores), X, y, weight, int(self.max_steps))
        self.node_weights_, self.node_threshold_ = tree.W, tree.t
        self.node_value_ = softmax(tree.scores, axis=1)

    def _inside(self, X: np.ndarray) -> dict[int, np.ndarray]:
        """Return the rows that pass through each node."""
        inside = {0: np.arange(len(X))}
        for at in np.flatnonzero(self.node_child_ >= 0):
            here = inside[int(at)]
            left = X[here] @ self.node_weights_[at] <= self.node_threshold_[at]
            first = int(self.node_child_[at])
            inside[first], inside[first + 1] = here[left], here[~left]
        return inside

    # What the fitted tree says
    # ----------------------------------------------------------------------------------------

    def _shares(self, X: np.ndarray) -> np.ndarray:
        if self.routing == "soft":
            return self._routes(X) @ self.node_value_[self.node_child_ < 0]
        return self.node_value_[self._leaves(X)]

    def _routes(self, X: np.ndarray) -> np.ndarray:
        """Return the share of each row that reaches each leaf of a soft tree."""
        return routes(self.node_weights_, self.node_threshold_, self.node_child_, X)[:, self.node_child_ < 0]

    def _leaves(self, X: np.ndarray) -> np.ndarray:
        out = np.empty(len(X), dtype=np.int64)
        for at, inside in self._inside(X).items():
            if self.node_child_[at] < 0:
                out[inside] = at
        return out

    def _positions(self, X: np.ndarray) -> np.ndarray:
        return self._shares(X).argmax(axis=1)

    def _numbers(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class shares of the leaf of each row; with soft routing the mixture over all leaves."""
        return self._shares(self._numbers(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class; the first of equals."""
        positions = self._positions(self._numbers(X))
        return self.classes_[positions]

    def route_probabilities(self, X: Any) -> np.ndarray:
        """Return the share of each row that reaches each leaf, (rows, leaves); 0 or 1 with hard routing."""
        X, leaf = self._numbers(X), np.flatnonzero(self.node_child_ < 0)
        if self.routing == "soft":
            return self._routes(X)
        return (self._leaves(X)[:, None] == leaf).astype(np.float64)

    def get_depth(self) -> int:
        """Return the number of splits on the longest way down."""
        check_is_fitted(self)
        depth = np.zeros(len(self.node_child_), dtype=np.int64)
        for at in np.flatnonzero(self.node_child_ >= 0):
            depth[self.node_child_[at] : self.node_child_[at] + 2] = depth[at] + 1
        return int(depth.max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return int(np.count_nonzero(self.node_child_ < 0))

    @property
    def node_is_oblique_(self) -> np.ndarray:
        """Whether a node tests more than one column."""
        check_is_fitted(self)
        return np.count_nonzero(self.node_weights_, axis=1) > 1

    def to_text(self) -> str:
        """Return the tree as indented text; coefficients with three digits."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        lines: list[str] = []

        def write(at: int, indent: str) -> None:
            if self.node_child_[at] < 0:
                lines[-1] += f": {self.classes_[self.node_value_[at].argmax()]}" if lines else ""
                return
            terms = [f"{w:.3g} {names[j]}" for j, w in enumerate(self.node_weights_[at]) if w]
            for branch, sign in enumerate(("<=", ">")):
                lines.append(f"{indent}{' + '.join(terms)} {sign} {self.node_threshold_[at]:.3g}")
                write(int(self.node_child_[at]) + branch, indent + "|   ")

        write(0, "")
        return "\n".join(lines) if lines else str(self.classes_[self.node_value_[0].argmax()])

    # Certificates
    # ----------------------------------------------------------------------------------------

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes."""
        yield Votes(self._decided)

    def _decided(self, block: Block) -> np.ndarray:
        return np.where(self._near_a_threshold(block.X), OPEN, self._positions(block.X))

    def _near_a_threshold(self, X: np.ndarray) -> np.ndarray:
        unsure, error = np.zeros(len(X), dtype=bool), 2.0**-50 * (X.shape[1] + 2)
        for at, inside in self._inside(X).items():
            if self.node_child_[at] >= 0 and self.node_is_oblique_[at]:
                w, t = self.node_weights_[at], self.node_threshold_[at]
                size = np.abs(X[inside]) @ np.abs(w) + abs(t)
                unsure[inside] |= np.abs(X[inside] @ w - t) <= error * size
        return unsure

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if self.routing == "soft":
            raise refuse(self, 'certificates are about trees that send a row one way; use routing="hard".')
        return super()._known_rows(X, y, sample_weight)


def _placed(z: np.ndarray, counts: np.ndarray, criterion: str, least: int, w: np.ndarray) -> tuple:
    gain, threshold = best_threshold(z, counts, criterion, least)
    return gain, w, threshold


# Soft trees
# ----------------------------------------------------------------------------------------------------------------------


class SoftTree(NamedTuple):
    """A tree that sends a row both ways with probabilities, at every node; everything is trained by gradient.

    p_i(x)       = 1 / (1 + exp(-(<w_i, x> - t_i)))     share that goes to the second child of node i
    r_leaf(x)    = product of the shares along the way; the r of all leaves sum to 1
    P(k | x)     = sum over leaves of r_leaf(x) softmax(v_leaf)_k
    minimised    - mean_i weight_i log P(y_i | x_i)  over all w, t and v   (L-BFGS)

    With w and t multiplied by a number that grows, the shares become 0 or 1 and the tree becomes the hard one.

    W (nodes, d), t (nodes,), first child or -1 (nodes,), leaf scores before the softmax (nodes, classes).
    """

    W: np.ndarray
    t: np.ndarray
    child: np.ndarray
    scores: np.ndarray


def routes(W: np.ndarray, t: np.ndarray, child: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the share of each row that reaches each node, (rows, nodes); a node stands after its parent."""
    shares = np.zeros((len(X), len(child)))
    shares[:, 0] = 1.0
    for i in np.flatnonzero(child >= 0):
        p = expit(X @ W[i] - t[i])
        first = child[i]
        shares[:, first] = shares[:, i] * (1 - p)
        shares[:, first + 1] = shares[:, i] * p
    return shares


def loss_and_gradient(tree: SoftTree, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, SoftTree]:
    """Return the weighted mean log-loss and its derivative by W, t and scores (zero where they have no effect)."""
    leaf, inner = np.flatnonzero(tree.child < 0), np.flatnonzero(tree.child >= 0)
    shares, values = routes(*tree[:3], X), softmax(tree.scores, axis=1)
    probability = values[:, y].T  # (rows, nodes) probability that each node gives to the class of the row
    P = np.maximum((shares[:, leaf] * probability[:, leaf]).sum(axis=1), 1e-300)
    gradient = -w / w.sum() / P
    below = np.zeros_like(shares)  # derivative of the loss by the share of a node
    below[:, leaf] = gradient[:, None] * probability[:, leaf]
    W, t, scores = np.zeros_like(tree.W), np.zeros_like(tree.t), np.zeros_like(tree.scores)
    for i in inner[::-1]:
        p, first = expit(X @ tree.W[i] - tree.t[i]), tree.child[i]
        below[:, i] = (1 - p) * below[:, first] + p * below[:, first + 1]
        slope = shares[:, i] * (below[:, first + 1] - below[:, first]) * p * (1 - p)
        W[i], t[i] = slope @ X, -slope.sum()
    for i in leaf:
        part = gradient * shares[:, i] * probability[:, i]
        scores[i] = np.bincount(y, part, values.shape[1]) - part.sum() * values[i]
    return float(-(w * np.log(P)).sum() / w.sum()), SoftTree(W, t, tree.child, scores)


def trained(tree: SoftTree, X: np.ndarray, y: np.ndarray, w: np.ndarray, max_iter: int) -> SoftTree:
    """Return the tree after at most `max_iter` steps of L-BFGS from the given one."""
    shapes = [tree.W.shape, tree.t.shape, tree.scores.shape]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unpacked(z: np.ndarray) -> SoftTree:
        W, t, scores = (part.reshape(shape) for part, shape in zip(np.split(z, ends[:-1]), shapes))
        return SoftTree(W, t, tree.child, scores)

    def packed(soft_tree: SoftTree) -> np.ndarray:
        return np.concatenate([soft_tree.W.ravel(), soft_tree.t, soft_tree.scores.ravel()])

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = loss_and_gradient(unpacked(z), X, y, w)
        return loss, packed(gradient)

    if max_iter == 0:
        return tree
    from scipy.optimize import minimize

    solution = minimize(objective, packed(tree), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return unpacked(solution.x)
