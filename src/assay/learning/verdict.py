"""The verdict of a study in plain sentences: why this model, what is certain of it, whether it beats the baseline."""

from decimal import Decimal
from typing import TYPE_CHECKING

from assay.claims.sentences import outward, up
from assay.claims.sentences import percent as percent_up
from assay.learning import baseline
from assay.learning.finalists import is_level
from assay.learning.problem import Problem
from assay.learning.search import Candidate
from assay.messages import Message, sentences

if TYPE_CHECKING:
    from assay.learning.study import Study


def of_study(study: "Study", problem: Problem) -> str:
    """Return the choice in plain sentences: why this model, what is certified, and whether it beats the baseline."""
    chosen = study.chosen
    why = _choice(study)
    if chosen.bound is None:
        code = "chosen.unproved-rows" if problem.group is None else "chosen.unproved-groups"
        return sentences([why, Message(code)])
    if study.task == "classify":
        what = Message("what.rate", bound=percent_up(chosen.bound))
    elif study.clip is None:
        what = Message("what.loss", bound=up(chosen.bound, 4))
    else:
        what = Message("what.clipped", clip=outward(study.clip, "lower", 4), bound=up(chosen.bound, 4))
    where = Message("where.same") if problem.time is None else Message("where.newest")
    where = where if problem.group is None else Message("where.groups")
    of_metric = _of_metric(study)
    if study.metric.name == "cost":  # errors do not matter then
        bound = Message("chosen.bound-alone", where=where, what=what, metric=of_metric, sure=percent(study.confidence))
        return sentences([why, bound, _values(study)])
    against, metric = _against_baseline(study, problem), study.metric
    told = "" if metric.error or against.code in _SAID_OF_METRIC else _values(study)
    return sentences([why, _bound(where, what, of_metric, study, against), told])


def _choice(study: "Study") -> Message:
    """Return why this model: that it is the best or, first of all, that it is behind the baseline or another one."""
    chosen, base = study.chosen, study.baseline
    judged = [candidate for candidate in study.candidates if candidate.losses and candidate is not base]
    tried = {
        "name": chosen.name,
        "learners": len({verdict.name for verdict in judged}),
        "rows": study.rows[0],
        "metric": _METRICS[study.metric.name],
        "score": _score(chosen, study),
    }
    if base.loss <= chosen.loss:
        return Message("chosen.behind", rival=baseline.rival(base.note), base=_score(base, study), **tried)
    best = min(judged, key=lambda candidate: (-candidate.step, candidate.loss))
    if (best.step, best.loss) == (chosen.step, chosen.loss) or is_level(best, chosen):
        return Message("chosen", **tried)
    return Message("chosen.second", best=best.name, other=_score(best, study), **tried)


def _score(candidate: Candidate, study: "Study") -> str:
    return _shown(candidate.cv, study.metric.percent)


def _shown(error: float, percent: bool) -> str:
    return f"{100 * error:.1f} %" if percent else f"{error:.4g}"


def _bound(where: Message, what: Message, metric: str, study: "Study", against: Message) -> Message:
    sure = percent(study.confidence)
    return Message("chosen.bound", where=where, what=what, metric=metric, sure=sure, against=against)


def _of_metric(study: "Study") -> str:
    """Return what is proved of the metric that was asked for, beside the error rate."""
    name, bound = study.metric.name, study.chosen.metric_bound
    if study.metric.error or bound is None:
        return ""
    if name == "f1" and study.metric.positive is not None:
        label = str(study.model.classes_[study.metric.positive])
        return Message("also.f1-class", label=label, bound=outward(bound, "lower", 4))
    if name == "balanced":
        return Message("also.balanced", bound=percent_up(bound))
    return Message(_ALSO[name], bound=outward(bound, "lower", 4) if study.metric.turned else up(bound, 4))


_ALSO = {"f1": "also.f1", "auc": "also.auc", "brier": "also.brier", "cost": "also.cost"}


_SAID_OF_METRIC = ("ranks", "ranks.not", "beats.even", "beats.even-not")


def _against_baseline(study: "Study", problem: Problem) -> Message:
    """Return whether the chosen model is proved to beat the baseline: in the metric that was asked for if its value of
    the baseline is the same whatever the rows are (areas, balanced errors), or else in errors."""
    metric, bound = study.metric, study.chosen.metric_bound
    usual = baseline.constant(problem.y, problem.task)  # what claims about errors compare with
    rival = baseline.rival(baseline.in_words(usual, problem.task))
    if metric.name == "auc" and bound is not None:
        return Message("ranks" if bound > 0.5 else "ranks.not")
    if metric.name == "balanced" and bound is not None:
        even = 1 - 1 / len(problem.classes)
        return Message("beats.even" if bound < even else "beats.even-not", rival=rival, base=_shown(even, True))
    return _errors_against_baseline(study, rival, problem.mean_error(problem.held_targets(), usual))


