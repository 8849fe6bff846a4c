"""What a table hides: columns that give the target away or name its rows, and rows that belong together.

All of it is seen in training rows alone, and told; nothing is changed. Whether rows that belong together matter is
measured: extremely randomised trees, which are quick, are judged on rows drawn at random and again on whole groups, or
on the newest rows; a large difference is said with both numbers.
"""

import re
from collections.abc import Sequence

import numpy as np

from assay.data import Column, Table
from assay.messages import Message

MOST_ROWS = 2_000
"""Training rows that a measurement looks at."""
_MOST_MEASURED, _MOST_READ = 3, 100  # columns that are measured, and that quick trees read
_MOST_LOOKED, _MOST_COLUMNS = 20_000, 1_000  # rows and columns that are looked at one by one
_FEW = 50  # rows below which nothing is suspected
_ALONE, _ABOVE = 0.99, 0.03  # of the rows that a column alone gets right, and by how much more than the commonest class
_RANKED = 0.999  # the rank correlation with a number from which on a column is suspected
_OWNERS = re.compile(
    r"(?i)(.*[_ .-])?(id|name|speaker|patient|subject|customer|client|user|person|account|family|site|hospital|store|"
    r"shop|device|sensor|session|batch|group|household|student|school|plot|animal)(s|id|name|[_ .-].*)?|.*[a-z]I[dD]"
)


