"""The checker: judges a certificate from the model's numbers and the data alone.

`verify` recomputes fingerprints, then lets each claim's rule see the rows, block by block and on one thread, in as
few passes as the rules need; every rule bounds its own rounding. It calls no learner, no solver and no metric.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from assay.certificate.claim import Certificate, Claim, DataReference
from assay.certificate.rules import (
    boosting,
    clusters,
    compression,
    duality,
    expansions,
    facts,
    flats,
    folds,
    geometry,
    glm,
    gradient,
    kernels,
    leave_one_out,
    linear_machines,
    machines,
    margins,
    mixtures,
    moments,
    multinomial,
    neighbors,
    networks,
    occam,
    online,
    pac_bayes,
    pruning,
    rademacher,
    regression,
    risk,
    scatter,
    spectrum,
    stability,
    trees,
    votes,
)
from assay.certificate.rules import holdout as holdout_rules
from assay.certificate.rules.identity import WITHOUT_TARGET, DataDigest, read_model, row_keys
from assay.certificate.rules.predictors import Predictor
from assay.certificate.rules.record import Refused, Rejected, array, check_record
from assay.certificate.rules.rule import Context, Rule, View
from assay.certificate.templates import TEMPLATES
from assay.certificate.verdict import Report, Verdict
from assay.data.blocks import Block, blocks

RULES: dict[str, type[Rule]] = {
    "D01/1": facts.DataIdentity,
    "D02/1": facts.TrainErrors,
    "D03/1": facts.ErrorFloor,
    "D04/1": duality.NamedGap,
    "D05/1": gradient.Suboptimality,
    "D06/1": duality.RidgeGap,
    "D06/2": kernels.KernelRidgeGap,
    "D08/1": duality.LogisticGap,
    "D08/2": expansions.KernelLogisticGap,
    "D09/1": multinomial.MultinomialGap,
    "D10/1": kernels.HingeGap,
    "D10/2": linear_machines.LinearHingeGap,
    "D11/1": kernels.InsensitiveGap,
    "D11/2": linear_machines.LinearInsensitiveGap,
    "D12/1": machines.OneClassGap,
    "D13/1": geometry.Margin,
    "D13/2": kernels.KernelMargin,
    "D14/1": geometry.Inseparable,
    "D15/1": duality.Enclosure,
    "D15/2": machines.KktResidual,
    "D16/1": leave_one_out.PressError,
    "D16/2": leave_one_out.LeaveOneOutErrors,
    "D16/3": neighbors.LeaveOneOut,
    "D17/1": geometry.PerceptronMistakes,
    "D17/2": expansions.KernelMistakes,
    "D18/2": spectrum.KernelComponents,
    "D19/1": scatter.FisherOptimality,
    "D19/3": moments.GaussianClasses,
    "D19/2": expansions.KernelFisher,
    "D18/1": flats.FlatOptimality,
    "D20/1": clusters.FixedPoint,
    "D21/1": clusters.LowerBound,
    "D22/1": clusters.LineOptimum,
    "P26/1": clusters.ClusterRisk,
    "P26/2": flats.FlatRisk,
    "D23/1": mixtures.LogLikelihood,
    "D23/2": mixtures.Stationary,
    "D23/3": mixtures.BestWeights,
    "D23/4": mixtures.Monotone,
    "D28/2": mixtures.HistogramCounts,
    "D32/1": glm.GlmStationarity,
    "D07/1": duality.LassoGap,
    "D24/1": trees.BoostingProduct,
    "D25/1": boosting.MarginDuality,
    "D27/1": trees.TreeSize,
    "D30/1": neighbors.Neighbors,
    "D33/1": pruning.PrunedTree,
    "D34/1": networks.NetworkGradient,
    "P01/1": risk.HoldoutBinomial,
    "P02/1": risk.Hoeffding,
    "P03/1": holdout_rules.KullbackLeibler,
    "P04/1": risk.EmpiricalBernstein,
    "P05/1": holdout_rules.Betting,
    "P06/1": holdout_rules.AreaUnderCurve,
    "P06/2": holdout_rules.Thresholds,
    "P06/3": holdout_rules.Paired,
    "P07/1": risk.HoldoutSelect,
    "P08/1": risk.FiniteClass,
    "P09/1": occam.Occam,
    "P10/1": risk.Vc,
    "P11/1": rademacher.StumpComplexity,
    "P12/1": margins.Ramp,
    "P13/1": margins.MulticlassRamp,
    "P14/1": margins.L1Ramp,
    "P16/1": compression.PerceptronCompression,
    "P16/2": compression.SupportCompression,
    "P15/1": boosting.BoostingMargin,
    "P16/3": compression.KernelPerceptronCompression,
    "P17/1": stability.UniformStability,
    "P17/2": stability.StabilityInBall,
    "P18/1": pac_bayes.LinearPacBayes,
    "P19/1": votes.OutOfBagVote,
    "P16/4": online.VotedCompression,
    "P20/1": online.ProgressiveVote,
    "P22/1": folds.FoldMean,
    "P23/1": neighbors.LeaveOneOutRisk,
    "P24/1": regression.NormRisk,
    "P25/1": holdout_rules.Coverage,
}
_HELD = 2**22  # numbers that a model makes of the rows of one view
_TELLING = 10  # so many hold-out rows, all among training rows of which no two are equal, are no coincidence
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
    model : object with the fitted arrays of its family (`coef_`, `intercept_`, `classes_`)
    X, y, sample_weight : the training rows; the whole table if the certificate has a split.
        Instead of arrays, X may be an object with `blocks()`, which yields its rows in order.
    holdout : (X, y) of the hold-out rows, when the certificate has no split

    Returns
    -------
    Report
        `holds`, a verdict per claim, and the reason in words.
    """
    try:
        check_record(certificate)
        predictor, digest = read_model(model, certificate.model.family)
        if digest != certificate.model.digest:
            raise Rejected("this is not the model the certificate is about: its parameters have another fingerprint")
        return _Check(certificate, predictor, _tables(certificate, X, y, sample_weight, holdout)).report()
    except (Rejected, Refused, *_SURPRISES) as error:
        return Report(_failed("certificate", error))


