"""The checker: judges a certificate from the model's numbers and the data alone.

`verify` recomputes fingerprints, then lets each claim's rule see the rows, block by block and on one thread, in as
few passes as the rules need; every rule bounds its own rounding. It calls no learner, no solver and no metric.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from assay.checker import bounds, facts
from assay.checker.family import find, read_model, stored_form
from assay.checker.identity import copies
from assay.checker.record import MALFORMED_INPUT_ERRORS, Refused, Rejected, check_record
from assay.checker.rows import DataSet, Reader, Table, columns_of, other_rows, tables_of
from assay.checker.rule import Clock, Context, Rule, View
from assay.checker.verdict import Report, Verdict
from assay.claims.claim import Certificate, Claim
from assay.claims.definitions import Definition, by_name
from assay.claims.document import named

_KEPT = 2**23  # numbers of rows and scores that are kept from the first pass for the ones to come
_HELD = 2**22  # numbers that a model makes of the rows of one view
_CHANCE = math.log(1e6)  # the guard against copies is wrong once in so many splits, at most


def verify(
    certificate: Certificate,
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    holdout: tuple[Any, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    limit: float | None = None,
) -> Report:
    """Re-check a certificate without trusting how the model was fitted.

    Parameters
    ----------
    certificate : Certificate
    model : a fitted learner, or the `StoredModel` that a file holds
    X, y, sample_weight : the training rows; the whole table if the certificate has a split.
        Instead of arrays, X may be an object with `blocks()`, which yields its rows in order.
    holdout : (X, y) of the hold-out rows, when the certificate has no split
    columns : values of columns that the model does not read but a claim names, such as that of groups: a mapping of
        names to one value for each row of the table or, when the certificate has no split, of the hold-out rows
    limit : seconds after which the claims that are not yet judged "cannot be checked"; None for as long as it takes,
        which the sizes of model, certificate and rows bound

    Returns
    -------
    Report
        `holds`, a verdict per claim, and the reason in words.
    """
    clock = Clock(limit)
    try:
        stored = stored_form(model)
        encodes = find(stored.family)[1].encodes
        family, variant = find((stored.members[0] if encodes else stored).family)
        allowed = by_name([*facts.CLAIMS.values(), *bounds.CLAIMS.values(), *family.claims.values()])
        if encodes:
            certificate = replace(certificate, claims=tuple(map(named, certificate.claims)))
        check_record(certificate, allowed)
        if (stored.learner, stored.family) != (certificate.model.learner, certificate.model.family):
            raise Rejected(f"the certificate is about a {certificate.model.learner}, the model is a {stored.learner}")
        predictor = read_model(stored)
        if stored.digest() != certificate.model.digest:
            raise Rejected("this is not the model the certificate is about: its parameters have another fingerprint")
        inner, encode = (predictor.inner, predictor.encode) if encodes else (predictor, None)
        reader = Reader(inner, variant.target, predictor.columns, encode)
        tables = tables_of(certificate, X, y, sample_weight, holdout)
        return _Check(certificate, allowed, reader, tables, columns or {}, clock).report()
    except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
        return Report(failed("certificate", error))


class _Check:
    """One run of the checker: the data sets, the rules, and what went wrong with either."""

    def __init__(
        self,
        certificate: Certificate,
        allowed: Mapping[str, Definition],
        reader: Reader,
        tables: list[Table],
        columns: Mapping[str, Any],
        clock: Clock,
    ):
        self.certificate, self.allowed, self.tables, self.clock = certificate, allowed, tables, clock
        self.kept: list[tuple[str, View]] | None = None
        model, two = reader.model, len(certificate.data) > 1
        self.sets = {
            name: DataSet(reference, reader, two, others=name == "holdout")
            for name, reference in certificate.data.items()
        }
        for name, part in self.sets.items():
            if not any(name in table.sets for table in tables):
                how = "pass the whole table as X, y" if certificate.split is not None else _HOW[name]
                part.failure = Refused(f"the {name} rows are not given; {how}")
        self._compare_sizes()
        rows = {name: reference.rows for name, reference in certificate.data.items()}
        self.context = Context(certificate, model, rows, clock, columns=columns_of(certificate, columns))
        self.most = max(1, _HELD // max(1, model.width, len(model.classes or ())))
        self.rules, self.failures = self.context.rules, self.context.failures
        for position, claim in enumerate(certificate.claims):
            rule = self._step(position, partial(self._rule, claim))
            if rule is not None:
                self.rules[position] = rule

    def _compare_sizes(self) -> None:
        """Reject sets that are larger than the tables before a rule allocates anything for so many rows."""
        for table in self.tables:
            given = table.size()
            for name in table.sets:
                stated = self.sets[name].reference.rows
                if stated > given or (table.sets[name] is None and stated != given):
                    self.sets[name].failure = other_rows(name, stated, given)

    def _rule(self, claim: Claim) -> Rule:
        kind: Any = self.allowed[claim.name].rule
        about = claim.params.get("set") if issubclass(kind, facts.AboutSet) else kind.set
        broken = self.sets[about].failure if isinstance(about, str) and about in self.sets else None
        if broken is not None:
            raise broken
        rule: Rule = kind(claim, self.context)
        if rule.set not in claim.data:
            raise Rejected(f"it is about the {rule.set} rows, but names {tuple(claim.data)}")
        return rule

    def report(self) -> Report:
        """Pass over the rows as often as a rule asks for it, then judge each claim."""
        waiting = self._pass(list(self.rules))
        self._compare_sets()
        while waiting := [p for p in waiting if self._sound(p) and self._step(p, self.rules[p].next_pass)]:
            self._pass(waiting)
        verdicts = tuple(self._judge(p, claim) for p, claim in enumerate(self.certificate.claims))
        wrong = [one.failure for one in self.sets.values() if one.failure and not isinstance(one.failure, Refused)]
        return Report(failed("certificate", wrong[0]) if wrong else Verdict("certificate", "PROVED", ""), verdicts)

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

    def _pass(self, positions: list[int]) -> list[int]:
        """Show the rows to the rules: those that were kept, or else read anew."""
        for name, view in self._read() if self.kept is None else self.kept:
            for position in positions:
                if self.rules[position].set == name and position not in self.failures:
                    self._step(position, partial(self.rules[position].block, view))
        return positions

    def _read(self) -> Iterator[tuple[str, View]]:
        """Yield the rows, and compare their fingerprint in each pass: a source may change. Few rows are kept."""
        kept: list[tuple[str, View]] = []
        room = _KEPT
        for part in self.sets.values():
            part.open()
        for table in self.tables:
            for name, block in table.cut(self.most):
                if self.clock.is_over:
                    break  # the rows are not those of the certificate then: not all of them were seen
                view = self.sets[name].view(block)
                if view is None:
                    continue
                raw = 0 if view.raw is view.X else view.raw.size
                room -= view.X.size + raw + len(view.X) * len(view.model.classes or ())
                kept = [*kept, (name, view)] if room >= 0 else []
                yield name, view
        for name, part in self.sets.items():
            if self.clock.is_over and part.failure is None:
                part.failure = self.clock.refusal()
            part.close(name)
        self.kept = kept if room >= 0 else None

    def _sound(self, position: int) -> bool:
        return position not in self.failures and self.sets[self.rules[position].set].failure is None

    def _judge(self, position: int, claim: Claim) -> Verdict:
        name, measured = self.allowed[claim.name].called(claim.params), math.nan
        if position in self.rules:
            rule = self.rules[position]
            broken = self.sets[rule.set].failure
            if broken is not None:
                self.failures.setdefault(position, broken)
            if position not in self.failures:
                measured = self._step(position, rule.measure)
                self._step(position, rule.check_complete)
                self._step(position, rule.check_observed)
        if position in self.failures:
            return failed(name, self.failures[position])
        upper = claim.direction == "upper"
        if not (measured <= claim.value if upper else measured >= claim.value):  # also when measured is NaN
            claimed = f"claimed {'<=' if upper else '>='} {claim.value:.10g}, measured {measured:.10g}"
            return Verdict(name, "REJECTED", claimed, measured)
        return Verdict(name, "PROVED" if self.allowed[claim.name].fact else "PROVED-GIVEN", "", measured)

    def _step(self, position: int, step: Callable[[], Any]) -> Any:
        """Run a step of one rule; what it raises becomes that claim's verdict and no other's."""
        try:
            self.clock.check()
            with np.errstate(all="ignore"):  # an overflow shows as an infinite bound, which no claim meets
                return step()
        except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
            self.failures.setdefault(position, error)
            return None


_HOW = {"train": "pass them as X, y", "holdout": "pass holdout=(X, y)"}


def failed(name: str, failure: Exception) -> Verdict:
    if isinstance(failure, (Rejected, Refused)):
        return Verdict(name, "REFUSED" if isinstance(failure, Refused) else "REJECTED", str(failure))
    if isinstance(failure, MemoryError):
        size = " ".join(str(failure).split())[:80] or "its size is not known"
        return Verdict(name, "REFUSED", f"this machine has too little memory for it ({size})")
    return Verdict(name, "REJECTED", f"it is malformed ({type(failure).__name__}: {str(failure)[:80]})")
