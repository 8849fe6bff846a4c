"""Learner: scikit-learn's contract, plus a card, a history and a certificate.

A learner implements `fit`, the prediction methods of its task, and `facts(rows)`, which yields what the fit
proved about its rows. This base class reads input (arrays, frames, Parquet files, Dask collections) and
issues certificates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from os import PathLike
from os.path import exists
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    _num_samples,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from assay import scan
from assay import stored as storing
from assay._typing import Json, Samples, Targets
from assay.borrowed import borrowed
from assay.card import Card
from assay.claims.claim import Certificate, Claim, NotApplicable
from assay.claims.model import StoredModel
from assay.data.blocks import Block
from assay.fitlog import FitLog, Step
from assay.guarantees.evidence import Evidence
from assay.guarantees.ledger import CertifyOptions, Statement
from assay.guarantees.seal import DataSplit, issue
from assay.params import refuse
from assay.scan import Rows
from assay.stored import to_sklearn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from assay.theory.spaces import Space

Holdout: TypeAlias = tuple[Samples, Targets] | Sequence[int] | np.ndarray | None
"""Hold-out rows as a pair (X, y), or as row numbers."""
_LEAST_DELTA = 1e-50  # no data can show that a statement fails more rarely
_EXACT_INTEGERS = 2**53  # integers up to here are doubles


class Diagram(NamedTuple):
    """A network of units as `assay.plot.network` draws it: weights (from, to) between its layers, the names of these,
    weights from the first hidden layer to itself; a cascade has units that read all units before them instead."""

    weights: list[np.ndarray]
    names: list[str]
    back: np.ndarray | None = None
    is_cascade: bool = False


class Learner(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base class of every Assay learner.

    Attributes
    ----------
    card : Card
        Model, strategy, algorithm and guarantee; a class attribute.
    family : str
        Which of the checker's predictors reads the fitted parameters; a class attribute, "" if none does.
    figure : str
        Which function of `assay.plot` draws the fitted model alone; a class attribute.
    more_arrays : tuple of str
        Arrays that belong to the model beside those of its family, because methods that are not certified need them.
    probabilities_of_family : bool
        Whether its probabilities follow from its scores as the variant of its family says; a class attribute.
    further_loops : tuple of mappings
        Settings that run compiled loops which those of a default fit do not; a class attribute.
    history_ : list of Step
        One (iteration, objective, violation, seconds) per iteration of the last fit.
    """

    card: ClassVar[Card]
    family: ClassVar[str] = ""
    figure: ClassVar[str] = "history"
    more_arrays: ClassVar[tuple[str, ...]] = ()
    probabilities_of_family: ClassVar[bool] = True
    further_loops: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    _from_file = False
    history_: list[Step]
    classes_: np.ndarray

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield what the fit proved about `rows`; class labels come as positions in `classes_`."""
        yield from ()

    def space(self, rows: Rows) -> "Space":
        """Return the class of hypotheses that the fit chose from, as a space of `assay.theory.spaces`."""
        n_classes = len(self.classes_) if is_classifier(self) else 0
        space: Space = self.card.model.at(rows.n_features, n_classes, getattr(self, "fit_intercept", True))
        return space

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield statements about new data that only this learner can make from its training rows.

        A statement is a function of its share of delta (a decimal string) that returns the claim; how many
        there are must not depend on what they will say.
        """
        yield from ()

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield statements about new data that only this learner can make from hold-out rows, None if there are none;
        as `statements`."""
        yield from ()

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield what the learner knows about `rows`, by type: scores or votes, predictions, densities, distances, the
        length of its weights, the problem that it minimised (`guarantees.evidence`)."""
        yield from ()

    def certifying(self) -> AbstractContextManager[None]:
        """Return the context in which a certificate is issued: what many of its claims ask for may be kept in it."""
        return nullcontext()

    def certify(
        self,
        X: Samples,
        y: Targets = None,
        *,
        sample_weight: Targets = None,
        delta: float = 0.05,
        holdout: Holdout = None,
        compared: Sequence[np.ndarray] = (),
        clip: float | tuple[float, float] | None = None,
        coverage: float | None = None,
        scores: bool = False,
        against: np.ndarray | None = None,
        hypothesis_class_fixed: bool = True,
        radius: float | None = None,
        groups: Targets = None,
        group_name: str = "group",
    ) -> Certificate:
        """Return a certificate of this fitted model on the rows it was fitted to.

        Parameters
        ----------
        X, y, sample_weight
            The training rows, exactly as passed to `fit`.
        delta : float in [1e-50, 1)
            Probability, over the draw of the data, that any of the statements about new data fails.
        holdout : (X, y) or integers, optional
            Rows that nothing about the model was chosen on: a pair of arrays, or the row numbers in X of
            those that were kept out of `fit`.
        compared : sequence of arrays, optional
            Predictions on the hold-out rows of every model that was compared on them, this one included.
            The bounds then pay for the comparison.
        clip : float or pair of floats, optional
            Regression: the absolute error is clipped here in statements about new data. Density: a pair, the least
            and the largest -ln p(x) that counts. Fix it in advance.
        coverage : float in (0, 1), optional
            Ask for prediction sets that hold the target of at least this share of new data: the interval
            prediction +- value of a regression, the classes whose score is within value of the largest.
        scores : bool
            Ask what the scores of a classifier are worth: half the Brier score of its probabilities, and for two
            classes the ROC curve, its area and all its points at once; and how often the rows that a committee decides
            are wrong, for all shares of the votes that it could ask for at once.
        against : array, optional
            Labels that another classifier predicts for the hold-out rows: ask how far the two error rates can
            differ. Both must have been fixed before.
        hypothesis_class_fixed : bool
            Whether features and encodings were fixed without looking at the training rows. If not, no
            statement is made that rests on the size of the class of hypotheses.
        radius : float, optional
            Centres, flats, and linear classifiers with a penalty: a length that no row exceeds, of these or of new
            data. Fix it in advance; the longest row seen is no such number.
        groups : array, optional
            Values of a column, one for each hold-out row (of each row of X, if `holdout` has row numbers), of which
            rows with the same are no independent draws: statements are then about new groups. `verify` needs the same
            values as columns={group_name: values}.
        group_name : str
            Name of that column.
        """
        check_is_fitted(self)
        if not self.family or not self._task:
            raise refuse(self, "it predicts nothing by itself, so there is nothing to certify.")
        if not isinstance(delta, Real) or not _LEAST_DELTA <= delta < 1:
            raise refuse(
                self,
                f"delta must be a number in [{_LEAST_DELTA:g}, 1) (a probability of failure); got {delta!r}.",
            )
        if sample_weight is not None and not has_fit_parameter(self, "sample_weight"):
            raise refuse(self, "fit knows no sample_weight, so a certificate cannot have one.")
        asked = CertifyOptions(compared, clip, coverage, scores, against, hypothesis_class_fixed, radius)
        self._check_asked(asked, holdout is not None)
        cut = self._cut(X, y, sample_weight, holdout)
        if groups is not None:
            asked = replace(asked, groups=self._groups(groups, cut), group_name=group_name)
        try:
            return issue(self, cut, delta=Decimal(repr(float(delta))), asked=asked)
        except AttributeError as error:
            if not self._from_file:
                raise
            raise refuse(
                self, f"a loaded model keeps what it predicts with, not how it was fitted ({error}); fit it again."
            ) from error

    @property
    def _task(self) -> str:
        """What the learner does, by its card; one without a card is a classifier or does nothing by itself."""
        return self.card.task if hasattr(type(self), "card") else "classify" if is_classifier(self) else ""

    def _check_asked(self, asked: CertifyOptions, holdout: bool) -> None:
        """Refuse what cannot be stated about this learner or without hold-out rows."""
        wanted = {"coverage": asked.coverage, "scores": asked.scores or None, "against": asked.against}
        if not holdout and (len(asked.compared) or any(value is not None for value in wanted.values())):
            names = [name for name, value in wanted.items() if value is not None]
            raise refuse(self, f"{', '.join(names) or 'compared'} needs hold-out rows: pass holdout=.")
        if asked.against is not None and len(asked.compared):
            raise refuse(self, "against is about two models fixed before; it cannot be read beside compared.")
        if asked.coverage is not None and not (isinstance(asked.coverage, Real) and 0 < asked.coverage < 1):
            raise refuse(self, f"coverage must be a share between 0 and 1, such as 0.9; got {asked.coverage!r}.")
        if asked.coverage is not None and self._task not in ("classify", "regress"):
            raise refuse(self, "coverage is about predictions of a target, which this learner does not make.")
        if is_classifier(self) and asked.clip is not None:
            raise refuse(self, f"clip is for regression (it bounds the absolute error); got {asked.clip!r}.")
        if not is_classifier(self) and (asked.scores or asked.against is not None):
            raise refuse(self, "scores and against are about classifiers.")
        if self._task == "density" and asked.clip is not None:
            if not _is_range(asked.clip):
                raise refuse(
                    self, f"clip must be two finite numbers, the least and the largest log-loss; got {asked.clip!r}."
                )
            return
        if asked.radius is not None and not (isinstance(asked.radius, Real) and 0 < asked.radius < np.inf):
            raise refuse(self, f"radius must be a finite number > 0; got {asked.radius!r}.")
        if asked.clip is not None and not (np.isfinite(asked.clip) and asked.clip > 0):
            raise refuse(self, f"clip must be a finite number > 0 (the largest absolute error); got {asked.clip!r}.")

    def diagram(self) -> Diagram | None:
        """Return the layers of a network of units; None for a learner that is none."""
        return None

    def members(self) -> Sequence["Learner"]:
        """Return the fitted learners that this one is made of, for a family with members."""
        return ()

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data: class, parameters and exactly the arrays of its family."""
        check_is_fitted(self)
        if not self.family:
            raise refuse(self, "it has no family, so that there is nothing to store.")
        return storing.stored(self)

    @classmethod
    def restore(cls, stored: StoredModel, members: Sequence["Learner"], build: Callable[[Json], object]) -> "Learner":
        """Return the fitted learner that `stored` describes, after checking every part of it; `build` makes parameters
        that are objects."""
        learner: Learner = storing.restore(cls, stored, members, build)
        return learner

    def _take_members(self, members: Sequence["Learner"]) -> None:
        """Keep the fitted learners that this one is made of; the reverse of `members`."""

    def _take_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the arrays of the family, which are sound. Those that follow from parameters are properties, compared
        afterwards; a learner that holds its arrays in another form overrides this."""
        for name, value in arrays.items():
            if not isinstance(getattr(type(self), name, None), property):
                setattr(self, name, value)

    def _derive(self) -> None:
        """Derive from parameters and arrays what else `predict` needs; the end of `fit`, and of loading."""

    def plain(self) -> dict[str, Json]:
        """Return this learner, not fitted, as plain data: what a model file holds of a parameter that is a learner."""
        return {"learner": storing.class_name(type(self)), "parameters": storing.plain_parameters(self)}

    def to_sklearn(self) -> BaseEstimator:
        """Return scikit-learn's estimator of the same name that predicts the same, for tools that read its classes
        alone; it has no certificate. A model that scikit-learn has no form for is refused."""
        return to_sklearn(self)

    def _scikit_state(self, estimator: BaseEstimator) -> dict[str, object]:
        """Return attributes that scikit-learn's estimator needs beside the public ones of this learner."""
        return {}

    def plot(self) -> "Figure":
        """Return a matplotlib figure of what the fitted model shows without data; see `assay.plot` for
        others."""
        from assay.plot import default

        check_is_fitted(self)
        return default(self)

    def _cut(self, X: Samples, y: Targets, sample_weight: Targets, holdout: Holdout) -> DataSplit:
        """Return training and hold-out rows, and the split when `holdout` is a set of row numbers."""
        if holdout is None:
            return DataSplit(self._known_rows(X, y, sample_weight))
        if _is_pair(holdout):
            return DataSplit(self._known_rows(X, y, sample_weight), self._held_rows(*holdout))
        if streams(X, y):
            raise refuse(self, "hold-out rows of data that are streamed must be given as a pair (X, y), not by number.")
        n = _num_samples(X)
        held = self._row_numbers(holdout, n)
        kept = np.setdiff1d(np.arange(n), held)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        train, held_rows = (
            read(
                _safe_indexing(X, part),
                None if y is None else _safe_indexing(y, part),
                None if weight is None else weight[part],
            )
            for part, read in ((kept, self._known_rows), (held, self._held_rows))
        )
        return DataSplit(train, held_rows, {"train": kept, "holdout": held})

    def _groups(self, groups: Targets, cut: DataSplit) -> np.ndarray:
        """Return the groups of the hold-out rows."""
        if cut.holdout is None:
            raise refuse(self, "groups are those of hold-out rows: pass holdout, too.")
        values = np.asarray(groups, dtype=object)
        rows, n = cut.holdout.n_rows, cut.train.n_rows + cut.holdout.n_rows
        if values.shape != (rows if cut.split is None else n,):
            raise refuse(self, f"groups: there must be {rows if cut.split is None else n} of them; got {values.shape}.")
        return values if cut.split is None else values[cut.split["holdout"]]

    def _held_rows(self, X: Samples, y: Targets, sample_weight: Targets = None) -> Rows:
        """Return hold-out rows; those of a class that no training row has stay in, with the position -1: errors."""
        labels = None if y is None or streams(X, y) or not is_classifier(self) else np.asarray(y)
        if labels is None or labels.ndim != 1 or not isinstance(self.classes_, np.ndarray):
            return self._known_rows(X, y, sample_weight)
        others = ~np.isin(labels, self.classes_) & (labels == labels)
        if not others.any():
            return self._known_rows(X, y, sample_weight)
        rows: Any = self._known_rows(X, np.where(others, self.classes_[0], labels), sample_weight)
        rows.y = np.where(others, -1, rows.y)
        known: Rows = rows
        return known

    def _row_numbers(self, holdout: Holdout, n: int) -> np.ndarray:
        """Return the numbers of the hold-out rows, sorted."""
        given = np.asarray(holdout)
        held = np.unique(given)
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(held) != len(given):
            raise refuse(self, _PAIR.format(_kind_of(given)))
        if len(held) in (0, n) or held[0] < 0 or held[-1] >= n:
            raise refuse(
                self,
                f"holdout: row numbers must lie in 0..{n - 1} and leave rows on both sides; got {len(held)} of them"
                + (f", from {held[0]} to {held[-1]}." if len(held) else "."),
            )
        return held.astype(np.int64)

    def _known_rows(self, X: Samples, y: Targets, sample_weight: Targets = None) -> Rows:
        """Return rows as the fitted learner sees them: same columns, labels as positions in `classes_`."""
        for name, part in (("X", X), ("y", None if is_classifier(self) else y), ("sample_weight", sample_weight)):
            if _beyond_doubles(part):
                raise refuse(
                    self,
                    f"{name} has integers beyond 2^53, which doubles do not hold exactly; subtract an offset first.",
                )
        rows = read_rows(self, X, y, sample_weight, reset=False)
        require_finite(rows, self)
        return rows.encoded(self.classes_) if is_classifier(self) else rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def read_rows(
    learner: Learner,
    X: Samples,
    y: Targets,
    sample_weight: Targets = None,
    *,
    reset: bool = True,
    multi_output: bool = False,
    dtype: DTypeLike | list[DTypeLike] = np.float64,
) -> Rows:
    """Return `X`, `y` and weights as rows to scan, checked as scikit-learn checks them, except that entries
    are finite: call `require_finite`, or look at a sum over all entries, since that saves a pass over the
    data. A learner whose tags say that it needs no target (a transformer, say) never looks at `y`. Arrays become
    of type `dtype`, or stay of one of the types if it is a list; blocks of rows are float64 all the same."""
    n_jobs, has_target = _threads(learner), get_tags(learner).target_tags.required
    if streams(X, y):
        rows = scan.rows(X, y, sample_weight, n_jobs=n_jobs)
        if has_target and not rows.has_y:
            raise refuse(learner, "y is missing: name the column of the target, or pass it beside the rows.")
        _remember_columns(learner, rows, reset)
        return rows
    if has_target and y is None:
        raise ValueError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    X = validate_data(
        learner,
        X,
        reset=reset,
        dtype=dtype,
        ensure_all_finite=False,
        ensure_min_samples=1,
        accept_sparse="csr" if get_tags(learner).input_tags.sparse else False,
    )
    numeric = not is_classifier(learner)
    if isinstance(y, (list, tuple)) and any(isinstance(label, str) and label.endswith("\0") for label in y):
        raise refuse(learner, "a label of y ends in a NUL character, which arrays of text drop; rename the label.")
    if has_target:
        y = _check_y(y, multi_output=multi_output or numeric, y_numeric=numeric, estimator=learner)
        check_consistent_length(X, y)
        y = np.asarray(y, dtype=np.float64) if numeric else y
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=not reset
        )
    return scan.rows(X, y if has_target else None, sample_weight, n_jobs=n_jobs)


