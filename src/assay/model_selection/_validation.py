"""Cross-validation whose models are kept: what their own folds prove about them.

Model k is fitted to the rows outside fold k, so fold k is a hold-out set for it, and the mean of the K error rates is
at most the mean of K binomial limits, each at delta / K. Every row is fitted to and tested on, none is spent. The
statement is about the models that are kept, not about one refitted to all rows: nothing better than this is known to
be true of that (Bengio and Grandvalet 2004; Blum, Kalai and Langford 1999).

Parameters chosen on validation rows and judged once on others; the sweep of a penalty on a learner; learning curves:
training error, held-out error and certified bounds against the number of rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted, validate_data

from assay import scan
from assay.base import Learner
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.ensemble._members import one_hot
from assay.guarantees.evidence import NOBODY, OPEN, Decided, Evidence, Gathered, Votes
from assay.guarantees.fingerprint import FOLDS, permutation
from assay.guarantees.ledger import FIT_NOT_KEPT, OUTWARD, Statement, Vacuous, claim
from assay.messages import Message
from assay.params import Count, check, refuse
from assay.scan import Rows
from assay.theory.concentration import clopper_pearson_upper
from assay.theory.spaces import Unbounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class CrossValidated(ClassifierMixin, Learner):
    """K models of one classifier, each fitted without one fold of the rows; they vote.

    Parameters
    ----------
    estimator : a classifier of Assay
    folds : int >= 2
        More folds give models more rows to learn from, and bounds fewer rows to test each on.
    random_state : seed of the folds, which are drawn without regard to the rows

    Attributes
    ----------
    fold_models_ : the K fitted classifiers; one that has not seen a class is wrong on the rows of that class
    fold_ : (n,) which fold each row is in: model k was fitted to the rows outside fold k
    seed_ : the seed that the folds follow from
    fold_errors_ : (K,) share of errors of model k on fold k
    classes_, n_features_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from assay.model_selection import CrossValidated
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrossValidated(LinearDiscriminantAnalysis(), folds=3, random_state=0).fit(X, y)
    >>> round(float(model.fold_errors_.mean()), 3), round(model.certify(X, y).find("cross-validation.mean").value, 3)
    (0.02, 0.113)
    """

    fold_models_: list[Any] = field(init=False)
    fold_: np.ndarray = field(init=False)
    seed_: int = field(init=False)

    constraints: ClassVar = {"folds": Count(low=2)}

    estimator: Any
    folds: int = 5
    _: KW_ONLY
    random_state: Any = None

    def members(self) -> list[Any]:
        return self.fold_models_

    def _take_members(self, members: Any) -> None:
        self.fold_models_ = list(members)

    @property
    def family(self) -> str:  # type: ignore[override]
        """The checker's predictor: a vote of models of one family."""
        return "folds"

    def fit(self, X: Any, y: Any) -> "CrossValidated":
        """Fit a model to the rows outside each fold."""
        check(self)
        K = self.folds
        if not (isinstance(self.estimator, Learner) and is_classifier(self.estimator)):
            raise refuse(self, f"estimator must be a classifier of Assay; got {self.estimator!r}.")
        X = validate_data(self, X, dtype=np.float64)
        y = _check_y(y, estimator=self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        if len(y) < K:
            raise refuse(self, f"{K} folds need at least {K} rows; got n_samples = {len(y)}.")
        given = self.random_state
        drawn = isinstance(given, (int, np.integer)) and given >= 0
        self.seed_ = int(given) if drawn else int(check_random_state(given).randint(2**31))
        self.fold_ = np.empty(len(y), dtype=np.int32)
        self.fold_[permutation(len(y), self.seed_, FOLDS)] = np.arange(len(y)) % K
        self.classes_ = np.unique(y)
        self.fold_models_ = [self._fold_model(X, y, k) for k in range(K)]
        wrong = [np.mean(self.fold_models_[k].predict(X[self.fold_ == k]) != y[self.fold_ == k]) for k in range(K)]
        self.fold_errors_ = np.array(wrong)
        return self

    def _fold_model(self, X: np.ndarray, y: np.ndarray, k: int) -> Any:
        rest = self.fold_ != k
        seen = np.unique(y[rest])
        if len(seen) < 2:
            which = "there is" if len(self.classes_) < 2 else f"outside fold {k} there is"
            raise refuse(self, f"{which} only one class, {seen[0]!s}; a classifier needs rows of at least two.")
        return clone(self.estimator).fit(X[rest], y[rest])

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with most votes; the first of equals."""
        winner = self._votes(X).argmax(axis=1)
        return self.classes_[winner]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the share of the models that vote for each class."""
        return self._votes(X) / len(self.fold_models_)

    def mean_error(self, X: Any, y: Any) -> float:
        """Return the mean error rate of the models on these rows: that of one drawn at random for each row."""
        check_is_fitted(self)
        return float(np.mean([np.mean(fold_model.predict(X) != np.asarray(y)) for fold_model in self.fold_models_]))

    def _votes(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        codes = [np.searchsorted(self.classes_, fold_model.predict(X)) for fold_model in self.fold_models_]
        return np.sum([one_hot(code, len(self.classes_)) for code in codes], axis=0)

    # Certificate

    def space(self, rows: Rows) -> Any:
        """Return a class without a dimension: the vote of the folds is not one member of the learner's class."""
        return Unbounded("votes of models of several folds")

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the class with most votes of the models."""
        members = [Gathered(fold_model.evidence(rows)).the(Decided) for fold_model in self.fold_models_]
        yield Votes(
            _fold_votes, ([(member.decide, member.packed) for member in members], self._places(), len(self.classes_))
        )

    def _places(self) -> list[np.ndarray]:
        return [self._own_classes(fold_model) for fold_model in self.fold_models_]

    def _own_classes(self, model: Any) -> np.ndarray:
        """Return the place in `classes_` of each class that a model has seen, and last what stands for none."""
        return np.append(np.searchsorted(self.classes_, model.classes_), [NOBODY, OPEN, -1])

    def _errors(self, model: Any, X: np.ndarray, codes: np.ndarray) -> int:
        """Return the errors of one model; rows of a class that it has not seen are among them."""
        own = self._own_classes(model)[:-3]
        known = np.isin(codes, own)
        left = scan.rows(X[known], np.searchsorted(own, codes[known]))
        return int(np.sum(~known)) + (_most_errors(model, left) if known.any() else 0)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the mean error rate of the models, each on the fold it was fitted without."""
        if not hasattr(self, "fold_"):
            yield NotApplicable("cross-validation.mean", FIT_NOT_KEPT)
        elif rows.n_rows != len(self.fold_):
            yield NotApplicable("cross-validation.mean", Message("why.other-folds"))
        else:
            yield partial(self._mean_of_folds, rows)

    def _mean_of_folds(self, rows: Rows, delta: str) -> Claim | NotApplicable:
        X = np.concatenate([block.X for block in rows.blocks()])
        codes = np.concatenate([np.asarray(block.y) for block in rows.blocks()])
        parts = [(fold_model, self.fold_ == k) for k, fold_model in enumerate(self.fold_models_)]
        errors = [self._errors(item, X[mine], codes[mine]) for item, mine in parts]
        return mean_of_folds(errors, self.fold_, self.seed_, delta)


def mean_of_folds(errors: Sequence[int], fold: np.ndarray, seed: int, delta: str) -> Claim | NotApplicable:
    """Return the claim about the mean error rate of models, of which model k makes errors[k] on the rows of fold k, as
    the seed draws them."""
    K, sizes = len(errors), np.bincount(fold).tolist()
    at = float(delta) / K
    limits = [min(1.0, clopper_pearson_upper(e, m, at) + OUTWARD) for e, m in zip(errors, sizes, strict=True)]
    value = float(np.mean(limits)) * (1 + 1e-12)
    if value >= 1:
        return Vacuous("cross-validation.mean", Message("why.small-folds", rows=len(fold) // K, folds=K), delta)
    params = {"folds": K, "rows": len(fold), "seed": seed}
    return claim("cross-validation.mean", value, params, "train", delta, witness={"limits": np.array(limits)})


def _most_errors(model: Any, rows: Rows) -> int:
    return Gathered(model.evidence(rows)).the(Decided).count_errors(rows)[1]


def _fold_votes(block: Block, members: list[Any], places: list[np.ndarray], n_classes: int) -> np.ndarray:
    """Return the class with most votes, the first of equals; OPEN or NOBODY where members that are so decide."""
    result = np.stack([place[decide(block, *packed)] for (decide, packed), place in zip(members, places)], axis=1)
    votes = np.stack([(result == k).sum(axis=1) for k in range(n_classes)], axis=1)
    unsure, ranked = (result < 0).sum(axis=1), np.sort(votes, axis=1)
    lead = ranked[:, -1] - ranked[:, -2]
    opened = np.where((result == OPEN).any(axis=1), OPEN, NOBODY)
    return np.where((lead > unsure) | (unsure == 0), votes.argmax(axis=1), opened)


class ValidatedChoice(NamedTuple):
    """The parameters tried and their validation scores, the best of them, its model, and its score on the test rows.

    Parameters
    ----------
    tried : list of dict
        The parameters tried.
    scores : ndarray
        Their validation scores.
    parameters : dict
        The best of them.
    model : learner
        Its model.
    test_score : float
        Score on the test rows.
    """

    tried: list[dict[str, Any]]
    scores: np.ndarray
    parameters: dict[str, Any]
    model: Any
    test_score: float


class Parts(NamedTuple):
    """Row numbers of three disjoint parts, each in increasing order.

    Parameters
    ----------
    train : ndarray
        Numbers of the training rows.
    validation : ndarray
        Numbers of the validation rows.
    test : ndarray
        Numbers of the test rows.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def choose_on_validation(learner: Any, grid: Any, X: Any, y: Any, parts: Parts) -> ValidatedChoice:
    """Fit the learner to the training rows with each parameter of the grid, choose by the score on the validation rows
    (the first of equal ones), and score the chosen model on the test rows, once.

    Parameters
    ----------
    learner : learner
        Learner that can be cloned and fitted.
    grid : dict or list of dict
        Values of the parameters.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    parts : Parts
        Row numbers of the three parts.

    Returns
    -------
    ValidatedChoice
        The choice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.model_selection import three_way_split
    >>> from assay.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = three_way_split(150, (0.5, 0.25, 0.25), stratify=y, random_state=0)
    >>> found = choose_on_validation(LogisticRegression(), {"C": [1e-3, 1.0]}, X, y, parts)
    >>> found.parameters, found.test_score > 0.9
    ({'C': 1.0}, True)
    """
    tried = list(ParameterGrid(grid))
    if not tried:
        raise ValueError("choose_on_validation: the grid names no parameters.")
    (fit, fit_y), (held, held_y) = (
        (_safe_indexing(X, part), _safe_indexing(y, part)) for part in (parts.train, parts.validation)
    )
    models = [clone(learner).set_params(**parameters).fit(fit, fit_y) for parameters in tried]
    scores = np.array([model.score(held, held_y) for model in models])
    best = int(np.argmax(scores))
    test = float(models[best].score(_safe_indexing(X, parts.test), _safe_indexing(y, parts.test)))
    return ValidatedChoice(tried, scores, tried[best], models[best], test)


class PenaltyPath(NamedTuple):
    """For each strength of a penalty the training loss, the penalty r(f) and the model.

    Parameters
    ----------
    strengths : ndarray
        Strengths of the penalty.
    losses : ndarray
        Training loss for each.
    penalties : ndarray
        Penalty of the model for each.
    models : list of learner
        The models.
    """

    strengths: np.ndarray
    losses: np.ndarray
    penalties: np.ndarray
    models: list[Any]


PENALTIES: Mapping[str, Callable[[Any], float]] = {
    "squared length": lambda model: float(np.sum(np.square(model.coef_))),
    "absolute sum": lambda model: float(np.sum(np.abs(model.coef_))),
    "leaves": lambda model: float(model.get_n_leaves()),
}
"""What is penalised in min (1/n) sum loss + lambda r(f): |w|^2, |w|_1, the number of leaves of a tree."""


def penalty_path(
    learner: Any,
    parameter: str,
    strengths: Iterable[float],
    X: Any,
    y: Any,
    *,
    penalty: str | Callable[[Any], float] = "squared length",
    loss: Callable[[Any, Any], float] | None = None,
) -> PenaltyPath:
    """Fit the learner with each strength of its penalty and return training losses and penalties.

    At strength 0 it is empirical risk minimisation. As the strength rises, the training loss cannot fall and the
    penalty cannot rise, if each fit is a minimum. `loss(y, predictions)` is the mean squared error of a regression and
    the error rate of a classifier by default.

    Parameters
    ----------
    learner : learner
        Learner that can be cloned and fitted.
    parameter : str
        Name of the learner's parameter.
    strengths : iterable of float
        Its values.
    X : array-like
        Rows.
    y : array-like
        Labels or targets.
    penalty : str or callable, default="squared length"
        Name of the penalty, or a function of a model.
    loss : callable or None
        Loss of a model on rows; None: the usual one.

    Returns
    -------
    PenaltyPath
        Losses and penalties.

    Examples
    --------
    >>> from assay.linear_model import Ridge
    >>> path = penalty_path(Ridge(), "alpha", [0.0, 1.0, 10.0], [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> path.penalties.round(3).tolist()
    [1.0, 0.444, 0.028]
    """
    measure = PENALTIES[penalty] if isinstance(penalty, str) else penalty
    if loss is None:
        loss = _error_rate if is_classifier(learner) else _squared_error
    values: Sequence[float] = [float(strength) for strength in strengths]
    models = [clone(learner).set_params(**{parameter: value}).fit(X, y) for value in values]
    losses = [float(loss(y, model.predict(X))) for model in models]
    return PenaltyPath(np.array(values), np.array(losses), np.array([measure(model) for model in models]), models)


def _squared_error(y: Any, predicted: Any) -> float:
    return float(np.mean((np.asarray(y) - predicted) ** 2))


def _error_rate(y: Any, predicted: Any) -> float:
    return float(np.mean(np.asarray(y) != predicted))


def three_way_split(
    rows: int,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    *,
    stratify: Any = None,
    random_state: Any = None,
) -> Parts:
    """Return the row numbers of a training, a validation and a test part.

    Parameters
    ----------
    rows : int
        Number of rows.
    shares : sequence of float, default=(0.6, 0.2, 0.2)
        Three positive numbers that sum to 1.
    stratify : array-like or None
        Labels of the rows; None: a plain draw.
        Each part then has its share of every class, to within one row. (Bounds of `certify` ask for a plain draw:
        rows that are held out by class are not independent draws.)
    random_state : int, RandomState or None
        Seed of the draw.

    Returns
    -------
    Parts
        The row numbers.

    Examples
    --------
    >>> parts = three_way_split(10, random_state=0)
    >>> [len(part) for part in parts]
    [6, 2, 2]
    """
    given = np.asarray(shares, dtype=np.float64)
    if given.shape != (3,) or not (given > 0).all() or abs(given.sum() - 1) > 1e-9:
        raise ValueError(f"three_way_split: shares must be three positive numbers that sum to 1; got {shares!r}.")
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 3:
        raise ValueError(f"three_way_split: rows must be an integer >= 3, a row for each part; got {rows!r}.")
    labels = np.zeros(rows) if stratify is None else np.asarray(stratify)
    if labels.shape != (rows,):
        raise ValueError(f"three_way_split: stratify must hold one label for each of the {rows} rows.")
    order = check_random_state(random_state).permutation(rows)
    order = order[np.argsort(labels[order], kind="stable")]  # classes one after the other, each in random order
    ends = _ends(labels[order], given)
    part = np.concatenate([np.repeat([0, 1, 2], sizes) for sizes in ends])
    return Parts(*(np.sort(order[part == k]) for k in range(3)))


def _ends(sorted_labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return how many rows of each class go to each part: running shares of all rows so far, rounded, so that
    both the parts and the classes in them are off by less than one row."""
    _, counts = np.unique(sorted_labels, return_counts=True)
    until = np.cumsum(counts)
    cuts = np.floor(until[:, None] * np.cumsum(shares)[:2] + 0.5 - 1e-12).astype(np.int64)
    running = np.column_stack([cuts[:, 0], cuts[:, 1] - cuts[:, 0], until - cuts[:, 1]])
    return np.diff(running, axis=0, prepend=np.zeros((1, 3), dtype=np.int64))


class LearningCurve:
    """How the error of a classifier, and what can be proved about it, changes with the number of rows.

    The rows are put in random order; a share of them is held out, and the learner is fitted to the first 100,
    200, ... of the others.

    Parameters
    ----------
    estimator : a classifier of Assay
    sizes : numbers of training rows, rising; by default eight of them, from 50 to all, each a fixed factor larger
    test : float in (0, 1)
        Share of the rows that are held out; their error is drawn, and no bound uses them.
    delta : float in (0, 1)
        Each certificate holds with probability 1 - delta; the bounds in it share delta.
    random_state : seed of the order of the rows

    Attributes
    ----------
    frame_ : dict
        `rows`, `training error`, `held-out error`, and for each kind of bound its value (NaN where it says nothing)

    Examples
    --------
    >>> import numpy as np
    >>> from assay.linear_model import LogisticRegression
    >>> from assay.model_selection import LearningCurve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=4000) > 0
    >>> curve = LearningCurve(LogisticRegression(), [300, 3000], random_state=0).fit(X, y)
    >>> [round(float(value), 2) for value in curve.frame_["vc"]]
    [0.22, 0.13]
    """

    frame_: dict[str, np.ndarray]

    def __init__(
        self,
        estimator: Learner,
        sizes: Sequence[int] | None = None,
        *,
        test: float = 0.25,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.sizes, self.test, self.delta, self.random_state = (
            estimator,
            sizes,
            test,
            delta,
            random_state,
        )

    def fit(self, X: Any, y: Any) -> "LearningCurve":
        """Fit the learner to each number of rows and certify it."""
        if not (isinstance(self.estimator, Learner) and is_classifier(self.estimator)):
            raise refuse(self, f"estimator must be a classifier of Assay; got {self.estimator!r}.")
        y = np.asarray(y)
        order = check_random_state(self.random_state).permutation(len(y))
        held = round(len(y) * float(self.test))
        sizes = self._sizes(len(y) - held) if 0 < held < len(y) else []
        if not sizes:
            raise refuse(self, f"test must leave rows on both sides; got {self.test!r} for {len(y)} rows.")
        test, rest = order[:held], order[held:]
        points = [self._point(X, y, rest[:size], test) for size in sizes]
        names = dict.fromkeys(name for point in points for name in point)
        self.frame_ = {name: np.array([point.get(name, np.nan) for point in points]) for name in names}
        return self

    def plot(self) -> "Figure":
        """Draw the curve."""
        from assay.plot import learning_curve

        return learning_curve(self.frame_)

    def _sizes(self, most: int) -> list[int]:
        if self.sizes is None:
            return [int(size) for size in np.unique(np.geomspace(min(50, most), most, 8).astype(np.int64))]
        sizes = [int(size) for size in self.sizes]
        if sizes != sorted(set(sizes)) or not sizes or sizes[0] < 2 or sizes[-1] > most:
            raise refuse(self, f"sizes must rise from at least 2 to at most {most} rows; got {self.sizes!r}.")
        return sizes

    def _point(self, X: Any, y: np.ndarray, rows: np.ndarray, test: np.ndarray) -> dict[str, float]:
        model: Any = clone(self.estimator).fit(_safe_indexing(X, rows), y[rows])
        certificate = model.certify(_safe_indexing(X, rows), y[rows], delta=self.delta)
        point: dict[str, float] = {"rows": len(rows)}
        for name, part in (("training error", rows), ("held-out error", test)):
            point[name] = float(np.mean(model.predict(_safe_indexing(X, part)) != y[part]))
        rates = [claim for claim in certificate.claims if claim.quantity and claim.direction == "upper"]
        return point | {claim.kind: claim.value for claim in rates}
