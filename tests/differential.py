"""What a model says against what the checker is sure of: `python -m tests.differential --minutes m --seed s`.

Every learner of the registry is fitted to small tables, of single precision too, its stored arrays are changed so that
ties and cancellation become common, and rows are sought on which rounding decides: on borders found by bisection down
to adjacent doubles, at thresholds and their neighbours, midway between rows, copies, sums that cancel, tiny and huge
ones. Wherever the checker is sure of a class `predict` must say it, whatever the batch, the layout and the precision of
the rows; numbers, log-densities, log-likelihoods of sequences and distances must lie within the checker's bounds. A
subject is made from its name, the seed and the round alone (`--only`, `--round`). Models of tables are asked about
cells, which two readers read: `tests.differential_tables`.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from assay.checker.families.topics import Topics
from assay.checker.family import read_model
from assay.checker.numerics import gamma
from assay.checker.predictors import DensityModel, DistanceModel, Predictor, decided
from assay.checker.record import Refused, Rejected
from assay.checker.rules.chains import Chain
from assay.persist import built
from tests.differential_inputs import borderline, changed, in_range, name_of, quiet, subjects, table, task_of, varied

BLOCK = 1500  # rows that a subject is asked at a time
SEQUENCES = 60  # sequences of rows, one by one
_STEPS = 1e-4  # of a bound of ln p(document), which holds at any gamma: steps to gamma multiply what rounding moves


class Count(NamedTuple):
    """Rows that were compared, rows that the checker leaves open, and those on which it is sure of something else."""

    rows: int = 0
    opened: int = 0
    different: int = 0

    def __add__(self, other: Any) -> "Count":
        return Count(*(a + b for a, b in zip(self, other)))


class Found(NamedTuple):
    """The counts of one subject and round, the first difference, why something was not compared, and the families
    of the models that were."""

    count: Count
    detail: str = ""
    why: str = ""
    families: frozenset[str] = frozenset()


# What is compared ---------------------------------------------------------------------------------------------


class Classes:
    """The predicted class, where the checker is sure of one."""

    searched = True  # whether borders are sought by bisection

    @staticmethod
    def said(model: Any, X: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(X))

    def known(self, predictor: Predictor, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the label of each row and whether it is sure; rejected rows have a label of `predict` alone."""
        scores, errors = _scores(predictor, X)
        guess, sure = decided(predictor, X, (scores, errors))
        labels = np.array([*(predictor.classes or ()), ""])
        return labels[np.minimum(guess, len(labels) - 1)], sure

    def agrees(self, known: Any, at: np.ndarray, said: np.ndarray) -> np.ndarray:
        labels, sure = known
        return ~sure[at] | (labels[at] == "") | (labels[at] == said.astype(str))

    def opened(self, known: Any) -> int:
        return int(np.sum(~known[1]))


