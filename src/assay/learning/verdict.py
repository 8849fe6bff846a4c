"""The verdict of a study in plain sentences: why this model, what is certain of it, whether it is worth anything."""

from decimal import Decimal
from typing import TYPE_CHECKING

from assay.claims.sentences import outward, up
from assay.claims.sentences import percent as percent_up
from assay.learning.finalists import is_level
from assay.learning.problem import Problem
from assay.learning.search import Candidate

if TYPE_CHECKING:
    from assay.learning.study import Study


def of_study(found: "Study", problem: Problem) -> str:
    """Return the choice in plain sentences: why this one, what is certain, and whether it is worth anything."""
    chosen, classes = found.chosen, found.task == "classify"
    why = _choice(found)
    if chosen.bound is None:
        units = "rows" if problem.group is None else "groups"
        return f"{why} Nothing is proved about its error on new data: there are too few {units} held out."
    sure = percent(found.confidence)
    counted = "" if found.clip is None else f" (each counted up to {outward(found.clip, 'lower', 4)})"
    said = (
        f"it errs in at most {percent_up(chosen.bound)} of cases"
        if classes
        else f"its mean absolute error{counted} is at most {up(chosen.bound, 4)}"
    )
    where = "On new data like these" if problem.time is None else "On new data like the newest of these"
    where = where if problem.group is None else "In new groups like these, on average,"
    return f"{why} {where} {said}{_of_metric(found)}, with {sure} confidence; {_against_baseline(found)}"


def _choice(found: "Study") -> str:
    """Return why this model: that it is the best or, first of all, that it is behind the baseline or another one."""
    chosen, base, metric = found.chosen, found.baseline, _WORDS[found.metric.name]
    judged = [one for one in found.candidates if one.losses and one is not base]
    count, rows = len({one.name for one in judged}), found.rows[0]
    if base.loss <= chosen.loss:
        return (
            f"No model is better than always answering {base.note.removeprefix('always ')}, whose {metric} on the "
            f"{rows} training rows is {_shown(base, found)}: {chosen.name} is the best of {count} learners tried, with "
            f"{_shown(chosen, found)} in cross-validation."
        )
    began = f"{chosen.name} is chosen: of {count} learners tried on the {rows} training rows its {metric} in "
    best = min(judged, key=lambda one: (-one.step, one.loss))
    if (best.step, best.loss) == (chosen.step, chosen.loss) or is_level(best, chosen):
        return f"{began}cross-validation ({_shown(chosen, found)}) was the best, or level with the best."
    return (
        f"{began}cross-validation was {_shown(chosen, found)}; {best.name} had {_shown(best, found)}, and could not be "
        "fitted to all training rows and certified in time."
    )


def _shown(one: Candidate, found: "Study") -> str:
    return f"{100 * one.cv:.1f} %" if found.metric.name in ("error", "balanced") else f"{one.cv:.4g}"


def _of_metric(found: "Study") -> str:
    """Return what is proved of the metric that was asked for, beside the error rate."""
    claims = {one.template: one for one in found.certificate.claims}
    if found.metric.name == "f1" and "P63/1" in claims:
        positive = found.metric.positive
        which = "" if positive is None else f" of {found.model.classes_[positive]!s}"
        return f", its F1{which} is at least {outward(claims['P63/1'].value, 'lower', 4)}"
    if found.metric.name == "balanced" and "P64/1" in claims:
        return f", its error rate with every class counted alike is at most {percent_up(claims['P64/1'].value)}"
    if found.metric.name == "auc" and "P06/1" in claims:
        return f", its area under the ROC curve is at least {outward(claims['P06/1'].value, 'lower', 4)}"
    brier = [one.value for one in found.certificate.claims if one.params.get("loss") == "brier"]
    if found.metric.name == "brier" and brier:
        return f", its Brier score is at most {up(min(brier), 4)}"
    if found.metric.name == "cost" and "P42/2" in claims:
        return f", its mean cost is at most {up(claims['P42/2'].value, 4)}"
    return ""


