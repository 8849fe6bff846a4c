"""Mutants of honest certificates. `assault(make, truth, count)` is the one line a new claim needs.

Each operator takes a case and a random generator and returns a changed case, or None where it does not apply.
Operators in FATAL must always be refused: they break the record or leave fingerprints that no longer fit.
Those in TEMPTING give a forger's certificate, sealed again by someone who has the software; it may be
accepted only if the claim is still true.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.certificate.forge import Case

Operator = Callable[[Case, np.random.Generator], Case | None]
Change = Callable[[Any, np.random.Generator], Any]
Tables = tuple[tuple[Operator, ...], tuple[Operator, ...]]
Truth = Callable[[Case], bool]

OPTIONAL = {"fixed_rows", "class_weight", "class", "w"}
JUNK = (
    float("nan"),
    float("inf"),
    -1.0,
    "0.5",
    "5 ",
    None,
    True,
    10**400,
    [1],
    {"a": 1},
    object(),
    np.array([1.0, 2.0]),
    1e-200,
    0.5 + 1j,
)


def assault(
    make: Callable[[int], Case], truth: Truth, count: int, seed: int = 0, tables: Tables | None = None
) -> dict[str, int]:
    """Try `count` mutants of every operator; return how many of each were accepted. Raise on the first false
    one."""
    accepted: dict[str, int] = {}
    honest = [make(s) for s in range(12)]
    for name, operator, fatal in operators(tables):
        rng = np.random.default_rng([seed, *map(ord, name)])
        for trial in range(count):
            case = operator(honest[trial % len(honest)], rng)
            if case is None:
                continue
            report = case.verify()
            if not report.holds:
                assert report.reason
                continue
            accepted[name] = accepted.get(name, 0) + 1
            if fatal or not truth(case):
                raise AssertionError(f"{case.claim.name}: false mutant accepted by {name}, trial {trial}: {case.claim}")
    return accepted


def operators(tables: Tables | None = None) -> Iterator[tuple[str, Operator, bool]]:
    fatal_ones, tempting_ones = (FATAL, TEMPTING) if tables is None else tables
    for table, fatal in ((fatal_ones, True), (tempting_ones, False)):
        for operator in table:
            yield operator.__name__, operator, fatal


def tables(changed: Change, *more: Operator, without: tuple[str, ...] = ()) -> Tables:
    """Return the operators for models that are not linear: `changed` makes another model, `more` are tempting too."""

    def another(case, rng):
        other = changed(case.model, rng)
        return None if other is None or other.same_as(case.model) else other

    def model_changed(case, rng):
        other = another(case, rng)
        return None if other is None else replace(case, model=other)

    def model_forged(case, rng):
        other = another(case, rng)
        return None if other is None else resealed(case, model=other)

    own = {"model_changed", "classes_swapped", "model_forged", *without, *(one.__name__ for one in more)}
    fatal, tempting = (tuple(one for one in table if one.__name__ not in own) for table in (FATAL, TEMPTING))
    return (*fatal, model_changed), (*tempting, model_forged, *more)


def resealed(case: Case, **changes: Any) -> Case:
    """The forger computes new fingerprints."""
    return replace(case, sealed=None, **changes).seal()


# Records ----------------------------------------------------------------------------------------------------


def unknown_name(case, rng):
    return case.with_claim(name=str(rng.choice(["D99/1", "P01/2", "", case.claim.name[:-1] + "9", "d01/1"])))


def other_name(case, rng):
    others = [
        "data.identity",
        "train.errors",
        "train.error-floor",
        "duality-gap",
        "multinomial.gap",
        "inseparability",
        "holdout.binomial",
        "holdout.empirical-bernstein",
        "vc",
    ]
    return case.with_claim(name=str(rng.choice([t for t in others if t != case.claim.name])))


def assumption_changed(case, rng):
    listed = list(case.claim.assumptions)
    if listed and rng.random() < 0.6:
        listed.pop(rng.integers(len(listed)))
    else:
        listed.append(str(rng.choice(["A-IID(train)", "A-RNG", "A-ORDER", "", "A-IID"])))
    return case.with_claim(assumptions=tuple(listed)) if sorted(listed) != sorted(case.claim.assumptions) else None


def value_junk(case, rng):
    choice = JUNK[rng.integers(len(JUNK))]
    return None if choice is True else case.with_claim(value=choice)


def direction_junk(case, rng):
    return case.with_claim(direction=[None, "both", "two-sided", "Upper", 1][rng.integers(5)])


def delta_junk(case, rng):
    fact = case.claim.is_fact
    junk = [
        "-0.01",
        "1e",
        "0.01x",
        "nan",
        "inf",
        "",
        " 0.01",
        "1/100",
        "0." + "1" * 100,
        0.01,
        None,
        "1.5",
        "1",
        "2e5",
    ]
    return case.with_claim(delta=[*junk, "0.001" if fact else "0"][rng.integers(len(junk) + 1)])


def param_missing(case, rng):
    names = [name for name in case.claim.params if name not in OPTIONAL]
    if not names:
        return None
    gone = names[rng.integers(len(names))]
    return case.with_claim(params={k: v for k, v in case.claim.params.items() if k != gone})


def param_junk(case, rng):
    names = [name for name in case.claim.params if name not in ("class_weight", "set")]
    if not names:
        return None
    name, junk = names[rng.integers(len(names))], JUNK[rng.integers(len(JUNK))]
    value = case.claim.params[name]
    same = (junk is None and value is None) or (isinstance(junk, bool) and isinstance(value, bool))
    return None if same else case.with_claim(params=dict(case.claim.params) | {name: junk})


def witness_missing(case, rng):
    names = [name for name in case.claim.witness if name not in OPTIONAL]
    if not names or case.claim.params.get("loss") == "squared":
        return None
    gone = names[rng.integers(len(names))]
    return case.with_claim(witness={k: v for k, v in case.claim.witness.items() if k != gone})


def witness_junk(case, rng):
    if not case.claim.witness:
        return None
    name = list(case.claim.witness)[rng.integers(len(case.claim.witness))]
    old = np.asarray(case.claim.witness[name])
    poisoned = old.astype(float)
    poisoned.flat[rng.integers(old.size)] = [np.nan, np.inf, -np.inf, 1e200, 5e-324][rng.integers(5)]
    options = [
        old.astype(object),
        old.astype(complex),
        old.astype(str),
        old.tolist(),
        old[..., None],
        old[..., :-1],
        None,
        "x",
        np.concatenate([old, old], axis=-1),
        poisoned,
    ]
    return case.with_claim(witness=dict(case.claim.witness) | {name: options[rng.integers(len(options))]})


def ledger_broken(case, rng):
    sealed = case.sealed
    if not case.claim.is_fact and rng.random() < 0.5:
        return replace(case, sealed=replace(sealed, delta_total="0.0399999999"))
    return replace(
        case,
        sealed=replace(
            sealed, unreported=(("holdout.binomial", str(rng.choice(["0.0500001", "0.5", "1", "x", "-1"]))),)
        ),
    )


def record_broken(case, rng):
    fields = [
        {"format": "assay-certificate/0"},
        {"delta_total": "0.05junk"},
        {"delta_total": None},
        {"claims": (None,)},
        {"model": replace(case.sealed.model, family="kernel-machine")},
        {"model": replace(case.sealed.model, family="oblique.classifier")},
        {"model": replace(case.sealed.model, learner="another")},
        {"model": replace(case.sealed.model, digest="0" * 64)},
        {"data": {}},
        {"data": {"train": replace(case.sealed.data["train"], rows=len(case.X) + 1)}},
        {"data": {"train": replace(case.sealed.data["train"], digest="f" * 64)}},
        {"data": {"holdout": case.sealed.data["train"]}},
    ]
    return replace(case, sealed=replace(case.sealed, **fields[rng.integers(len(fields))]))


# Fingerprints that no longer fit ----------------------------------------------------------------------------


def entry_changed(case, rng):
    X = case.X.copy()
    i, j = rng.integers(X.shape[0]), rng.integers(X.shape[1])
    X[i, j] = X[i, j] * (1 + 2.0**-52) if rng.random() < 0.5 and X[i, j] else X[i, j] + 1.0
    return replace(case, X=X)


def target_changed(case, rng):
    y = case.y.copy()
    i = rng.integers(len(y))
    if hasattr(case.model, "classes_"):
        others = [c for c in case.model.classes_.tolist() if c != y[i]]
        y[i] = others[rng.integers(len(others))]
    else:
        y[i] = y[i] + rng.choice([1e-9, 1.0])
    return replace(case, y=y) if not np.array_equal(y, case.y) else None


def rows_changed(case, rng):
    i = int(rng.integers(len(case.X)))
    order = [
        np.delete(np.arange(len(case.X)), i),
        np.append(np.arange(len(case.X)), i),
        rng.permutation(len(case.X)),
    ][rng.integers(3)]
    if case.split is not None and len(order) > len(case.X):
        return None  # a row that is in neither set
    same = len(order) == len(case.X) and np.array_equal(case.X[order], case.X) and np.array_equal(case.y[order], case.y)
    weight = None if case.weight is None else case.weight[order]
    return None if same else replace(case, X=case.X[order], y=case.y[order], weight=weight)


def model_changed(case, rng):
    coef, intercept = case.model.coef_.copy(), case.model.intercept_.copy()
    which = rng.integers(3)
    if which == 0:
        coef.flat[rng.integers(coef.size)] += rng.choice([1e-13, 1.0, -1e-3])
    elif which == 1:
        coef = -coef - 0.0
    else:
        intercept = intercept + rng.choice([1e-12, 1.0])
    changed = case.model.but(coef_=coef, intercept_=intercept)
    return None if changed.same_as(case.model) else replace(case, model=changed)


def classes_swapped(case, rng):
    if not hasattr(case.model, "classes_"):
        return None
    return replace(case, model=case.model.but(classes_=case.model.classes_[::-1]))


def holdout_trimmed(case, rng):
    """Drop or repeat a hold-out row, or move one between the sets."""
    if case.holdout is not None:
        X, y = case.holdout
        i = rng.integers(len(X))
        if rng.random() < 0.5:
            return replace(case, holdout=(np.delete(X, i, axis=0), np.delete(y, i, axis=0)))
        return replace(case, holdout=(np.vstack([X, X[i : i + 1]]), np.append(y, y[i])))
    if case.split is None:
        return None
    train, holdout = case.split["train"], case.split["holdout"]
    i, j = rng.integers(len(train)), rng.integers(len(holdout))
    swapped = {
        "train": np.append(np.delete(train, i), holdout[j]),
        "holdout": np.append(np.delete(holdout, j), train[i]),
    }
    overlap = {"train": train, "holdout": np.append(np.delete(holdout, j), train[i])}
    repeated = {"train": train, "holdout": np.append(np.delete(holdout, j), np.delete(holdout, j)[0])}
    beyond = {"train": train, "holdout": np.append(np.delete(holdout, j), len(case.X) + 5)}
    split = [swapped, overlap, repeated, beyond][rng.integers(4)]
    return replace(case, split=split, sealed=replace(case.sealed, split=split))


def overlap_sealed(case, rng):
    """Training rows in the hold-out set, with fingerprints that fit."""
    if case.split is None:
        return None
    train, holdout = case.split["train"], case.split["holdout"]
    shared = {"train": train, "holdout": np.append(holdout[1:], train[rng.integers(len(train))])}
    return resealed(case, split=shared)


# Well-formed forgeries --------------------------------------------------------------------------------------


def value_tightened(case, rng):
    value, factor = case.claim.value, 1 + 10.0 ** -rng.uniform(0, 9)
    tight = value / factor if case.claim.direction == "upper" else value * factor + (value == 0) * 1e-9
    return case.with_claim(value=float(tight))


def count_tightened(case, rng):
    step = float(rng.integers(1, 4))
    return case.with_claim(
        value=max(0.0, case.claim.value - step if case.claim.direction == "upper" else case.claim.value + step)
    )


def direction_turned(case, rng):
    return case.with_claim(direction="lower" if case.claim.direction == "upper" else "upper")


def delta_smaller(case, rng):
    return (
        None
        if case.claim.is_fact
        else case.with_claim(delta=f"{float(case.claim.delta) * rng.uniform(0.05, 0.999):.12f}")
    )


def param_perturbed(case, rng):
    params = dict(case.claim.params)
    names = [k for k, v in params.items() if isinstance(v, (int, float, bool, dict, list, str))]
    if not names:
        return None
    name = names[rng.integers(len(names))]
    params[name] = perturbed(params[name], rng)
    return case.with_claim(params=params)


def perturbed(value: Any, rng: np.random.Generator) -> Any:
    """Return something of the same type that differs."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(max(0, value + rng.integers(-3, 4))) if rng.random() < 0.7 else int(value * 2 + 1)
    if isinstance(value, float):
        return float(value * (1 + rng.choice([-1, 1]) * 10.0 ** -rng.uniform(0.1, 12)))
    if isinstance(value, str):
        return str(
            rng.choice(
                [
                    "train",
                    "holdout",
                    "zero-one",
                    "squared",
                    "a",
                    "b",
                    "c",
                    "ii",
                    "iii",
                    "hinge",
                    "logistic",
                    "multinomial.gap",
                    "augmented",
                ]
            )
        )
    if isinstance(value, dict) and value:
        name = list(value)[rng.integers(len(value))]
        return value | {name: perturbed(value[name], rng)}
    if isinstance(value, list) and value:
        i = int(rng.integers(len(value)))
        return [*value[:i], perturbed(value[i], rng), *value[i + 1 :]]
    return value


