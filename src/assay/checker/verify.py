"""The checker: judges a certificate from the model's numbers and the data alone.

`verify` recomputes fingerprints, then lets each claim's rule see the rows, block by block and on one thread, in as
few passes as the rules need; every rule bounds its own rounding. It calls no learner, no solver and no metric.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from assay.checker import bounds, facts
from assay.checker.family import find, read_model, stored_form
from assay.checker.identity import DataDigest, copies, near_keys
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected, array, check_record
from assay.checker.rule import Context, Rule, View
from assay.checker.verdict import Report, Verdict
from assay.claims.claim import Certificate, Claim, DataReference
from assay.claims.definitions import Definition
from assay.data.blocks import Block, blocks

_HELD = 2**22  # numbers that a model makes of the rows of one view
_CHANCE = math.log(1e6)  # the guard against copies is wrong once in so many splits, at most
_SURPRISES = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


def verify(
    certificate: Certificate,
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    holdout: tuple[Any, Any] | None = None,
) -> Report:
    """Re-check a certificate without trusting how the model was fitted.

    Parameters
    ----------
    certificate : Certificate
    model : a fitted learner, or the `StoredModel` that a file holds
    X, y, sample_weight : the training rows; the whole table if the certificate has a split.
        Instead of arrays, X may be an object with `blocks()`, which yields its rows in order.
    holdout : (X, y) of the hold-out rows, when the certificate has no split

    Returns
    -------
    Report
        `holds`, a verdict per claim, and the reason in words.
    """
    try:
        family, variant = find(getattr(certificate.model, "family", None))
        allowed = {**facts.CLAIMS, **bounds.CLAIMS, **family.claims}
        check_record(certificate, allowed)
        stored = stored_form(model)
        if (stored.learner, stored.family) != (certificate.model.learner, certificate.model.family):
            raise Rejected(f"the certificate is about a {certificate.model.learner}, the model is a {stored.learner}")
        predictor = read_model(stored)
        if stored.digest() != certificate.model.digest:
            raise Rejected("this is not the model the certificate is about: its parameters have another fingerprint")
        tables = _tables(certificate, X, y, sample_weight, holdout)
        return _Check(certificate, allowed, predictor, variant.target, tables).report()
    except (Rejected, Refused, *_SURPRISES) as error:
        return Report(_failed("certificate", error))


class _Check:
    """One run of the checker: the data sets, the rules, and what went wrong with either."""

    def __init__(
        self,
        certificate: Certificate,
        allowed: Mapping[str, Definition],
        model: Predictor,
        has_target: bool,
        tables: "list[_Table]",
    ):
        self.certificate, self.allowed, self.tables = certificate, allowed, tables
        two = len(certificate.data) > 1
        self.sets = {name: _Set(reference, model, two, has_target) for name, reference in certificate.data.items()}
        for name, part in self.sets.items():
            if not any(name in table.sets for table in tables):
                how = "pass the whole table as X, y" if certificate.split is not None else _HOW[name]
                part.failure = Refused(f"the {name} rows are not given; {how}")
        rows = {name: reference.rows for name, reference in certificate.data.items()}
        self.context = Context(certificate, model, rows)
        self.most = max(1, _HELD // max(1, model.width))
        self.rules, self.failures = self.context.rules, self.context.failures
        for position, claim in enumerate(certificate.claims):
            rule = self._step(position, partial(_rule, claim, allowed[claim.template].rule, self.context))
            if rule is not None:
                self.rules[position] = rule

    def report(self) -> Report:
        """Pass over the rows as often as a rule asks for it, then judge each claim."""
        waiting = self._pass(list(self.rules), first=True)
        self._compare_sets()
        while waiting := [p for p in waiting if self._sound(p) and self._step(p, self.rules[p].next_pass)]:
            self._pass(waiting, first=False)
        verdicts = tuple(self._judge(p, claim) for p, claim in enumerate(self.certificate.claims))
        wrong = [part.failure for part in self.sets.values() if part.failure is not None]
        wrong = [failure for failure in wrong if not isinstance(failure, Refused)]
        return Report(_failed("certificate", wrong[0]) if wrong else Verdict("certificate", "PROVED", ""), verdicts)

    def _compare_sets(self) -> None:
        """Refuse hold-out rows that were picked from the table, or that are training rows again."""
        if "holdout" not in self.sets or not self.tables:
            return
        holdout = self.sets["holdout"]
        stated = sum(part.reference.rows for part in self.sets.values())
        if self.certificate.split is not None and self.tables[0].rows > stated:
            left_out = self.tables[0].rows - stated
            holdout.failure = Rejected(f"the split leaves out {left_out} rows of the table: all must be in a set")
        if not holdout.keys or not self.sets["train"].keys:
            return
        held, kept = (np.concatenate(self.sets[name].keys) for name in ("holdout", "train"))
        self.context.near_copies, surprise = copies(held, kept)
        if surprise > _CHANCE:
            holdout.failure = Rejected(
                f"{self.context.near_copies} of {len(held)} hold-out rows are training rows again, or nearly so, while "
                "training rows are hardly ever copies of each other: they were not held out"
            )

    def _pass(self, positions: list[int], first: bool) -> list[int]:
        """Show the rows to the rules, and compare their fingerprint: a source may change from pass to pass."""
        for part in self.sets.values():
            part.open()
        for table in self.tables:
            for name, block in table.cut(self.most):
                view = self.sets[name].view(block, first)
                for position in positions:
                    if view is not None and self.rules[position].set == name and position not in self.failures:
                        self._step(position, partial(self.rules[position].block, view))
        for name, part in self.sets.items():
            part.close(name)
        return positions

    def _sound(self, position: int) -> bool:
        return position not in self.failures and self.sets[self.rules[position].set].failure is None

    def _judge(self, position: int, claim: Claim) -> Verdict:
        name, measured = self.allowed[claim.template].name, math.nan
        if position in self.rules:
            rule = self.rules[position]
            broken = self.sets[rule.set].failure
            if broken is not None:
                self.failures.setdefault(position, broken)
            if position not in self.failures:
                measured = self._step(position, rule.measure)
                self._step(position, rule.check_complete)
        if position in self.failures:
            return _failed(name, self.failures[position])
        upper = claim.direction == "upper"
        if not (measured <= claim.value if upper else measured >= claim.value):  # also when measured is NaN
            claimed = f"claimed {'<=' if upper else '>='} {claim.value:.10g}, measured {measured:.10g}"
            return Verdict(name, "REJECTED", claimed, measured)
        return Verdict(name, "PROVED" if self.allowed[claim.template].fact else "PROVED-GIVEN", "", measured)

    def _step(self, position: int, step: Callable[[], Any]) -> Any:
        """Run a step of one rule; what it raises becomes that claim's verdict and no other's."""
        try:
            with np.errstate(all="ignore"):  # an overflow shows as an infinite bound, which no claim meets
                return step()
        except (Rejected, Refused, *_SURPRISES) as error:
            self.failures.setdefault(position, error)
            return None


_HOW = {"train": "pass them as X, y", "holdout": "pass holdout=(X, y)"}


def _failed(name: str, failure: Exception) -> Verdict:
    if isinstance(failure, (Rejected, Refused)):
        return Verdict(name, "REFUSED" if isinstance(failure, Refused) else "REJECTED", str(failure))
    if isinstance(failure, MemoryError):
        size = " ".join(str(failure).split())[:80] or "its size is not known"
        return Verdict(name, "REFUSED", f"this machine has too little memory for it ({size})")
    return Verdict(name, "REJECTED", f"it is malformed ({type(failure).__name__}: {str(failure)[:80]})")


def _rule(claim: Claim, kind: type[Rule], context: Context) -> Rule:
    rule = kind(claim, context)
    if rule.set not in claim.data:
        raise Rejected(f"it is about the {rule.set} rows, but names {tuple(claim.data)}")
    return rule


class _Set:
    """One data set while it is read: its fingerprint, the column ranges of its blocks, what went wrong with
    it."""

    def __init__(self, reference: DataReference, model: Predictor, keep_keys: bool, has_target: bool):
        self.reference, self.model, self.keep_keys = reference, model, keep_keys
        self.failure: Exception | None = None
        self.has_target = has_target
        self.open()
        self.largest: dict[int, np.ndarray] = {}
        self.keys: list[np.ndarray] = []  # one number per row, equal for equal rows; kept to compare two sets

    def open(self) -> None:
        """Begin a pass over the rows."""
        self.digest = DataDigest(self.reference.labels, self.model.classes, self.has_target)

    def view(self, block: Block, first: bool) -> View | None:
        """Return the block as the rules see it; None once something is wrong with the set."""
        if self.failure is not None:
            return None
        try:
            if block.X.ndim != 2 or block.X.shape[1] != self.model.columns:
                raise Rejected(f"X has shape {block.X.shape}; the model reads {self.model.columns} columns")
            rows = len(block.X)
            weight = None if block.weight is None else array(block.weight, "sample_weight", (rows,))
            if weight is not None and np.any(weight < 0):
                raise Rejected("sample_weight has negative entries")
            codes, targets = self.digest.read_targets(block.y)
            self.largest[block.start] = self.digest.feed(block.X, targets, weight)
            if first and self.keep_keys:
                self.keys.append(near_keys(block.X))
            weight = np.ones(rows) if weight is None else weight
            return View(block.X, codes, targets, weight, self.largest[block.start], block.start, self.model)
        except (Rejected, Refused, *_SURPRISES) as error:
            self.failure = error
            return None

    def close(self, name: str) -> None:
        """Compare the rows of this pass with the ones the certificate is about."""
        given, stated = self.digest.rows, self.reference.rows
        if self.failure is None and self.reference.columns != self.model.columns:
            self.failure = Rejected(f"the certificate says {self.reference.columns} columns; the model reads others")
        if self.failure is None and given != stated:
            self.failure = Rejected(f"the certificate is about {stated} {name} rows; {given} are given")
        if self.failure is None and self.digest.hexdigest() != self.reference.digest:
            self.failure = Rejected(
                f"these are not the {name} rows the certificate is about: their fingerprint differs"
            )


class _Table:
    """Rows in the order given, and which of them belong to which set (None: all)."""

    rows = 0  # seen in the last pass

    def __init__(self, X: Any, y: Any, weight: Any, sets: Mapping[str, np.ndarray | None]):
        self.X, self.sets, self.stored = X, sets, hasattr(X, "blocks")
        if self.stored:
            return
        self.X = X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        if X.dtype.kind not in "iufb" or X.ndim != 2:
            raise Rejected(f"X must be a two-dimensional array of numbers; it is {X.dtype} of shape {X.shape}")
        if X.dtype.kind in "iu" and X.size and max(int(X.max()), -int(X.min())) > 2**53:
            raise Rejected("X has integers beyond 2^53, which binary64 does not hold")
        self.y, self.weight = (None if part is None else np.asarray(part) for part in (y, weight))
        for name, part in (("y", self.y), ("sample_weight", self.weight)):
            if part is not None and part.shape[:1] != X.shape[:1]:
                raise Rejected(f"{name} has shape {part.shape}, X has {X.shape[0]} rows")

    def cut(self, most: int) -> Iterator[tuple[str, Block]]:
        """Yield the blocks of each set, of at most so many rows; `start` counts the rows of that set."""
        for block in self.X.blocks() if self.stored else blocks(self.X, self.y, self.weight):
            if self.stored:  # its blocks may all be one array, filled anew; rules and models keep what they saw
                block = block._replace(X=np.array(block.X))
            self.rows = block.start + len(block.X)
            for name, rows in self.sets.items():
                part = block if rows is None else _select(block, rows)
                for at in range(0, len(part.X), most):
                    here = slice(at, at + most)
                    y, weight = (None if one is None else one[here] for one in part[1:3])
                    yield name, Block(part.X[here], y, weight, part.start + at)


def _select(block: Block, rows: np.ndarray) -> Block:
    low, high = np.searchsorted(rows, [block.start, block.start + len(block.X)])
    inside: Any = rows[low:high] - block.start
    if high > low and inside[-1] - inside[0] == high - low - 1:
        inside = slice(int(inside[0]), int(inside[-1]) + 1)
    X, y, weight = (None if part is None else np.asarray(part)[inside] for part in block[:3])
    return Block(np.asarray(X), y, weight, int(low))


def _tables(certificate: Certificate, X: Any, y: Any, weight: Any, holdout: Any) -> list[_Table]:
    if certificate.split is not None:
        if holdout is not None:
            raise Rejected("the certificate splits one table; pass that table as X, y and no holdout")
        return [] if X is None else [_Table(X, y, weight, _split(certificate, certificate.split))]
    tables = [] if X is None or "train" not in certificate.data else [_Table(X, y, weight, {"train": None})]
    if holdout is not None and "holdout" in certificate.data:
        if hasattr(holdout, "blocks"):
            holdout = (holdout, None)
        if not isinstance(holdout, (tuple, list)) or len(holdout) != 2:
            raise Rejected("holdout must be (X, y)")
        tables.append(_Table(holdout[0], holdout[1], None, {"holdout": None}))
    return tables


def _split(certificate: Certificate, split: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the sorted row numbers of each set: disjoint, without repeats, as many as the sets have rows."""
    if {"train", "holdout"} != set(split) or {"train", "holdout"} != set(certificate.data):
        raise Rejected("a split names the rows of train and holdout")
    rows: dict[str, np.ndarray] = {}
    for name, part in split.items():
        rows[name] = np.sort(array(part, f"split of {name}", (None,), integer=True))
        if len(part) != certificate.data[name].rows:
            raise Rejected(f"the split lists {len(part)} {name} rows, the certificate {certificate.data[name].rows}")
    every = np.sort(np.concatenate(list(rows.values())))
    if every[0] < 0:
        raise Rejected("the split has negative row numbers")
    if np.any(every[1:] == every[:-1]):
        raise Rejected("the split names a row twice: both sets must be disjoint and without repeats")
    return rows
