"""A fitted learner as scikit-learn's estimator of the same name: `to_sklearn`.

The estimator has the learner's parameters, as far as scikit-learn has them, and its fitted attributes, so that it
predicts the same and every tool that reads scikit-learn's classes reads it. It has no certificate.
"""

import warnings
from contextlib import suppress
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from assay.params import refuse

_PROBES = 64
_ANSWERS = ("predict", "transform", "score_samples", "predict_proba", "decision_function")


def scikit_class(kind: type) -> type | None:
    """Return scikit-learn's own class of the same room and name, None if there is none."""
    for own in kind.__mro__:
        library, room, *_ = [*own.__module__.split("."), ""]
        if library == "assay" and own.__name__ == kind.__name__:
            try:
                found = getattr(import_module(f"sklearn.{room}"), own.__name__, None)
            except ModuleNotFoundError:
                return None
            return getattr(found, "theirs", found)  # a patched module has a stand-in there
    return None


def scikit_parameters(learner: Any, kind: type) -> dict[str, Any]:
    """Return the parameters that scikit-learn's class has; those that have Assay's default get scikit-learn's."""
    own, wanted = (signature(one.__init__).parameters for one in (type(learner), kind))  # type: ignore[misc]
    given = learner.get_params(deep=False)
    found = {}
    for name, parameter in wanted.items():
        if name in given:
            at_default = parameter.default is not Parameter.empty and _same(given[name], own[name].default)
            found[name] = parameter.default if at_default else given[name]
    return found


def _same(value: Any, default: Any) -> bool:
    same_kind = isinstance(default, (str, int, float)) and type(value) is type(default)
    return value is default or (same_kind and bool(value == default))


def fitted_attributes(learner: Any) -> dict[str, Any]:
    """Return the fitted attributes by their public names; learners among them, or in lists, are scikit-learn's."""
    found = {}
    for name in dir(learner):
        if name.endswith("_") and not name.startswith("_"):
            with suppress(AttributeError, NotImplementedError):  # what this fit has not
                found[name] = _converted(getattr(learner, name))
    return found


def _converted(value: Any) -> Any:
    if hasattr(value, "to_sklearn"):
        return value.to_sklearn()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_converted(one) for one in value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        changed = np.empty_like(value)
        changed.ravel()[:] = [_converted(one) for one in value.ravel()]
        return changed
    return value


def to_sklearn(learner: Any) -> Any:
    """Return scikit-learn's estimator with the parameters and fitted attributes of `learner`.

    It is compared with the learner on rows drawn for the purpose, and refused if it says anything else.
    """
    check_is_fitted(learner)
    kind = scikit_class(type(learner))
    if kind is None:
        raise refuse(learner, "scikit-learn has no class of this name.")
    estimator = kind(**{name: _unfitted(value) for name, value in scikit_parameters(learner, kind).items()})
    try:
        with warnings.catch_warnings():  # deprecated attributes, and rows without names or neighbours
            warnings.simplefilter("ignore")
            same = _filled(learner, estimator)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise refuse(learner, f"this model has no form in scikit-learn ({error}).") from error
    if not same:
        raise refuse(learner, "scikit-learn's estimator with these attributes would predict something else.")
    return estimator


def _filled(learner: Any, estimator: Any) -> bool:
    """Give the estimator the learner's attributes, and tell whether both then say the same."""
    for name, value in {**fitted_attributes(learner), **learner._scikit_state(estimator)}.items():
        with suppress(AttributeError):  # a property of the estimator follows from the others
            setattr(estimator, name, value)
    return _compared(learner, estimator)


def _unfitted(value: Any) -> Any:
    """Return a parameter with learners in it as scikit-learn's estimators."""
    if hasattr(value, "to_sklearn"):
        kind = scikit_class(type(value))
        return value if kind is None else kind(**scikit_parameters(value, kind))
    if isinstance(value, (list, tuple)):
        return type(value)(_unfitted(one) for one in value)
    return value


def _compared(learner: Any, estimator: Any) -> bool:
    """Tell whether both say the same of rows of numbers, or of zeros and ones, whichever the learner reads."""
    random = np.random.default_rng(0)
    shape = (_PROBES, learner.n_features_in_)
    for rows in (random.normal(size=shape) * 10.0 ** random.uniform(-1, 2, (_PROBES, 1)), random.integers(0, 2, shape)):
        try:
            told = {name: getattr(learner, name)(rows) for name in _ANSWERS if hasattr(learner, name)}
        except ValueError:  # rows that it does not read
            continue
        return bool(told) and all(_equal(value, getattr(estimator, name)(rows)) for name, value in told.items())
    return False


def _equal(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-6, atol=1e-8, equal_nan=True)
