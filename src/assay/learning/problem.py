"""What is to be learnt: rows of a table that have a target, which of them are held out, and what training rows give.

Whatever decides how a row becomes numbers (kinds, formats and levels of columns, which columns are left out, the
classes) comes from the training rows alone. Hold-out rows are cells of the source (`data.RawTable`) until the finalists
are fixed; then a model reads them as it reads new rows.

Which rows are held out, and how the others are cut for the choice among learners.

The hold-out rows are drawn once, plainly at random: so they are independent draws, which the certificate rests on.
A stratified draw would not be. With groups, whole groups are drawn; with a time column the newest rows are held out.
The training rows are cut into folds, by class and by group, and small tables again and again: the more often, the
less a choice is made by chance.
"""

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assay.base import Learner
from assay.data import Column, ColumnType, Encoding, RawTable, Table
from assay.data.table import listed
from assay.guarantees.fingerprint import GROUPS, HOLDOUT, permutation
from assay.learning.model import TableModel, checked_input, has_target, read_target, target_values
from assay.learning.suspicions import suspicions
from assay.messages import Message

MOST_CLASSES = 20  # a numeric target with at most so many whole values may be class labels
_FEW = 10  # ... and is read as such up to so many, if they count from 0 or 1 without a gap
_RARE = 0.2
_EXTREME = Message("column.extreme")