def suspicions(features: Table, y: np.ndarray, task: str, *, together: bool) -> list[str]:
    """Return a note for each thing to look at, by training rows and their targets; `together` tells whether it was said
    already which rows belong together, or that the newest are held out."""
    if len(features.columns) > _MOST_COLUMNS:
        return []
    some = slice(None, None, -(-len(y) // _MOST_LOOKED) or 1)
    results = [_about(column.take(some), y[some], task) for column in features.columns.values()]
    notes: list[str] = [note for note in results if note]
    if not together and len(y) >= _FEW:
        suspected = {note.values["column"] for note in results if note}
        notes += _belonging(features, y, task, suspected)
    return notes


def _about(column: Column, y: np.ndarray, task: str) -> Message | None:
    why = gives_away(column, y, task)
    if why:
        return Message("suspicion.copy" if why == "copy" else "suspicion.leak", column=column.name)
    return Message("suspicion.identifier", column=column.name) if _counts_rows(column) else None


def gives_away(column: Column, y: np.ndarray, task: str) -> str:
    """Return "copy" if a column is the target under other names, "leak" if it alone tells it almost without error, or
    "". `y` are labels or numbers, of which none is missing."""
    there = ~column.missing
    x, y = column.data[there], np.asarray(y)[there]
    if len(y) < _FEW or (column.type.kind == "nominal" and len(np.unique(x)) > 0.5 * len(x)):
        return ""
    return _tells_classes(column, x, y) if task == "classify" else _tells_numbers(column, x, y)


def _tells_classes(column: Column, x: np.ndarray, y: np.ndarray) -> str:
    """Look at how many rows have the commonest class of their level, or of their twentieth of the numbers."""
    if column.type.kind in ("numeric", "date") and len(np.unique(x)) > 20:
        x = np.searchsorted(np.unique(np.quantile(x, np.linspace(0, 1, 21)[1:-1])), x)
    groups, classes = (np.unique(part, return_inverse=True)[1] for part in (x, y))
    table = np.zeros((groups.max() + 1, classes.max() + 1), dtype=np.int64)
    np.add.at(table, (groups, classes), 1)
    alone, base = table.max(axis=1).sum() / len(y), table.sum(axis=0).max() / len(y)
    if alone < _ALONE or alone - base < _ABOVE:
        return ""
    return "copy" if alone == 1.0 and np.array_equal(table > 0, _one_each(table)) else "leak"


def _one_each(table: np.ndarray) -> np.ndarray:
    """Return where a table of counts would have rows if each of its levels were one class, and the other way round."""
    result = np.zeros(table.shape, dtype=bool)
    if table.shape[0] == table.shape[1]:
        result[np.arange(len(table)), table.argmax(axis=1)] = True
    return result


def _tells_numbers(column: Column, x: np.ndarray, y: np.ndarray) -> str:
    """Look at the rank correlation of a column of numbers with the target, and whether it is a straight line."""
    if column.type.kind != "numeric" or len(np.unique(x)) < 20 or len(np.unique(y)) < 20:
        return ""
    from scipy.stats import rankdata

    if abs(np.corrcoef(rankdata(x), rankdata(y))[0, 1]) < _RANKED:
        return ""
    straight = abs(np.corrcoef(x / np.abs(x).max(), y / np.abs(y).max())[0, 1]) > 1 - 1e-12
    return "copy" if straight else "leak"


def _counts_rows(column: Column) -> bool:
    """Tell whether a column has another whole number in each row, and hardly more numbers than rows, as codes have."""
    x = column.data
    if column.type.kind != "numeric" or len(x) < _FEW or column.missing.any() or not (x == np.round(x)).all():
        return False
    return len(np.unique(x)) == len(x) and np.ptp(x) < 2 * len(x)


def _belonging(features: Table, y: np.ndarray, task: str, suspected: set[str]) -> list[str]:
    """Return notes about columns that say which rows belong together, if judging by them changes much."""
    columns = [item for item in features.columns.values() if item.name not in suspected]
    dates = [item for item in columns if item.type.kind == "date" and not item.missing.any()]
    owners = [item for item in columns if _names_owners(item, len(y))]
    notes: list[str] = []
    for column in (*dates[:1], *owners[:_MOST_MEASURED]):
        is_date = column.type.kind == "date"
        rest = [item for item in columns if item is not column and (is_date or item.type.kind != "date")]
        errors = _errors(rest, y, task, column.data, newest=is_date) if rest else None
        if errors is None:
            continue
        drawn, apart = errors
        if is_date or apart > 1.25 * drawn + 0.01 * (1 if task == "classify" else drawn):
            code = "suspicion.time" if is_date else "suspicion.group"
            shown = [f"{100 * error:.0f} %" if task == "classify" else f"{error:.3g}" for error in errors]
            notes.append(Message(code, column=column.name, drawn=shown[0], apart=shown[1]))
    return notes


def _names_owners(column: Column, rows: int) -> bool:
    """Tell whether a column may name what several rows belong to."""
    x = column.data[~column.missing]
    whole = column.type.kind == "nominal" or (column.type.kind == "numeric" and bool((x == np.round(x)).all()))
    if not whole:
        return False
    count = len(np.unique(x))
    named = _OWNERS.fullmatch(column.name) is not None
    many = column.type.kind == "nominal" and count >= 30
    return (named or many) and 5 <= count <= rows / 2


def _errors(
    columns: Sequence[Column], y: np.ndarray, task: str, mark: np.ndarray, *, newest: bool
) -> tuple[float, float] | None:
    """Return the error of quick trees on rows drawn at random, and on whole groups or the newest rows."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    rng = np.random.default_rng(0)
    columns = [columns[i] for i in np.sort(rng.permutation(len(columns))[:_MOST_READ])]
    rows = np.sort(rng.choice(len(y), min(len(y), MOST_ROWS), replace=False))
    X = np.column_stack([np.nan_to_num(column.data[rows], nan=-1.0).clip(-1e30, 1e30) for column in columns])
    y, mark = np.asarray(y)[rows], np.nan_to_num(mark[rows], nan=-1.0)
    place = np.argsort(mark, kind="stable").argsort() if newest else _shuffled(mark, rng)
    held = [rng.permutation(len(y)) >= 0.75 * len(y), place >= 0.75 * (place.max() + 1)]
    if any(len(y) - part.sum() < 20 or part.sum() < 10 for part in held):
        return None
    kind = ExtraTreesClassifier if task == "classify" else ExtraTreesRegressor
    results = []
    for part in held:
        if task == "classify" and len(np.unique(y[~part])) < 2:
            return None
        predicted = kind(30, random_state=0).fit(X[~part], y[~part]).predict(X[part])
        results.append(
            float(np.mean(predicted != y[part]) if task == "classify" else np.mean(np.abs(predicted - y[part])))
        )
    return results[0], results[1]


def _shuffled(mark: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a number for each row, the same for rows of one mark, in random order of the marks."""
    codes = np.unique(mark, return_inverse=True)[1]
    return rng.permutation(codes.max() + 1)[codes]
