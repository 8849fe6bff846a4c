"""Bounds that several families share: statements about new data, from hold-out rows and from training rows."""

from collections.abc import Mapping
from typing import Any

from assay.checker.bounds import by_class, error_rate, groups, holdout, margins, norm, pac_bayes
from assay.claims.definitions import (
    HOLDOUT,
    PRIOR,
    UNIFORM,
    Definition,
    Phrase,
    choice_in_words,
    mean_loss,
    outward,
    percent,
    up,
)
from assay.claims.definitions import error_rate as rate


def _area(value: float, direction: str, params: Mapping[str, Any]) -> str:
    rows = f"{params['positives']} and {params['negatives']} hold-out rows of the two classes{choice_in_words(params)}"
    least = outward(value, direction, 4)
    return f"The area under the ROC curve on new data of the two classes is at least {least} ({rows})."


def _thresholds(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        "For every threshold of the score at once, the shares of either class above it differ between the hold-out "
        f"rows and new data by at most {up(value, 4)}{choice_in_words(params)}."
    )


_GIVEN = (
    ", whose predictions are taken as given: if they were made with the hold-out labels in sight, this says nothing"
)
_COMMONEST = "always answering with the commonest class of the training rows"


def _paired(value: float, direction: str, params: Mapping[str, Any]) -> str:
    alone, other = params["alone"], params["other_alone"]
    rows = f"of {params['rows']} hold-out rows {alone} were wrong for it alone, {other} for the other{_GIVEN}"
    if direction == "upper":
        return f"The error rate on new data exceeds that of the other model by at most {percent(value)} ({rows})."
    return f"The error rate on new data is at least {percent(value, direction)} below that of the other model ({rows})."


def _baseline(value: float, direction: str, params: Mapping[str, Any]) -> str:
    alone, other = params["alone"], params["other_alone"]
    rows = f"of {params['rows']} hold-out rows {alone} were wrong for it alone, {other} for that answer alone"
    if direction == "upper":
        return f"The error rate on new data exceeds that of {_COMMONEST} by at most {percent(value)} ({rows})."
    return f"The error rate on new data is at least {percent(value, direction)} below that of {_COMMONEST} ({rows})."


def _better(other: str, note: str = "") -> Phrase:
    def sentence(value: float, direction: str, params: Mapping[str, Any]) -> str:
        alone, of_other = params["alone"], params["other_alone"]
        return (
            f"On new data it errs less often than {other}: of the rows on which one of the two alone errs, at most "
            f"{percent(value)} are its own errors ({alone} of {alone + of_other} such hold-out rows{note})."
        )

    return sentence


def _median(value: float, direction: str, params: Mapping[str, Any]) -> str:
    errors = f"The mean absolute error on new data, errors clipped at {params['clip']:g},"
    answer = f"always answering with the median of the training rows, {params['constant']:.6g}"
    rows = f"({params['rows']} hold-out rows, paired)"
    if direction == "upper":
        return f"{errors} exceeds that of {answer}, by at most {up(value, 6)} {rows}."
    return f"{errors} is at least {outward(value, direction, 6)} below that of {answer} {rows}."


def _groups(value: float, direction: str, params: Mapping[str, Any]) -> str:
    what, bound = "share of errors among the rows", percent(value)
    if "loss" in params:
        what = f"mean absolute error, errors clipped at {params['clip']:g}, of the rows"
        bound = up(value, 6)
    return (
        f"The mean over new groups of the {what} of a group is at most {bound} ({params['groups']} hold-out groups, "
        f"those of the column {params['group']!r}, of {params['rows']} rows; each group one draw)."
    )


def _against_groups(value: float, direction: str, params: Mapping[str, Any]) -> str:
    bound = percent(value, direction) if "label" in params else outward(value, direction, 6)
    what, answer = "share of errors", "the commonest class of the training rows"
    if "constant" in params:
        what = f"mean absolute error, errors clipped at {params['clip']:g},"
        answer = f"the median of the training rows, {params['constant']:.6g}"
    which = f"those of the column {params['group']!r}, of {params['rows']} rows"
    rows = f"({params['groups']} hold-out groups, {which}; each group one draw)"
    mean, other = f"The mean over new groups of the {what}", f"that of always answering with {answer}"
    if direction == "upper":
        return f"{mean} exceeds {other} by at most {bound} {rows}."
    return f"{mean} is at least {bound} below {other} {rows}."