def witness_perturbed(case, rng):
    if not case.claim.witness:
        return None
    witness = {k: np.array(v) for k, v in case.claim.witness.items()}
    name = list(witness)[rng.integers(len(witness))]
    old, i = witness[name], rng.integers(witness[name].size)
    if old.dtype.kind in "iu":
        old.flat[i] = max(0, old.flat[i] + rng.integers(-2, 3))
    else:
        change = [
            old.flat[i] * (1 + 2.0**-52),
            -old.flat[i],
            old.flat[i] + rng.choice([-1, 1]) * 10.0 ** -rng.uniform(0, 15),
            0.0,
        ]
        old.flat[i] = change[rng.integers(4)]
    return case.with_claim(witness=witness)


def witness_shuffled(case, rng):
    if not case.claim.witness:
        return None
    name = list(case.claim.witness)[rng.integers(len(case.claim.witness))]
    return case.with_claim(witness=dict(case.claim.witness) | {name: rng.permutation(case.claim.witness[name])})


def model_forged(case, rng):
    """Another model, with its own fingerprint, under the old claim."""
    coef, intercept = case.model.coef_.copy(), case.model.intercept_.copy()
    which = rng.integers(5)
    if which == 0:
        coef = coef * (1 + 10.0 ** -rng.uniform(0, 14) * rng.standard_normal(coef.shape))
    elif which == 1:
        coef.flat[rng.integers(coef.size)] *= -1
    elif which == 2:
        intercept = intercept + 10.0 ** -rng.uniform(0, 14)
    elif which == 3:
        coef = coef * 2.0 ** rng.integers(-3, 4)
    forged = case.model.but(coef_=coef, intercept_=intercept)
    if which == 4 and hasattr(forged, "classes_"):
        forged.classes_ = forged.classes_[::-1]
    return resealed(case, model=forged)


