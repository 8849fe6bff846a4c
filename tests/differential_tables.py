"""Models of tables for `tests.differential`: cells as people write them, read by the model and by the checker.

Both must get the same raw rows from the cells, bit by bit, and the predictions of these rows must agree as those of
any model do. Cells are those of the training rows, changed: other signs and spaces, gaps, new levels, dates that are
none, numbers beyond all bounds.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from assay.checker.family import read_model
from assay.checker.reader import raw_rows
from assay.checker.record import Refused, Rejected
from assay.data import ColumnType, Encoding
from assay.data import raw_table as raw
from assay.learning.folded import FoldedTable, FoldMean, FoldVote
from assay.learning.model import TableModel
from assay.linear_model import LogisticRegression, Ridge
from assay.naive_bayes import GaussianNB
from assay.neighbors import KNeighborsRegressor
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.differential import BLOCK, Count, Found, compare
from tests.differential_inputs import quiet


class TableSubject(NamedTuple):
    """A learner of the encoded rows of a table, and how many models of folds are made of it (0 for none)."""

    learner: Any
    folds: int = 0

    @property
    def family(self) -> str:
        return "table"


def subjects() -> list[TableSubject]:
    """Return learners that read tables, and models of folds of them."""
    learners = (
        LogisticRegression(), DecisionTreeClassifier(max_depth=3), GaussianNB(), Ridge(),
        DecisionTreeRegressor(max_depth=3), KNeighborsRegressor(2),
    )  # fmt: skip
    return [TableSubject(one, folds) for one in learners for folds in (0, 3)]


# Cells --------------------------------------------------------------------------------------------------------

_WORDS = ("good", "bad", "late", "Early", "never", "often", "parcel", "letter", "İstanbul", "straße")
_ODD = (
    "", " ", "-", "nan", "NaN", "inf", "-inf", "1e400", "-1e-400", "1e151", "1e-151", "0x10", "1_000", "١٢", "１２",
    "1,5", "1.5", "1,000.5", "1.000,5", "+3", "--3", "3-", "$3", "3 €", "3%", "n/a", "None", "TRUE", "1e5", "1E+05",
    "2024-02-30", "2024-02-29", "29/02/2023", "24:00", "23:59", "7:5", "\u00a012", "\u202f12", "12\t", "0012", "1e",
    "9007199254740993", "0.1000000000000000055511151231257827", "4.9e-324", "2.2250738585072011e-308", ".5", "5.",
)  # fmt: skip


def _columns(n: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    size = rng.normal(size=n) * 10.0 ** float(rng.integers(-3, 4))
    days = np.datetime64("2024-01-01") + np.arange(n) * int(rng.integers(1, 40))
    kinds = {
        "size": [repr(one) for one in size.tolist()],
        "gaps": ["" if rng.random() < 0.1 else f"{one:.2f}" for one in size],
        "price": [f"${1000 + 100 * one:,.2f}" for one in rng.normal(size=n)],
        "comma": [f"{one:.2f}".replace(".", ",") for one in rng.normal(size=n)],
        "share": [f"{one:.1f}%" for one in rng.random(n) * 100],
        "town": rng.choice(["Ulm", "Bonn", "Kiel", "ulm ", "Köln"], n).tolist(),
        "code": rng.choice(["007", "7", "0012", "12"], n).tolist(),
        "day": days.astype(str).tolist(),
        "date": [f"{day.item():%d.%m.%Y}" for day in days],
        "clock": [f"{int(h)}:{int(m):02}" for h, m in zip(rng.integers(0, 24, n), rng.integers(0, 60, n))],
        "note": [" ".join(rng.permutation([*_WORDS, f"no {i}"])) for i in range(n)],
        "number": size.tolist(),
    }
    names = [name for name in kinds if name == "size" or rng.random() < 0.5]
    return {name: kinds[name] for name in names}


def _changed(cells: list[Any], rng: np.random.Generator) -> list[Any]:
    """Return cells of which some are written otherwise, or are no such cells."""
    if not isinstance(cells[0], str):
        odd = [*rng.normal(size=3), 1e151, -1e-151, 5e-324, float("nan"), 0.0, -0.0]
        return [cell if rng.random() < 0.6 else odd[int(rng.integers(len(odd)))] for cell in cells]
    ways = (
        lambda cell: cell, lambda cell: cell, lambda cell: _ODD[int(rng.integers(len(_ODD)))], lambda cell: f" {cell} ",
        str.upper, str.lower, lambda cell: cell[::-1], lambda cell: cell[:-1], lambda cell: cell + cell[-1:],
        lambda cell: cell.replace(".", ","), lambda cell: cell.replace("-", "/"), lambda cell: "-" + cell,
        lambda cell: None,
    )  # fmt: skip
    return [ways[int(rng.integers(len(ways)))](cell) for cell in cells]


# Models -------------------------------------------------------------------------------------------------------


def _model(subject: TableSubject, columns: dict[str, list[Any]], rng: np.random.Generator) -> TableModel:
    """Return a model of the table, or of folds of it."""
    n = len(columns["size"])
    score = np.array([float(cell) for cell in columns["size"]])
    score = score / (np.abs(score).max() or 1.0) + 0.3 * rng.normal(size=n)
    classify = subject.learner.card.task == "classify"
    y = np.array(["no", "yes"])[(score > np.median(score)).astype(int)] if classify else np.round(score, 2)
    target = ColumnType("y", "nominal", ("no", "yes")) if classify else ColumnType("y", "numeric")
    if not subject.folds:
        return _fitted(subject.learner, columns, y, np.arange(n), target)
    fold = rng.permutation(np.arange(n) % subject.folds)
    members = [_fitted(subject.learner, columns, y, np.flatnonzero(fold != k), target) for k in range(subject.folds)]
    joined: Any = FoldVote(members, np.unique(y)) if classify else FoldMean(members, np.array([y.min(), y.max()]))
    return FoldedTable(target, joined)


def _fitted(learner: Any, columns: dict[str, list[Any]], y: np.ndarray, rows: np.ndarray, target: Any) -> TableModel:
    from sklearn.base import clone

    table = raw({name: [cells[i] for i in rows] for name, cells in columns.items()}).typed()
    encoding = Encoding.fit(table)
    return TableModel(target, encoding, clone(learner).fit(encoding.apply(table), y[rows]))


class _Encoded:
    """The learner of a table as a model of the checker's own encoded rows."""

    def __init__(self, model: TableModel) -> None:
        self.card, self.predict = model.learner.card, model.learner.predict