def fit_log(learner: Learner, max_iter: int, X: Samples, y: Targets, sample_weight: Targets = None) -> FitLog:
    """Return the log of a fit to these rows; callbacks are shown the rows if they are in memory."""
    shown = (None, None, None) if streams(X, y) else (X, y, sample_weight)
    return FitLog(learner, max_iter, *shown)


def require_finite(rows: Rows, learner: Learner) -> None:
    """Raise scikit-learn's error if an entry is NaN or infinite, or a weight negative."""
    stored = getattr(getattr(rows, "X", None), "data", None)
    if isinstance(stored, np.ndarray):  # sparse rows: what is not stored is zero
        totals = _entry_sums(Block(stored, getattr(rows, "y", None), getattr(rows, "weight", None), 0))
    else:
        totals = rows.sum(_entry_sums)
    if all(np.isfinite(total) for total in totals):
        return
    for block in rows.blocks():
        for name, part in (("X", block.X), ("y", block.y), ("sample_weight", block.weight)):
            if part is not None and part.dtype.kind == "f":
                assert_all_finite(part, estimator_name=type(learner).__name__, input_name=name)
        if block.weight is not None and block.weight.min() < 0:
            row = block.start + int(np.argmax(block.weight < 0))
            raise refuse(
                learner,
                f"row weights must be >= 0; row {row} (counted from 0) has a negative one.",
            )