def _against_baseline(found: "Study") -> str:
    base = found.baseline
    rival = base.note.removeprefix("always ")
    claims = {one.template: one for one in found.certificate.claims}
    if found.metric.name == "auc" and "P06/1" in claims:
        proved = "it is proved" if claims["P06/1"].value > 0.5 else "it is not proved"
        return f"{proved} to rank rows better than chance, which has an area of one half."
    claim = next((claims[code] for code in ("P61/1", "P65/1", "P66/2") if code in claims), None)
    if claim is not None and claim.direction == "lower" and claim.value > 0:
        by = percent_up(claim.value, "lower") if found.task == "classify" else outward(claim.value, "lower", 4)
        return f"it is proved to beat always answering {rival}, by at least {by}."
    if "P61/2" in claims:
        return f"it is proved to beat always answering {rival}; by how much is not."
    error = base.holdout_error
    shown = f"{100 * error:.1f} %" if found.task == "classify" else f"{error:.4g}"
    if found.chosen.holdout_error >= error:
        return f"always answering {rival} does as well ({shown} on the rows held out): this model is worth nothing yet."
    return f"it is not proved to beat always answering {rival} ({shown} on the rows held out): more rows may show it."


_WORDS = {
    "error": "error rate", "balanced": "error rate with every class counted alike", "logloss": "log-loss",
    "auc": "area under the ROC curve", "brier": "Brier score", "f1": "F1", "cost": "mean cost",
    "mae": "mean absolute error", "rmse": "root mean squared error", "r2": "R^2",
}  # fmt: skip


def percent(confidence: str | Decimal) -> str:
    """Return a confidence such as "0.95" in per cent."""
    return f"{Decimal(confidence) * 100:f}".rstrip("0").rstrip(".") + " %"


def of_folds(found: "Study") -> str:
    """Return in plain sentences what the model is, what is certain of it, and whether it is worth anything."""
    count, classes = len(found.folds), found.task == "classify"
    kinds = ", ".join(dict.fromkeys(one.candidate.name.partition(": ")[2] for one in found.folds))
    why = (
        f"The model is the {'vote' if classes else 'mean'} of {count} models ({kinds}); each was chosen and fitted "
        f"without one of {count} parts of the {found.rows[0]} rows and judged on it, so that every row served for both."
    )
    claim = next((one for one in found.certificate.claims if one.template.startswith("P22/")), None)
    sure = percent(found.confidence)
    if claim is None or found.chosen.bound is None:
        return f"{why} Nothing is proved about its error on new data: there are too few rows."
    if classes:
        said = f"one of them errs in at most {percent_up(claim.value)} of cases on average, and their vote in at most "
        said += percent_up(found.chosen.bound)
    else:
        low, high = found.model.learner.range_
        inside = f"{up(low, 4)} to {outward(high, 'lower', 4)}"  # of fewer targets less is true than of more
        said = f"its mean absolute error (targets counted within {inside}) is at most {up(claim.value, 4)}"
    return f"{why} On new data like these {said}, with {sure} confidence; {_folds_against_baseline(found)}"


def _folds_against_baseline(found: "Study") -> str:
    claim = next(one for one in found.certificate.claims if one.template.startswith("P62/"))
    classes, base = found.task == "classify", found.baseline
    rival = f"always answering the {'commonest class' if classes else 'median'} outside each fold"
    who = "on average they are" if classes else "on average these models, targets counted within the range outside, are"
    if claim.direction == "lower" and claim.value > 0:
        by = percent_up(claim.value, "lower") if classes else outward(claim.value, "lower", 4)
        return f"{who} proved to beat {rival}, by at least {by}."
    shown = f"{100 * base.holdout_error:.1f} %" if classes else f"{base.holdout_error:.4g}"
    if found.chosen.holdout_error >= base.holdout_error:
        return f"{rival} does as well ({shown}): this model is worth nothing yet."
    return f"{who} not proved to beat {rival} ({shown}): more rows may show it."
