"""Monitoring, valid at any time: whether outcomes keep the certified bound, and whether new rows drift.

The bound b of a certificate says that new rows have an expected loss of at most b. Outcomes that arrive are bets
against it (`theory.sequential.Promise`): if b holds, and outcomes are reported whatever they are, an alarm has a
chance of at most `alarm`, however often one looks. Rows are compared with the model's memory window by window, the k-th
at a share 1/(k (k + 1)) of the alarm, so that a false alarm has that probability over all windows together. Counters
are read by Prometheus.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as TYPE

from assay.checker.rules.folds import of_vote
from assay.claims.claim import Certificate
from assay.claims.document import digest, strict_json
from assay.data import Table
from assay.files import written_whole
from assay.guarantees.ledger import before_looks
from assay.learning import TableModel
from assay.learning.finalists import certified
from assay.learning.folded import FoldMean, FoldVote
from assay.learning.memory import FALSE_ALARM, Drift
from assay.messages import Message
from assay.theory.sequential import Promise

_FIRST, _LARGEST = 128, 8192  # rows of a window


@dataclass(frozen=True)
class Bound:
    """What a certificate promises of the loss of new rows: its expectation is at most `value`. Of numbers, the loss is
    the absolute error, up to `most`, of targets moved into `inside`, if that is said."""

    value: float
    most: float = 1.0
    inside: tuple[float, float] | None = None

    def losses(self, predicted: np.ndarray, truth: np.ndarray, classes: bool) -> np.ndarray:
        """Return the loss of each row, as a share of the largest."""
        if classes:
            return (predicted != truth).astype(np.float64)
        truth = truth if self.inside is None else np.clip(truth, *self.inside)
        return np.minimum(np.abs(predicted - truth), self.most) / self.most


def bound_of(model: TableModel, certificate: Certificate | None) -> Bound | str:
    """Return the bound that outcomes can be held against, or why there is none."""
    if certificate is None:
        return "the model file holds no certificate."
    if certificate.named_columns:
        return "its bound is about new groups on average, not about single rows."
    result = _of_folds(model, certificate) or _of_rows(model, certificate)
    if result is None:
        return "nothing is proved about its error on new data."
    return result if result.value < result.most else "its bound is vacuous."


def _of_rows(model: TableModel, certificate: Certificate) -> Bound | None:
    value = certified(certificate, model.task)
    if value is None or model.task == "classify":
        return None if value is None else Bound(value)
    claims = [
        claim for claim in certificate.claims if not claim.is_fact and claim.value == value and "clip" in claim.params
    ]
    return Bound(value, float(claims[0].params["clip"])) if claims else None


def _of_folds(model: TableModel, certificate: Certificate) -> Bound | None:
    claim = next((item for item in certificate.claims if item.name.startswith("cross-validation.mean")), None)
    if claim is not None and isinstance(model.learner, FoldVote):
        return Bound(of_vote(claim.value, len(model.learner.members)))
    if claim is not None and isinstance(model.learner, FoldMean):
        low, high = (float(item) for item in model.learner.range_)
        return Bound(claim.value, high - low, (low, high))
    return None


class Windows:
    """New rows, window by window, against what the model remembers."""

    def __init__(self, model: TableModel, count: int = 0) -> None:
        self._memory, self._names = model.memory, [column.name for column in model.columns]
        self.count, self.rows, self.inside = count, 0, 0
        self.moved: dict[str, int] = {}
        """Columns that looked otherwise, and in how many windows."""
        self._begin()

    def _begin(self) -> None:
        self._drift = None if self._memory is None else Drift(self._memory, self._names)
        self.inside = 0

    @property
    def size(self) -> int:
        """How many rows the window has at least, at the end of which it is looked at."""
        return min(_FIRST << min(self.count, 20), _LARGEST)

    def see(self, table: Table) -> None:
        """Count rows; at the end of a window, compare it."""
        self.rows += table.n_rows
        self.inside += table.n_rows
        if self._drift is None:
            return
        self._drift.see(table)
        if self.inside < self.size:
            return
        self.count += 1
        for name in self._drift.moved(FALSE_ALARM / (self.count * (self.count + 1))):
            self.moved[name] = self.moved.get(name, 0) + 1
        self._begin()

    def plain(self) -> dict[str, Any]:
        """Return what is known for a reply."""
        return {
            "compared": self._drift is not None, "rows": self.rows, "windows": self.count, "moved": dict(self.moved),
            "next_window_rows": self.size - self.inside, "false_alarm": FALSE_ALARM,
        }  # fmt: skip


class Watch:
    """Outcomes against the bound, and rows against the memory; what is known of outcomes is kept in a file, if told."""

    def __init__(self, model: TableModel, certificate: Certificate | None, alarm: float, file: Path | None) -> None:
        self._model, self._file = model, file
        self.certificate = None if certificate is None else digest(certificate)
        self.delta = 0.05 if certificate is None else before_looks(certificate)
        result = bound_of(model, certificate)
        self.why = result if isinstance(result, str) else ""
        self.bound = None if isinstance(result, str) else result
        self.promise = None if self.bound is None else Promise(self.bound.value / self.bound.most, alarm)
        self.windows = Windows(model)
        if file is not None and file.exists():
            self._resume(file)

    def outcomes(self, predicted: np.ndarray, truth: np.ndarray) -> None:
        """Count what came true beside what was predicted, in the order in which it came."""
        if self.promise is None or self.bound is None:
            return
        self.promise.see(self.bound.losses(predicted, truth, self._model.task == "classify"))
        if self._file is not None:
            with written_whole(self._file) as part:
                part.write_text(json.dumps(self._record()), encoding="utf-8")

    def plain(self) -> dict[str, Any]:
        """Return what is known for a reply."""
        promise = {"watched": False, "why": self.why} if self.promise is None else self._said(self.promise)
        return {"promise": promise, "drift": self.windows.plain()}

    def _said(self, promise: Promise) -> dict[str, Any]:
        assert self.bound is not None
        most = self.bound.most
        low, high = promise.limits(self.delta)
        return {
            "watched": True, "loss": "error rate" if self._model.task == "classify" else "mean absolute error",
            "certified_at_most": self.bound.value, "counted_up_to": most, "outcomes": promise.count,
            "mean": promise.mean * most if promise.count else None, "low": low * most, "high": high * most,
            "confidence": 1 - self.delta, "evidence": promise.evidence, "broken": promise.broken,
            "broken_after": promise.alarmed_at, "false_alarm": promise.alarm,
        }  # fmt: skip

    def _record(self) -> dict[str, Any]:
        assert self.promise is not None
        return {"certificate": self.certificate, "promise": self.promise.plain(), "windows": self.windows.count}

    def _resume(self, file: Path) -> None:
        """Go on from a file of an earlier run of the same model."""
        record: Any = strict_json(file.read_bytes())
        if not isinstance(record, Mapping) or record.get("certificate") != self.certificate or self.promise is None:
            raise ValueError(Message("watch.other-model", file=str(file)))
        again = Promise.from_plain(record["promise"])
        if (again.bound, again.alarm) != (self.promise.bound, self.promise.alarm):
            raise ValueError(Message("watch.other-alarm", file=str(file), alarm=again.alarm))
        self.promise = again
        self.windows = Windows(self._model, int(record.get("windows", 0)))


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """What a service counts."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._registry = watch, CollectorRegistry()
        own = self._registry
        self.requests = Counter("assay_requests", "Requests answered.", ["path", "status"], registry=own)
        self.seconds = Histogram(
            "assay_request_seconds", "Time to an answer.", ["path"], buckets=_SECONDS, registry=own
        )
        self._rows = Gauge("assay_rows", "Rows predicted.", registry=own)
        self._moved = Gauge(
            "assay_drift_windows", "Windows in which a column looked otherwise.", ["column"], registry=own
        )
        self._outcomes = Gauge("assay_outcomes", "Outcomes told.", registry=own)
        self._loss = Gauge("assay_outcome_loss", "Mean loss of the outcomes.", registry=own)
        self._bound = Gauge("assay_certified_loss", "The certified bound of the expected loss.", registry=own)
        self._evidence = Gauge("assay_promise_evidence", "Evidence against the bound; broken at 1/alarm.", registry=own)
        self._broken = Gauge("assay_promise_broken", "1 if the certified bound is not kept.", registry=own)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        windows, promise, bound = self._watch.windows, self._watch.promise, self._watch.bound
        self._rows.set(windows.rows)
        for name, count in windows.moved.items():
            self._moved.labels(name).set(count)
        if promise is not None and bound is not None:
            self._outcomes.set(promise.count)
            self._loss.set(promise.mean * bound.most)
            self._bound.set(bound.value)
            self._evidence.set(promise.evidence)
            self._broken.set(promise.broken)
        return generate_latest(self._registry)


__all__ = ["TYPE", "Metrics"]