class Numbers:
    """Numbers between bounds: the prediction of a regression, or what a transformer makes of a row."""

    searched = True

    @staticmethod
    def said(model: Any, X: np.ndarray) -> np.ndarray:
        method = {"regress": "predict", "density": "decision_function"}.get(task_of(model), "transform")
        return np.asarray(getattr(model, method)(X)).reshape(len(X), -1)

    def known(self, predictor: Predictor, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the numbers of each row."""
        scores, errors = _scores(predictor, X)
        errors = np.fmin(errors, predictor.row_errors(X))  # as `checker.rule.View.bounds` does
        return scores - errors, scores + errors

    def agrees(self, known: Any, at: np.ndarray, said: np.ndarray) -> np.ndarray:
        low, high = (end[at].reshape(len(at), -1) for end in known)
        return ((low <= said.reshape(low.shape)) & (said.reshape(low.shape) <= high)).all(axis=1)

    def opened(self, known: Any) -> int:
        return 0


class LogDensities(Numbers):
    """Log-densities."""

    searched = False

    @staticmethod
    def said(model: Any, X: np.ndarray) -> np.ndarray:
        return np.asarray(model.score_samples(X))

    def known(self, predictor: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = predictor.log_bounds(X, np.abs(X).max(axis=0))
        if np.isnan(low).any() or np.isnan(high).any():
            raise Refused("a log-density overflows")
        slack = _STEPS * (1 + np.abs(high)) if isinstance(predictor, Topics) else 0.0
        return low - slack, high + slack


class Likelihoods(Numbers):
    """Log-likelihoods of sequences: each row begins one, of one to five rows."""

    searched = False

    @staticmethod
    def said(model: Any, X: np.ndarray) -> np.ndarray:
        return np.array([model.score(X[i : i + 1 + i % 5]) for i in range(min(SEQUENCES, len(X)))])

    def known(self, predictor: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [predictor.log_likelihood(X[i : i + 1 + i % 5]) for i in range(min(SEQUENCES, len(X)))]
        return np.array([low for low, _ in found]), np.array([high for _, high in found])


class Nearest(Numbers):
    """Squared distances to the nearest of the points, or to the flat, that the model stands for.

    The checker's bounds are those of the true distance, so what the learner's own arithmetic rounds is added here.
    """

    searched = False

    @staticmethod
    def said(model: Any, X: np.ndarray) -> np.ndarray:
        if hasattr(model, "inverse_transform") and not hasattr(model, "cells"):
            apart = X - model.inverse_transform(model.transform(X))
            return np.einsum("ij,ij->i", apart, apart)
        if hasattr(model, "transform") and task_of(model) == "cluster":
            return np.asarray(model.transform(X)).min(axis=1) ** 2
        if hasattr(model, "score"):
            return np.array([-model.score(X[i : i + 1]) for i in range(len(X))])
        apart = X - model.prototypes_[model.cells(X)]
        return np.einsum("ij,ij->i", apart, apart)

    def known(self, predictor: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = predictor.squared_distances(X)
        points = next(
            (getattr(predictor, name) for name in ("centers", "points", "mean") if hasattr(predictor, name)), 0
        )
        size = np.einsum("ij,ij->i", X, X) + float(np.max(np.square(points))) * X.shape[1]
        slack = gamma(200 * X.shape[1] + 200) * size
        return low - slack, high + slack


Face = Classes | Numbers


def face_of(predictor: Any) -> Face | None:
    """Return what the checker can tell of a model's answers; None if no claim is about any."""
    if isinstance(predictor, Chain):
        return Likelihoods()
    if isinstance(predictor, DensityModel):
        return LogDensities()
    if isinstance(predictor, DistanceModel):
        return Nearest()
    if type(predictor).scores is Predictor.scores:
        return None
    return Classes() if predictor.classes is not None else Numbers()


def _scores(predictor: Predictor, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores, errors = predictor.scores(X, np.abs(X).max(axis=0))
    if not np.isfinite(scores).all() or np.isnan(errors).any():
        raise Refused("a score overflows")
    return scores, errors


# Comparison ---------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all": lambda X: X,
    "columns": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
}


def told(face: Face, model: Any, X: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray, Any]]:
    """Yield what the model says in different batches and layouts: its name, the rows' numbers, the answers."""
    for name, laid in LAYOUTS.items():
        said = face.said(model, laid(X))
        yield name, np.arange(len(said)), said
    if isinstance(face, Likelihoods):
        return
    some = rng.permutation(len(X))[:40]
    yield "one by one", some, np.concatenate([face.said(model, X[i : i + 1]) for i in some])
    odd = [X[i : i + 37] for i in range(0, min(len(X), 400), 37)]
    yield "by 37", np.arange(sum(map(len, odd))), np.concatenate([face.said(model, part) for part in odd])


def compare(predictor: Predictor, model: Any, X: np.ndarray, rng: np.random.Generator) -> tuple[Count, str]:
    """Return how many rows were compared, left open and different, and of the first of these what was said.

    Rows of single precision are asked as such and as the same numbers of double precision.
    """
    face = face_of(predictor)
    if face is None or not len(X):
        return Count(), ""
    known = quiet(face.known, predictor, X.astype(np.float64))
    different, detail = np.zeros(len(X), bool), ""
    for name, at, said in quiet(list, told(face, model, X, rng)):
        bad = ~face.agrees(known, at, said)
        if bad.any() and not detail:
            first = np.flatnonzero(bad)[0]
            i = int(at[first])
            detail = f"{X.dtype} {name}: row {X[i].tolist()}, known {[end[i].tolist() for end in known]}"
            detail += f", said {said[first]}"
        different[at] |= bad
    return Count(len(different), face.opened(known), int(different.sum())), detail


def run(model: Any, seed: int, turn: int, size: int = BLOCK) -> Found:
    """Return what one subject and round gave."""
    rng = np.random.default_rng([seed, turn, *name_of(model).encode()])
    X, y = table(model, rng)
    try:
        fitted = quiet(_fitted, model, X, y, rng)
    except ValueError as error:
        return Found(Count(), "", f"fit: {str(error)[:80]}")
    found = Found(Count())
    for way in ("fitted", "single", "stored", "changed"):
        try:
            asked = quiet(clone(fitted).fit, X.astype(np.float32), y) if way == "single" else fitted
            record = changed(asked.stored(), rng) if way == "changed" else asked.stored()
            predictor = read_model(record)
            asked = built(record) if way in ("stored", "changed") else asked
            face = face_of(predictor)
            if face is None:
                return found._replace(why="no claim is about its answers")
            say = (lambda rows, asked=asked, face=face: face.said(asked, rows)) if face.searched else None
            rows = quiet(borderline, asked, say, X, size, rng)
        except (Refused, Rejected, ValueError) as error:
            found = found._replace(why=found.why or f"{type(error).__name__}: {str(error)[:100]}")
            continue
        for part in _parts(fitted, rows):
            found = _taken(found, way, record.family, (predictor, asked, part, rng))
    return found