def _f1(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = (
        f"of the class of number {params['label']}"
        if "label" in params
        else "with every class that the model knows counted alike"
    )
    return f"F1 on new data, {which}, is at least {outward(value, direction, 4)} ({params['rows']} hold-out rows)."


def _balanced(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = "every class that the model knows counted alike"
    if params["others"]:
        which += f", and all others ({params['others']} of these rows) as one more of errors alone,"
    return f"The error rate on new data with {which} is at most {percent(value)} ({params['rows']} hold-out rows)."


def _coverage(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"Prediction sets of size {up(value, 6)} (the interval prediction -+ size; the classes whose score is at most "
        f"that far below the largest) hold the target of at least {percent(params['coverage'], 'lower')} of new data"
        f"{choice_in_words(params)}."
    )


_RANGE = (*HOLDOUT, "A-RANGE")
_BOTH = ("upper", "lower")
_MARGINS = rate("margins of {rows} training rows, length of the weights")


def _rate(name: str, rule: type, how: str, assumptions: tuple[str, ...], directions: tuple = ("upper",)) -> Definition:
    return Definition(name, rule, rate(how), assumptions, directions, "error rate")


def _loss(name: str, rule: type, how: str, assumptions: tuple[str, ...], directions: tuple = ("upper",)) -> Definition:
    return Definition(name, rule, mean_loss(how), assumptions, directions, "mean loss")


CLAIMS = {
    "P01/1": _rate(
        "holdout.binomial", error_rate.HoldoutBinomial, "{errors} errors in {rows} hold-out rows", HOLDOUT, _BOTH
    ),
    "P03/1": _loss("holdout.kl", holdout.KullbackLeibler, "Chernoff, hold-out rows", _RANGE),
    "P04/1": _loss(
        "holdout.empirical-bernstein", error_rate.EmpiricalBernstein, "empirical Bernstein, hold-out rows", _RANGE
    ),
    "P05/1": _loss("holdout.betting", holdout.Betting, "betting, hold-out rows", (*_RANGE, "A-RNG")),
    "P06/1": Definition("holdout.auc", holdout.AreaUnderCurve, _area, HOLDOUT, ("lower",)),
    "P06/2": Definition("holdout.thresholds", holdout.Thresholds, _thresholds, HOLDOUT),
    "P06/3": Definition("holdout.paired", holdout.Paired, _paired, (*HOLDOUT, "A-RNG"), _BOTH),
    "P06/4": Definition("holdout.paired-better", holdout.SignTest, _better("the other model", _GIVEN), HOLDOUT),
    "P07/1": _rate(
        "holdout.select",
        error_rate.HoldoutSelect,
        "{errors} errors in {rows} hold-out rows, Bonferroni-corrected for {compared} models compared on them",
        HOLDOUT,
    ),
    "P10/1": _rate(
        "vc", error_rate.Vc, "{errors} errors in {rows} training rows, growth function of the class", UNIFORM
    ),
    "P12/1": Definition("margin.kernel", margins.Ramp, _MARGINS, PRIOR, quantity="error rate"),
    "P13/1": Definition("margin.multiclass", margins.MulticlassRamp, _MARGINS, PRIOR, quantity="error rate"),
    "P14/1": _rate(
        "margin.l1", margins.L1Ramp, "margins of {rows} training rows, sum of the weights' magnitudes", PRIOR
    ),
    "P18/1": _rate(
        "pac-bayes.linear", pac_bayes.LinearPacBayes, "margins of {rows} training rows, noise in the weights", PRIOR
    ),
    "P24/1": _loss(
        "regression.rademacher", norm.NormRisk, "training rows, length of the weights", (*UNIFORM, "A-RANGE")
    ),
    "P65/1": Definition(
        "holdout.median", holdout.MedianBaseline, _median, (*_RANGE, "A-RNG"), _BOTH, "loss against the median"
    ),
    "P66/1": Definition(
        "holdout.groups",
        groups.GroupMean,
        _groups,
        ("A-GROUPS(holdout)", *HOLDOUT[1:], "A-RANGE", "A-RNG"),
        quantity="mean loss of groups",
    ),
    "P66/2": Definition(
        "holdout.groups-baseline",
        groups.GroupBaseline,
        _against_groups,
        ("A-GROUPS(holdout)", *HOLDOUT[1:], "A-RANGE", "A-RNG"),
        _BOTH,
    ),
    "P63/1": Definition("holdout.f1", by_class.F1, _f1, HOLDOUT, ("lower",), "F1"),
    "P64/1": Definition("holdout.balanced", by_class.Balanced, _balanced, HOLDOUT, quantity="balanced error rate"),
    "P61/1": Definition("holdout.baseline", holdout.Baseline, _baseline, (*HOLDOUT, "A-RNG"), _BOTH),
    "P61/2": Definition("holdout.better", holdout.BaselineSignTest, _better(_COMMONEST), HOLDOUT),
    "P25/1": Definition("conformal.coverage", holdout.Coverage, _coverage, HOLDOUT),
}
