"""A family of models: which arrays such a model consists of, how it predicts, and the claims that only it can make.

A family is one module, `assay.checker.families.<name>`, with a `FAMILY`; the checker loads the one that a certificate
names, and nothing else. Whoever brings a family from outside the package calls `register`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from assay.checker.record import Refused, Rejected, array
from assay.claims.definitions import Definition
from assay.claims.definitions import register as define
from assay.claims.model import StoredModel, is_text

MOST_MEMBERS = 10_000
MOST_COLUMNS = 2**20
"""Columns of a model whose arrays have fewer entries, and lengths of an axis of an array without any: what is computed
for each column costs no more than the file is large, or than this."""
_DEEPEST = 6  # models that consist of models that consist of models
NUMBERS, SINGLE, WHOLE, TEXT = ("<f8",), ("<f8", "<f4"), ("<i8", "<i4"), ("text",)
"""Types of arrays: real numbers (of single precision only where a learner computes in it), integers, and text."""

Reader = Callable[..., Any]


@dataclass(frozen=True)
class Variant:
    """One kind of model of a family.

    Attributes
    ----------
    arrays : mapping of str to types
        Name of each array, and the types that it may have (`NUMBERS`, `WHOLE`).
    read : function
        Returns the predictor of the arrays, called with them in order and the labels (None without classes);
        raises `Rejected` unless shapes, ranges and indices fit together. With `members`, their predictors come first.
    classes : bool
        Whether the model has `classes_`.
    target : bool
        Whether it is learnt with a target; if not, y is neither read nor part of the fingerprint of the data.
    members : bool
        Whether it consists of fitted models.
    parameters : bool
        Whether `read` wants the constructor parameters, before everything else.
    probabilities : tuple of str
        How class probabilities can follow from the scores: the links of `rules.members` by name, "logistic" for
        example. What is made of members reads theirs in this way.
    wide : bool
        Whether columns are pixels, of which there may be many, since nothing is computed for each column alone.
    encodes : bool
        Whether it turns the rows of a table into those that its one member reads: claims are about the member, and its
        predictor has `inner` and `encode`.
    more : mapping of str to functions
        Arrays of numbers that some learners of the variant have beside these (`Learner.more_arrays`), for what is not
        certified: `check(array, predictor)` tells whether one is sound.
    """

    arrays: Mapping[str, tuple[str, ...]]
    read: Reader
    classes: bool = False
    target: bool = True
    members: bool = False
    parameters: bool = False
    probabilities: tuple[str, ...] = ()
    wide: bool = False
    encodes: bool = False
    more: Mapping[str, Callable[[np.ndarray, Any], bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """The variants of a family by name, and the definitions of the claims that it brings, by code."""

    name: str
    variants: Mapping[str, Variant]
    claims: Mapping[str, Definition] = field(default_factory=dict)


_registered: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make a family known that lives outside the package."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", family.name) or find_spec(f"assay.checker.families.{family.name}"):
        raise ValueError(
            f"family: the name {family.name!r} must be a new one of small letters, digits and underscores."
        )
    _registered[family.name] = family
    define(family.claims)
    return family


def register_variant(name: str, variant: Variant) -> None:
    """Make a variant of a family known that lives outside the package, "naive_bayes.geometric" for example."""
    module, _, own = name.partition(".")
    family = find(f"{module}.{next(iter(import_module(f'assay.checker.families.{module}').FAMILY.variants))}")[0]
    if own in family.variants:
        raise ValueError(f"family: there is a variant {name!r} already.")
    _registered[module] = replace(family, variants={**family.variants, own: variant})


def find(name: Any) -> tuple[Family, Variant]:
    """Return family and variant of a name such as "linear.classifier"; the variant may be empty."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,39}(\.[a-z0-9_-]{1,40})?", name):
        raise Rejected(f"unknown family of models {str(name)[:40]!r}")
    module, _, variant = name.partition(".")
    if module not in _registered:
        if find_spec(f"assay.checker.families.{module}") is None:
            raise Rejected(f"unknown family of models {name!r}")
        _registered[module] = import_module(f"assay.checker.families.{module}").FAMILY
        define(_registered[module].claims)
    family = _registered[module]
    if variant not in family.variants:
        raise Rejected(f"unknown family of models {name!r}")
    return family, family.variants[variant]


