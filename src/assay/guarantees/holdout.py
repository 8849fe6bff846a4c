"""Statements about new data from hold-out rows (holdout.binomial, holdout.kl to holdout.selection, conformal.coverage,
holdout.baseline, holdout.f1 to holdout.groups).

Losses of a regression are absolute errors clipped at `clip`. Where several models were compared on the same
rows, each statement is made at delta divided by their number.

Statements about votes: the error of an ensemble from the rows that its members did not see.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.evidence import Decided, Density, Gathered, Predictions, Scores, labels, own_margins, wrong_rows
from assay.guarantees.fingerprint import BetOrder
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Halves, Statement, Vacuous, claim, error_rate
from assay.messages import Message
from assay.scan import Rows
from assay.theory import concentration, exchangeability
from assay.theory.holdout import auc_lower, balanced_upper, in_blocks, threshold_width
from assay.theory.pac_bayes import OutOfBag

_NO_ROWS = Message("why.no-holdout")
_NO_CURVE = Message("why.roc-classes")
_NO_SCORES = Message("why.no-scores")


def of_classifier(
    classes: np.ndarray, holdout: Rows | None, gathered: Gathered, asked: CertifyOptions, order: BetOrder
) -> Iterator[Statement | Halves | NotApplicable]:
    """Yield the error rate; if asked for, the ROC curve, the difference from another model, and coverage."""
    if holdout is None:
        yield NotApplicable("holdout.binomial", _NO_ROWS)
        return
    decided, scores, compared = gathered.the(Decided), gathered.get(Scores), max(1, len(asked.compared))
    errors = gathered.errors[1]
    if len(asked.compared):
        predictions = _label_positions(classes, asked.compared, holdout.n_rows)
        own = decided.positions(holdout)
        if not ((predictions == own) | (own < 0)).all(axis=1).any():
            raise ValueError("compared: this model's own predictions on the hold-out rows must be among them.")
        yield partial(_selected, errors, predictions)
    else:
        yield partial(_binomial, errors, holdout.n_rows)
    if asked.metric in ("f1", "balanced"):
        yield partial(_f1 if asked.metric == "f1" else _balanced, decided, len(classes), holdout, asked.positive)
    if asked.scores:
        yield from _brier(scores, holdout, compared, order)
        yield from _curve(len(classes), scores, holdout, compared)
    if asked.against is not None:
        other = _label_positions(classes, [asked.against], holdout.n_rows)[0]
        yield _both_paired(
            decided,
            holdout,
            other,
            order,
            ("holdout.paired", "holdout.paired-better"),
            ("holdout",),
            {"predictions": other},
        )
    if asked.coverage is not None:
        if scores is None:
            yield NotApplicable("conformal.coverage", _NO_SCORES)
        else:
            yield partial(_covered, _ranks_above(scores, holdout), asked.coverage, compared)


def of_regressor(
    holdout: Rows | None, gathered: Gathered, asked: CertifyOptions, order: BetOrder
) -> Iterator[Statement | NotApplicable]:
    """Yield bounds of the mean clipped error, and coverage if asked for."""
    rows, compared = 0 if holdout is None else holdout.n_rows, max(1, len(asked.compared))
    if any(len(item) != rows for item in asked.compared):
        raise ValueError(f"compared: each array must hold one prediction for each of the {rows} hold-out rows.")
    if holdout is None:
        yield NotApplicable("holdout.betting", _NO_ROWS)
        return
    predicted, why = gathered.get(Predictions), ""
    if predicted is None:
        why = Message("why.no-predictor")
    elif predicted.targets(holdout) > 1:
        why = Message("why.several-targets")
    if why:
        yield NotApplicable("holdout.betting", why)
    elif asked.clip is None:
        yield NotApplicable("holdout.betting", Message("why.clip-missing"))
    else:
        yield partial(_mean_loss, gathered.the(Predictions), holdout, float(asked.clip), compared, order)
    if asked.coverage is not None and why:
        yield NotApplicable("conformal.coverage", why)
    elif asked.coverage is not None:
        yield partial(_interval, gathered.the(Predictions), holdout, asked.coverage, compared)


def of_density(
    holdout: Rows | None, gathered: Gathered, asked: CertifyOptions, order: BetOrder
) -> Iterator[Statement | NotApplicable]:
    """Yield bounds of the mean of -ln p(x), clipped to a range fixed in advance."""
    if holdout is None:
        yield NotApplicable("holdout.betting", _NO_ROWS)
    elif asked.clip is None:
        yield NotApplicable("holdout.betting", Message("why.log-clip-missing"))
    else:
        compared = max(1, len(asked.compared))
        yield partial(_log_loss, gathered.the(Density), holdout, asked.clip, compared, order)


def _log_loss(
    density: Density, holdout: Rows, clip: Sequence[float], compared: int, order: BetOrder, delta: str
) -> Claim | NotApplicable:
    low, width = float(clip[0]), float(clip[1]) - float(clip[0])
    values, errors = density.values(holdout)
    with np.errstate(invalid="ignore"):
        losses = np.clip(-values - low + 2 * errors, 0.0, width)
    result = _mean_of("holdout.betting", losses, "log", width, compared, order, delta)
    if isinstance(result, NotApplicable):
        return result
    return replace(result, params={**result.params, "loss": "log", "low": low})


def _binomial(errors: int, m: int, delta: str) -> Claim:
    bound = concentration.clopper_pearson_upper(errors, m, float(delta))
    return error_rate("holdout.binomial", bound, {"errors": errors, "rows": m}, "holdout", delta)


def _selected(errors: int, predictions: np.ndarray, delta: str) -> Claim:
    compared, m = predictions.shape
    bound = concentration.clopper_pearson_upper(errors, m, float(delta) / compared)
    params = {"errors": errors, "rows": m, "compared": compared}
    return error_rate("holdout.selection", bound, params, "holdout", delta, witness={"predictions": predictions})


def _label_positions(classes: np.ndarray, compared: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Return predicted labels of all compared models as positions in `classes_`, one row per model."""
    predictions = np.asarray(compared)
    if predictions.shape != (len(compared), rows):
        raise ValueError(f"compared: each array must hold one predicted label for each of the {rows} hold-out rows.")
    order = np.argsort(classes)
    at = np.minimum(np.searchsorted(classes, predictions, sorter=order), len(order) - 1)
    positions = order[at]
    if (classes[positions] != predictions).any():
        raise ValueError("compared: a predicted label is not among the classes of this model.")
    return positions.astype(np.int32)


