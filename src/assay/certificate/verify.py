"""The checker: judges a certificate from the model's numbers and the data alone.

`verify` recomputes fingerprints, then lets each claim's rule see the rows, block by block and on one thread, in as few
passes as the rules need; every rule bounds its own rounding. It calls no learner, no solver and no metric of this library.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple

import numpy as np

from assay.certificate.claim import FORMAT, Certificate, Claim, DataReference
from assay.certificate.rules import duality, facts, geometry, gradient, multinomial, risk, scatter
from assay.certificate.rules.identity import DataDigest, read_model
from assay.certificate.rules.rule import (
    Context,
    Refused,
    Rejected,
    Rule,
    View,
    array,
    count,
    exact_decimal,
    number,
)
from assay.certificate.templates import TEMPLATES
from assay.scan.blocks import Block, blocks

RULES: dict[str, type[Rule]] = {
    "D01/1": facts.DataIdentity,
    "D02/1": facts.TrainErrors,
    "D03/1": facts.ErrorFloor,
    "D04/1": duality.NamedGap,
    "D05/1": gradient.Suboptimality,
    "D06/1": duality.RidgeGap,
    "D08/1": duality.LogisticGap,
    "D09/1": multinomial.MultinomialGap,
    "D13/1": geometry.Margin,
    "D14/1": geometry.Inseparable,
    "D15/1": duality.Enclosure,
    "D17/1": geometry.PerceptronMistakes,
    "D19/1": scatter.FisherOptimality,
    "P01/1": risk.HoldoutBinomial,
    "P02/1": risk.Hoeffding,
    "P04/1": risk.EmpiricalBernstein,
    "P07/1": risk.HoldoutSelect,
    "P08/1": risk.FiniteClass,
    "P10/1": risk.Vc,
}
_WORDS = {
    "PROVED": "holds",
    "PROVED-GIVEN": "holds under its assumptions",
    "REJECTED": "fails",
    "REFUSED": "cannot be checked",
}
_SURPRISES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Verdict(NamedTuple):
    """What became of one claim: its template, the status, the reason in words, the number the checker found."""

    claim: str
    status: str
    reason: str
    measured: float | None = None

    @property
    def holds(self) -> bool:
        return self.status in ("PROVED", "PROVED-GIVEN")

    def __str__(self) -> str:
        return f"{self.claim}: {_WORDS[self.status]}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class Report:
    """Verdicts on a certificate. `structure` is the verdict on what the claims stand on: format, ledger, model, data."""

    structure: Verdict
    verdicts: tuple[Verdict, ...] = ()

    @property
    def holds(self) -> bool:
        """True if every claim is proved, or proved under its assumptions, and there is one."""
        return bool(self.verdicts) and all(verdict.holds for verdict in (self.structure, *self.verdicts))

    @property
    def reason(self) -> str:
        """Why the certificate does not hold; empty if it does."""
        failed = [str(verdict) for verdict in (self.structure, *self.verdicts) if not verdict.holds]
        return "; ".join(failed) if failed or self.verdicts else "the certificate makes no claim"

    def __str__(self) -> str:
        head = "The certificate holds." if self.holds else "The certificate does not hold."
        return "\n".join([head, *(f"  {verdict}" for verdict in (self.structure, *self.verdicts))])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(v.claim)}</td><td>{_WORDS[v.status]}</td><td>{escape(v.reason)}</td></tr>"
            for v in (self.structure, *self.verdicts)
        )
        head = "The certificate holds." if self.holds else "The certificate does not hold."
        return (
            f"<p><b>{head}</b></p><table><tr><th>claim</th><th>verdict</th><th>reason</th></tr>{rows}</table>"
        )


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
    model : object with the fitted arrays of its family (`coef_`, `intercept_`, `classes_`)
    X, y, sample_weight : the training rows; the whole table if the certificate has a split.
        Instead of arrays, X may be an object with `blocks()`, which yields its rows in order with targets and weights.
    holdout : (X, y) of the hold-out rows, when the certificate has no split

    Returns
    -------
    Report
        `holds`, a verdict per claim, and the reason in words.
    """
    try:
        _check_structure(certificate)
        linear, digest = read_model(model, certificate.model.family)
        if digest != certificate.model.digest:
            raise Rejected(
                "this is not the model the certificate is about: its parameters have another fingerprint"
            )
        sets = _Sets(certificate, linear, X, y, sample_weight, holdout)
        return sets.report()
    except Rejected as error:
        return Report(Verdict("certificate", "REJECTED", str(error)))
    except Refused as error:
        return Report(Verdict("certificate", "REFUSED", str(error)))
    except _SURPRISES as error:
        return Report(
            Verdict("certificate", "REJECTED", f"it is malformed ({type(error).__name__}: {error})")
        )


