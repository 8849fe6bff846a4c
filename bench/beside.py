"""What is promised beside certificate and sentence: sets, intervals, explanations, slider, comparisons, warnings."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.explain import compare
from assay.report import views
from assay.studio.pages.model import cost_lines
from bench.fresh import Estimate, Fresh, mean, share, write
from bench.table_worlds import TARGET, World
from bench.truth import Limit

DELTA = 0.05
COVERAGES = (0.5, 0.8, 0.9)
COSTS = ((1.0, 1.0), (5.0, 1.0), (1.0, 5.0))
NEW_ROWS = 200
_SECOND = {"classify": "GaussianNB", "regress": "KNeighborsRegressor"}
_UNSEEN = "do not look like those that the model was learnt from"

Found = tuple[list[Limit], list[str]]


def more(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    """Return the limits that a world asks for beside those of certificate and sentence, and what was not judged."""
    limits: list[Limit] = []
    unknown: list[str] = []
    for what in world.also:
        own, missed = _KINDS[what](world, found, table, rng)
        limits += own
        unknown += missed
    return limits, unknown


def _sets(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    """Sets at each coverage, and those of the report's figure, which hold together."""
    model = found.model
    labels = model.classes_.astype(str)

    def covered(coverage: float, delta: float, fresh: Fresh) -> Estimate:
        inside = model.predict_set(fresh.path, coverage, delta)
        return share((inside & (fresh.labels[:, None] == labels)).any(axis=1))

    return _of_coverage("set", covered, partial(model.predict_set, table))


