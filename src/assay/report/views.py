"""The result of a study and its leaderboard as plain data, from which report and studio are rendered.

The numbers behind the figures of a study's model: from its hold-out rows, and of its structure (weights, support
vectors, layers, a tree).

Limits are theorems, not error bars, and all that a page shows hold simultaneously, apart from the certificate: half of
delta is for explanations (`explain`), a quarter for thresholds (`theory.holdout`) and a quarter for prediction sets, at
each of `COVERAGES`. All pay for the finalists that were certified on the same rows.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.checker.family import find
from assay.claims.claim import Certificate, Claim
from assay.claims.directory import code, definition
from assay.claims.words import DECLARED, UNDETECTABLE, has_declared_split, population
from assay.data import Table
from assay.explain import explain
from assay.guarantees.ledger import before_looks
from assay.learning import Study, TableModel
from assay.messages import Message, method, plain, render
from assay.messages.claims_zh import CLAIMS
from assay.messages.zh import ASSUMPTIONS, TERMS
from assay.plot import frames, tree_frames
from assay.theory.holdout import joint_limits
from assay.tree._export import ReadableTree, Words, as_text

if TYPE_CHECKING:
    from assay.learning import Candidate


def row(candidate: "Candidate") -> dict[str, Any]:
    """Return a line of the leaderboard as plain data."""
    method, chinese = _names(candidate)
    errors = ("cv", "training_error", "holdout_error", "holdout_metric", "bound", "metric_bound", "seconds")
    settings = ", ".join(f"{name}={value}" for name, value in candidate.settings.items())
    return {name: _finite(getattr(candidate, name)) for name in errors} | {
        "name": str(candidate.name),
        "method": method,
        "zh": chinese,
        "settings": settings[:200],
        "status": candidate.status,
        "note": candidate.note,
    }


def _names(candidate: "Candidate") -> tuple[str, str]:
    """Return the name of a line in English and in Chinese; the model of a fold says so."""
    card = getattr(candidate.kind, "card", None)
    if card is None:
        return str(candidate.name), render(candidate.name, "zh", "page")
    chinese = method(candidate.kind.__name__, card.name, "zh")
    if isinstance(candidate.name, Message):
        named = [Message("name.fold", fold=candidate.name.values["fold"], name=name) for name in (card.name, chinese)]
        return str(named[0]), named[1].render("zh", "page")
    return card.name, chinese


def best_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, of which further settings of a learner that came to nothing are marked as `more`."""
    seen: set[str] = set()
    marked = []
    for item in rows:
        marked.append(item | {"more": item["status"] == "ranked" and item["name"] in seen})
        seen.add(item["name"])
    return marked