def label_classes(learner: Learner, rows: Rows, least: int = 2) -> np.ndarray:
    """Return the distinct labels in order; at least two are needed to learn to tell them apart, if `least` says so."""
    try:
        classes = rows.labels()
    except TypeError:
        raise refuse(learner, "the labels y must be of one type, such as text or integers.") from None
    if classes.dtype.kind == "f" and np.isnan(classes[-1]):
        raise refuse(learner, "Input y contains NaN.")
    # Labels that are all distinct would pass for a numeric target.
    check_classification_targets(np.repeat(classes, 3))
    if len(classes) < least:
        raise ValueError(
            f"{type(learner).__name__}: This solver needs samples of at least 2 classes in the data to learn from; "
            f"they contain one class: {classes.tolist()[0]!r}."
        )
    return classes


def _entry_sums(block: Block) -> tuple[float, float, float]:
    """Return sums that are finite only if every entry is, and no weight is negative."""
    with np.errstate(invalid="ignore", over="ignore"):
        y = float(block.y.sum()) if block.y is not None and block.y.dtype.kind == "f" else 0.0
        weight = 0.0 if block.weight is None else float(np.sqrt(block.weight).sum())
        return float(block.X.sum()), y, weight


def _beyond_doubles(values: object) -> bool:
    """Tell whether an array, or a list of numbers, has integers that doubles do not hold."""
    if isinstance(values, (list, tuple)):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or not values.size:
        return False
    return max(int(values.max()), -int(values.min())) > _EXACT_INTEGERS


