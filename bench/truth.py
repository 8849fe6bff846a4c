"""What certificates and sentences say, each as a number beside the quantity of the source that it limits.

Whatever is stated and not known here is named, so that nothing is passed over in silence.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from bench.fresh import Estimate, Fresh, mean, share

Truth = Callable[[Fresh], Estimate]


@dataclass(frozen=True)
class Limit:
    """A number that is stated, and the quantity that is at most (direction "upper") or at least that much.

    Limits of one name hold together but for a chance of delta.
    """

    name: str
    delta: float
    direction: str
    value: float
    truth: Truth


def auc(score: np.ndarray, positive: np.ndarray) -> Estimate:
    """Return the area under the ROC curve, ties one half, and DeLong's standard error."""
    a, b = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(score)
    above = (ranks[positive] - rankdata(score[positive])) / b
    below = 1 - (ranks[~positive] - rankdata(score[~positive])) / a
    return Estimate(float(above.mean()), float(np.sqrt(above.var() / a + below.var() / b)))


def f1(fresh: Fresh, model: Any, label: Any) -> Estimate:
    """Return F1 of a class, 2 J / (1 + J) for J the share of rows that are both among those that are either."""
    own, called = ~fresh.is_not(label), fresh.said(model).astype(str) == str(label)
    j = share((own & called)[own | called])
    return Estimate(2 * j.value / (1 + j.value), 2 * j.error / (1 + j.value) ** 2)


def average(parts: list[Estimate]) -> Estimate:
    """Return the mean of independent estimates."""
    values, errors = np.array(parts).T
    return Estimate(float(values.mean()), float(np.sqrt(np.sum(errors**2)) / len(parts)))


def balanced(fresh: Fresh, model: Any) -> Estimate:
    wrong = fresh.wrong(model)
    return average([share(wrong[~fresh.is_not(label)]) for label in model.classes_])


def better(fresh: Fresh, model: Any, label: Any) -> Estimate:
    """Return the share of the model's errors among the rows on which it or always answering `label` alone errs."""
    own, other = fresh.wrong(model), fresh.is_not(label)
    return share(own[own != other])


def brier(fresh: Fresh, model: Any) -> np.ndarray:
    own = fresh.labels[:, None] == model.classes_.astype(str)
    return np.sum((fresh.said(model, "predict_proba") - own) ** 2, axis=1) / 2


def cost(fresh: Fresh, model: Any) -> np.ndarray:
    """Return the cost of each row's decision; of a threshold alone, an error costs 1."""
    labels = model.classes_.astype(str)
    matrix = np.asarray(fresh.world.options.get("cost", 1 - np.eye(len(labels))), dtype=np.float64)
    return matrix[np.searchsorted(labels, fresh.labels), np.searchsorted(labels, fresh.said(model).astype(str))]


