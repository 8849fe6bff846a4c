"""Inputs of the fuzzer of costs: stored models of every kind, and what is made of them.

A change is one of a number, a list or a text of the parameters, of an array (its shape, type, one entry or all), of the
members, or of the class; each is tried by itself, and several at a time.
"""

import copy
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import assay
from assay import registry
from assay.claims.claim import Certificate
from assay.claims.model import StoredModel, is_text
from assay.decomposition import PCA
from assay.feature_extraction import BagOfVisualWords, DensePatches, Dictionary, FourierContour
from assay.mixture import GaussianMixture
from assay.params import Choice, constraints
from assay.preprocessing import BiPartition, PolynomialTransform, ScaledColumns, UnitRows
from assay.stored import class_name, plain_parameters
from tests.certificate.test_forged_tables import TASKS, table_of
from tests.contract.test_restore import CASES, Y, named

Change = Callable[[StoredModel], StoredModel]
Place = tuple[int, ...]


class Case(NamedTuple):
    """A stored model, its certificate if it has one, and the rows that it is about and is asked about."""

    name: str
    stored: StoredModel
    certificate: Certificate | None
    X: Any
    y: Any
    rows: Any


# Sound models -------------------------------------------------------------------------------------------------


def cases(only: tuple[str, ...] = ()) -> list[Case]:
    """Return the models whose names have one of these in them, all of them without; each is fitted once."""
    makers = [(named(case), lambda case=case: _fitted(*case)) for case in CASES]
    makers += [(type(model).__name__, lambda model=model, X=X: _transformer(model, X)) for model, X in _transformers()]
    makers += [(f"TableModel-{task}", lambda task=task: _table(task)) for task in TASKS]
    makers += [(f"Fold-{target}", lambda target=target: _folds(target)) for target in ("y", "amount")]
    wanted = [(name, make) for name, make in makers if not only or any(part in name for part in only)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [Case(name, *make()) for name, make in wanted]


def _fitted(model: Any, kind: str, X: Any, fresh: Any) -> tuple[Any, ...]:
    seed = {"random_state": 0} if "random_state" in model.get_params(deep=False) else {}
    model = clone(model).set_params(**seed).fit(X, Y[kind])
    try:
        certificate = model.certify(X, Y[kind])
    except ValueError:
        certificate = None
    return model.stored(), certificate, X, Y[kind], fresh[:6]


def _transformer(model: Any, X: Any) -> tuple[Any, ...]:
    y = np.arange(len(X)) % 2 if isinstance(model, BiPartition) else None
    return model.fit(X, y).stored(), None, X, None, X[:6]


def _transformers() -> Iterator[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    numbers, images = np.abs(rng.normal(size=(40, 4))), rng.random((6, 24, 24))
    for model in (BiPartition(), PolynomialTransform(), ScaledColumns(), UnitRows()):
        yield model, numbers
    yield Dictionary(), ["good parcel", "bad letter arrived", "late parcel"]
    yield DensePatches(), images
    yield BagOfVisualWords(4, random_state=0), images
    yield FourierContour(), rng.random((5, 32))


def _table(task: str) -> tuple[Any, ...]:
    from tests.certificate.test_forged_tables import COLUMNS

    target, learners = TASKS[task]
    table = table_of((*COLUMNS.get(task, ("gaps", "town")), target))
    found = assay.learn(table, target, learners=learners, trials=2, workers=0)
    return found.model.stored(), found.certificate, table, None, table.take(np.arange(6))


def _folds(target: str) -> tuple[Any, ...]:
    learners = ["LogisticRegression"] if target == "y" else ["Ridge"]
    table = table_of(("gaps", "town", target))
    found = assay.learn(table, target, learners=learners, certify="folds", folds=3, trials=2, workers=0)
    return found.model.stored(), found.certificate, table, None, table.take(np.arange(6))


@cache
def donors() -> tuple[StoredModel, ...]:
    """Return models that stand where others are expected: of other tasks, columns and classes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    two, three = np.arange(30) % 2, np.array(["a", "b", "c"])[np.arange(30) % 3]
    from assay.ensemble import BaggingClassifier
    from assay.linear_model import LogisticRegression, Ridge
    from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

    models = [
        Ridge().fit(X, X[:, 0]), Ridge().fit(X[:, :2], X[:, :2]), LogisticRegression().fit(X, two),
        LogisticRegression().fit(X, three), LogisticRegression().fit(X[:, :1], three), PCA(2).fit(X),
        DecisionTreeClassifier(max_depth=2).fit(X, three), DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0]),
        GaussianMixture(2, random_state=0).fit(X), BaggingClassifier(n_estimators=2, random_state=0).fit(X, three),
        PolynomialTransform().fit(X),
    ]  # fmt: skip
    return tuple(model.stored() for model in models)


# Changes ------------------------------------------------------------------------------------------------------

COUNTS = (0, -1, 1, 2, 7, 1000, 3_000_000, 2**31 - 1, 10**9, 10**18)
NUMBERS = (0.0, -1.0, 1e308, -1e308, 5e-324, 1e9, 1e18, 1e-9)
VALUES: tuple[Any, ...] = (
    *COUNTS, 2**70, *NUMBERS, 0.5, *({"number": name} for name in ("nan", "inf", "-inf")), None, True, "x" * 100_000,
    [], [10**9], [1] * 1000, {"tuple": [10**9, 10**9]}, {"tuple": [1] * 1000}, {"mapping": []},
    {"array": {"dtype": "<i8", "shape": [0, 10**11], "base64": ""}},
)  # fmt: skip


def changes(stored: StoredModel, path: Place = ()) -> Iterator[tuple[str, Place, Change]]:
    """Yield every single change of a model and of its members, with its name and the member it is about."""
    place = "".join(f"member {i}, " for i in path)
    for what, change in _own_changes(stored):
        yield place + what, path, change
    for i, member in enumerate(stored.members[:2]):
        yield from changes(member, (*path, i))


def _own_changes(stored: StoredModel) -> Iterator[tuple[str, Change]]:
    for where, value in _leaves(stored.parameters):
        for held in (*VALUES, *_names(stored, where, value)):
            if type(held) is not type(value) or held != value:
                yield f"{_dotted(where)} = {str(held)[:40]}", _with_parameter(where, held)
    for name, array in stored.arrays.items():
        for what, change in _array_changes(array):
            yield f"{name} {what}", _with_array(name, change)
    yield from _member_changes(stored)
    for other in _kinds():
        if class_name(other) != stored.learner and getattr(other, "family", None) == stored.family:
            yield f"class {other.__name__}", _as_class(other)


def _leaves(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if where:
        yield where, value
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in [*inner][:30]:
        yield from _leaves(held, (*where, key))


def _names(stored: StoredModel, where: tuple[Any, ...], value: Any) -> list[Any]:
    """Return what a parameter is called that is chosen by name."""
    if len(where) > 1 or not hasattr(kind := registry.find(stored.learner), "_get_param_names"):
        return []
    constraint = constraints(kind).get(where[0]) or vars(kind).get("constraints", {}).get(where[0])
    constraint = getattr(constraint, "constraint", constraint)
    allowed = constraint.allowed if isinstance(constraint, Choice) else getattr(constraint, "names", ())
    return [one for one in allowed if isinstance(one, (str, bool))]


def _dotted(where: tuple[Any, ...]) -> str:
    return ".".join(map(str, where))


def _with_parameter(where: tuple[Any, ...], held: Any) -> Change:
    def change(stored: StoredModel) -> StoredModel:
        parameters = copy.deepcopy(dict(stored.parameters))
        inner: Any = parameters
        for key in where[:-1]:
            inner = inner[key]
        inner[where[-1]] = copy.deepcopy(held)
        return replace(stored, parameters=parameters)

    return change


def _with_array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda stored: replace(stored, arrays={**stored.arrays, name: np.asarray(change(stored.arrays[name]))})


def _array_changes(array: np.ndarray) -> Iterator[tuple[str, Callable[[np.ndarray], Any]]]:
    if is_text(array):
        yield from _text_changes(array)
        return
    entries = sorted({0, array.size - 1}) if array.size else []
    values = NUMBERS if array.dtype.kind == "f" else COUNTS
    for value in values:
        for place in entries:
            yield f"[{place}] = {value}", lambda a, place=place, value=value: _with_entry(a, place, value)
        yield f"all = {value}", lambda a, value=value: _with_entry(a, slice(None), value)
    yield "increasing", lambda a: np.arange(a.size, dtype=np.int64).astype(a.dtype).reshape(a.shape)
    yield "shuffled", lambda a: np.random.default_rng(0).permutation(a.ravel()).reshape(a.shape)
    yield "empty", lambda a: a.ravel()[:0]
    yield "a number", lambda a: a.ravel()[0] if a.size else np.zeros((), a.dtype)
    yield "one axis more", lambda a: a[None]
    for shape in ((0, 10**9), (10**9, 0), (0, 0), (10**6, 0, 10**6), (0, 10**14)):
        yield f"of shape {shape}", lambda a, shape=shape: np.empty(shape, a.dtype)
    for kind in ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1"):
        if np.dtype(kind) != array.dtype:
            yield f"of type {kind}", lambda a, kind=kind: _as_type(a, kind)
    if array.ndim:
        yield "transposed", lambda a: a.T
        yield "flat", lambda a: a.ravel()
        for axis in range(array.ndim):
            yield f"cut in axis {axis}", lambda a, axis=axis: np.delete(a, -1, axis) if a.shape[axis] else a
            yield f"none in axis {axis}", lambda a, axis=axis: np.take(a, [], axis)
            yield f"twice in axis {axis}", lambda a, axis=axis: np.concatenate([a, a], axis)
            yield f"50 times in axis {axis}", lambda a, axis=axis: np.concatenate([a] * 50, axis)


def _text_changes(array: np.ndarray) -> Iterator[tuple[str, Callable[[np.ndarray], Any]]]:
    yield "empty", lambda a: a[:0]
    yield "twice", lambda a: np.concatenate([a, a])
    yield "one axis more", lambda a: a[None]
    yield "long", lambda a: np.array([*a.ravel()[:-1], "x" * 100_000], dtype=object)
    yield "many", lambda a: np.array([*a.ravel(), *map(str, range(30_000))], dtype=object)
    yield "numbers", lambda a: np.arange(a.size).reshape(a.shape)


def _with_entry(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    new = array.copy().ravel()
    if new.dtype.kind in "iu":
        value = min(max(int(value), int(np.iinfo(new.dtype).min)), int(np.iinfo(new.dtype).max))
    with np.errstate(all="ignore"):
        new[place] = value
    return new.reshape(array.shape)


def _as_type(array: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(kind, casting="unsafe")


def _member_changes(stored: StoredModel) -> Iterator[tuple[str, Change]]:
    def with_members(make: Callable[[tuple[StoredModel, ...]], Any]) -> Change:
        return lambda one: replace(one, members=tuple(make(one.members)))

    yield "members: itself", with_members(lambda members: (*members, stored))
    if not stored.members:
        return
    yield "members: none", with_members(lambda members: ())
    yield "members: one less", with_members(lambda members: members[:-1])
    yield "members: the first alone", with_members(lambda members: members[:1])
    yield "members: reversed", with_members(lambda members: members[::-1])
    yield "members: twice", with_members(lambda members: members * 2)
    yield "members: 20 times", with_members(lambda members: members * 20)
    yield "members: one for all", with_members(lambda members: members[:1] * len(members))
    for donor in donors():
        name = f"{donor.learner} of {sorted(array.shape for array in donor.arrays.values())}"
        yield f"members: first a {name}", with_members(lambda members, donor=donor: (donor, *members[1:]))
        yield f"members: last a {name}", with_members(lambda members, donor=donor: (*members[:-1], donor))
        yield f"members: all a {name}", with_members(lambda members, donor=donor: [donor] * len(members))


@cache
def _kinds() -> tuple[type, ...]:
    return tuple(assay.learners())


def _as_class(kind: Any) -> Change:
    def change(stored: StoredModel) -> StoredModel:
        own = {name: stored.parameters.get(name, value) for name, value in plain_parameters(kind()).items()}
        return replace(stored, learner=class_name(kind), parameters=own)

    return change


def changed(stored: StoredModel, path: Place, change: Change) -> StoredModel:
    """Return the model with the member at that path changed, itself if the path is empty."""
    if not path:
        return change(stored)
    members = list(stored.members)
    members[path[0]] = changed(members[path[0]], path[1:], change)
    return replace(stored, members=tuple(members))


def _is_dear(name: str) -> bool:
    """Tell whether a change asks for much memory or many steps."""
    return not name.startswith("member ") and any(str(held) in name for held in (*COUNTS[6:], "of shape", "members:"))


class Mutants:
    """Changed models by number: first every single change, of each model in turn, numbers that stand for much
    work before others and each in an order drawn by the seed; every fourth has two or three changes at once."""

    def __init__(self, subjects: list[Case], seed: int):
        self.cases, self.seed = subjects, seed
        self.changes = [list(changes(case.stored)) for case in subjects]
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(len(found)).tolist() for found in self.changes]
        orders = [sorted(one, key=lambda j, i=i: not _is_dear(self.changes[i][j][0])) for i, one in enumerate(drawn)]
        rounds = itertools.zip_longest(*orders)
        self.singles = [(i, j) for one in rounds for i, j in enumerate(one) if j is not None]

    def make(self, number: int) -> tuple[Case, str, StoredModel]:
        """Return the case of a mutant, what was changed, and the mutant."""
        single = number - number // 4
        if number % 4 != 3 and single < len(self.singles):
            source, *chosen = self.singles[single]
        else:
            rng = np.random.default_rng([self.seed, number])
            source = int(rng.integers(len(self.cases)))
            chosen = rng.integers(len(self.changes[source]), size=rng.integers(2, 4)).tolist()
        case, names = self.cases[source], []
        model = case.stored
        for one in chosen:
            name, path, change = self.changes[source][one]
            try:
                model = changed(model, path, change)
            except (LookupError, TypeError, AttributeError, ValueError):
                continue  # it does not apply to what the one before left
            names.append(name)
        return case, "; ".join(names), model