def run(subject: TableSubject, seed: int, turn: int, size: int = BLOCK) -> Found:
    """Return what one subject and round gave."""
    rng = np.random.default_rng([seed, turn, *repr(subject).encode()])
    columns = _columns(60, rng)
    try:
        model = quiet(_model, subject, columns, rng)
        predictor = read_model(model.stored())
    except (Refused, Rejected, ValueError) as error:
        return Found(Count(), "", f"{type(error).__name__}: {str(error)[:100]}")
    families = frozenset({"table", model.learner.stored().family} if subject.folds else {"table"})
    found = Found(Count(), families=families)
    for cells in _batches(columns, size, rng):
        source = raw(cells)
        kinds = {column.name: column.kind for one in _tables(model) for column in one.columns}
        read = {name: source.cells(name, kind) for name, kind in kinds.items()}
        theirs = np.hstack([raw_rows(one.stored().parameters["encoding"], read) for one in _tables(model)])
        mine = quiet(model.raw, source)
        unlike = ~np.all((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)), axis=1)
        if unlike.any():
            i = int(np.flatnonzero(unlike)[0])
            cell = {name: column[i] for name, column in cells.items()}
            detail = f"cells {cell}: read as {mine[i]}, by the checker as {theirs[i]}"
            return found._replace(count=found.count + Count(len(mine), 0, int(unlike.sum())), detail=detail)
        rows = quiet(predictor.encode, theirs)
        encoded = quiet(model.encode, source, lenient=True)[0]
        if not np.array_equal(encoded, rows, equal_nan=True):
            return found._replace(count=found.count + Count(len(rows), 0, len(rows)), detail="encoded otherwise")
        try:
            count, detail = compare(predictor.inner, _Encoded(model), rows, rng)
        except (Refused, Rejected, ValueError) as error:
            found = found._replace(why=f"{type(error).__name__}: {str(error)[:100]}")
            continue
        found = found._replace(count=found.count + count, detail=found.detail or detail)
    return found


def _tables(model: Any) -> list[TableModel]:
    return list(model.members) if isinstance(model, FoldedTable) else [model]


def _batches(columns: dict[str, list[Any]], size: int, rng: np.random.Generator) -> Iterator[dict[str, list[Any]]]:
    n = len(columns["size"])
    yield columns
    for _ in range(max(1, size // 500)):
        rows = rng.integers(n, size=min(size, 500))
        yield {name: _changed([cells[i] for i in rows], rng) for name, cells in columns.items()}