def _finite(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


_MEANINGS = {
    "holdout": ("holdout.binomial", "holdout.selection"),
    "loss": ("holdout.kl", "holdout.empirical-bernstein", "holdout.betting"),
    "paired": ("holdout.paired", "holdout.paired-better"),
    "auc": ("holdout.auc",),
    "thresholds": ("holdout.thresholds",),
    "coverage": ("conformal.coverage",),
    "baseline": (
        "holdout.baseline", "holdout.baseline-better", "holdout.median", "cross-validation.baseline",
        "cross-validation.median",
    ),
    "selective": ("selective.risk", "selective.fixed"),
    "cost": ("cost.chosen", "cost.holdout"),
    "calibration": ("calibration.error",),
    "identity": ("data.identity",),
    "training": ("train.errors",),
    "floor": ("train.error-floor",),
    "gap": ("duality-gap", "kernel-duality-gap", "multinomial.gap", "suboptimality"),
    "margin": ("margin.bounds", "kernel-margin.bounds"),
    "tree": ("tree.facts",),
}  # fmt: skip
"""The claims that each explanation is about; others are explained as a fact or a bound."""
_PROVED = {"beats.by", "beats", "beats.even", "ranks", "folds-class.by", "folds-median.by"}
"""Sentences of a study which say that its model is proved to beat the baseline."""


def shown_of(study: Study) -> dict[str, Any]:
    """Return all that pages show of a study."""
    model, certificate = study.model, study.certificate
    return {
        "task": study.task,
        "target": model.target.name,
        "metric": study.metric.name,
        "rows": list(study.rows),
        "folds": len(study.folds),
        "confidence": study.confidence,
        "why": study.why,
        "proved": not _PROVED.isdisjoint(_codes(plain(study.why))),
        "notes": list(study.notes),
        "leaderboard": best_first([row(candidate) for candidate in study.candidates]),
        "learner": type(model.learner).__name__,
        "card": card_of(model.learner),
        "claims": claims_of(certificate),
        "not_claimed": [[_name(gap.name), gap.reason] for gap in certificate.not_applicable],
        "population": population(certificate),
        "declared": DECLARED if has_declared_split(certificate) else "",
        "undetectable": list(UNDETECTABLE),
        "delta": certificate.delta_total,
        "figures": all_of(study),
        "columns": columns_of(model, study.table),
    }


def _codes(record: Any) -> Iterator[str]:
    """Return the codes of a message and of those among its values."""
    if isinstance(record, dict):
        yield str(record.get("code", ""))
        record = list(record.get("values", {}).values())
    if isinstance(record, list):
        for part in record:
            yield from _codes(part)


def card_of(learner: Any) -> dict[str, Any]:
    """Return the card of a fitted learner."""
    card = learner.card
    settings = ", ".join(f"{name}={value!r}" for name, value in sorted(learner.get_params(deep=False).items()))
    return {
        "name": card.name,
        "zh": method(type(learner).__name__, card.name, "zh"),
        "class": type(learner).__name__,
        "model": str(card.model),
        "strategy": card.strategy,
        "algorithm": card.algorithm,
        "guarantee": list(card.guarantee),
        "settings": settings[:600],
    }


def claims_of(certificate: Certificate) -> list[dict[str, Any]]:
    """Return each claim with its sentence and assumptions."""
    best = certificate.tightest
    return [
        {
            "code": code(claim.name),
            "name": claim.kind,
            "fact": claim.is_fact,
            "says": claim.statement,
            "says_zh": in_chinese(claim),
            "means": meaning(claim),
            "delta": claim.delta,
            "best": claim is best,
            "assumes": [[code, _assumption(claim, code), ASSUMPTIONS.get(code, "")] for code in claim.assumptions],
        }
        for claim in certificate.claims
    ]


def in_chinese(claim: Claim) -> str:
    """Return the sentence of a claim in Chinese; "" for one from outside Assay."""
    meaning_of = definition(claim.name)
    texts = None if meaning_of is None else CLAIMS.get(meaning_of.name)
    return "" if texts is None else claim.said(texts, TERMS)


def _assumption(claim: Claim, code: str) -> str:
    meaning_of = definition(claim.name)
    return code if meaning_of is None else meaning_of.assumption(code)


def _name(name: str) -> str:
    result = definition(name)
    return name if result is None else result.name


def meaning(claim: Claim) -> str:
    """Return the key of the words that explain a claim."""
    if claim.name == "train.errors" and claim.data == ("holdout",):
        return "means.counted"
    for key, names in _MEANINGS.items():
        if claim.name in names:
            return f"means.{key}"
    if claim.is_fact:
        return "means.fact"
    return "means.bound" if claim.quantity else "means.new"


COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ROWS, _SHOWN, _DRAWN, _LISTED = 2_000, 12, 3, 10
_GROUP = ("column", "group", "rows", "loss", "low", "high")


def all_of(study: Study) -> dict[str, Any]:
    """Return every figure that the chosen model allows. Where models of folds vote they are of the first of them, and
    there are no thresholds to choose, which would be its own."""
    model, (X, y) = study.judged[0], study.encoded_holdout
    spent = study.explaining
    shown: dict[str, Any] = dict.fromkeys(("confusion", "threshold", "residuals"))
    shown |= _explained(study)
    shown["structure"] = structure(study, [line[0] for line in shown["importance"]])
    if study.task == "classify":
        frame = frames.confusion(model.learner, X, y)
        shown["confusion"] = {"labels": [str(item) for item in frame["labels"]], "counts": frame["counts"].tolist()}
        scored = len(model.classes_) == 2 and hasattr(model.learner, "predict_proba")
        if scored and not study.folds and not spent["grouped"]:
            shown["threshold"] = _thresholds(model.learner, X, y, spent["delta"] * spent["share"] / 4)
    else:
        frame = frames.residuals(model.learner, X, y)
        shown["residuals"] = {key: frame[key][:500].tolist() for key in ("predicted", "residual")}
    total = float(study.certificate.delta_total)
    # what a model remembers pays for finalists and looks by itself
    shown["coverage"] = _coverage(model, X, before_looks(study.certificate) / 4)
    shown["limits"] = None if spent["grouped"] else {"sure": 1 - total, "both": max(0.0, 1 - 2 * total)}
    return shown


def _explained(study: Study) -> dict[str, Any]:
    """Return importance, effects, calibration, the hardest rows and the groups that fare worst, from at most `_ROWS`
    hold-out rows."""
    model, held = study.judged
    if len(held) > _ROWS:
        held = np.sort(np.random.default_rng(0).choice(held, _ROWS, replace=False))
    spent = study.explaining
    said = explain(model, study.raw, held, **(spent | {"delta": spent["delta"] / 2}))
    groups = _lines(said.subgroups, _GROUP)
    if study.task == "classify" and not spent["grouped"]:  # shown to a hundredth of a per cent
        groups = [[*line[:4], np.floor(1e4 * line[4]) / 1e4, np.ceil(1e4 * line[5]) / 1e4] for line in groups]
    calibration = said.calibration and {
        "predicted": said.calibration["probability"],
        **{key: said.calibration[key] for key in ("share", "low", "high")},
    }
    return {
        "clip": said.clip,
        "importance": _lines(said.importance, ("column", "importance", "low", "high"))[:_SHOWN],
        "dependence": _dependence(said.effects),
        "calibration": calibration or None,
        "hardest": _lines(said.hardest, ("row", "true", "predicted", "size"))[:_LISTED],
        "subgroups": sorted(groups, key=lambda line: -line[3] if line[4] is None else -line[4])[:_LISTED],
    }


def _lines(frame: Any, names: tuple[str, ...]) -> list[list[Any]]:
    return [list(line) for line in zip(*(frame[name] for name in names), strict=True)]


def _dependence(effects: Any) -> list[dict[str, Any]]:
    """Return the effects of the first columns, of the last class where there are classes."""
    rows = list(zip(*(effects[key] for key in ("column", "value", "class", "mean")), strict=True))
    last = rows[-1][2] if rows else None
    drawn = []
    for name in list(dict.fromkeys(line[0] for line in rows))[:_DRAWN]:
        mine = [(value, mean) for column, value, label, mean in rows if column == name and label == last]
        numeric = all(isinstance(value, float) for value, _ in mine)
        drawn.append(
            {
                "name": name,
                "class": "" if last is None else str(last),
                "values": [value for value, _ in mine] if numeric else [],
                "levels": [] if numeric else [str(value) for value, _ in mine],
                "means": [mean for _, mean in mine],
            }
        )
    return drawn


def _thresholds(learner: Any, X: np.ndarray, y: np.ndarray, delta: float) -> dict[str, Any]:
    """Return, at each threshold, which share of all rows is missed and which is called wrongly, with limits.

    A row of neither class is wrong wherever it falls: missed below the threshold, called wrongly from it on.
    """
    score, (no, yes) = learner.predict_proba(X)[:, 1], learner.classes_
    at = np.linspace(0, 1, 101).round(2)
    missed = np.searchsorted(np.sort(score[y != no]), at, "left")
    called = np.sum(y != yes) - np.searchsorted(np.sort(score[y != yes]), at, "left")
    limits = joint_limits(missed, called, len(y), delta)
    return {
        "at": at.tolist(),
        "missed": (missed / len(y)).tolist(),
        "called": (called / len(y)).tolist(),
        **{name: _outward(values, name).tolist() for name, values in limits._asdict().items()},
        "classes": [str(label) for label in learner.classes_],
    }


def _outward(values: np.ndarray, name: str) -> np.ndarray:
    """Return limits as they are shown, to a tenth of a per cent: lower ones rounded down, upper ones up."""
    return (np.floor if name.endswith("low") else np.ceil)(1000 * values) / 1000


def _coverage(model: TableModel, X: np.ndarray, delta: float) -> list[dict[str, Any]]:
    """Return how large prediction sets are at each coverage; what it costs to look at all of them is paid."""
    lines = []
    for coverage in COVERAGES:
        try:
            if model.task == "classify":
                size = float(model.sets(X, coverage, delta / len(COVERAGES)).sum(axis=1).mean())
            else:
                low, high = model.intervals(X[:1], coverage, delta / len(COVERAGES))
                size = float(high[0] - low[0]) / 2
            lines.append({"coverage": coverage, "size": size})
        except ValueError:  # too few hold-out rows for this coverage, or a model that remembers none
            continue
    return [line for line in lines if np.isfinite(line["size"])]


def columns_of(model: TableModel, table: Table) -> list[dict[str, Any]]:
    """Return what a form needs of each column: kind, levels, a usual value, and how far values lie apart."""
    results = []
    for kind in model.columns:
        column = table.column(kind.name)
        there = np.flatnonzero(~column.missing)
        one: dict[str, Any] = {"name": kind.name, "kind": kind.kind, "usual": "", "levels": list(kind.levels)}
        if kind.kind == "numeric" and len(there):
            data = column.data[there]
            spread = float(np.subtract(*np.quantile(data, [0.75, 0.25])))
            marks = np.unique(np.quantile(data, np.linspace(0, 1, 21))).tolist()
            one |= {"usual": f"{float(np.median(data)):.6g}", "spread": spread or 1.0, "marks": marks}
        elif kind.levels and len(there):
            known = column.data[there][column.data[there] < len(kind.levels)]
            one["usual"] = kind.levels[int(np.bincount(known.astype(np.intp), minlength=1).argmax())]
        elif len(there):
            one["usual"] = str(column.values()[there[0]])[:200]
        results.append(one)
    return results


_WEIGHTS, _POINTS, _VALUES, _LINES, _DEPTH = 12, 400, 12, 40, 3


def structure(study: Study, columns: Sequence[str]) -> dict[str, Any]:
    """Return the parts of the chosen model; support vectors are shown on the first two of the columns that are
    numbers."""
    model = study.judged[0]
    learner, names = model.learner, model.encoding.feature_names()
    shown: dict[str, Any] = dict.fromkeys(("coefficients", "support", "vectors", "network", "tree", "rules"))
    if np.shape(getattr(learner, "coef_", ()))[-1:] == (len(names),):
        frame = frames.coefficients(learner, names, _WEIGHTS)
        shown["coefficients"] = [frame["names"], frame["values"][:, -1].tolist()]
    arrays = find(learner.family)[1].arrays
    if "support_" in arrays:
        shown["support"] = [len(learner.support_), study.table.n_rows - len(study.judged[1])]
        shown["vectors"] = _vectors(study, columns)
    if "network_sizes_" in arrays:
        shown["network"] = learner.network_sizes_.tolist()
    if isinstance(learner, ReadableTree):
        words = _words(model, names)
        shown["tree"] = _tree(tree_frames.tree(learner, words=words))
        shown["rules"] = as_text(learner.nodes_, words).splitlines()[:_LINES]
    return shown


def _words(model: TableModel, names: list[str]) -> Words:
    """Return the names of the table's columns and levels, as the learner's conditions are to say them."""
    return Words(names, model.encoding.levels(), getattr(model.learner, "classes_", None))


def _tree(frame: Any) -> list[dict[str, Any]]:
    """Return the nodes of the upper levels: place, what it says, the condition that leads to it, and whether more
    follows below."""
    edges = [edge for edge in frame["edges"] if frame["depth"][edge[1]] <= _DEPTH]
    inner, over = {edge[0] for edge in edges}, {child: (parent, text) for parent, child, text in edges}
    drawn = [0, *over]
    ends = sorted((at for at in drawn if at not in inner), key=lambda at: frame["x"][at])
    x = {at: float(i) for i, at in enumerate(ends)}
    for at in sorted(inner, key=lambda at: -frame["depth"][at]):
        below = [x[child] for parent, child, _ in edges if parent == at]
        x[at] = (min(below) + max(below)) / 2
    return [
        {
            "x": x[at],
            "depth": int(frame["depth"][at]),
            "says": frame["text"][at],
            "code": int(frame["code"][at]),
            "condition": over[at][1] if at in over else "",
            "parent": drawn.index(over[at][0]) if at in over else -1,
            "more": at in ends and not frame["leaf"][at],
        }
        for at in drawn
    ]


def _vectors(study: Study, columns: Sequence[str]) -> dict[str, Any] | None:
    """Return training rows on two columns, those that are support vectors ringed."""
    model, held = study.judged
    sources, names = model.encoding.sources(), model.encoding.feature_names()
    kinds = {column.name: column.kind for column in model.encoding.schema}
    drawn = [name for name in columns if kinds.get(name) == "numeric" and name in sources]
    drawn.sort(key=lambda name: len(np.unique(study.table.column(name).data)) < _VALUES)  # few values lie on lines
    chosen = [sources.index(name) for name in drawn[:2]]
    if len(chosen) < 2:
        return None
    rows = study.table.take(np.setdiff1d(np.arange(study.table.n_rows), held))
    X, y = model.encode(rows)[0], model.labels(rows)
    learner, marked = model.learner, np.zeros(len(X), dtype=bool)
    if max(learner.support_, default=0) >= len(X):
        return None  # it was fitted to other rows than these
    marked[learner.support_] = True
    some = np.sort(np.random.default_rng(0).permutation(len(X))[:_POINTS])
    points = X[some][:, chosen]
    codes = np.searchsorted(model.classes_, y[some]) if study.task == "classify" else np.zeros(len(some), dtype=int)
    low, high = points.min(axis=0), points.max(axis=0)
    return {
        "points": points.tolist(),
        "codes": codes.tolist(),
        "x_range": [low[0], high[0]],
        "y_range": [low[1], high[1]],
        "x": names[chosen[0]],
        "y": names[chosen[1]],
        "rings": np.flatnonzero(marked[some]).tolist(),
    }
