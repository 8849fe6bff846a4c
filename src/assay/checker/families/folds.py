"""Models of the folds of a cross-validation: their vote, and the mean of their error rates (cross-validation.mean)."""

from assay.checker.family import Family, Variant
from assay.checker.predictors import Predictor
from assay.checker.record import Rejected
from assay.checker.rules.folds import CLAIMS, Folds


def read_folds(members: list[Predictor], classes: tuple[str, ...] | None) -> Folds:
    """Return the vote of the members, which must be classifiers of the same classes and columns."""
    if not 2 <= len(members) <= 1000 or any(isinstance(member, Folds) for member in members):
        raise Rejected("there must be two or more models of folds, and none of them folds again")
    known = all(member.classes is not None and set(member.classes) <= set(classes or ()) for member in members)
    if classes is None or not known or any(member.columns != members[0].columns for member in members):
        raise Rejected("the models of the folds must be classifiers of the same classes and columns")
    return Folds(tuple(members), classes)


FAMILY = Family("folds", {"": Variant({}, read_folds, classes=True, members=True)}, CLAIMS)
