"""The stored form of a fitted learner and the one door through which it comes back (`claims.model.StoredModel`).

`stored` takes the constructor parameters and the arrays that the learner's family names; `restore` checks them by the
family's own reader (shapes, ranges, indices, finiteness) before a compiled loop sees them, sets them, and lets the
learner derive the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import numpy as np
from sklearn.utils import get_tags

from assay.checker.family import Variant, find, read_model
from assay.claims.model import StoredModel, from_plain, to_plain
from assay.params import check

ABOUT_THE_MACHINE = ("n_jobs", "verbose")
"""Parameters that say how the machine works and nothing about the model; they are not stored."""


def class_name(kind: type) -> str:
    """Return room and class of a learner of Assay, for example "linear_model.Ridge"; module and class of others."""
    rooms = kind.__module__.split(".")
    place = ".".join(part for part in rooms[1:] if not part.startswith("_")) if rooms[0] == "assay" else kind.__module__
    return f"{place}.{kind.__qualname__}"


def stored(learner: Any) -> StoredModel:
    """Return a fitted learner as its parts."""
    _, variant = find(learner.family)
    more = [name for name in learner.more_arrays if name in variant.more]
    names = [*variant.arrays, *more, *(["classes_"] if variant.classes else [])]
    names += ["feature_names_in_"] if "feature_names_in_" in vars(learner) else []
    members = tuple(_member(one) for one in learner.members()) if variant.members else ()
    arrays = {name: _array(getattr(learner, name)) for name in names}
    return StoredModel(class_name(type(learner)), learner.family, plain_parameters(learner), arrays, members)


def _member(learner: Any) -> StoredModel:
    if not hasattr(learner, "stored"):
        raise ValueError(f"a member of class {type(learner).__name__} is not a learner of Assay.")
    return learner.stored()


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, order="C")


def plain_parameters(learner: Any) -> dict[str, Any]:
    """Return the constructor parameters as plain values; a generator as `random_state` is none of them."""
    given = {name: value for name, value in learner.get_params(deep=False).items() if name not in ABOUT_THE_MACHINE}
    if not isinstance(given.get("random_state"), (int, np.integer, type(None))):
        given["random_state"] = None
    return {name: to_plain(value, name) for name, value in given.items()}


def unfitted(kind: type, parameters: Mapping[str, Any], build: Callable[[Any], Any]) -> Any:
    """Return a learner with these parameters; refuse names that its constructor does not have."""
    known = set(kind._get_param_names()) - set(ABOUT_THE_MACHINE)  # type: ignore[attr-defined]
    if set(parameters) != known:
        odd = sorted(map(str, set(parameters) ^ known))[0]
        raise ValueError(f"the parameters are not those of {kind.__name__}: look at {odd[:40]!r}.")
    given = {name: from_plain(value, build) for name, value in parameters.items()}
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    for name, value in given.items():
        if not _is_kind(value, hints.get(name, Any)):
            raise ValueError(f"{kind.__name__}: {name} cannot be a {type(value).__name__}.")
    return kind(**given)


def _is_kind(value: Any, hint: Any) -> bool:
    """Tell whether a value is text, a number or None where the annotation of a parameter wants one of these."""
    kinds = set(get_args(hint) if isinstance(hint, UnionType) else (hint,))
    if not kinds <= {str, int, float, bool, NoneType}:
        return True
    numbers = isinstance(value, (int, float)) and bool(kinds & {int, float, bool})
    return numbers or (isinstance(value, str) and str in kinds) or (value is None and NoneType in kinds)


def _check_members(learner: Any, members: Sequence[Any], variant: Variant) -> None:
    """Refuse members that predict nothing where what they predict is put together."""
    tasks = ("classify", "regress") if variant.classes else ("regress",)
    odd = [one for one in members if variant.target and getattr(one, "_task", "") not in tasks]
    if odd:
        raise ValueError(f"a {type(odd[0]).__name__} cannot be a member of a {type(learner).__name__}.")


def restore(kind: type, model: StoredModel, members: Sequence[Any], build: Callable[[Any], Any]) -> Any:
    """Return the fitted learner of class `kind` that `model` describes, after checking every part of it."""
    predictor = read_model(model, any_size=True)
    if model.learner != class_name(kind):
        raise ValueError(f"the model is a {model.learner}, not a {class_name(kind)}.")
    learner = unfitted(kind, model.parameters, build)
    check(learner)
    try:
        get_tags(learner)  # an ensemble asks its estimator
    except AttributeError:
        raise ValueError(f"the estimator of a {kind.__name__} must be a learner.") from None
    labels = model.arrays.get("classes_", np.empty(0))
    if not (labels[:-1] < labels[1:]).all():
        raise ValueError("classes_ must be in increasing order.")
    learner.n_features_in_ = int(predictor.columns)
    learner._take_arrays({name: value if value.ndim else value[()] for name, value in model.arrays.items()})
    learner._from_file = True
    _check_members(learner, members, find(model.family)[1])
    learner._take_members(members)
    learner._derive()
    if stored(learner).digest() != model.digest():
        raise ValueError(f"parameters and arrays contradict each other: no {kind.__name__} would be stored like this.")
    return learner