class _Sets:
    """The data sets of one certificate and the rules that read them."""

    def __init__(self, certificate: Certificate, model: Any, X: Any, y: Any, weight: Any, holdout: Any):
        self.certificate, self.model = certificate, model
        self.tables = _tables(certificate, X, y, weight, holdout)
        self.state = {name: _SetState(reference, model) for name, reference in certificate.data.items()}
        for name, state in self.state.items():
            if not any(name in table.sets for table in self.tables):
                where = "pass the whole table as X, y" if certificate.split else _HOW[name]
                state.failure = Refused(f"the {name} rows are not given; {where}")
        self.failures: dict[int, Exception] = {}
        rows = {name: reference.rows for name, reference in certificate.data.items()}
        self.context = Context(certificate, model, rows, {}, self.failures)
        for position, claim in enumerate(certificate.claims):
            self._guard(
                position, lambda p=position, c=claim: self.context.rules.update({p: _rule(c, self.context)})
            )

    def report(self) -> Report:
        """Pass over the rows as often as a rule asks for it, then judge each claim."""
        self._pass(first=True)
        self._compare()
        waiting = set(self.context.rules)
        while waiting := {p for p in waiting if p not in self.failures and self._wants_more(p)}:
            self._pass(first=False, rules=waiting)
        verdicts = tuple(self._judge(p, claim) for p, claim in enumerate(self.certificate.claims))
        wrong = [state.failure for state in self.state.values() if isinstance(state.failure, Rejected)]
        structure = Verdict("certificate", "REJECTED", str(wrong[0])) if wrong else Verdict("certificate", "PROVED", "")
        return Report(structure, verdicts)

    def _pass(self, first: bool, rules: Iterable[int] | None = None) -> None:
        active = self.context.rules if rules is None else {p: self.context.rules[p] for p in rules}
        for table in self.tables:
            for name, block in table.cut():
                state = self.state[name]
                if state.failure is not None:
                    continue
                view = state.view(block, first)
                if view is not None:
                    for position, rule in active.items():
                        if rule.set == name and position not in self.failures:
                            self._guard(position, lambda r=rule, v=view: r.block(v))

    def _compare(self) -> None:
        for name, state in self.state.items():
            if state.failure is None:
                state.compare(name)
        same = {state.reference.digest for state in self.state.values()}
        if len(same) < len(self.state) and "holdout" in self.state:
            self.state["holdout"].failure = Rejected("the hold-out rows are the training rows")

    def _wants_more(self, position: int) -> bool:
        rule = self.context.rules[position]
        if self.state[rule.set].failure is not None:
            return False
        more: list[bool] = []
        self._guard(position, lambda: more.append(rule.next_pass()))
        return bool(more and more[0])

    def _judge(self, position: int, claim: Claim) -> Verdict:
        name = TEMPLATES[claim.template].name
        rule = self.context.rules.get(position)
        failure = self.failures.get(position) or (self.state[rule.set].failure if rule else None)
        found: list[float] = []
        if failure is None:
            self._guard(position, lambda: found.append(rule.measure()))
            failure = self.failures.get(position)
        if failure is not None:
            return Verdict(name, "REFUSED" if isinstance(failure, Refused) else "REJECTED", _explain(failure))
        measured = found[0]
        upper = claim.direction == "upper"
        if not (measured <= claim.value if upper else measured >= claim.value):  # also when measured is NaN
            sign = "<=" if upper else ">="
            return Verdict(
                name, "REJECTED", f"claimed {sign} {claim.value:.10g}, measured {measured:.10g}", measured
            )
        return Verdict(name, "PROVED" if TEMPLATES[claim.template].fact else "PROVED-GIVEN", "", measured)

    def _guard(self, position: int, step: Any) -> None:
        """Run a step of one rule; what it raises becomes that claim's verdict and no other's."""
        try:
            with np.errstate(all="ignore"):  # an overflow shows as an infinite bound, which no claim meets
                step()
        except (Rejected, Refused, *_SURPRISES) as error:
            self.failures.setdefault(position, error)


_HOW = {"train": "pass them as X, y", "holdout": "pass holdout=(X, y)"}


def _explain(failure: Exception) -> str:
    if isinstance(failure, (Rejected, Refused)):
        return str(failure)
    return f"the claim is malformed ({type(failure).__name__}: {str(failure)[:80]})"