def _threads(learner: Learner) -> int | None:
    """Return the parameter `n_jobs`: None, or an integer other than 0."""
    n_jobs = getattr(learner, "n_jobs", None)
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise refuse(
            learner,
            f"n_jobs must be None (all cores), a number of threads, or -1 for all cores; got {n_jobs!r}.",
        )
    return None if n_jobs is None else int(n_jobs)


def streams(X: Samples, y: Targets = None) -> bool:
    """Tell whether X is rows to scan, Parquet files, an Arrow table or a Dask collection, rather than an
    array or frame."""
    if isinstance(X, (Rows, str, PathLike)) or hasattr(X, "__dask_graph__"):
        return True
    if isinstance(X, (list, tuple)) and X:
        return all(isinstance(item, PathLike) or (isinstance(item, str) and _names_a_file(item)) for item in X)
    return type(X).__module__.partition(".")[0] == "pyarrow" and (y is None or isinstance(y, str))


def _names_a_file(text: str) -> bool:
    """Tell whether a text in a list is the name of a file or a pattern of names, and not a row of text."""
    return text.endswith((".parquet", ".parq")) or exists(text)


def _is_range(clip: object) -> bool:
    """Tell whether `clip` is a pair of finite numbers, the first below the second."""
    if not isinstance(clip, (tuple, list)) or len(clip) != 2 or not all(isinstance(end, Real) for end in clip):
        return False
    return bool(np.isfinite(clip).all() and clip[0] < clip[1])


