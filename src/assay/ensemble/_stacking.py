"""Stacking: a second learner that reads what the first ones say.

    1  for each member t and each fold: fit t to the rows outside the fold, z_it = what it says of row i in the fold
    2  fit the final learner to (z_i, y_i)
    3  fit every member to all rows; a new row is z(x), then the final learner

With cv=None step 1 is the listing of the notes: members are fitted to all rows and z_it is what they say of the very
rows that they were fitted to, from which the final learner learns how well they overfit. Wolpert 1992.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import hstack, issparse
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin, is_classifier, is_regressor
from sklearn.model_selection import check_cv
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.ensemble._combined import UNIT, Output, Task, fit_members, fit_some, is_ours, probability_link, raw_link
from assay.ensemble._members import asked_of, routed_fits
from assay.ensemble._named_members import NamedEstimators, NamedMembers
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from assay.params import Choice, Flag, check, refuse
from assay.scan import Rows
from assay.stored import StoredModel
from assay.theory.spaces import Unbounded
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

_METHODS = ("predict_proba", "decision_function", "predict")


class OverfitWarning(UserWarning):
    """The final learner learns from what members say of rows that they were fitted to."""


@dataclass(eq=False, repr=False)
class Stacking(TransformerMixin, NamedMembers):
    """What both share; see `StackingClassifier`."""

    figure = "final_member"
    combines: ClassVar = "learners on what other learners say"
    constraints: ClassVar = {
        "estimators": NamedEstimators,
        "stack_method": Choice("auto", *_METHODS),
        "passthrough": Flag,
    }

    estimators: Any = None
    final_estimator: Any = None
    _: KW_ONLY
    cv: Any = 5
    stack_method: str = "auto"
    passthrough: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    sparse_too: ClassVar = True

    def _final(self) -> Any:
        raise NotImplementedError

    def _bases(self) -> list[Any]:
        return [*(item for _, item in self._named()), self._final()]

    def _reads_sparse(self) -> bool:
        readers = [*(item for _, item in self._named()), *([self._final()] if self.passthrough else [])]
        return all(hasattr(reader, "fit") and get_tags(reader).input_tags.sparse for reader in readers)

    @property
    def passes_(self) -> np.ndarray:
        """1 if the final learner reads the row too."""
        return np.array(int(self.passthrough))

    @property
    def final_estimator_(self) -> Any:
        """The fitted final learner."""
        check_is_fitted(self, "members_")
        return self.members_[-1]

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; classifiers among them know the classes as 0, 1, ..."""
        check_is_fitted(self, "members_")
        return self.members_[:-1]

    @property
    def links_(self) -> np.ndarray:
        """How the checker reads each member but the last, which is the final learner."""
        if not hasattr(self, "_links"):
            self._links = np.array([self._link_of(t) for t in range(len(self.members_) - 1)], dtype=np.int64)
        return self._links

    def _link_of(self, t: int) -> int:
        member = self.members_[t]
        method = self._method(member)
        if method == "predict_proba":
            return probability_link(member)
        return raw_link(member) if method == "decision_function" or not is_classifier(self) else -1

    @property
    def stack_method_(self) -> list[str]:
        """The method that each member is asked by."""
        return [self._method(estimator) for estimator in self.estimators_]

    def _method(self, member: Any) -> str:
        if not is_classifier(self):
            return "predict"
        options = _METHODS if self.stack_method == "auto" else (self.stack_method,)
        result = next((name for name in options if hasattr(member, name)), None)
        if result is None:
            kind = type(member).__name__
            raise refuse(self, f"Underlying estimator {kind} does not implement the method {self.stack_method}.")
        return result

    # Fitting
    # ----------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Fit members and final learner to rows X and targets y; weights of rows go to all of them, and with
        scikit-learn's routing whatever they ask for."""
        _raise_for_params(params, self, "fit")
        check(self)
        self._check_members()
        X = self._rows(X, reset=True)
        target, weight = self._targets(X, y, sample_weight)
        more = routed_fits(self, [name for name, _ in self._named()], weight, params)
        given = params if weight is None else {"sample_weight": weight, **params}
        with FitLog(self, 1, X, y) as log:
            members, Z = self._first_level(X, target, more)
            log.stopped |= "kept_" in vars(self)
            task = Task("final_estimator", self._final(), self._beside(Z, X), target, asked_of(self._final(), given))
            self._keep([*members, *fit_members(self, [task], self.n_jobs)])
            if hasattr(self.members_[-1], "predict"):
                said = np.asarray(self.members_[-1].predict(self._beside(self._member_output(members, X), X)))
                log.step(float(np.mean(said != target if is_classifier(self) else (said - target) ** 2)), 0.0)
        return self

    def _check_members(self) -> None:
        """Refuse what is no learner; a classifier may stack regressors, whose numbers it reads."""
        classify = is_classifier(self)
        for name, item in self._named():
            if not hasattr(item, "fit"):
                raise refuse(self, f"its learners must have fit and predict; got {item!r}.")
            if not classify and not is_regressor(item):
                raise refuse(self, f"The estimator {type(item).__name__} ({name!r}) should be a regressor.")
            if self.cv == "prefit":
                check_is_fitted(item)
        if not (is_classifier if classify else is_regressor)(self._final()):
            kind = "classifier" if classify else "regressor"
            raise refuse(self, f"'final_estimator' parameter should be a {kind}. Got {self._final()!r}.")

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, Any]:
        if not (is_classifier(self) and type_of_target(y) == "multilabel-indicator"):
            return super()._targets(X, y, sample_weight)
        labels = np.asarray(y.toarray() if issparse(y) else y)
        self.classes_: Any = [np.unique(column) for column in labels.T]
        return labels, sample_weight

    @property
    def _several(self) -> bool:
        return isinstance(getattr(self, "classes_", None), list)

    def _first_level(self, X: Any, y: np.ndarray, more: Any) -> tuple[list[Any], np.ndarray]:
        """Return the members fitted to all rows, and what they, or models of folds, say of the rows."""
        named = self._named()
        if self.cv == "prefit":
            members = [estimator for _, estimator in named]
            return members, self._member_output(members, X)
        if self.cv is None:
            warnings.warn(
                f"{type(self).__name__}: cv=None fits the final learner to what the members say of the rows that they "
                "were fitted to, which it takes for what they say of new rows; use cv=5.",
                OverfitWarning,
                stacklevel=3,
            )
            made = fit_some(self, [Task(name, estimator, X, y, more[name]) for name, estimator in named], self.n_jobs)
            members = [made[t] for t in self._keep_some(made)]
            return members, self._member_output(members, X)
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y))
        if len(np.unique(np.concatenate([held for _, held in folds]))) < len(y):
            raise refuse(self, "cv must hold out every row once.")
        each = [(_safe_indexing(X, kept), y[kept], kept) for kept, _ in folds]
        tasks = [
            Task(part, estimator, rows, target, _check_method_params(X, more[name], indices=at))
            for name, estimator in named
            for part, rows, target, at in [
                *((f"{name}, fold {k}", *fold) for k, fold in enumerate(each)), (name, X, y, None),
            ]
        ]  # fmt: skip
        made, size = fit_some(self, tasks, self.n_jobs), len(folds) + 1
        of_member = [made[first : first + size] for first in range(0, len(made), size)]
        whole = [None if any(item is None for item in some) else some[-1] for some in of_member]
        of_member = [of_member[t] for t in self._keep_some(whole)]
        Z = None
        for k, (_, held) in enumerate(folds):
            outputs = self._member_output([some[k] for some in of_member], _safe_indexing(X, held))
            Z = np.zeros((len(y), outputs.shape[1])) if Z is None else Z
            Z[held] = outputs
        return [some[-1] for some in of_member], np.asarray(Z)

    def _member_output(self, members: Sequence[Any], X: Any) -> np.ndarray:
        """Return the columns that members make of rows; of two probabilities the second alone."""
        columns = []
        for member in members:
            values = getattr(member, self._method(member))(X)
            if isinstance(values, list):  # of each label, the probabilities of its values
                columns += [np.asarray(part, dtype=np.float64)[:, 1:] for part in values]
                continue
            said = np.asarray(values, dtype=np.float64)
            said = said.reshape(len(said), -1)
            two = said.shape[1] == 2 and is_classifier(self) and not self._several
            columns.append(said[:, 1:] if two else said)
        return np.column_stack(columns)

    def _beside(self, Z: np.ndarray, X: Any) -> Any:
        if not self.passthrough:
            return Z
        return hstack([Z, X], format="csr") if issparse(X) else np.column_stack([Z, np.asarray(X, dtype=np.float64)])

    # What it says
    # ----------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Return the columns that the final learner reads; sparse if the rows are and are passed through."""
        check_is_fitted(self, "members_")
        rows = self._rows(X, reset=False)
        result = self._beside(self._member_output(self.members_[:-1], rows), rows)
        return result.asformat(X.format) if issparse(result) and issparse(X) else result

    def get_metadata_routing(self) -> Any:
        """Return which metadata goes to which members, and to the final learner's `predict`."""
        mapping = MethodMapping().add(caller="predict", callee="predict")
        return super().get_metadata_routing().add(final_estimator=self._final(), method_mapping=mapping)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column of `transform`."""
        check_is_fitted(self, "members_")
        names = self._names()
        width = (self.final_estimator_.n_features_in_ - self.n_features_in_ * self.passthrough) // len(names)
        columns = [
            f"{type(self).__name__.lower()}_{name}{k if width > 1 else ''}" for name in names for k in range(width)
        ]
        if self.passthrough:
            given = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
            columns += list(given if input_features is None else input_features)
        return np.array(columns, dtype=object)

    def predict(self, X: Any, **params: Any) -> Any:
        """Return what the final learner predicts, given what else its `predict` takes (`return_std`, say)."""
        check_is_fitted(self, "members_")
        more = params
        if _routing_enabled() and params:
            more = dict(process_routing(self, "predict", **params).final_estimator.predict)
        outputs = self._final_says("predict", X, **more)
        if isinstance(outputs, tuple) or not is_classifier(self):
            return outputs
        return outputs if self._several else self.classes_[np.asarray(outputs)]

    def _final_says(self, method: str, X: Any, **more: Any) -> Any:
        Z = self.transform(X)
        said = getattr(self.members_[-1], method)(Z, **more)
        return np.array([part[:, 0] for part in said]).T if isinstance(said, list) else said

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data."""
        self._require_one()
        return super().stored()

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        self._require_one()
        return super()._known_rows(X, y, sample_weight)

    def _require_one(self) -> None:
        if self._several:
            raise refuse(self, "a model of several labels has no certificate and no file; pickle works.")

    def _derive(self) -> None:
        self._check_count(len(self.members_) - 1)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores of a linear final learner."""
        final = self.members_[-1]
        if not (is_ours(final) and str(final.family).startswith("linear.")):
            raise refuse(self, f"a certificate needs a linear final learner; {type(final).__name__} is none.")
        yield from super().evidence(rows)

    def _combine(self, outputs: Sequence[Output], block: Block) -> Output:
        """Return the scores of the final learner: of two probabilities of a member it reads the second alone."""
        two = is_classifier(self) and len(self.classes_) == 2
        parts = [
            (values[:, 1:], errors[:, 1:]) if two and values.shape[1] == 2 else (values, errors)
            for values, errors in outputs
        ]
        parts += [(block.X, np.zeros_like(block.X))] if self.passthrough else []
        Z, error = (np.column_stack(side) for side in zip(*parts))
        coef = self.members_[-1].coef_
        W = np.atleast_2d(coef.toarray() if issparse(coef) else coef)
        b = np.broadcast_to(self.members_[-1].intercept_, len(W))
        size = np.abs(Z) @ np.abs(W).T + np.abs(b)
        return Z @ W.T + b, error @ np.abs(W).T * (1 + 1e-12) + 4 * (W.shape[1] + 8) * UNIT * size


def _final_has(method: str) -> Any:
    def has(model: Any) -> bool:
        getattr(model.members_[-1] if hasattr(model, "members_") else model._final(), method)  # its error is the cause
        return True

    return available_if(has)


class StackingClassifier(ClassifierMixin, Stacking):
    """A classifier that reads the probabilities of other classifiers.

    Parameters
    ----------
    estimators : list of (name, classifier), or None
        First level; "drop" leaves one out. None is a logistic regression and a tree.
    final_estimator : classifier or None
        Second level; None is `LogisticRegression`.
    cv : int, splitter, "prefit" or None
        Folds of step 1; the second level learns what members say of rows that they did not see. None: the listing of
        the notes, which learns from the members' own training rows, with a warning. "prefit": members are fitted
        already, to other rows.
    stack_method : "auto", "predict_proba", "decision_function" or "predict"
        What members are asked for; "auto" is the first that they have.
    passthrough : bool
        Whether the final learner reads the row too.
    n_jobs : int or None
        Threads for members and folds; changes the time, never a bit.
    verbose : int
        Accepted; `fit` of the members prints what they are asked to.

    Ctrl-C ends the first level; the members whose folds are all fitted are kept (`kept_`), and the final learner is
    fitted to what they say.

    Attributes
    ----------
    classes_, estimators_, final_estimator_, named_estimators_, stack_method_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import StackingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = StackingClassifier().fit(X, y)
    >>> model.transform(X).shape, model.score(X, y) > 0.9
    ((150, 6), True)
    """

    family = "stacking.classifier"
    card = Card(
        name="Stacking of classifiers",
        task="classify",
        ensemble="parallel",
        model=Unbounded("learners on what other learners say"),
        strategy="that of the final learner",
        algorithm="members on folds, on threads; the final learner on what they say",
        guarantee=(),
        role="stack",
    )

    def _default(self) -> list[tuple[str, Any]]:
        return [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(random_state=0))]

    def _final(self) -> Any:
        return LogisticRegression() if self.final_estimator is None else self.final_estimator

    def _scikit_state(self, estimator: Any) -> dict[str, Any]:
        return {"_label_encoder": LabelEncoder().fit(self.classes_)}

    @_final_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the final learner's probabilities."""
        return self._final_says("predict_proba", X)

    @_final_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the final learner's scores."""
        return self._final_says("decision_function", X)


class StackingRegressor(RegressorMixin, Stacking):
    """A regressor that reads the predictions of other regressors; parameters as `StackingClassifier`.

    The final learner of None is `Ridge`.

    >>> from assay.ensemble import StackingRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> StackingRegressor().fit(X, y).score(X, y) > 0.4
    True
    """

    family = "stacking.regressor"
    card = Card(
        name="Stacking of regressors",
        task="regress",
        ensemble="parallel",
        model=Unbounded("learners on what other learners say"),
        strategy="that of the final learner",
        algorithm="members on folds, on threads; the final learner on what they say",
        guarantee=(),
        role="stack",
    )

    def _default(self) -> list[tuple[str, Any]]:
        return [("linear", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]

    def _final(self) -> Any:
        return Ridge() if self.final_estimator is None else self.final_estimator