# Classes apart ----------------------------------------------------------------------------------------------


def _f1(decided: Decided, classes: int, holdout: Rows, positive: int | None, delta: str) -> Claim | NotApplicable:
    """Return a lower bound of F1 = 2 J/(1 + J): of the rows that are of a class or called so, a share J is both."""
    result, codes = decided.positions(holdout), labels(holdout)
    wanted = list(range(classes)) if positive is None else [positive]
    limits = []
    for k in wanted:
        both = int(np.sum((result == k) & (codes == k)))
        either = int(np.sum((result == k) | (codes == k) | (result < 0)))
        limit = concentration.clopper_pearson_lower(both, either, float(delta) / len(wanted)) if either else 0.0
        limits.append(max(0.0, limit - OUTWARD))
    J = np.array(limits)
    value = float(np.mean(2 * J / (1 + J))) * (1 - 1e-12)
    if value <= 0:
        return Vacuous("holdout.f1", Message("why.few-of-class"), delta)
    params = {"rows": holdout.n_rows} | ({} if positive is None else {"label": positive})
    return claim("holdout.f1", value, params, "holdout", delta, direction="lower", witness={"limits": J})


def _balanced(decided: Decided, classes: int, holdout: Rows, positive: int | None, delta: str) -> Claim | NotApplicable:
    """Return an upper bound of the mean over classes of the error rates within them; classes that the model does not
    know are one class more, of error rate 1."""
    result, codes = decided.positions(holdout), labels(holdout)
    known, others = codes >= 0, int(np.sum(codes < 0))
    sizes = np.bincount(codes[known], minlength=classes).tolist()
    errors = np.bincount(codes[known & (result != codes)], minlength=classes).tolist()
    if min(sizes) < 1:
        return Vacuous("holdout.balanced", Message("why.class-unseen"), delta)
    limits: dict[str, np.ndarray] = {}
    if in_blocks(sizes, float(delta)):
        mean = balanced_upper(errors, sizes, float(delta)) + OUTWARD
    else:
        pairs = zip(errors, sizes, strict=True)
        each = [concentration.clopper_pearson_upper(k, m, float(delta) / classes) + OUTWARD for k, m in pairs]
        limits = {"limits": np.minimum(each, 1.0)}
        mean = float(np.mean(limits["limits"]))
    value = (mean * classes + (others > 0)) / (classes + (others > 0)) * (1 + 1e-12)
    if value >= 1:
        return Vacuous("holdout.balanced", Message("why.few-of-each"), delta)
    return claim(
        "holdout.balanced", value, {"rows": holdout.n_rows, "others": others}, "holdout", delta, witness=limits
    )


