"""scikit-learn's metadata routing for ensembles of one base learner, and of learners by name."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import has_fit_parameter


def routed_to(owner: Any, method: str, given: dict[str, Any], callee: str | None = None) -> dict[str, Any]:
    """Return what of the metadata given to a method of the ensemble goes to the members' method."""
    _raise_for_params(given, owner, method)
    if not given:
        return {}
    return dict(getattr(process_routing(owner, method, **given).estimator, callee or method))


def routed_fits(owner: Any, names: Sequence[str], weight: Any, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the `fit` of each member is given beside rows and targets: without routing the weights of rows."""
    _raise_for_params(given, owner, "fit")
    weights = {} if weight is None else {"sample_weight": weight}
    if not _routing_enabled() or not (weights or given):
        return {name: dict(weights) for name in names}
    routed = process_routing(owner, "fit", **weights, **given)
    return {name: dict(routed[name]["fit"]) for name in names}


def asked_of(learner: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return what of the metadata a learner's `fit` takes: with routing on, what it asks for."""
    if not _routing_enabled():
        return given
    asked = get_routing_for_object(learner).consumes("fit", given)
    return {name: value for name, value in given.items() if name in asked}


def routing_by_name(owner: Any, named: Sequence[tuple[str, Any]]) -> MetadataRouter:
    """Return a router that gives metadata of `fit` to the `fit` of the members that ask for it."""
    router = MetadataRouter(owner=owner)
    for name, one in named:
        router.add(**{name: one}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    return router


def consumes_weights(base: Any) -> bool:
    """Tell whether the `fit` of a learner takes sample weights; with routing on, whether it asks for them."""
    if _routing_enabled():
        return bool(get_routing_for_object(base).consumes("fit", ("sample_weight",)))
    return has_fit_parameter(base, "sample_weight")


def asked_by(base: Any, method: str) -> str:
    """Return the method of the members by which a method of the ensemble is answered."""
    options = {
        "predict": ["predict_proba"],
        "predict_proba": ["predict_proba"],
        "predict_log_proba": ["predict_log_proba", "predict_proba"],
    }
    return next((name for name in options.get(method, ()) if hasattr(base, name)), "predict")


def routing_of(owner: Any, base: Any) -> MetadataRouter:
    """Return which methods of the members metadata goes to."""
    mapping = MethodMapping().add(caller="fit", callee="fit")
    mapping.add(caller="decision_function", callee="decision_function")
    for method in ("predict", "predict_proba", "predict_log_proba"):
        mapping.add(caller=method, callee=asked_by(base, method))
    return MetadataRouter(owner=owner).add(estimator=base, method_mapping=mapping)
