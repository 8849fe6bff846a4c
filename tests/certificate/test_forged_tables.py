"""Files of `assay learn`: the encoding, the target and the model of encoded rows are forged, one item at a time.

What the checker reads of a table model is its own encoding of the raw rows and its own predictor of the member. A
forged file may pass only if `predict` on the table says what was certified, or, sealed again, what the checker reads.
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import assay
from assay.checker.family import read_model
from assay.checker.predictors import margins
from assay.checker.record import Rejected
from assay.data import ColumnType, Encoding, Table, raw_table, read
from assay.learning.folded import FoldedTable, FoldVote
from assay.learning.model import TableModel
from assay.persist import ModelFileError
from assay.tree import DecisionTreeClassifier
from tests.certificate.forged_files import Parts, forgeries_of_the_record
from tests.certificate.test_forged_files import chosen, opened

TASKS = {
    "classify": ("y", ["LogisticRegression"]),
    "trees": ("y", ["DecisionTreeClassifier"]),
    "regress": ("amount", ["Ridge"]),
    "written": ("y", ["LogisticRegression"]),
}


class CertifiedTable(NamedTuple):
    """A certified table model in a file, with the table and what was predicted for it."""

    content: bytes
    table: Table
    said: np.ndarray


_WORDS = ("good", "bad", "late", "early", "never", "often", "parcel", "letter", "arrived", "broken")
COLUMNS = {"written": ("day", "price", "note", "gaps")}
"""Dates, numbers as people write them, and prose; other tasks have a column of numbers and one of names."""


def table_of(columns: tuple[str, ...]) -> Table:
    rng = np.random.default_rng(0)
    size, town = rng.normal(size=120), rng.choice(["Ulm", "Bonn", "Kiel"], 120)
    label = np.where(size + (town == "Kiel") + 0.3 * rng.normal(size=120) > 0.3, "yes", "no")
    gaps = np.where(rng.random(120) < 0.1, np.nan, size)
    days = np.datetime64("2024-01-01") + np.arange(120) * 3
    held = {
        "gaps": gaps, "town": town, "y": label, "amount": 3 * size + (town == "Ulm"), "day": days.astype(str),
        "price": [f"${1000 + 100 * value:,.2f}" for value in size],
        "note": [" ".join(rng.permutation([*_WORDS, *_WORDS[:4], f"{name} no {i}"])) for i, name in enumerate(town)],
    }  # fmt: skip
    return read({name: held[name] for name in columns})


@cache
def certified_table(task: str, folder: Path) -> CertifiedTable:
    target, learners = TASKS[task]
    table = table_of((*COLUMNS.get(task, ("gaps", "town")), target))
    found = assay.learn(table, target, learners=learners, trials=2, workers=0)
    path = folder / f"{task}.assay"
    assay.save(found.model, path, certificate=found.certificate)
    return CertifiedTable(path.read_bytes(), table, found.model.predict(table))


def table_holds(saved: Any, table: Table) -> bool:
    """Verify as the command does."""
    return assay.verify(saved.certificate, saved.model, table).holds


def table_contradiction(model: Any, table: Table) -> str:
    """Return where `predict` says something else than the checker's encoding and predictor; empty if nowhere."""
    predictor = read_model(model.stored())
    rows = predictor.encode(model.raw(table))
    scores, errors = predictor.inner.scores(rows, np.abs(np.nan_to_num(rows)).max(axis=0))
    told = model.predict(table)
    if predictor.classes is None:
        off = np.abs(told.reshape(len(scores)) - scores[:, 0]) > errors[0] + 1e-9 * (1 + np.abs(scores[:, 0]))
        return f"{off.sum()} of {len(told)} numbers" if off.any() else ""
    guess = (scores[:, 0] > 0).astype(int) if predictor.inner.binary else scores.argmax(axis=1)
    margin, error = margins(predictor.inner, scores, errors, guess)
    off = (margin > error + 1e-9) & (np.asarray(predictor.classes)[guess] != told.astype(str))
    return f"{off.sum()} of {len(told)} labels" if off.any() else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_a_forged_table_model_passes_only_if_it_says_what_is_certified(task, sealed, folder, tmp_path, most):
    subject, wrong = certified_table(task, folder), {}
    parts = Parts.of(subject.content)
    tried = list(chosen(forgeries_of_the_record(parts), most, 5))
    assert len(tried) >= 8
    for name, change in tried:
        forged = parts.copy()
        change(forged)
        try:
            if sealed:
                forged.seal()
        except (ValueError, TypeError, LookupError, AttributeError):  # no stored model is described
            assert opened(forged.content(), tmp_path / "file") is None, name
            continue
        saved = opened(forged.content(), tmp_path / "file")
        if saved and table_holds(saved, subject.table):
            told = saved.model.predict(subject.table)
            odd = table_contradiction(saved.model, subject.table) if sealed else ""
            odd = odd or ("" if sealed or np.array_equal(told, subject.said) else "other predictions")
            wrong |= {name: odd} if odd else {}
    assert not wrong


def test_a_sound_table_model_passes(folder, tmp_path):
    for task in TASKS:
        subject = certified_table(task, folder)
        saved = opened(subject.content, tmp_path / "file")
        assert table_holds(saved, subject.table)
        assert not table_contradiction(saved.model, subject.table)
        np.testing.assert_array_equal(saved.model.predict(subject.table), subject.said)


def test_a_table_model_in_a_table_model_is_refused(folder, tmp_path):
    parts = Parts.of(certified_table("classify", folder).content)
    inner = parts.copy().record
    parts.record["members"] = [inner]
    (tmp_path / "file").write_bytes(parts.content())
    with pytest.raises(ModelFileError):
        assay.load(tmp_path / "file")


def test_a_model_that_reads_its_own_target_is_refused(folder, tmp_path):
    """Its hold-out rows are right without exception, and new rows have no target to read."""
    table = table_of(("gaps", "town", "y"))
    source, target = raw_table(table), ColumnType("y", "nominal", ("no", "yes"))
    held = np.arange(0, 120, 3)
    train = np.setdiff1d(np.arange(120), held)
    rows = source.take(train).typed()
    encoding = Encoding.fit(rows)
    learner = DecisionTreeClassifier().fit(encoding.apply(rows), source.text("y")[train].astype(str))
    model = TableModel(target, encoding, learner)
    with pytest.raises(Rejected, match="reads the column that it predicts"):
        read_model(model.stored())
    folds = FoldedTable(
        target, FoldVote([TableModel(ColumnType("town", "text"), encoding, learner)] * 2, learner.classes_)
    )
    with pytest.raises(Rejected, match="reads the column that it predicts"):
        read_model(folds.stored())
    certificate = certified_table("classify", folder)
    parts = Parts.of(certificate.content)
    parts.record["parameters"]["target"]["name"] = "town"
    (tmp_path / "file").write_bytes(parts.content())
    with pytest.raises(ModelFileError, match="reads the column that it predicts"):
        assay.load(tmp_path / "file")