class _SetState:
    """One data set while it is read: its fingerprint, the column ranges of its blocks, what went wrong with it."""

    def __init__(self, reference: DataReference, model: Any):
        self.reference, self.model = reference, model
        self.failure: Exception | None = None
        self.digest = DataDigest(reference.labels, model.classes)
        self.largest: dict[int, np.ndarray] = {}

    def view(self, block: Block, first: bool) -> View | None:
        try:
            if block.X.ndim != 2 or block.X.shape[1] != self.model.columns:
                raise Rejected(
                    f"X has shape {block.X.shape}; the model reads {self.model.columns} columns"
                )
            weight = (
                None
                if block.weight is None
                else array(np.asarray(block.weight), "sample_weight", (len(block.X),))
            )
            if weight is not None and np.any(weight < 0):
                raise Rejected("sample_weight has negative entries")
            if first:
                codes, targets, self.largest[block.start] = self.digest.feed(block.X, block.y, weight)
            else:
                codes, targets = self.digest.read_targets(block.y)
            ones = np.ones(len(block.X)) if weight is None else weight
            return View(block.X, codes, targets, ones, self.largest[block.start], block.start, self.model)
        except (Rejected, Refused, *_SURPRISES) as error:
            self.failure = error
            return None

    def compare(self, name: str) -> None:
        try:
            found = self.digest.hexdigest()
            if self.digest.rows != self.reference.rows:
                raise Rejected(
                    f"the certificate is about {self.reference.rows} {name} rows; {self.digest.rows} are given"
                )
            if found != self.reference.digest:
                raise Rejected(
                    f"these are not the {name} rows the certificate is about: their fingerprint differs"
                )
        except Rejected as error:
            self.failure = error


class _Table:
    """Rows in the order given, and which of them belong to which set (None: all)."""

    def __init__(self, X: Any, y: Any, weight: Any, sets: Mapping[str, np.ndarray | None]):
        self.X, self.y, self.weight, self.sets = X, y, weight, sets
        if not hasattr(X, "blocks"):
            self.X, self.y = _array_of_rows(X), None if y is None else np.asarray(y)
            self.weight = None if weight is None else np.asarray(weight)
            for name, part in (("y", self.y), ("sample_weight", self.weight)):
                if part is not None and (part.ndim < 1 or len(part) != len(self.X)):
                    raise Rejected(f"{name} has {len(part) if part.ndim else 0} rows, X has {len(self.X)}")

    def cut(self) -> Iterator[tuple[str, Block]]:
        """Yield the blocks of each set; `start` counts the rows of that set."""
        source = self.X.blocks() if hasattr(self.X, "blocks") else blocks(self.X, self.y, self.weight)
        for block in source:
            for name, rows in self.sets.items():
                part = block if rows is None else _select(block, rows)
                if len(part.X):
                    yield name, part


def _select(block: Block, rows: np.ndarray) -> Block:
    low, high = np.searchsorted(rows, [block.start, block.start + len(block.X)])
    inside: Any = rows[low:high] - block.start
    if high - low and inside[-1] - inside[0] == high - low - 1:
        inside = slice(int(inside[0]), int(inside[-1]) + 1)
    pick = lambda part: None if part is None else np.asarray(part)[inside]  # noqa: E731
    return Block(pick(block.X), pick(block.y), pick(block.weight), int(low))


def _array_of_rows(X: Any) -> np.ndarray:
    X = np.asarray(X)
    if X.dtype.kind not in "iufb" or X.ndim != 2:
        raise Rejected(f"X must be a two-dimensional array of numbers; it is {X.dtype} of shape {X.shape}")
    if X.dtype.kind in "iu" and X.size and (int(X.max()) > 2**53 or int(X.min()) < -(2**53)):
        raise Rejected("X has integers beyond 2^53, which binary64 does not hold")
    return X


def _tables(certificate: Certificate, X: Any, y: Any, weight: Any, holdout: Any) -> list[_Table]:
    if certificate.split is not None:
        if holdout is not None:
            raise Rejected("the certificate splits one table; pass that table as X, y and no holdout")
        return [] if X is None else [_Table(X, y, weight, _split(certificate))]
    tables = [] if X is None or "train" not in certificate.data else [_Table(X, y, weight, {"train": None})]
    if holdout is not None and "holdout" in certificate.data:
        Xh, yh = holdout if isinstance(holdout, (tuple, list)) and len(holdout) == 2 else (holdout, None)
        tables.append(_Table(Xh, yh, None, {"holdout": None}))
    return tables