def _fitted(model: Any, X: np.ndarray, y: Any, rng: np.random.Generator) -> Any:
    """Return the learner fitted, with other choices of its parameters if these suit the table."""
    try:
        return varied(model, rng).fit(X, y)
    except ValueError:
        return clone(model).fit(X, y)


def _parts(model: Any, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows that are asked together: tiny ones, which some families refuse, by themselves, and rows of single
    precision, but for transformers whose answers are then single too."""
    tiny = ((rows != 0) & (np.abs(rows) < 1e-100)).any(axis=1)
    yield rows[~tiny]
    yield rows[tiny]
    preserved = get_tags(model).transformer_tags
    if task_of(model) != "transform" or preserved is None or "float32" not in preserved.preserves_dtype:
        with np.errstate(all="ignore"):
            single = rows[: len(rows) // 3].astype(np.float32)
        yield single[in_range(single.astype(np.float64))]


def _taken(found: Found, way: str, family: str, compared: Any) -> Found:
    try:
        count, detail = compare(*compared)
    except (Refused, Rejected, ValueError) as error:
        return found._replace(why=found.why or f"{type(error).__name__}: {str(error)[:100]}")
    families = found.families | {family} if count.rows else found.families
    return Found(found.count + count, found.detail or (f"{way}, {detail}" if detail else ""), found.why, families)


# The run ------------------------------------------------------------------------------------------------------


class Tally:
    """What was found so far, by family."""

    def __init__(self, seed: int) -> None:
        self.seed, self.turn = seed, 0
        self.by_family: dict[str, Count] = {}
        self.silent: dict[str, str] = {}
        self.findings: dict[str, str] = {}
        self.times: Counter[str] = Counter()

    @property
    def total(self) -> Count:
        return sum(self.by_family.values(), Count())

    def add(self, model: Any, found: Found) -> None:
        """Note what one subject and round gave."""
        name, family = name_of(model), family_of(model)
        self.by_family[family] = self.by_family.get(family, Count()) + found.count
        if not found.count.rows and found.why:
            self.silent[name[:60]] = found.why
        else:
            self.silent.pop(name[:60], None)
        if found.detail and name not in self.findings:
            self.findings[name] = f"{name} --seed {self.seed} --round {self.turn}: {found.detail}"
            print(self.findings[name], flush=True)

    def text(self) -> str:
        lines = [
            f"{family:28} {found.rows:9} rows {found.opened:8} open {found.different:6} different"
            for family, found in sorted(self.by_family.items())
        ]
        lines += [f"nothing compared in the last round: {name}: {why}" for name, why in sorted(self.silent.items())]
        total = self.total
        return "\n".join([*lines, f"{total.rows} rows, {total.opened} open, {total.different} different"])


def fuzz(minutes: float, seed: int = 0, only: str = "", first: int = 0, rows: float = np.inf) -> Tally:
    """Run rounds of all subjects for so long, or until so many rows were compared."""
    from tests import differential_tables

    end, tally = time.monotonic() + 60 * minutes, Tally(seed)
    tally.turn = first
    runs = [(one, run) for one in subjects()] + [
        (one, differential_tables.run) for one in differential_tables.subjects()
    ]
    chosen = [(one, how) for one, how in runs if only.lower() in f"{name_of(one)} {family_of(one)}".lower()]
    while chosen and tally.total.rows < rows and time.monotonic() < end:
        for model, how in chosen:
            try:
                tally.add(model, how(model, seed, tally.turn))
            except Exception:
                tally.add(model, Found(Count(0, 0, 1), traceback.format_exc(limit=-3)))
            if time.monotonic() > end:
                break
        tally.turn += 1
    return tally


def family_of(model: Any) -> str:
    family = type(model).__dict__.get("family", getattr(type(model), "family", ""))
    return family if isinstance(family, str) else type(model).__name__


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, default=0, help="the first round")
    parser.add_argument("--only", default="", help="learners or families whose name contains this")
    asked = parser.parse_args(arguments)
    tally = fuzz(asked.minutes, asked.seed, asked.only, asked.round, asked.rows)
    print(tally.text())
    return int(tally.total.different > 0)


if __name__ == "__main__":
    sys.exit(main())