# Probabilities, the ROC curve, and two models ---------------------------------------------------------------


def _brier(scores: Scores | None, holdout: Rows, compared: int, order: BetOrder) -> Iterator[Statement | NotApplicable]:
    """Yield bounds of half the Brier score, sum_k (p_k - 1[y = k])^2 / 2, if the checker has the probabilities."""
    if scores is None:
        yield NotApplicable("holdout.betting", _NO_SCORES)
        return
    if not (scores.logistic or scores.probabilities):
        yield NotApplicable("holdout.betting", Message("why.not-logistic"))
        return
    values, radius = scores.values(holdout)
    if scores.probabilities:
        shares, slack = values, 2 * (2 + values.shape[1]) * np.minimum(radius, 1.0)
    else:
        shares, slack = _logistic(values), 4 * radius.max()
    codes = labels(holdout)
    losses = 0.5 * ((shares - np.eye(shares.shape[1])[codes]) ** 2).sum(axis=1)
    losses = np.where(codes < 0, 1.0, np.minimum(losses + slack + 1e-12, 1.0))
    for name in ("holdout.kl", "holdout.betting"):
        yield partial(_mean_of, name, losses, "brier", 1.0, compared, order)


def _logistic(scores: np.ndarray) -> np.ndarray:
    if scores.shape[1] > 1:
        shares: np.ndarray = softmax(scores, axis=1)
        return shares
    return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])


def _curve(n_classes: int, scores: Scores | None, holdout: Rows, compared: int) -> Iterator[Statement | NotApplicable]:
    codes = labels(holdout)
    sizes = {"positives": int(np.sum(codes == 1)), "negatives": int(np.sum(codes == 0)), "compared": compared}
    if n_classes != 2:
        yield NotApplicable("holdout.auc", _NO_CURVE)
        yield NotApplicable("holdout.thresholds", _NO_CURVE)
        return
    yield NotApplicable("holdout.auc", _NO_SCORES) if scores is None else partial(_area, scores, holdout, codes, sizes)
    yield partial(_thresholds, sizes)


def _area(scores: Scores, holdout: Rows, codes: np.ndarray, sizes: dict[str, int], delta: str) -> Claim | NotApplicable:
    if not min(sizes["positives"], sizes["negatives"]):  # its share is spent: the labels must not decide on shares
        return Vacuous("holdout.auc", _NO_CURVE, delta)
    values, radius = scores.values(holdout)
    score = values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]
    slack = 4 * radius.max() + 1e-14 * np.abs(score)
    low, high = (score - slack)[codes == 1], np.sort((score + slack)[codes == 0])
    pairs = sum(int(np.searchsorted(high, low, side).sum()) for side in ("left", "right"))
    seen = pairs / 2 / (len(low) * len(high))
    bound = auc_lower(seen, sizes["positives"], sizes["negatives"], float(delta) / sizes["compared"]) - OUTWARD
    if bound <= 0:
        return Vacuous("holdout.auc", Message("why.few-for-area"), delta)
    return claim("holdout.auc", bound, sizes, "holdout", delta, direction="lower")


def _thresholds(sizes: dict[str, int], delta: str) -> Claim | NotApplicable:
    fewest = min(sizes["positives"], sizes["negatives"])
    if not fewest:
        return Vacuous("holdout.thresholds", _NO_CURVE, delta)
    width = threshold_width(sizes["positives"], sizes["negatives"], float(delta) / sizes["compared"])
    if width >= 1:
        return Vacuous("holdout.thresholds", Message("why.few-rare", rows=fewest), delta)
    return error_rate("holdout.thresholds", width, sizes, "holdout", delta)