def _intervals(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    def covered(coverage: float, delta: float, fresh: Fresh) -> Estimate:
        low, high = found.model.predict_interval(fresh.path, coverage, delta)
        return share((low <= fresh.y) & (fresh.y <= high))

    return _of_coverage("interval", covered, partial(found.model.predict_interval, table))


def _of_coverage(what: str, covered: Any, given: Any) -> Found:
    """Return a limit for each coverage that so many hold-out rows can promise."""
    each = DELTA / len(views.COVERAGES)
    asked = [(f"{what} of {coverage:.0%}", coverage, DELTA) for coverage in COVERAGES]
    asked += [(f"{what}s drawn", coverage, each) for coverage in views.COVERAGES]
    limits = []
    for name, coverage, delta in asked:
        try:
            given(coverage, delta)
        except ValueError:
            continue
        limits.append(Limit(name, DELTA, "lower", coverage, partial(covered, coverage, delta)))
    return limits, []


def _explain(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    """Limits of importance, groups and calibration, which hold together."""
    said, model = found.explain(), found.model
    limits: list[Limit] = []
    unknown: list[str] = []

    def between(kind: str, low: float, high: float, truth: Any) -> None:
        for name in (f"explain {kind}", "explain together"):
            limits.append(Limit(name, DELTA, "lower", low, truth))
            limits.append(Limit(name, DELTA, "upper", high, truth))

    for column, low, high in _lines(said.importance, "column", "low", "high"):
        between("importance", low, high, _once(partial(_growth, model, column, int(rng.integers(2**31)))))
    for column, group, low, high in _lines(said.subgroups, "column", "group", "low", "high"):
        if group == "missing" or isinstance(_bounds(group), tuple) or _is_nominal(model, column):
            between("subgroups", low, high, partial(_in_group, model, column, group))
        else:
            unknown.append(f"explain subgroup {column} {group}")
    if said.calibration:
        rows, own = found.holdout
        probability = np.sort(model.predict_proba(rows)[:, 1])
        ends = np.cumsum(said.calibration["rows"])
        tied = len(model.classes_) != 2 or len(np.unique(probability)) < len(probability)
        if tied or ends[-1] != len(own):
            unknown.append("explain calibration of tied probabilities")
        else:
            starts = np.concatenate([[0], ends[:-1]])
            for a, b, low, high in zip(starts, ends, said.calibration["low"], said.calibration["high"], strict=True):
                between("calibration", low, high, partial(_in_bin, model, probability[a], probability[b - 1]))
    return limits, unknown


def _lines(frame: Any, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(frame[name] for name in names), strict=True))


def _once(truth: Any) -> Any:
    """Return the function that computes a truth once for the same rows."""
    known: dict[int, tuple[Fresh, Estimate]] = {}

    def computed(fresh: Fresh) -> Estimate:
        if id(fresh) not in known:
            known[id(fresh)] = fresh, truth(fresh)
        return known[id(fresh)][1]

    return computed


def _growth(model: Any, column: str, seed: int, fresh: Fresh) -> Estimate:
    """Return how much the mean loss grows when a column is shuffled."""
    said = model.predict(fresh.shuffled(column, np.random.default_rng(seed)))
    moved = said.astype(str) != fresh.labels if model.task == "classify" else np.abs(said - fresh.y)
    return mean(moved - fresh.losses(model))


def _is_nominal(model: Any, column: str) -> bool:
    return any(one.name == column and one.kind in ("nominal", "ordered") for one in model.columns)


def _bounds(group: str) -> tuple[float, float] | None:
    found = re.fullmatch(r"(?:up to (?P<most>\S+)|above (?P<least>\S+)|(?P<low>\S+) to (?P<high>\S+))", group)
    if found is None:
        return None
    try:
        return float(found["low"] or found["least"] or -np.inf), float(found["high"] or found["most"] or np.inf)
    except ValueError:
        return None


def _in_group(model: Any, column: str, group: str, fresh: Fresh) -> Estimate:
    """Return the mean loss of the rows of a group; groups by a number are named by their ends."""
    cells = fresh.columns[column]
    if group == "missing":
        inside = np.array([cell is None for cell in cells.tolist()])
    elif _is_nominal(model, column):
        inside = cells.astype(str) == group
    else:
        ends = _bounds(group)
        assert ends is not None
        inside = (cells > ends[0]) & (cells <= ends[1])
    losses = fresh.losses(model)[inside]
    return share(losses) if model.task == "classify" else mean(losses)


def _in_bin(model: Any, low: float, high: float, fresh: Fresh) -> Estimate:
    """Return how often the second class happens where its probability is said to lie between two numbers."""
    said = fresh.said(model, "predict_proba")[:, 1]
    return share(~fresh.is_not(model.classes_[1])[(low <= said) & (said <= high)])


def _slider(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    """The mean cost at each threshold of the studio's slider, for several costs."""
    curve = views.all_of(found)["threshold"]
    if curve is None:
        return [], []
    limits = []
    for miss, alarm in COSTS:
        lines = cost_lines(curve, miss, alarm)
        for at, low, high in zip(curve["at"], lines["low"], lines["high"], strict=True):
            truth = partial(_cost_at, found.model, at, miss, alarm)
            limits += [Limit("slider cost", DELTA, side, end, truth) for side, end in (("lower", low), ("upper", high))]
    return limits, []


def _cost_at(model: Any, at: float, miss: float, alarm: float, fresh: Fresh) -> Estimate:
    second, own = fresh.said(model, "predict_proba")[:, 1] >= at, ~fresh.is_not(model.classes_[1])
    return mean(miss * (own & ~second) + alarm * (~own & second))


def _compare(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    """Two models of one table, on the rows that neither was fitted to, and on new rows."""
    options = {**world.options, "learners": (_SECOND[found.task],), "seed": 1}
    other = assay.learn(table, TARGET, workers=0, **options)
    files = [table.with_name(name) for name in ("first.assay", "second.assay")]
    for study, file in zip((found, other), files, strict=True):
        study.save(file)
    new = table.with_name("compared.csv")
    write(world.draw(rng, NEW_ROWS), new)
    limits: list[Limit] = []
    unknown: list[str] = []
    for where, source in (("own", table), ("new", new)):
        result = compare(*(assay.load(file) for file in files), source)
        said = " ".join(result.sentences)
        truth = _difference(said, found.model, other.model)
        if truth is None:
            unknown.append(f"compare: {result.sentences[-1]}")
            continue
        ends = (("lower", result.low), ("upper", result.high))
        limits += [Limit(f"compare on {where} rows", DELTA, side, end, truth) for side, end in ends]
    return limits, unknown


def _difference(said: str, first: Any, second: Any) -> Any:
    """Return what a comparison says that it limits; None if its words are not known here."""
    if "error rate of the first minus that of the second" in said:
        return lambda fresh: mean(1.0 * fresh.wrong(first) - fresh.wrong(second))
    if "share of rows in which the first is further off than the second, less one half" in said:
        return lambda fresh: mean(1.0 * (fresh.off(first) > fresh.off(second)) - 0.5)
    if "share of all rows in which the first is further off, less that in which it is nearer" in said:
        return lambda fresh: mean(np.sign(fresh.off(first) - fresh.off(second)))
    counted = re.search(r"absolute error \(errors clipped at (\S+)\) of the first minus that of the second", said)
    if counted:
        clip = float(counted[1])
        return lambda fresh: mean(fresh.off(first, clip) - fresh.off(second, clip))
    return None


def _drift(world: World, found: Any, table: Path, rng: np.random.Generator) -> Found:
    """`assay predict` says of rows of the same source once in so many times that they look otherwise."""
    file, new = table.with_name("drift.assay"), table.with_name("drift.csv")
    found.save(file)
    write(world.draw(rng, NEW_ROWS), new)
    result = CliRunner().invoke(app, ["predict", str(file), str(new), "--out", str(table.with_name("out.csv"))])
    if result.exit_code:
        return [], [f"drift: {result.output}"]
    alarm = _UNSEEN in result.output
    every = re.search(r"once in (\d+) times", result.output)
    delta = 1 / float(every[1]) if every else 0.01
    return [Limit("false alarm of other rows", delta, "upper", 0.5, lambda _: Estimate(float(alarm), 0.0))], []


_KINDS = {
    "sets": _sets, "intervals": _intervals, "explain": _explain, "slider": _slider, "compare": _compare,
    "drift": _drift,
}  # fmt: skip
