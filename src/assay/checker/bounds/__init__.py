"""Bounds that several families share: statements about new data, from hold-out rows and from training rows."""

from assay.checker.bounds import error_rate, groups, holdout, margins
from assay.claims.definitions import HOLDOUT, PRIOR, UNIFORM, Definition
from assay.claims.sentences import COMPARED, Params, Part, Sentence, compared, mean_loss, part
from assay.claims.sentences import error_rate as rate

_AREA = Sentence(
    COMPARED
    | {
        "": "The area under the ROC curve on new data of the two classes is at least {value:out4} ({positives} and "
        "{negatives} hold-out rows of the two classes{choice})."
    },
    compared,
)


_THRESHOLDS = Sentence(
    COMPARED
    | {
        "": "For every threshold of the score at once, the shares of either class above it differ between the hold-out "
        "rows and new data by at most {value:up4}{choice}."
    },
    compared,
)


_GIVEN = (
    ", whose predictions are taken as given: if they were made with the hold-out labels in sight, this says nothing"
)
_COMMONEST = "always predicting the most frequent class of the training rows"


_PAIRED = Sentence(
    {
        "upper": "The error rate on new data exceeds that of the other model by at most {value:percent} (of {rows} "
        "hold-out rows {alone} were wrong for it alone, {other_alone} for the other" + _GIVEN + ").",
        "lower": "The error rate on new data is at least {value:percent} below that of the other model (of {rows} "
        "hold-out rows {alone} were wrong for it alone, {other_alone} for the other" + _GIVEN + ").",
    }
)


_BASELINE = Sentence(
    {
        "upper": f"The error rate on new data exceeds that of {_COMMONEST} by at most {{value:percent}} (of {{rows}} "
        "hold-out rows {alone} were wrong for it alone, {other_alone} for that prediction alone).",
        "lower": f"The error rate on new data is at least {{value:percent}} below that of {_COMMONEST} (of {{rows}} "
        "hold-out rows {alone} were wrong for it alone, {other_alone} for that prediction alone).",
    }
)


def _better(other: str, note: str = "") -> Sentence:
    return Sentence(
        {
            "": f"On new data it errs less often than {other}: of the rows on which one of the two alone errs, at most "
            f"{{value:percent}} are its own errors ({{alone}} of {{both}} such hold-out rows{note})."
        },
        lambda value, direction, params: {"both": params["alone"] + params["other_alone"]},
    )


_MEDIAN = Sentence(
    {
        "upper": "The mean absolute error on new data, errors clipped at {clip:g}, exceeds that of always predicting "
        "the median of the training rows, {constant:.6g}, by at most {value:up6} ({rows} hold-out rows, paired).",
        "lower": "The mean absolute error on new data, errors clipped at {clip:g}, is at least {value:out6} below that "
        "of always predicting the median of the training rows, {constant:.6g} ({rows} hold-out rows, paired).",
    }
)


_GROUPS = Sentence(
    {
        "": "The mean over new groups of the share of errors among the rows of a group is at most {value:percent} "
        "({groups} hold-out groups, those of the column {group!r}, of {rows} rows; each group one draw).",
        "loss": "The mean over new groups of the mean absolute error, errors clipped at {clip:g}, of the rows of a "
        "group is at most {value:up6} ({groups} hold-out groups, those of the column {group!r}, of {rows} rows; each "
        "group one draw).",
    },
    lambda value, direction, params: {"text": "loss" if "loss" in params else ""},
)


def _against(value: float, direction: str, params: Params) -> Params:
    numeric = "constant" in params
    return {
        "what": Part("loss" if numeric else "errors"),
        "prediction": Part("median" if numeric else "mode"),
        "bound": Part("share" if "label" in params else "number"),
    }


_AGAINST_GROUPS = Sentence(
    {
        "upper": "The mean over new groups of the {what} exceeds that of always predicting {prediction} by at most "
        "{bound} ({groups} hold-out groups, those of the column {group!r}, of {rows} rows; each group one draw).",
        "lower": "The mean over new groups of the {what} is at least {bound} below that of always predicting "
        "{prediction} ({groups} hold-out groups, those of the column {group!r}, of {rows} rows; each group one draw).",
        "errors": "share of errors",
        "loss": "mean absolute error, errors clipped at {clip:g},",
        "mode": "the most frequent class of the training rows",
        "median": "the median of the training rows, {constant:.6g}",
        "share": "{value:percent}",
        "number": "{value:out6}",
    },
    _against,
)


