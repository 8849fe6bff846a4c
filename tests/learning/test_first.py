"""The first certified answer: told early, of training rows alone, and no candidate."""

from types import SimpleNamespace

import numpy as np
import pytest

import assay
from assay.learning import study
from assay.learning.events import Finished, First


def table(n=400):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 2))
    return {"a": x[:, 0], "b": x[:, 1], "y": np.where(x[:, 0] + rng.normal(size=n) > 0, "yes", "no")}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_certified_row_is_told_before_the_finalists(workers):
    told = []
    study = assay.learn(table(), "y", exclude=["MLPClassifier"], trials=1, workers=workers, tell=told.append)
    rows = [one.candidate for one in told if isinstance(one, (Finished, First)) and one.candidate.bound is not None]
    assert rows[0].status == "first"
    assert rows[0].holdout_error < rows[0].bound < 1
    assert "fitted to 225 of the training rows, certified on 75 others" in rows[0].note
    assert all(one.status != "first" for one in study.candidates)


def test_it_sees_no_holdout_row_and_judges_on_rows_that_it_does_not_fit(monkeypatch):
    seen = []
    monkeypatch.setattr(study, "begin_first_answer", lambda problem, *rest: seen.append(problem))
    assay.learn(table(), "y", trials=1, workers=0)
    fit, judge = study._first_parts(seen[0])
    assert not np.intersect1d(fit, judge).size
    assert not np.intersect1d(np.concatenate([fit, judge]), seen[0].held).size


def test_columns_that_say_nothing_in_its_own_rows_do_not_end_the_study(monkeypatch):
    seen, begin = [], study.begin_first_answer
    monkeypatch.setattr(
        study, "begin_first_answer", lambda problem, *rest: (seen.append(problem), begin(problem, *rest))
    )
    columns = {"x": np.arange(400.0), "y": np.where(np.arange(400) % 2, "yes", "no")}
    ask = {"exclude": ["MLPClassifier"], "trials": 1, "workers": 0}
    assay.learn(columns, "y", **ask)
    judge = study._first_parts(seen[0])[1]
    columns["x"] = np.zeros(400)
    columns["x"][judge] = np.arange(len(judge))
    assert assay.learn(columns, "y", **ask).model.predict({"x": [0.0]}).shape == (1,)


def test_up_to_what_errors_count_is_told_by_the_rows_that_it_fits(monkeypatch):
    problems, jobs, begin = [], [], study.begin_first_answer
    pool = SimpleNamespace(start=lambda job, done: jobs.append(job))

    def begun(problem, metric, _, *rest):
        problems.append(problem)
        begin(problem, metric, pool, *rest)

    monkeypatch.setattr(study, "begin_first_answer", begun)
    rng = np.random.default_rng(4)
    columns = {"a": rng.normal(size=200), "b": rng.normal(size=200)}
    columns["y"] = columns["a"] + rng.normal(size=200)
    ask = {"exclude": ["MLPRegressor"], "trials": 1, "workers": 0}
    assay.learn(columns, "y", **ask)
    columns["y"][study._first_parts(problems[0])[1][0]] = 1e6  # a row that judges
    assay.learn(columns, "y", **ask)
    assert jobs[0].asked.clip == jobs[1].asked.clip < 10
