"""A second run of a study goes on from the scores of the first."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.learning.search import Scores
from assay.linear_model import LogisticRegression

ASKED = {"learners": ["LogisticRegression", "LinearDiscriminantAnalysis"], "trials": 4, "workers": 0}


def table(seed=0, n=160):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return {"a": x[:, 0], "b": x[:, 1], "y": np.where(x[:, 0] + 0.5 * rng.normal(size=n) > 0, "yes", "no")}


@pytest.fixture
def fits(monkeypatch):
    """Count the fits of logistic regressions."""
    counted, fit = [], LogisticRegression.fit

    def counting(self, *words, **options):
        counted.append(1)
        return fit(self, *words, **options)

    monkeypatch.setattr(LogisticRegression, "fit", counting)
    return counted


def told(study):
    return [(one.name, one.settings, one.losses, one.bound) for one in study.candidates]


def test_what_was_judged_is_not_fitted_again(fits, tmp_path):
    file = tmp_path / "m.scores"
    first = assay.learn(table(), "y", resume=file, **ASKED)
    before = len(fits)
    second = assay.learn(table(), "y", resume=file, **ASKED)
    assert len(fits) - before == (second.chosen.name == "LogisticRegression") <= before / 5
    assert told(first) == told(second)
    assert first.certificate.model == second.certificate.model


@pytest.mark.parametrize("change", [{"seed": 1}, {"metric": "brier"}, {"holdout": 0.3}], ids=str)
def test_another_study_does_not_take_its_scores(change, fits, tmp_path):
    file = tmp_path / "m.scores"
    assay.learn(table(), "y", resume=file, **ASKED)
    before = len(fits)
    assay.learn(table(), "y", resume=file, **ASKED, **change)
    assert len(fits) >= before + 5
    before = len(fits)
    assay.learn(table(seed=1), "y", resume=file, **ASKED)
    assert len(fits) >= before + 5


@pytest.mark.parametrize(
    "line",
    ["", "not json", "[]", "3", '{"key": 1}', '{"key": "k", "losses": [0.1], "seconds": [], "per_row": 0, "note": ""}',
     '{"key": "k", "losses": ["a"], "seconds": [1], "per_row": 0, "note": ""}',
     '{"key": "k", "losses": [NaN], "seconds": [1], "per_row": 0, "note": ""}', "[" * 100_000],
    ids=range(9),
)  # fmt: skip
def test_lines_that_are_no_scores_are_passed_over(line, tmp_path):
    file = tmp_path / "m.scores"
    good = {"key": "good", "losses": [0.1], "seconds": [1.0], "per_row": 0.0, "note": ""}
    file.write_text(f"{line}\n{json.dumps(good)}\n")
    scores = Scores(file, "about")
    assert scores.find("k", 1) is None
    assert scores.find("good", 1)["result"]["losses"] == [0.1]
    assert scores.find("good", 2) is None


def test_the_command_line_resumes(tmp_path):
    rows = table(seed=11)
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n" + "\n".join(f"{a},{b},{y}" for a, b, y in zip(rows["a"], rows["b"], rows["y"])))
    words = ["learn", str(path), "--target", "y", "--learners", "LogisticRegression", "--trials", "2", "--workers", "0",
             "--resume", "--out", str(tmp_path / "m.assay"), "--report", str(tmp_path / "r.html")]  # fmt: skip
    assert CliRunner().invoke(app, words).exit_code == 0
    lines = (tmp_path / "m.assay.scores").read_text().splitlines()
    assert sum("losses" in line for line in lines) >= 2
    second = CliRunner().invoke(app, words)
    assert second.exit_code == 0
    assert (tmp_path / "m.assay.scores").read_text().splitlines() == lines