_PAIR = "holdout must be a pair (X, y), (X, None) without a target, or distinct integer row numbers; got {}."


def _kind_of(array: np.ndarray) -> str:
    """Return an array in few words; its entries may be many."""
    return f"an array of shape {array.shape} and type {array.dtype}"


def _is_pair(holdout: Holdout) -> bool:
    """Tell whether `holdout` is (X, y), and not two row numbers."""
    if not isinstance(holdout, (tuple, list)) or len(holdout) != 2:
        return False
    return not all(isinstance(part, Integral) for part in holdout)


def _remember_columns(learner: Learner, rows: Rows, reset: bool) -> None:
    """Set, or compare with, the number and names of columns seen in `fit`."""
    names = None if rows.feature_names is None else np.asarray(rows.feature_names, dtype=object)
    if reset:
        learner.n_features_in_ = rows.n_features
        learner.__dict__.pop("feature_names_in_", None)
        if names is not None:
            learner.feature_names_in_ = names
        return
    if rows.n_features != learner.n_features_in_:
        raise ValueError(
            f"X has {rows.n_features} features, but {type(learner).__name__} is expecting "
            f"{learner.n_features_in_} features as input."
        )
    known = getattr(learner, "feature_names_in_", None)
    if names is not None and known is not None and not np.array_equal(names, known):
        raise refuse(
            learner,
            f"the columns must be those of fit, in order: {', '.join(known)}; got {', '.join(names)}.",
        )


__getattr__, __dir__ = borrowed(__name__, [name for name in globals() if not name.startswith("_")])
