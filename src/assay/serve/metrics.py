"""Counters for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as TYPE

from assay.serve.watching import Watch

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