_F1 = Sentence(
    {
        "": "F1 on new data, {which}, is at least {value:out4} ({rows} hold-out rows).",
        "one": "of the class of number {label}",
        "all": "with every class that the model knows counted alike",
    },
    lambda value, direction, params: {"which": Part("one" if "label" in params else "all")},
)


_BALANCED = Sentence(
    {
        "": "The error rate on new data with every class that the model knows counted alike{more} is at most "
        "{value:percent} ({rows} hold-out rows).",
        "others": ", and all others ({others} of these rows) as one more of errors alone,",
    },
    lambda value, direction, params: {"more": part(params["others"], "others")},
)


_COVERAGE = Sentence(
    COMPARED
    | {
        "": "Prediction sets of size {value:up6} (the interval prediction -+ size; the classes whose score is at most "
        "that far below the largest) hold the target of at least {coverage:percent-down} of new data{choice}."
    },
    compared,
)


_RANGE = (*HOLDOUT, "A-RANGE")
_BOTH = ("upper", "lower")
_BINOMIAL = Sentence(
    {
        "upper": "The error rate on new data is at most {value:percent} ({errors} errors in {rows} hold-out rows).",
        "lower": "The error rate on new data is at least {value:percent} ({errors} errors in {rows} hold-out rows).",
    }
)
_MARGINS = rate("margins of {rows} training rows, length of the weights")


def _rate(name: str, rule: type, how: str, assumptions: tuple[str, ...]) -> Definition:
    return Definition(name, rule, rate(how), assumptions, quantity="error rate")


def _loss(name: str, rule: type, how: str, assumptions: tuple[str, ...]) -> Definition:
    return Definition(name, rule, mean_loss(how), assumptions, quantity="mean loss")


CLAIMS = {
    "P01/1": Definition("holdout.binomial", error_rate.HoldoutBinomial, _BINOMIAL, HOLDOUT, _BOTH, "error rate"),
    "P03/1": _loss("holdout.kl", holdout.KullbackLeibler, "Chernoff, hold-out rows", _RANGE),
    "P04/1": _loss(
        "holdout.empirical-bernstein", error_rate.EmpiricalBernstein, "empirical Bernstein, hold-out rows", _RANGE
    ),
    "P05/1": _loss("holdout.betting", holdout.Betting, "betting, hold-out rows", (*_RANGE, "A-RNG")),
    "P06/1": Definition("holdout.auc", holdout.AreaUnderCurve, _AREA, HOLDOUT, ("lower",)),
    "P06/2": Definition("holdout.thresholds", holdout.Thresholds, _THRESHOLDS, HOLDOUT),
    "P06/3": Definition("holdout.paired", holdout.Paired, _PAIRED, (*HOLDOUT, "A-RNG"), _BOTH),
    "P06/4": Definition("holdout.paired-better", holdout.SignTest, _better("the other model", _GIVEN), HOLDOUT),
    "P07/1": _rate(
        "holdout.selection",
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
        "pac-bayes.linear", margins.LinearPacBayes, "margins of {rows} training rows, noise in the weights", PRIOR
    ),
    "P24/1": _loss(
        "regression.rademacher", margins.NormRisk, "training rows, length of the weights", (*UNIFORM, "A-RANGE")
    ),
    "P65/1": Definition(
        "holdout.median", holdout.MedianBaseline, _MEDIAN, (*_RANGE, "A-RNG"), _BOTH, "loss against the median"
    ),
    "P66/1": Definition(
        "holdout.groups",
        groups.GroupMean,
        _GROUPS,
        ("A-GROUPS(holdout)", *HOLDOUT[1:], "A-RANGE", "A-RNG"),
        quantity="mean loss of groups",
    ),
    "P66/2": Definition(
        "holdout.groups-baseline",
        groups.GroupBaseline,
        _AGAINST_GROUPS,
        ("A-GROUPS(holdout)", *HOLDOUT[1:], "A-RANGE", "A-RNG"),
        _BOTH,
    ),
    "P63/1": Definition("holdout.f1", groups.F1, _F1, HOLDOUT, ("lower",), "F1"),
    "P64/1": Definition("holdout.balanced", groups.Balanced, _BALANCED, HOLDOUT, quantity="balanced error rate"),
    "P61/1": Definition("holdout.baseline", holdout.Baseline, _BASELINE, (*HOLDOUT, "A-RNG"), _BOTH),
    "P61/2": Definition("holdout.baseline-better", holdout.BaselineSignTest, _better(_COMMONEST), HOLDOUT),
    "P25/1": Definition("conformal.coverage", holdout.Coverage, _COVERAGE, HOLDOUT),
}