def read_model(stored: StoredModel, depth: int = 0, *, any_size: bool = False) -> Any:
    """Return the checker's predictor of a stored model, after checking every part of it.

    With `any_size` numbers need only be finite; to be judged they must also be of a size at which rounding is bounded.
    """
    _, variant = find(stored.family)
    wanted = {*variant.arrays, *(["classes_"] if variant.classes else [])}
    given = set(stored.arrays) - {"feature_names_in_", *variant.more}
    if given != wanted:
        odd = sorted(map(str, given ^ wanted))[0]
        raise Rejected(f"the model's arrays are not those of the family {stored.family}: look at {odd[:40]!r}")
    if bool(stored.members) != variant.members or len(stored.members) > MOST_MEMBERS or depth > _DEEPEST:
        raise Rejected("the model has members that its family does not have, none, or too many")
    _check_empty(stored.arrays)
    members = [read_model(member, depth + 1, any_size=any_size) for member in stored.members]
    numbers = [_numbers(stored.arrays[name], name, types, any_size) for name, types in variant.arrays.items()]
    classes = read_classes(stored.arrays["classes_"]) if variant.classes else None
    first: list[Any] = [stored.parameters] if variant.parameters else []
    first += [members] if variant.members else []
    predictor = variant.read(*first, *numbers, classes)
    for name in set(stored.arrays) & set(variant.more):
        if not variant.more[name](_numbers(stored.arrays[name], name, NUMBERS + WHOLE, any_size=True), predictor):
            raise Rejected(f"{name} does not go with the other arrays")
    _check_names(stored.arrays.get("feature_names_in_"), predictor)
    check_width(stored, predictor.columns)
    return predictor


def check_width(stored: StoredModel, columns: int) -> None:
    """Reject a model that reads more columns than its arrays and members can be about."""
    variant = find(stored.family)[1]
    if variant.wide or variant.parameters:  # those of a table are listed
        return
    entries = sum(array.size for item in (stored, *stored.members) for array in item.arrays.values())
    if columns > max(MOST_COLUMNS, entries):
        raise Rejected(f"the model reads {columns} columns; one of {entries} numbers may read {MOST_COLUMNS}")


def _check_empty(arrays: Mapping[str, Any]) -> None:
    for name, item in arrays.items():
        if isinstance(item, np.ndarray) and not item.size and max(item.shape) > MOST_COLUMNS:
            raise Rejected(f"{name[:40]} has no entries, and an axis of {max(item.shape)}")


def _numbers(stored: Any, name: str, types: tuple[str, ...], any_size: bool) -> np.ndarray:
    if types == TEXT and isinstance(stored, np.ndarray) and is_text(stored):
        return stored
    if not isinstance(stored, np.ndarray) or stored.dtype.newbyteorder("<").str not in types:
        raise Rejected(f"{name} must be an array of type {' or '.join(types)}; it is {getattr(stored, 'dtype', '?')}")
    if any_size and stored.dtype.kind == "f":
        if not np.isfinite(stored).all():
            raise Rejected(f"{name} has NaN or infinite entries")
        return stored.astype(np.float64)
    return array(stored, name, (None,) * stored.ndim, integer=stored.dtype.kind == "i")


def read_classes(labels: Any) -> tuple[str, ...]:
    """Return the labels as text: at least two, distinct, of one type."""
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or not (is_text(labels) or labels.dtype.kind in "iufb"):
        raise Rejected("classes_ must be one column of labels: text or numbers")
    classes = tuple(map(str, labels.tolist()))
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise Rejected("classes_ must list at least two distinct labels")
    return classes


def _check_names(names: Any, predictor: Any) -> None:
    if names is None:
        return
    if not isinstance(names, np.ndarray) or not is_text(names) or names.shape != (predictor.columns,):
        raise Rejected(f"feature_names_in_ must name the {predictor.columns} columns")
    if len(set(names.tolist())) != len(names):
        raise Rejected("feature_names_in_ names a column twice")


def stored_form(model: Any) -> StoredModel:
    """Return what a model is stored as; a `StoredModel` is its own."""
    if isinstance(model, StoredModel):
        return model
    if not hasattr(model, "stored"):
        raise Refused(f"a {type(model).__name__} is not a model of Assay: it has no stored form to be judged")
    return model.stored()