def rows_forged(case, rng):
    """Other rows, with their own fingerprint, under the old claim."""
    X, y = case.X.copy(), case.y.copy()
    if rng.random() < 0.5:
        i, j = rng.integers(X.shape[0]), rng.integers(X.shape[1])
        X[i, j] += rng.choice([-1, 1]) * 10.0 ** -rng.uniform(-1, 14)
    else:
        forged = target_changed(case, rng)
        y = y if forged is None else forged.y
    return resealed(case, X=X, y=y)


def holdout_forged(case, rng):
    if case.holdout is None:
        return None
    X, y = case.holdout[0].copy(), case.holdout[1].copy()
    i = rng.integers(len(y))
    y[i] = 1 - y[i] if hasattr(case.model, "classes_") else y[i] + rng.standard_normal()
    return resealed(case, holdout=(X, y))


def weights_forged(case, rng):
    weight = np.ones(len(case.X)) if case.weight is None else case.weight.copy()
    weight[rng.integers(len(weight))] *= rng.choice([0.0, 1 + 1e-9, 2.0])
    return None if case.split is not None else resealed(case, weight=weight)


FATAL: tuple[Operator, ...] = (
    unknown_name,
    assumption_changed,
    value_junk,
    direction_junk,
    delta_junk,
    param_missing,
    param_junk,
    witness_missing,
    witness_junk,
    ledger_broken,
    record_broken,
    entry_changed,
    target_changed,
    rows_changed,
    model_changed,
    classes_swapped,
    holdout_trimmed,
    overlap_sealed,
)
TEMPTING: tuple[Operator, ...] = (
    other_name,
    value_tightened,
    count_tightened,
    direction_turned,
    delta_smaller,
    param_perturbed,
    witness_perturbed,
    witness_shuffled,
    model_forged,
    rows_forged,
    holdout_forged,
    weights_forged,
)
