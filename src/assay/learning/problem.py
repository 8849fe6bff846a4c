"""The table that is learnt from: its target, its usable columns, its split, and what each kind of learner sees."""

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assay.base import Learner
from assay.data import Column, Encoding, Table
from assay.learning.model import checked_input, target_values
from assay.learning.split import hold_out, rungs

MOST_CLASSES = 20  # a numeric target with at most so many whole values may be class labels
_FEW = 10  # ... and is read as such up to so many, if they count from 0 or 1 without a gap
_RARE = 0.2
_EXTREME = (
    "it has numbers beyond 1e150, or nearer to zero than 1e-150, with which no certificate holds; empty these cells, "
    "or multiply the column by a constant."
)


@dataclass
class Problem:
    """What is to be learnt. Row numbers count in `table`, which has the rows of known classes alone; the model of a
    fold is certified on the rows of this fold alone."""

    table: Table
    target: Column
    features: Table
    task: str
    y: np.ndarray
    held: np.ndarray
    seed: int
    folder: Path
    group: np.ndarray | None = None
    time: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    is_fold: bool = False
    _views: dict[frozenset[str], tuple[Encoding, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.train = np.setdiff1d(np.arange(len(self.y)), self.held)
        self.classes = np.unique(self.y[self.train]) if self.task == "classify" else np.empty(0)
        own = self.y[self.train]
        self.codes = np.searchsorted(self.classes, own) if self.task == "classify" else own
        parts = [None if part is None else part[self.train] for part in (self.group, self.time)]
        self.rungs = rungs(self.codes, self.task == "classify", self.seed, *parts)
        self.target_file = str(self.folder / "target.npy")
        np.save(self.target_file, self.codes)
        self.certified = len(self.held if self.is_fold else self.y)  # rows that a certificate is about

    def view(self, kind: type[Learner], plain: bool = False) -> tuple[Encoding, str]:
        """Return the encoding that the training rows give for such a learner, and the file of these rows in it."""
        reads = frozenset({"numbers"}) if plain else checked_input(kind)
        if reads not in self._views:
            rows = self.features.take(self.train)
            encoding = Encoding.fit(rows, reads)
            path = str(self.folder / f"view{len(self._views)}.npy")
            np.save(path, encoding.apply(rows))
            self._views[reads] = encoding, path
        return self._views[reads]

    def mean_error(self, rows: np.ndarray, predicted: Any) -> float:
        """Return the share of errors, or the mean absolute error, on some rows."""
        y = self.y[rows]
        return float(np.mean(y != predicted) if self.task == "classify" else np.mean(np.abs(y - predicted)))

    def whole(self) -> str:
        """Return a file with the table, its target and its split, for who opens the hold-out rows."""
        path = self.folder / "problem.pickle"
        if not path.exists():
            path.write_bytes(pickle.dumps((self.table, self.target.type, self.y, self.held), protocol=5))
        return str(path)


def posed(
    table: Table, target: str, task: str | None, share: float | None, seed: int, group: str | None, time: str | None,
    folder: Path, in_folds: bool = False,
) -> Problem:  # fmt: skip
    """Return the problem that a table and a target pose; `in_folds` no rows are held out, with a share of None the
    usual one."""
    table, dropped = table.with_target(target)
    notes: list[str] = [dropped] if dropped else []
    features, column = table.split_target(target)
    task = task or _task_of(column, notes)
    y = target_values(column, task)
    marks = [None if name is None else table.column(name).data for name in (group, time)]
    held = np.empty(0, dtype=np.intp) if in_folds else hold_out(table.n_rows, share, seed, *marks)
    if task == "classify":
        keep = _known_classes(y, held, notes)
        held = np.flatnonzero(np.isin(np.flatnonzero(keep), held))
        table, features, column, y = (
            table.take(keep),
            features.take(keep),
            Column(column.type, column.data[keep]),
            y[keep],
        )
        marks = [None if one is None else one[keep] for one in marks]
        _tell_imbalance(y, notes)
    features = features.without(*(name for name in (group, time) if name))
    told = of_use(features, np.setdiff1d(np.arange(len(y)), held))
    features = features if in_folds else told  # each fold tells for itself which columns are of use
    left = {name: why for name, why in told.left_out.items() if name not in (group, time)}
    every = {False: "", True: " of the models that are given such rows"}
    notes += [f"Column {n!r} is left out{every[in_folds and why == _EXTREME]}: {why}" for n, why in left.items()]
    if not in_folds:
        _tell_extreme(features, notes)
    _tell_copies(features, held, notes)
    if group is not None:
        notes.append(
            f"Rows of one {group!r} stay together: what is measured and bounded is about new groups. Limits in figures "
            "and explanations count rows as independent draws, and are too narrow for rows of one group."
        )
    if time is not None:
        notes.append(
            f"The newest rows by {time!r} are held out: the bound rests on new rows being like those, and is not "
            "proved if they go on changing."
        )
    return Problem(table, column, features, task, y, held, seed, folder, marks[0], marks[1], notes)


def of_use(features: Table, rows: np.ndarray) -> Table:
    """Return the columns that are of use by what these rows hold, and no others; nor those with numbers of a size at
    which no certificate holds. In other rows such numbers are no reason: they count as gaps there (`data.encoding`)."""
    extreme = {one.name: _EXTREME for one in features.columns.values() if np.any(one.take(rows).extreme())}
    if len(extreme) == len(features.columns):
        raise ValueError(f"there is no column to learn from. Column {next(iter(extreme))!r}: {_EXTREME}")
    plain = (one for one in features.columns.values() if one.name not in extreme)
    known = Table(plain, features.left_out | extreme, features.n_rows).take(rows).useful()
    return Table((features.column(name) for name in known.names), known.left_out, features.n_rows)


def _task_of(target: Column, notes: list[str]) -> str:
    """Return the task that a target asks for: classes if it is text or a few whole numbers that look like codes."""
    if target.type.kind != "numeric":
        return "classify"
    values = np.unique(target.data)
    whole = len(values) <= MOST_CLASSES and bool((values == np.round(values)).all())
    codes = whole and len(values) <= _FEW and values[0] in (0, 1) and values[-1] - values[0] == len(values) - 1
    if not whole:
        return "regress"
    read, other = ("classes", "regress") if codes or len(values) == 2 else ("numbers", "classify")
    notes.append(f"{target.name!r} has {len(values)} whole values and is read as {read}; --task {other} changes that.")
    return "classify" if read == "classes" else "regress"


def _known_classes(y: np.ndarray, held: np.ndarray, notes: list[str]) -> np.ndarray:
    """Return which rows are of a class that training rows have.

    Given the training rows, hold-out rows of these classes are independent draws among new rows of these classes.
    """
    train = np.ones(len(y), dtype=bool)
    train[held] = False
    known = np.unique(y[train])
    if len(known) < 2:
        raise ValueError(f"the training rows have one class only ({known[0]}); learning needs two.")
    keep = np.isin(y, known)
    if not keep.all():
        strange = ", ".join(str(one) for one in np.unique(y[~keep])[:5])
        notes.append(
            f"No training row has the class {strange}: its {int((~keep).sum())} rows are left out, and everything "
            "said is about rows of the other classes."
        )
    return keep


def _tell_imbalance(y: np.ndarray, notes: list[str]) -> None:
    labels, counts = np.unique(y, return_counts=True)
    share = counts.min() / len(y)
    if len(labels) == 2 and share < _RARE:
        notes.append(
            f"Only {100 * share:.1f} % of the rows are {labels[counts.argmin()]!s}: the error rate hardly sees them; "
            "--metric balanced, f1 or auc, or a cost matrix, may be what you want."
        )


def _tell_extreme(features: Table, notes: list[str]) -> None:
    """Say which columns have numbers in hold-out rows that count as gaps or as 0."""
    for one in features.columns.values():
        count = int(np.sum(one.extreme()))
        if count:
            notes.append(
                f"Column {one.name!r} has {count} numbers beyond 1e150, or nearer to zero than 1e-150, in hold-out "
                "rows; the former count as missing, the latter as 0."
            )


def _tell_copies(features: Table, held: np.ndarray, notes: list[str]) -> None:
    """Say how many hold-out rows have the columns of a training row, if they are many."""
    part = np.zeros(features.n_rows, dtype=np.int64)
    part[held] = 1
    copies = copied(features, part)[1] if len(held) else 0
    if copies > max(1, len(held) // 100):
        notes.append(
            f"{copies} of {len(held)} hold-out rows have the same columns as a training row; if they are copies rather "
            "than coincidences, the errors measured are too small: remove them, or use --group."
        )


def copied(features: Table, part: np.ndarray) -> np.ndarray:
    """Return how many rows of each part of the table have the columns of a row of another part."""
    count = int(part.max()) + 1
    if len(features.columns) >= 64:
        return np.zeros(count, dtype=np.int64)
    random = np.random.default_rng(0)
    digests = np.zeros(features.n_rows, dtype=np.uint64)
    for column in features.columns.values():  # bits of the numbers, mixed, times an odd number that is the column's own
        bits = np.ascontiguousarray(column.data, dtype=np.float64).view(np.uint64)
        digests += (bits ^ (bits >> np.uint64(29))) * np.uint64(2 * int(random.integers(2**63)) + 1)
        digests ^= digests >> np.uint64(31)
    return np.array([np.isin(digests[part == k], digests[part != k]).sum() for k in range(count)])


def default_clip(y: np.ndarray) -> float:
    """Return where absolute errors are clipped unless told: the largest error of the median on the training rows."""
    return float(np.abs(y - np.median(y)).max()) or 1.0