@dataclass
class Problem:
    """What is to be learnt. `train` and `held` are row numbers of `raw`; `features`, `y` and `time` are those of the
    training rows, `group` that of all rows; `apart` names the columns of group and time, which are not learnt from. The
    model of a fold is certified on the rows of this fold alone."""

    raw: RawTable
    target: ColumnType
    features: Table
    task: str
    y: np.ndarray
    train: np.ndarray
    held: np.ndarray
    seed: int
    folder: Path
    group: np.ndarray | None = None
    time: np.ndarray | None = None
    apart: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    is_fold: bool = False
    group_name: str = ""
    newest_by: ColumnType | None = None  # the column whose newest rows are held out
    task_is_told: bool = False  # or else seen in the targets
    _views: dict[frozenset[str], tuple[Encoding, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.classes = np.unique(self.y) if self.task == "classify" else np.empty(0)
        self.codes = np.searchsorted(self.classes, self.y) if self.task == "classify" else self.y
        group = None if self.group is None else self.group[self.train]
        self.rungs = rungs(self.codes, self.task == "classify", self.seed, group, self.time)
        self.target_file = str(self.folder / "target.npy")
        np.save(self.target_file, self.codes)
        self.certified = len(self.held) + (0 if self.is_fold else len(self.train))  # rows a certificate is about

    def view(self, kind: type[Learner], plain: bool = False) -> tuple[Encoding, str]:
        """Return the encoding that the training rows give for such a learner, and the file of these rows in it."""
        reads = frozenset({"numbers"}) if plain else checked_input(kind)
        if reads not in self._views:
            encoding = Encoding.fit(self.features, reads)
            path = str(self.folder / f"view{len(self._views)}.npy")
            np.save(path, encoding.apply(self.features))
            self._views[reads] = encoding, path
        return self._views[reads]

    def mean_error(self, y: np.ndarray, predicted: Any) -> float:
        """Return the share of errors, or the mean absolute error."""
        return float(np.mean(y != predicted) if self.task == "classify" else np.mean(np.abs(y - predicted)))

    def whole(self) -> str:
        """Return a file with the rows, their target and their split, for who evaluates on the hold-out rows."""
        path = self.folder / "problem.pickle"
        if not path.exists():
            path.write_bytes(pickle.dumps((self.raw, self.target, self.train, self.held), protocol=5))
        return str(path)

    def held_targets(self) -> np.ndarray:
        """Return the targets of the hold-out rows; classes that training rows lack are among them."""
        return read_target(self.raw.take(self.held), self.target, self.task, self.classes)


def make_problem(
    raw: RawTable, target: str, task: str | None, share: float | None, seed: int, group: str | None, time: str | None,
    folder: Path, in_folds: bool = False, own: np.ndarray | None = None,
) -> Problem:  # fmt: skip
    """Return the problem that rows with a target pose; with `in_folds` no rows are held out, with a share of None the
    usual one; `own` are hold-out rows that were drawn before."""
    notes: list[str] = [raw.note] if raw.note else []
    marks, held, train, known = _drawn(raw, target, task, share, seed, group, time, in_folds, own)
    there = has_target(raw, known.type, task or _task_of(known, []))
    if not there.all() and own is not None:
        count = int((~there).sum())
        raise ValueError(Message("target.not-numbers-looks", rows=count))
    if not there.all():
        notes.append(Message("target.not-numbers", missing=int((~there).sum()), rows=len(there)))
        raw = raw.take(there)
        marks, held, train, known = _drawn(raw, target, task, share, seed, group, time, in_folds, None)
        if not has_target(raw, known.type, task or _task_of(known, [])).all():
            raise ValueError(Message("target.formats", target=target))
    told, task = task is not None, task or _task_of(known, notes)
    y = target_values(known, task)
    apart = tuple(name for name in (group, time) if name)
    features = informative_columns(raw.take(train).without(target, *apart).typed())
    if task == "classify":
        _check_classes(y)
        _tell_imbalance(y, notes)
    for name, why in features.left_out.items():
        code = "note.left-out-folds" if in_folds and why is _EXTREME else "note.left-out"
        notes.append(Message(code, column=name, why=why))
    notes += suspicions(features, y, task, together=bool(group or time))
    notes += _about_marks(group, time)
    by_time = None if marks[1] is None else marks[1][train]
    return Problem(
        raw, known.type, features, task, y, train, held, seed, folder, marks[0], by_time, apart, notes,
        group_name=group or "", newest_by=None if time is None else _times(raw, time).type, task_is_told=told,
    )  # fmt: skip


def fold_problem(whole: Problem, held: np.ndarray, folder: Path) -> Problem:
    """Return the problem of one fold: everything is typed by the rows outside it."""
    train = np.setdiff1d(np.arange(whole.raw.n_rows), held)
    known = training_target(whole.raw, train, whole.target.name, whole.task)
    if (known.type.kind, known.type.written) != (whole.target.kind, whole.target.written):
        raise ValueError(Message("target.mixed", target=known.name))
    if not whole.task_is_told and _task_of(known, []) != whole.task:
        raise ValueError(Message("target.task-open", target=known.name))
    y = target_values(known, whole.task)
    if whole.task == "classify":
        _check_classes(y)
    features = informative_columns(whole.raw.take(train).without(whole.target.name).typed())
    return Problem(
        whole.raw, known.type, features, whole.task, y, train, held, whole.seed, folder, is_fold=True
    )  # fmt: skip


def training_target(raw: RawTable, train: np.ndarray, target: str, task: str | None) -> Column:
    """Return the target of the training rows, typed by them; classes that are no numbers make names of all."""
    rows = raw.take(train).select([target])
    column = rows.typed().column(target)
    if task == "classify" and (column.missing & rows.told(column.type)).any():
        column = rows.as_names(target).typed().column(target)
    if column.type.kind in ("text", "date"):
        raise ValueError(Message("target.free-text" if column.type.kind == "text" else "target.dates", target=target))
    return column


def _drawn(
    raw: RawTable,
    target: str,
    task: str | None,
    share: float | None,
    seed: int,
    group: str | None,
    time: str | None,
    in_folds: bool,
    own: np.ndarray | None,
) -> tuple[list[np.ndarray | None], np.ndarray, np.ndarray, Column]:
    """Return groups and times of the rows, which are held out, which are not, and the target of the latter."""
    marks = [None if group is None else groups_of(raw, group), None if time is None else _times(raw, time).data]
    held = np.empty(0, dtype=np.intp) if in_folds else own
    held = hold_out(raw.n_rows, share, seed, *marks) if held is None else held
    train = np.setdiff1d(np.arange(raw.n_rows), held)
    return marks, held, train, training_target(raw, train, target, task)


def with_target(raw: RawTable, target: str) -> tuple[RawTable, list[str]]:
    """Return the rows that have a target, and a sentence about those that have none."""
    raw.require(target)
    if not raw.n_rows:
        raise ValueError(Message("no-rows", names=listed(raw.names)))
    if len(raw.names) < 2:
        raise ValueError(Message("target.alone", target=target))
    there = raw.present(target)
    if there.all() and len(there):
        return raw, []
    if not there.any():
        raise ValueError(Message("target.empty", target=target))
    return raw.take(there), [Message("target.missing", missing=int((~there).sum()), rows=len(there), target=target)]


def groups_of(raw: RawTable, name: str) -> np.ndarray:
    """Return the group of each row as a number: the place of its value among the sorted ones."""
    values = ["" if item is None else item for item in raw.text(name)]
    return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _times(raw: RawTable, name: str) -> Column:
    raw.require(name)
    column = raw.select([name]).typed().column(name)
    if column.missing.any():
        raise ValueError(Message("time.gaps", column=name))
    if column.type.kind == "text":
        raise ValueError(Message("time.text", column=name))
    return column


def _about_marks(group: str | None, time: str | None) -> list[str]:
    notes: list[str] = []
    if group is not None:
        notes.append(Message("note.groups", column=group))
    if time is not None:
        notes.append(Message("note.newest", column=time))
    return notes


def informative_columns(features: Table) -> Table:
    """Return the columns that something can be learnt from by what these rows hold, without those with numbers of a
    size at which no certificate holds. In other rows such numbers are no reason: they count as gaps there."""
    extreme: dict[str, str] = {
        column.name: _EXTREME for column in features.columns.values() if np.any(column.extreme())
    }
    if features.columns and len(extreme) == len(features.columns):
        raise ValueError(Message("column.no-use", column=next(iter(extreme)), why=_EXTREME))
    plain = (column for column in features.columns.values() if column.name not in extreme)
    return Table(plain, features.left_out | extreme, features.n_rows).useful()


def _task_of(target: Column, notes: list[str]) -> str:
    """Return the task that a target asks for: classes if it is text or a few whole numbers that look like codes."""
    if target.type.kind != "numeric":
        return "classify"
    values = np.unique(target.data[~target.missing])
    whole = len(values) <= MOST_CLASSES and bool((values == np.round(values)).all())
    codes = whole and len(values) <= _FEW and values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1
    if not whole:
        return "regress"
    classes = codes or len(values) == 2
    code, other = ("target.as-classes", "regress") if classes else ("target.as-numbers", "classify")
    notes.append(Message(code, target=target.name, count=len(values), task=other))
    return "classify" if classes else "regress"


def _check_classes(y: np.ndarray) -> None:
    known = np.unique(y)
    if len(known) < 2:
        raise ValueError(Message("target.one-class", label=str(known[0])))


def _tell_imbalance(y: np.ndarray, notes: list[str]) -> None:
    labels, counts = np.unique(y, return_counts=True)
    share = counts.min() / len(y)
    if len(labels) == 2 and share < _RARE:
        notes.append(Message("target.imbalance", share=100 * float(share), label=str(labels[counts.argmin()])))


def about_held_rows(problem: Problem, model: TableModel) -> list[str]:
    """Return what there is to say of the hold-out rows once a model has been evaluated on them: new classes, numbers
    that count as gaps, copies of training rows."""
    notes: list[str] = []
    held = problem.raw.take(problem.held)
    if problem.task == "classify":
        y = problem.held_targets()
        new = ~np.isin(y, problem.classes)
        if new.any():
            strange = sorted(set(held.text(problem.target.name)[new]))[:5]
            notes.append(Message("note.unseen-classes", count=int(new.sum()), rows=len(y), labels=strange))
    for column in model.read(held, lenient=True).columns.values():
        count = int(np.sum(column.extreme()))
        if count:
            notes.append(Message("note.extreme", column=column.name, count=count))
    part = np.zeros(problem.raw.n_rows, dtype=np.int64)
    part[problem.held] = 1
    copies = copied(model.raw(problem.raw), part)[1]
    if copies > max(1, len(problem.held) // 100):
        notes.append(Message("note.copies", copies=int(copies), rows=len(problem.held)))
    return notes


def copied(rows: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return how many rows of each part have the columns of a row of another part."""
    count = int(part.max()) + 1
    if rows.shape[1] >= 64:
        return np.zeros(count, dtype=np.int64)
    random = np.random.default_rng(0)
    digests = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:  # bits of the numbers, mixed, times an odd number that is the column's own
        bits = np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
        digests += (bits ^ (bits >> np.uint64(29))) * np.uint64(2 * int(random.integers(2**63)) + 1)
        digests ^= digests >> np.uint64(31)
    return np.array([np.isin(digests[part == k], digests[part != k]).sum() for k in range(count)])


def default_clip(y: np.ndarray) -> float:
    """Return where absolute errors are clipped unless told: the largest error of the median on the training rows."""
    return float(np.abs(y - np.median(y)).max()) or 1.0


FOLDS = 5


@dataclass(frozen=True)
class Pair:
    """Rows to fit and rows to judge on, both counted among the training rows."""

    fit: np.ndarray
    judge: np.ndarray


def usual_share(n: int) -> float:
    """Return the share of n independent draws (rows, or groups) that is held out unless told: a quarter, less of many.

    It is where a bound is expected to be least: an error of 10 % that falls as the rows it was learnt from to the power
    -0.3, plus 1.645 standard errors of the rows it is measured on. Of fewer than 2,000 that would be more than a
    quarter, at the cost of the model.

    >>> [round(usual_share(n), 2) for n in (1_000, 10_000, 500_000)]
    [0.25, 0.16, 0.05]
    """
    shares = np.linspace(0.01, 0.25, 241)
    expected = 0.1 * (1 - shares) ** -0.3 + 1.645 * np.sqrt(0.1 * 0.9 / (shares * n))
    return float(shares[expected.argmin()])


def hold_out(n: int, share: float | None, seed: int, group: np.ndarray | None, time: np.ndarray | None) -> np.ndarray:
    """Return the numbers of the hold-out rows, in increasing order; None is the usual share."""
    share = usual_share(n if group is None else len(np.unique(group))) if share is None else share
    wanted = round(n * share)
    if not 0 < share < 1 or wanted < 1 or n - wanted < 2:
        raise ValueError(Message("split.small", share=float(f"{share:g}"), rows=n))
    if time is not None:
        held = np.flatnonzero(time >= np.sort(time)[n - wanted])
        if not 0 < len(held) < n - 1:
            raise ValueError(Message("split.times"))
        return held
    if group is None:
        return np.sort(permutation(n, seed, HOLDOUT)[:wanted])
    names, codes = np.unique(group, return_inverse=True)
    if len(names) < 4:
        raise ValueError(Message("split.groups", groups=len(names)))
    count = min(max(1, round(len(names) * share)), len(names) - 2)
    return np.flatnonzero(np.isin(codes, permutation(len(names), seed, GROUPS)[:count]))


def rungs(y: np.ndarray, classes: bool, seed: int, group: np.ndarray | None, time: np.ndarray | None) -> list:
    """Return the steps of the choice: each has the pairs on which a candidate that comes so far is judged."""
    n = len(y)
    if time is not None:
        return _forward(time)
    if n > 30_000:
        return _on_one_part(n, seed, group)
    repeats = 1 if n > 8_000 else 2 if n > 2_500 else 3 if n > 400 else 5
    pairs = [pair for r in range(repeats) for pair in _folds(y, classes, [seed, r], group)]
    if n > 8_000:
        return [pairs[:1], pairs[1:3]]
    if n > 2_500:
        return [pairs[:2], pairs[2:5]]
    return [pairs[:FOLDS], pairs[FOLDS:]]


def _folds(y: np.ndarray, classes: bool, seed: list[int], group: np.ndarray | None) -> list[Pair]:
    """Return folds with nearly equal shares of each class (of sorted numbers, of each part); groups stay together."""
    random, n = np.random.default_rng([1, *seed]), len(y)
    units = np.arange(n) if group is None else np.unique(group, return_inverse=True)[1]
    first = np.unique(units, return_index=True)[1]
    drawn = random.permutation(len(first))
    by = y[first][drawn]
    order = drawn[np.argsort(by, kind="stable")]
    fold_of_unit = np.empty(len(first), dtype=np.int64)
    fold_of_unit[order] = np.arange(len(first)) % FOLDS
    fold = fold_of_unit[units]
    results = [Pair(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(FOLDS)]
    return [pair for pair in results if len(pair.judge) and len(pair.fit)]


def _on_one_part(n: int, seed: int, group: np.ndarray | None) -> list[list[Pair]]:
    """Return steps for many rows: a fifth judges, at most 50,000; 10,000 rows are fitted first, then all others."""
    random = np.random.default_rng([2, seed])
    if group is None:
        order = random.permutation(n)
    else:
        codes = np.unique(group, return_inverse=True)[1]
        order = np.argsort(random.permutation(codes.max() + 1)[codes], kind="stable")
    judge = np.sort(order[: min(n // FOLDS, 50_000)])
    rest = order[len(judge) :]
    return [[Pair(np.sort(random.permutation(rest)[:10_000]), judge)], [Pair(np.sort(rest), judge)]]


def _forward(time: np.ndarray) -> list[list[Pair]]:
    """Return pairs in which the rows that judge are newer than those that are fitted."""
    parts = np.array_split(np.argsort(time, kind="stable"), FOLDS + 1)
    pairs = [Pair(np.sort(np.concatenate(parts[:k])), np.sort(parts[k])) for k in range(1, FOLDS + 1)]
    return [pairs[-2:], pairs[:-2]]