def against_baseline(decided: Decided, holdout: Rows, label: int, order: BetOrder) -> Halves:
    """Return statements of how the error rate differs from that of always answering with one class."""
    constant = np.full(holdout.n_rows, label)
    return _both_paired(
        decided,
        holdout,
        constant,
        order,
        ("holdout.baseline", "holdout.baseline-better"),
        ("train", "holdout"),
        more={"label": label},
    )


def against_median(
    predicted: Predictions, train: Rows, holdout: Rows, clip: float, order: BetOrder, delta: str
) -> Claim | NotApplicable:
    """Return how the mean clipped error differs from that of always answering with the lower median of the training
    rows: betting on the differences of the same rows, which lie in [-clip, clip]."""
    targets, held = (np.concatenate([np.ravel(block.y) for block in rows.blocks()]) for rows in (train, holdout))
    constant = float(np.sort(targets)[(len(targets) - 1) // 2])
    own = np.minimum(predicted.clipped_errors(holdout, clip) + 2 * predicted.largest_radius(holdout), clip)
    other = np.minimum(np.abs(held - constant), clip)
    moved = np.clip((own - other) / (2 * clip) + 0.5 + OUTWARD, 0.0, 1.0)
    most = clip * (2 * concentration.betting_upper(moved[order.of_rows], float(delta)) - 1 + 4 * OUTWARD)
    if most >= clip:
        return Vacuous("holdout.median", Message("why.few-holdout", rows=len(held)), delta)
    params = {"clip": clip, "rows": len(held), "constant": constant}
    direction = "lower" if most < 0 else "upper"
    return replace(
        claim("holdout.median", abs(most), params, "holdout", delta, direction=direction), data=("train", "holdout")
    )


def _both_paired(
    decided: Decided, holdout: Rows, other: np.ndarray, order: BetOrder,
    names: tuple[str, str], data: tuple[str, ...], witness: dict[str, np.ndarray] | None = None,
    more: Mapping[str, object] | None = None,
) -> Halves:  # fmt: skip
    """Return how far the error rate is from that of other predictions, by bets, and whether it is below it at all, by
    the sign test, which proves that more often: half of delta for each, fixed in advance."""
    codes = labels(holdout)
    right = ~wrong_rows(decided.positions(holdout), codes)
    alone, other_alone = ~right & (other == codes), right & (other != codes)
    moved = (0.5 + 0.5 * alone - 0.5 * other_alone)[order.of_rows]
    counts = {"alone": int(alone.sum()), "other_alone": int(other_alone.sum()), "rows": holdout.n_rows, **(more or {})}

    def made(name: str, value: float, direction: str, delta: str) -> Claim:
        result = claim(name, value, counts, "holdout", delta, direction=direction, witness=witness)
        return replace(result, data=data)

    def difference(delta: str) -> Claim | NotApplicable:
        most = 2 * concentration.betting_upper(moved, float(delta)) - 1 + 4 * OUTWARD
        if most >= 1:
            return Vacuous(names[0], Message("why.few-holdout", rows=holdout.n_rows), delta)
        return made(names[0], abs(most), "lower" if most < 0 else "upper", delta)

    def better(delta: str) -> Claim | NotApplicable:
        errors, against = int(alone.sum()), int(other_alone.sum())
        share = 1.0
        if errors < against:
            share = concentration.clopper_pearson_upper(errors, errors + against, float(delta)) + OUTWARD
        if share > 0.5:
            reason = Message("why.not-better", errors=errors, against=against)
            return Vacuous(names[1], reason, delta)
        return made(names[1], share, "upper", delta)

    return Halves(difference, better)


# Coverage ---------------------------------------------------------------------------------------------------


def _covered(sizes: np.ndarray, coverage: float, compared: int, delta: str) -> Claim | NotApplicable:
    """Return the size of prediction sets that cover: the j-th smallest of the hold-out rows, j fixed in advance."""
    m = len(sizes)
    try:
        j = exchangeability.conditional_index(m, 1 - coverage, float(delta) / compared * (1 - 1e-9))
    except ValueError:
        return Vacuous("conformal.coverage", Message("why.few-for-coverage", rows=m, coverage=coverage), delta)
    value = exchangeability.threshold(sizes, j) * (1 + OUTWARD)
    if not np.isfinite(value):
        return Vacuous("conformal.coverage", Message("why.unknown-class"), delta)
    return claim("conformal.coverage", value, {"coverage": coverage, "rows": m, "compared": compared}, "holdout", delta)


def _interval(
    predicted: Predictions, holdout: Rows, coverage: float, compared: int, delta: str
) -> Claim | NotApplicable:
    sizes = predicted.clipped_errors(holdout, np.inf) + 2 * predicted.largest_radius(holdout)
    return _covered(sizes, coverage, compared, delta)


def _ranks_above(scores: Scores, holdout: Rows) -> np.ndarray:
    """Return how far the best other class is above the true one, at most, and at least 0 up to rounding."""
    values, radius = scores.values(holdout)
    gap, error = -own_margins(values, labels(holdout)), radius.max()
    sizes: np.ndarray = np.maximum(gap + 4 * error + 1e-14 * np.abs(gap), 4 * error)
    return sizes


# Mean losses ------------------------------------------------------------------------------------------------


def _mean_loss(
    predicted: Predictions, holdout: Rows, clip: float, compared: int, order: BetOrder, delta: str
) -> Claim | NotApplicable:
    losses = np.minimum(predicted.clipped_errors(holdout, clip) + 2 * predicted.largest_radius(holdout), clip)
    return _mean_of("holdout.betting", losses, "absolute", clip, compared, order, delta)


def _mean_of(
    name: str, losses: np.ndarray, loss: str, clip: float, compared: int, order: BetOrder, delta: str
) -> Claim | NotApplicable:
    """Return a bound of the mean of losses in [0, clip]."""
    if name == "holdout.betting":
        losses = losses[order.of_rows]
    bound = clip * MEAN_LOSS[name](losses / clip, float(delta) / compared)
    if bound >= clip:
        return Vacuous(name, Message("why.loss-vacuous", rows=len(losses), clip=clip), delta)
    params = {"clip": clip, "rows": len(losses), "compared": compared, "loss": loss}
    return claim(name, bound + clip * OUTWARD, params, "holdout", delta)


def _kullback_leibler(losses: np.ndarray, delta: float) -> float:
    return concentration.kl_upper(min(1.0, float(losses.mean())), -math.log(delta) / len(losses))


MEAN_LOSS = {"holdout.kl": _kullback_leibler, "holdout.betting": concentration.betting_upper}
"""Upper bounds of the mean of losses in [0, 1] at a delta, bets in the order given."""


class Bags(NamedTuple):
    """How bags were drawn: a seed for each member, draws per bag, and the sample that all members depend on."""

    seeds: np.ndarray
    size: int
    replace: bool
    shared: int = 0  # rows of a sample without replacement, such as the one that bins were taken from
    shared_seed: int = 0


def out_of_bag_vote(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], bags: Bags, rows: int, threshold: float
) -> Statement:
    """Return the statement about a vote; `blocks` yields losses and which of them are out of bag, (rows, members)."""
    sums = OutOfBag(len(bags.seeds))
    for losses, out in blocks:
        sums.add(losses, out)
    return partial(_vote, sums, bags, rows, threshold)


def _vote(sums: OutOfBag, bags: Bags, rows: int, threshold: float, delta: str) -> Claim | NotApplicable:
    result = sums.bound(float(delta), threshold)
    members = len(bags.seeds)
    if result.bound >= 1:
        wrong = 100 * sums.loss("first", threshold)[0]
        reason = Message("why.out-of-bag-vacuous", percent=wrong)
        return Vacuous("pac-bayes.vote", reason, delta)
    params: dict[str, Any] = {
        "form": result.form,
        "rate": result.exponent,
        "members": members,
        "rows": rows,
        "bag": bags.size,
        "replace": bags.replace,
        "shared": bags.shared,
        "shared_seed": bags.shared_seed,
    }
    witness = {"seeds": np.asarray(bags.seeds, dtype=np.int64)}
    return error_rate("pac-bayes.vote", result.bound, params, "train", delta, witness=witness)