class _Check:
    """One run of the checker: the data sets, the rules, and what went wrong with either."""

    def __init__(self, certificate: Certificate, model: Predictor, tables: "list[_Table]"):
        self.certificate, self.tables = certificate, tables
        two = len(certificate.data) > 1
        has_target = certificate.model.family not in WITHOUT_TARGET
        self.sets = {name: _Set(reference, model, two, has_target) for name, reference in certificate.data.items()}
        for name, part in self.sets.items():
            if not any(name in table.sets for table in tables):
                how = "pass the whole table as X, y" if certificate.split is not None else _HOW[name]
                part.failure = Refused(f"the {name} rows are not given; {how}")
        rows = {name: reference.rows for name, reference in certificate.data.items()}
        self.context = Context(certificate, model, rows)
        self.most = max(1, _HELD // getattr(model, "width", 1))
        self.rules, self.failures = self.context.rules, self.context.failures
        for position, claim in enumerate(certificate.claims):
            rule = self._step(position, partial(_rule, claim, self.context))
            if rule is not None:
                self.rules[position] = rule

    def report(self) -> Report:
        """Pass over the rows as often as a rule asks for it, then judge each claim."""
        waiting = self._pass(list(self.rules), first=True)
        for name, part in self.sets.items():
            part.close(name)
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
        if len(held) < _TELLING or not all(np.any(kept == key) for key in held[:_TELLING]):
            return
        kept.sort()
        met = kept[np.minimum(np.searchsorted(kept, held), len(kept) - 1)] == held
        if met.all() and not np.any(kept[1:] == kept[:-1]):
            holdout.failure = Rejected("every hold-out row is one of the training rows: they were not held out")

    def _pass(self, positions: list[int], first: bool) -> list[int]:
        for table in self.tables:
            for name, block in table.cut(self.most):
                view = self.sets[name].view(block, first)
                for position in positions:
                    if view is not None and self.rules[position].set == name and position not in self.failures:
                        self._step(position, partial(self.rules[position].block, view))
        return positions

    def _sound(self, position: int) -> bool:
        return position not in self.failures and self.sets[self.rules[position].set].failure is None

    def _judge(self, position: int, claim: Claim) -> Verdict:
        name, measured = TEMPLATES[claim.template].name, math.nan
        if position in self.rules:
            rule = self.rules[position]
            broken = self.sets[rule.set].failure
            if broken is not None:
                self.failures.setdefault(position, broken)
            if position not in self.failures:
                measured = self._step(position, rule.measure)
        if position in self.failures:
            return _failed(name, self.failures[position])
        upper = claim.direction == "upper"
        if not (measured <= claim.value if upper else measured >= claim.value):  # also when measured is NaN
            claimed = f"claimed {'<=' if upper else '>='} {claim.value:.10g}, measured {measured:.10g}"
            return Verdict(name, "REJECTED", claimed, measured)
        return Verdict(name, "PROVED" if TEMPLATES[claim.template].fact else "PROVED-GIVEN", "", measured)

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
    return Verdict(name, "REJECTED", f"it is malformed ({type(failure).__name__}: {str(failure)[:80]})")


def _rule(claim: Claim, context: Context) -> Rule:
    if claim.template not in RULES:
        raise Refused("this version has no rule for it")
    rule = RULES[claim.template](claim, context)
    if rule.set not in claim.data:
        raise Rejected(f"it is about the {rule.set} rows, but names {tuple(claim.data)}")
    return rule


class _Set:
    """One data set while it is read: its fingerprint, the column ranges of its blocks, what went wrong with
    it."""

    def __init__(self, reference: DataReference, model: Predictor, keep_keys: bool, has_target: bool):
        self.reference, self.model, self.keep_keys = reference, model, keep_keys
        self.failure: Exception | None = None
        self.digest = DataDigest(reference.labels, model.classes, has_target)
        self.largest: dict[int, np.ndarray] = {}
        self.keys: list[np.ndarray] = []  # one number per row, equal for equal rows; kept to compare two sets

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
            if first:
                self.largest[block.start] = self.digest.feed(block.X, targets, weight)
                if self.keep_keys:
                    self.keys.append(row_keys(block.X))
            weight = np.ones(rows) if weight is None else weight
            return View(block.X, codes, targets, weight, self.largest[block.start], block.start, self.model)
        except (Rejected, Refused, *_SURPRISES) as error:
            self.failure = error
            return None

    def close(self, name: str) -> None:
        """Compare the rows seen with the ones the certificate is about."""
        given, stated = self.digest.rows, self.reference.rows
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