def _split(certificate: Certificate) -> dict[str, np.ndarray | None]:
    """Return the sorted row numbers of each set: disjoint, without repeats, as many as the data sets have rows."""
    if set(certificate.split) != {"train", "holdout"} or set(certificate.data) != {"train", "holdout"}:
        raise Rejected("a split names the rows of train and holdout")
    rows = {
        name: np.sort(array(part, f"split of {name}", (None,), integer=True))
        for name, part in certificate.split.items()
    }
    every = np.sort(np.concatenate(list(rows.values())))
    if every.size and every[0] < 0:
        raise Rejected("the split has negative row numbers")
    if np.any(every[1:] == every[:-1]):
        raise Rejected(
            "the split names a row twice: training and hold-out rows must be disjoint and without repeats"
        )
    for name, part in rows.items():
        if len(part) != certificate.data[name].rows:
            raise Rejected(
                f"the split lists {len(part)} {name} rows, the certificate {certificate.data[name].rows}"
            )
    return rows


def _check_structure(certificate: Certificate) -> None:
    """Check everything that needs neither model nor data: format, records, ledger."""
    if not isinstance(certificate, Certificate) or certificate.format != FORMAT:
        raise Rejected(
            f"unknown format {str(getattr(certificate, 'format', type(certificate).__name__))[:40]!r}"
        )
    if not set(certificate.data) <= {"train", "holdout"}:
        raise Rejected(f"unknown data sets {sorted(map(str, certificate.data))}")
    for name, reference in certificate.data.items():
        count(reference.rows, f"rows of {name}", 1)
        count(reference.columns, f"columns of {name}", 1)
        if reference.labels is not None and not all(isinstance(label, str) for label in reference.labels):
            raise Rejected(f"labels of {name} must be strings")
    total = exact_decimal(certificate.delta_total, "delta_total")
    if not 0 < total < 1:
        raise Rejected(f"delta_total must lie between 0 and 1; it is {certificate.delta_total}")
    spent = Fraction(0)
    for claim in certificate.claims:
        spent += _check_claim(claim, certificate)
    for template, delta in certificate.unreported:
        if template not in TEMPLATES:
            raise Rejected(f"unknown template {str(template)[:40]!r} in the ledger")
        spent += exact_decimal(delta, "an unreported delta")
    if spent > total:
        raise Rejected(
            f"the ledger spends {float(spent):.6g}, more than delta_total = {certificate.delta_total}"
        )
    count(certificate.serial, "serial", 1)
    exact_decimal(certificate.session_delta, "session_delta")
    for gap in certificate.not_applicable:
        if gap.template not in TEMPLATES or not isinstance(gap.reason, str):
            raise Rejected(f"unknown template {str(gap.template)[:40]!r} among the claims not made")


def _check_claim(claim: Claim, certificate: Certificate) -> Fraction:
    """Check the fixed part of one claim; return its delta."""
    if not isinstance(claim, Claim) or claim.template not in TEMPLATES:
        raise Rejected(f"unknown template {str(getattr(claim, 'template', claim))[:40]!r}")
    template = TEMPLATES[claim.template]
    number(claim.value, f"value of {template.name}", zero=True)
    if claim.direction not in template.directions:
        raise Rejected(f"{template.name} cannot have the direction {str(claim.direction)[:20]!r}")
    listed = list(claim.assumptions)
    if sorted(map(str, listed)) != sorted(template.assumptions):
        raise Rejected(
            f"{template.name} must carry exactly the assumptions {list(template.assumptions)}; it has {listed}"
        )
    delta = exact_decimal(claim.delta, f"delta of {template.name}")
    if template.fact and delta:
        raise Rejected(f"{template.name} is a fact; its delta must be 0, it is {claim.delta}")
    if not template.fact and not 0 < delta < 1:
        raise Rejected(f"{template.name}: delta must lie between 0 and 1; it is {claim.delta}")
    if not isinstance(claim.params, Mapping) or not isinstance(claim.witness, Mapping):
        raise Rejected(f"{template.name}: params and witness must be mappings")
    if not claim.data or not set(claim.data) <= set(certificate.data):
        raise Rejected(
            f"{template.name} speaks of data sets {tuple(claim.data)} that the certificate does not describe"
        )
    return delta


def _rule(claim: Claim, context: Context) -> Rule:
    if claim.template not in RULES:
        raise Refused("this version has no rule for it")
    rule = RULES[claim.template](claim, context)
    if rule.set not in claim.data:
        raise Rejected(f"it is about the {rule.set} rows, but names {tuple(claim.data)}")
    return rule
