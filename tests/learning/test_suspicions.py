"""What a table hides is told: copies of the target, leaks, identifiers, rows that belong together."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import assay
from assay.data import read
from assay.learning.suspicions import suspicions
from assay.messages import Message


def told(frame: pd.DataFrame, target: str = "y", together: bool = False) -> dict[str, str]:
    """Return code by column."""
    table, y = read(frame).split_target(target)
    task = "regress" if y.type.kind == "numeric" else "classify"
    notes = suspicions(table, y.values(), task, together=together)
    return {note.values["column"]: note.code.removeprefix("suspicion.") for note in notes if isinstance(note, Message)}


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = np.where(x[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    return pd.DataFrame(x, columns=list("abc")).assign(y=y)


def test_an_ordinary_table_is_not_suspected(frame: pd.DataFrame) -> None:
    assert told(frame) == {}
    assert told(frame.drop(columns="y"), "a") == {}


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_well_known_tables_are_not_suspected(load) -> None:
    found = load(as_frame=True)
    y = found.target if load is load_diabetes else found.target.astype(str) + "!"
    assert told(found.data.assign(y=y)) == {}


def test_the_target_under_other_names_and_what_is_known_afterwards(frame: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    frame["code"] = np.where(frame["y"] == "yes", "J", "N")
    frame["flag"] = (frame["y"] == "yes") * 1.0
    frame["paid"] = np.where(frame["y"] == "yes", rng.uniform(5, 9, 400), rng.uniform(0, 4, 400))
    frame["reason"] = np.where(frame["y"] == "yes", rng.choice(["moved", "ill"], 400), "none")
    assert told(frame) == {"code": "copy", "flag": "copy", "paid": "leak", "reason": "leak"}


def test_a_number_in_another_unit_and_a_function_of_it(frame: pd.DataFrame) -> None:
    frame["f"] = 32 + 1.8 * frame["a"]
    frame["exp"] = np.exp(frame["a"])
    frame["near"] = frame["a"] + 0.3 * frame["b"]
    assert told(frame.drop(columns="y"), "a") == {"f": "copy", "exp": "leak"}


def test_rows_that_are_counted(frame: pd.DataFrame) -> None:
    frame["customer"] = np.random.default_rng(2).permutation(400) + 1000.0
    frame["income"] = np.random.default_rng(3).permutation(40_000)[:400] * 1.0
    assert told(frame) == {"customer": "identifier"}


def speakers(rng: np.random.Generator) -> pd.DataFrame:
    """Each speaker says two things, and has a voice that tells which: known speakers are easy, new ones are not."""
    voice = rng.normal(size=(20, 2, 4)) * 3
    who, what = np.repeat(np.arange(20), 30), np.tile([0, 1], 300)
    rows = voice[who, what] + 0.5 * rng.normal(size=(600, 4))
    return pd.DataFrame(rows, columns=list("abcd")).assign(
        speaker=[f"s{i}" for i in who], y=np.array(["ah", "oh"])[what]
    )


def test_rows_that_belong_together_are_told_with_what_it_would_change() -> None:
    frame = speakers(np.random.default_rng(4))
    assert told(frame) == {"speaker": "group"}
    assert told(frame, together=True) == {}
    other = frame.assign(speaker=np.random.default_rng(5).permutation(frame["speaker"]))
    assert told(other) == {}  # names that say nothing about which rows are alike
    study = assay.learn(frame, "y", learners=["LinearDiscriminantAnalysis"], trials=1, workers=0)
    (note,) = [one for one in study.notes if getattr(one, "code", "") == "suspicion.group"]
    assert "--group speaker" in note.render(place="terminal")
    assert "group='speaker'" in note
    assert "--" not in note.render(place="page")
    drawn, apart = (float(note.values[key].removesuffix(" %")) for key in ("drawn", "apart"))
    assert drawn < 10 < 25 < apart


def test_dates_are_told_with_what_the_newest_rows_would_change() -> None:
    rng = np.random.default_rng(6)
    day = pd.date_range("2020-01-01", periods=500, freq="D")
    x = rng.normal(size=500)
    late = np.arange(500) > 350
    frame = pd.DataFrame({"when": day, "x": x, "y": np.where((x > 0) ^ late, "up", "down")})
    shuffled = frame.sample(frac=1.0, random_state=0)
    assert told(shuffled) == {"when": "time"}


def test_the_wall_stands(frame: pd.DataFrame) -> None:
    """What is told follows from training rows: hold-out rows that would show a leak do not."""
    frame["code"] = np.where(frame["y"] == "yes", "J", "N")
    study = assay.learn(frame, "y", learners=["LinearDiscriminantAnalysis"], trials=1, workers=0)
    held = np.asarray(study.certificate.split["holdout"])
    train = np.setdiff1d(np.arange(400), held)
    changed = frame.copy()
    changed.loc[train, "code"] = np.random.default_rng(7).choice(["J", "N"], len(train))
    again = assay.learn(changed, "y", learners=["LinearDiscriminantAnalysis"], trials=1, workers=0)
    assert np.array_equal(again.certificate.split["holdout"], held)
    assert "suspicion.copy" in [getattr(one, "code", "") for one in study.notes]
    assert "suspicion.copy" not in [getattr(one, "code", "") for one in again.notes]