class Folds:
    """The models of folds, and what the rows outside each fold give."""

    def __init__(self, found: Any, y: np.ndarray) -> None:
        self.models = [one.model for one in found.folds]
        self.outside = [np.delete(y, one.held) for one in found.folds]

    def wrong(self, fresh: Fresh) -> np.ndarray:
        return np.mean([fresh.wrong(model) for model in self.models], axis=0)

    def wrong_baseline(self, fresh: Fresh) -> np.ndarray:
        """Return the errors of always answering the class that most rows outside the fold have, the first of equals."""
        counted = [np.unique(y, return_counts=True) for y in self.outside]
        return np.mean([fresh.is_not(labels[counts.argmax()]) for labels, counts in counted], axis=0)

    def off(self, fresh: Fresh) -> np.ndarray:
        """Return |T(y) - T(f)|, T moving into the range of the targets outside the fold, averaged over the folds."""
        return np.mean([self._off(fresh, y, fresh.said(model)) for y, model in zip(self.outside, self.models)], axis=0)

    def off_baseline(self, fresh: Fresh) -> np.ndarray:
        return np.mean([self._off(fresh, y, np.sort(y)[(len(y) - 1) // 2]) for y in self.outside], axis=0)

    def _off(self, fresh: Fresh, y: np.ndarray, said: Any) -> np.ndarray:
        low, high = y.min(), y.max()
        return np.abs(np.clip(fresh.y, low, high) - np.clip(said, low, high))


def _threshold_gap(fresh: Fresh, found: Any) -> Estimate:
    """Return the largest difference, over thresholds and classes, of shares on hold-out rows and on new ones."""
    rows, y = found.holdout
    second = str(found.model.classes_[1])
    old, new = found.model.predict_proba(rows)[:, 1], fresh.said(found.model, "predict_proba")[:, 1]
    gaps, errors = [], []
    for own_old, own_new in ((y.astype(str) == second, ~fresh.is_not(second)),):
        for a, b in ((old[own_old], new[own_new]), (old[~own_old], new[~own_new])):
            at = np.sort(a)
            for side in ("left", "right"):
                below = np.searchsorted(np.sort(b), at, side) / len(b)
                gaps.append(np.abs(np.searchsorted(at, at, side) / len(a) - below).max())
            errors.append(0.5 / np.sqrt(len(b)))
    return Estimate(float(max(gaps)), float(max(errors)))


def _of_claim(claim: Any, found: Any, y: np.ndarray) -> Truth | None:
    """Return what a claim is about; None if it is of a kind that is not known here."""
    model, params, kind = found.model, claim.params, claim.kind
    clip = float(params.get("clip", np.inf))
    sign = -1 if claim.direction == "lower" else 1  # a difference from a baseline, or by how much it is below it
    label = model.classes_[params["label"]] if "label" in params and model.task == "classify" else None
    if found.folds:
        folds = Folds(found, y)
        return {
            "cross-validation.mean": lambda fresh: mean(folds.wrong(fresh)),
            "cross-validation.mean-loss": lambda fresh: mean(folds.off(fresh)),
            "cross-validation.baseline": lambda fresh: mean(sign * (folds.wrong(fresh) - folds.wrong_baseline(fresh))),
            "cross-validation.median": lambda fresh: mean(sign * (folds.off(fresh) - folds.off_baseline(fresh))),
        }.get(kind)
    if kind in ("holdout.groups", "holdout.groups-baseline"):
        return _of_groups(model, clip, kind, sign, label, params.get("constant"))
    if claim.quantity == "error rate":
        return lambda fresh: share(fresh.wrong(model))
    loss = params.get("loss", "absolute")
    if claim.quantity == "mean loss" and loss in ("absolute", "brier"):
        if loss == "brier":
            return lambda fresh: mean(np.minimum(brier(fresh, model), clip))
        return lambda fresh: mean(fresh.off(model, clip))
    if kind == "holdout.f1":
        return lambda fresh: average([f1(fresh, model, one) for one in ([label] if label else model.classes_)])
    constant = params.get("constant")
    known: dict[str, Truth] = {
        "holdout.balanced": lambda fresh: balanced(fresh, model),
        "holdout.auc": lambda fresh: auc(fresh.said(model, "predict_proba")[:, 1], ~fresh.is_not(model.classes_[1])),
        "holdout.thresholds": lambda fresh: _threshold_gap(fresh, found),
        "holdout.baseline": lambda fresh: mean(sign * (1.0 * fresh.wrong(model) - fresh.is_not(label))),
        "holdout.baseline-better": lambda fresh: better(fresh, model, label),
        "holdout.median": lambda fresh: mean(sign * (fresh.off(model, clip) - fresh.off_constant(constant, clip))),
        "cost.holdout": lambda fresh: mean(cost(fresh, model)),
    }
    return known.get(kind)


def _of_groups(model: Any, clip: float, kind: str, sign: int, label: Any, constant: Any) -> Truth:
    def truth(fresh: Fresh) -> Estimate:
        own = fresh.wrong(model).astype(np.float64) if model.task == "classify" else fresh.off(model, clip)
        if kind == "holdout.groups":
            return fresh.over_groups(own)
        other = fresh.is_not(label) if model.task == "classify" else fresh.off_constant(constant, clip)
        return fresh.over_groups(sign * (own - other))

    return truth


Found = tuple[list[Limit], list[str]]


def of_certificate(found: Any, y: np.ndarray) -> Found:
    """Return the limits of a certificate, and the claims about new data whose kind is not known here.

    A finalist is chosen by its bound, so what the others were given may be to blame as well.
    """
    others = sum((Fraction(delta) for _, delta in found.certificate.unreported), Fraction(0))
    return _of_claims(found, y, "claim", others)


def of_finalists(found: Any, y: np.ndarray) -> Found:
    """Return the limits of the certificates of all finalists, chosen or not, and the bounds of the leaderboard.

    Cross-validation ranks them before the hold-out rows are opened, so that those of a rank fail as often as their own
    delta says.
    """
    limits, unknown = [], []
    for rank, one in enumerate(found.finalists, 1):
        study = replace(found, model=one.model, certificate=one.certificate)
        own, missed = _of_claims(study, y, f"finalist {rank}", Fraction(0))
        limits += own
        unknown += missed
        shown = next((limit.truth for limit in own if limit.value == one.candidate.bound), None)
        if shown is not None:
            delta = float(Fraction(found.certificate.delta_total))
            limits.append(Limit("leaderboard bounds", delta, "upper", one.candidate.bound, shown))
        elif one.candidate.bound is not None:
            unknown.append(f"leaderboard bound of rank {rank}")
    return limits, unknown


def _of_claims(found: Any, y: np.ndarray, whose: str, others: Fraction) -> Found:
    limits, unknown = [], []
    for claim in found.certificate.claims:
        if claim.is_fact:
            continue
        name, truth = f"{whose} {claim.kind}", _of_claim(claim, found, y)
        if truth is None:
            unknown.append(name)
        else:
            limits.append(Limit(name, float(Fraction(claim.delta) + others), claim.direction, claim.value, truth))
    return limits, unknown


# Sentences

_NUMBER = r"([-+\d.e]*\d)"
_LIMIT = re.compile(rf"at (?:most|least) {_NUMBER}")


def _in_words(found: Any, y: np.ndarray) -> list[tuple[str, str, Callable[[re.Match[str]], Truth]]]:
    """Return name, form (the limit is its last number) and subject of whatever a study's sentences state."""
    model, groups = found.model, "In new groups" in found.why
    folds = Folds(found, y) if found.folds else None

    def over(values: np.ndarray, fresh: Fresh) -> Estimate:
        return fresh.over_groups(values) if groups else mean(values)

    def wrong(fresh: Fresh) -> Estimate:
        return over(fresh.wrong(model), fresh)

    def beaten(match: re.Match[str]) -> Truth:
        if folds is not None:
            own, base = (
                (folds.wrong, folds.wrong_baseline) if model.task == "classify" else (folds.off, folds.off_baseline)
            )
            return lambda fresh: mean(base(fresh) - own(fresh))
        if model.task == "classify":
            return lambda fresh: over(fresh.is_not(match[1]) - 1.0 * fresh.wrong(model), fresh)
        constant = float(re.findall(_NUMBER, match[1])[-1])
        return lambda fresh: over(fresh.off_constant(constant, found.clip) - fresh.off(model, found.clip), fresh)

    def in_range(match: re.Match[str]) -> Truth:
        low, high = float(match[1]), float(match[2])
        return lambda fresh: mean(np.abs(np.clip(fresh.y, low, high) - fresh.said(model)))

    def of_f1(match: re.Match[str]) -> Truth:
        return lambda fresh: average([f1(fresh, model, one) for one in ([match[1]] if match[1] else model.classes_)])

    def said_auc(fresh: Fresh) -> Estimate:
        return auc(fresh.said(model, "predict_proba")[:, 1], ~fresh.is_not(model.classes_[1]))

    return [
        ("errs in at most", rf"it errs in at most {_NUMBER} %", lambda _: wrong),
        (
            "mean absolute error, clipped", rf"\(errors clipped at {_NUMBER}\) is at most {_NUMBER}",
            lambda match: lambda fresh: over(fresh.off(model, float(match[1])), fresh),
        ),
        (
            "one of them errs on average", rf"one of them errs in at most {_NUMBER} % of cases on average",
            lambda _: lambda fresh: mean(folds.wrong(fresh)),
        ),
        ("their vote", rf"and their vote in at most {_NUMBER} %", lambda _: lambda fresh: share(fresh.wrong(model))),
        (
            "mean absolute error within a range",
            rf"\(targets clipped to {_NUMBER} to {_NUMBER}\) is at most {_NUMBER}", in_range,
        ),
        ("F1", rf"its F1(?: of (.+?))? is at least {_NUMBER}", of_f1),
        ("balanced", rf"balanced error rate is at most {_NUMBER} %", lambda _: partial(balanced, model=model)),
        ("area under the ROC curve", rf"area under the ROC curve is at least {_NUMBER}", lambda _: said_auc),
        ("Brier score", rf"Brier score is at most {_NUMBER}", lambda _: lambda fresh: mean(brier(fresh, model))),
        ("mean cost", rf"mean cost is at most {_NUMBER}", lambda _: lambda fresh: mean(cost(fresh, model))),
        ("beats the baseline", rf"proved to beat always predicting (.+?), by at least {_NUMBER}", beaten),
    ]  # fmt: skip


def of_sentences(found: Any, y: np.ndarray) -> Found:
    """Return the limits that `study.why` prints, and the places of limits in it whose form is not known here."""
    text, delta = found.why, float(1 - Fraction(found.confidence))
    limits, known = [], set()
    for name, form, about in _in_words(found, y):
        for match in re.finditer(form, text):
            end = match.end(match.lastindex or 1)
            value = float(match[match.lastindex or 1]) / (100 if text[end:].startswith(" %") else 1)
            direction = "lower" if "at least" in match[0] else "upper"
            limits.append(Limit(f"sentence {name}", delta, direction, value, about(match)))
            known.add(end)
    missed = [match for match in _LIMIT.finditer(text) if match.end(1) not in known]
    return limits, [f"sentence {text[max(0, match.start() - 40) : match.end(1)]}" for match in missed]