def _values(study: "Study") -> Message:
    """Return the metric that was asked for on the hold-out rows, of the chosen model and of the baseline."""
    metric, base = study.metric, study.baseline
    values = {"value": metric.text(study.chosen.holdout_metric), "base": metric.text(base.holdout_metric)}
    return Message("against.value", metric=_METRICS[metric.name], rival=baseline.rival(base.note), **values)


def _errors_against_baseline(study: "Study", rival: str, error: float) -> Message:
    classes = study.task == "classify"
    claims = {item.name: item for item in study.certificate.claims}
    claim = next(
        (claims[name] for name in ("holdout.baseline", "holdout.median", "holdout.groups-baseline") if name in claims),
        None,
    )
    if claim is not None and claim.direction == "lower" and claim.value > 0:
        by = percent_up(claim.value, "lower") if classes else outward(claim.value, "lower", 4)
        return Message("beats.by", rival=rival, by=by)
    if "holdout.baseline-better" in claims:
        return Message("beats", rival=rival)
    better = study.chosen.holdout_error < error
    return Message("beats.not" if better else "beats.never", rival=rival, error=_shown(error, classes))


_METRICS = {
    "error": Message("metric.error"), "balanced": Message("metric.balanced"), "logloss": Message("metric.logloss"),
    "auc": Message("metric.auc"), "brier": Message("metric.brier"), "f1": Message("metric.f1"),
    "cost": Message("metric.cost"), "mae": Message("metric.mae"), "rmse": Message("metric.rmse"),
    "r2": Message("metric.r2"),
}  # fmt: skip


def percent(confidence: str | Decimal) -> str:
    """Return a confidence such as "0.95" in per cent.

    Parameters
    ----------
    confidence : str or Decimal
        A decimal number in (0, 1).

    Returns
    -------
    str
        The percentage.
    """
    return f"{Decimal(confidence) * 100:f}".rstrip("0").rstrip(".") + " %"


def of_folds(study: "Study") -> str:
    """Return in plain sentences what the model is, what is certified about it, and whether it beats the baseline."""
    count, classes = len(study.folds), study.task == "classify"
    kinds = list(dict.fromkeys(_own_name(fold.candidate) for fold in study.folds))
    why = Message("folds.vote" if classes else "folds.mean", count=count, kinds=kinds, rows=study.rows[0])
    claim = next((item for item in study.certificate.claims if item.name.startswith("cross-validation.mean")), None)
    if claim is None or study.chosen.bound is None:
        return sentences([why, Message("chosen.unproved-folds")])
    if classes:
        mean, bound = percent_up(claim.value), percent_up(study.chosen.bound)
        what = Message("what.folds-rate", mean=mean, bound=bound)
    else:
        low, high = study.model.learner.range_
        clipped = {"low": up(low, 4), "high": outward(high, "lower", 4)}  # of fewer targets less is true than of more
        what = Message("what.folds-loss", bound=up(claim.value, 4), **clipped)
    against = _folds_against_baseline(study)
    return sentences([why, _bound(Message("where.same"), what, "", study, against)])


def _own_name(candidate: Candidate) -> str:
    """Return the name of the candidate of a fold without the fold."""
    return candidate.name.values["name"] if isinstance(candidate.name, Message) else candidate.name


_AGAINST_FOLDS = ("cross-validation.baseline", "cross-validation.median")
_FOLDS_RATE = {"by": "folds-class.by", "not": "folds-class.not", "never": "folds-class.never"}
_FOLDS_LOSS = {"by": "folds-median.by", "not": "folds-median.not", "never": "folds-median.never"}


def _folds_against_baseline(study: "Study") -> Message:
    claim = next(item for item in study.certificate.claims if item.name in _AGAINST_FOLDS)
    classes, base = study.task == "classify", study.baseline
    codes = _FOLDS_RATE if classes else _FOLDS_LOSS
    if claim.direction == "lower" and claim.value > 0:
        by = percent_up(claim.value, "lower") if classes else outward(claim.value, "lower", 4)
        return Message(codes["by"], by=by)
    better = study.chosen.holdout_error < base.holdout_error
    return Message(codes["not" if better else "never"], error=_shown(base.holdout_error, classes))
