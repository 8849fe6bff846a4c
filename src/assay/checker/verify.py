"""The checker: judges a certificate from the model's numbers and the data alone.

`verify` recomputes fingerprints, then lets each claim's rule see the rows, block by block and on one thread, in as
few passes as the rules need; every rule bounds its own rounding. It calls no learner, no solver and no metric.

The rows as the checker reads them: block by block, fingerprinted in every pass, encoded if they are a table's.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from assay.checker import bounds, facts
from assay.checker.family import find, read_model, stored_form
from assay.checker.identity import DataDigest, canonical, check_integers, column_range, copies, near_keys, texts_of
from assay.checker.predictors import Predictor
from assay.checker.record import MALFORMED_INPUT_ERRORS, Refused, Rejected, array, check_record
from assay.checker.rule import Clock, Context, Rule, View
from assay.checker.verdict import Report, Verdict
from assay.claims.claim import Certificate, Claim, DataReference
from assay.claims.definitions import Definition, by_name
from assay.claims.document import named
from assay.data.blocks import Block, blocks


@dataclass(frozen=True)
class Reader:
    """How rows are read: for which model, with a target or not, and encoded first if they are raw rows of a table."""

    model: Predictor
    has_target: bool
    columns: int
    encode: Callable[[np.ndarray], np.ndarray] | None = None


class DataSet:
    """One data set while it is read: its fingerprint in this pass, and what went wrong with it."""

    def __init__(self, reference: DataReference, reader: Reader, keep_keys: bool, others: bool = False):
        self.others = others  # whether rows may be of classes that the model does not know
        self.reference, self.reader, self.keep_keys = reference, reader, keep_keys
        self.failure: Exception | None = None
        self.keys: list[np.ndarray] = []  # one number per row, equal for nearly equal rows; kept to compare two sets
        self.passes = 0

    def open(self) -> None:
        """Begin a pass over the rows."""
        self.passes += 1
        reader = self.reader
        self.digest = DataDigest(self.reference.labels, reader.model.classes, reader.has_target, self.others)

    def view(self, block: Block) -> View | None:
        """Return the block as the rules see it; None once something is wrong with the set."""
        try:
            return self._view(block) if self.failure is None else None
        except (Rejected, Refused, *MALFORMED_INPUT_ERRORS) as error:
            self.failure = error
            return None

    def _view(self, block: Block) -> View:
        columns, rows = self.reader.columns, len(block.X)
        if block.X.ndim != 2 or block.X.shape[1] != columns or self.reference.columns != columns:
            stated = self.reference.columns
            raise Rejected(f"X has shape {block.X.shape}; the model reads {columns} columns, the certificate {stated}")
        weight = None if block.weight is None else array(block.weight, "sample_weight", (rows,))
        if weight is not None and np.any(weight < 0):
            raise Rejected("sample_weight has negative entries")
        codes, targets = self.digest.read_targets(block.y)
        raw = canonical(block.X)
        self.digest.feed(raw, targets, weight)
        if self.passes == 1 and self.keep_keys:
            self.keys.append(near_keys(raw))
        X = raw if self.reader.encode is None else self.reader.encode(raw)
        weight = np.ones(rows) if weight is None else weight
        whole = np.nan_to_num(X, posinf=np.inf, neginf=-np.inf) if self.reader.model.reads_gaps else X
        return View(X, codes, targets, weight, column_range(whole), block.start, self.reader.model, raw)

    def close(self, name: str) -> None:
        """Compare the rows of this pass with the ones the certificate is about."""
        given, stated = self.digest.rows, self.reference.rows
        if self.failure is None and given != stated:
            self.failure = other_rows(name, stated, given)
        if self.failure is None and self.digest.hexdigest() != self.reference.digest:
            self.failure = Rejected(
                f"these are not the {name} rows the certificate is about: their fingerprint differs"
            )


def other_rows(name: str, stated: int, given: int) -> Rejected:
    return Rejected(f"the certificate is about {stated} {name} rows; {given} are given")


class Table:
    """Rows in the order given, and which of them belong to which set (None: all)."""

    rows = 0  # seen in the last pass

    def __init__(self, X: Any, y: Any, weight: Any, sets: Mapping[str, np.ndarray | None]):
        self.X, self.sets, self.stored = X, sets, hasattr(X, "blocks")
        if self.stored:
            return
        self.X = X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        if X.dtype.kind not in "iufb" or X.ndim != 2:
            raise Rejected(f"X must be a two-dimensional array of numbers; it is {X.dtype} of shape {X.shape}")
        self.y, self.weight = (None if part is None else _column(part) for part in (y, weight))
        for name, part in (("X", X), ("sample_weight", self.weight)):
            check_integers(part, name)
        for name, part in (("y", self.y), ("sample_weight", self.weight)):
            if part is not None and part.shape[:1] != X.shape[:1]:
                raise Rejected(f"{name} has shape {part.shape}, X has {X.shape[0]} rows")

    def size(self) -> int:
        """Return how many rows there are; a source that does not tell is read to count them."""
        if not self.stored:
            return self.X.shape[0]
        told = getattr(self.X, "n_rows", None)
        return sum(len(block.X) for block in self.X.blocks()) if told is None else int(told)

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
                    y, weight = (None if item is None else item[here] for item in part[1:3])
                    yield name, Block(part.X[here], y, weight, part.start + at)


def _column(values: Any) -> np.ndarray:
    """Return targets or weights as an array; a list of text as objects, since arrays of text lose a NUL at the end."""
    array = np.asarray(values)
    return array if array.dtype.kind != "U" or isinstance(values, np.ndarray) else np.asarray(values, dtype=object)


def _select(block: Block, rows: np.ndarray) -> Block:
    low, high = np.searchsorted(rows, [block.start, block.start + len(block.X)])
    inside: Any = rows[low:high] - block.start
    if high > low and inside[-1] - inside[0] == high - low - 1:
        inside = slice(int(inside[0]), int(inside[-1]) + 1)
    X, y, weight = (None if part is None else np.asarray(part)[inside] for part in block[:3])
    return Block(np.asarray(X), y, weight, int(low))


def tables_of(certificate: Certificate, X: Any, y: Any, weight: Any, holdout: Any) -> list[Table]:
    if certificate.time is not None or certificate.looks is not None or "seed" in (certificate.split or ()):
        raise Rejected("it says how the hold-out rows were drawn, which the cells of a table alone can show")
    if certificate.split is not None:
        if holdout is not None:
            raise Rejected("the certificate splits one table; pass that table as X, y and no holdout")
        return [] if X is None else [Table(X, y, weight, _split(certificate, certificate.split))]
    tables = [] if X is None or "train" not in certificate.data else [Table(X, y, weight, {"train": None})]
    if holdout is not None and "holdout" in certificate.data:
        if hasattr(holdout, "blocks"):
            holdout = (holdout, None)
        if not isinstance(holdout, (tuple, list)) or len(holdout) != 2:
            raise Rejected("holdout must be (X, y)")
        tables.append(Table(holdout[0], holdout[1], None, {"holdout": None}))
    return tables


def columns_of(certificate: Certificate, columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values on the hold-out rows of columns beside X, as text."""
    results: dict[str, list[str]] = {}
    if "holdout" not in certificate.data:
        return results
    split, rows = certificate.split, certificate.data["holdout"].rows
    for name, values in columns.items():
        array_of = np.asarray(values, dtype=object)
        if split is not None:
            if array_of.shape != (sum(item.rows for item in certificate.data.values()),):
                raise Rejected(f"the column {name[:40]!r} must have a value for each row of the table")
            array_of = array_of[np.sort(np.asarray(split["holdout"]))]
        if array_of.shape != (rows,):
            raise Rejected(f"the column {name[:40]!r} has {array_of.size} values for {rows} hold-out rows")
        results[name] = texts_of(array_of)
    return results


def _split(certificate: Certificate, split: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the sorted row numbers of each set: disjoint, without repeats, as many as the sets have rows."""
    if not {"train", "holdout"} == set(split) == set(certificate.data):
        raise Rejected("a split names the rows of train and holdout")
    sizes = {name: (certificate.data[name].rows,) for name in ("train", "holdout")}
    rows = {name: np.sort(array(split[name], f"split of {name}", size, integer=True)) for name, size in sizes.items()}
    every = np.sort(np.concatenate(list(rows.values())))
    if every[0] < 0 or np.any(every[1:] == every[:-1]):
        raise Rejected("the split names a row twice, or has negative row numbers: each row is in one set")
    return rows


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
