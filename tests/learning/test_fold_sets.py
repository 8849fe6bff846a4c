"""Prediction sets and intervals of models of folds: their marginal coverage, what is remembered for them, and lies."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.data.columns import LARGEST
from assay.guarantees.fingerprint import fold_of_rows
from assay.learning.memory import FoldSizes, of_folds
from assay.theory.exchangeability import cross_index
from tests.learning.fold_rows import columns, judged, learnt, numbers

runner = CliRunner()


def covers(sizes, gaps, coverage):
    """Return whether an answer with that size by each model is in the set, by its p-values in rational arithmetic."""
    n, folds = sum(map(len, sizes)), len(sizes)
    p = Fraction(0)
    for one, gap in zip(sizes, gaps):
        own = Fraction(int(np.sum(one >= gap)) + 1, len(one) + 1)
        p += own * Fraction(len(one) + 1, n + folds)
    return p > (1 - Fraction(str(coverage))) / 2


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_sets_and_intervals_by_their_definition(coverage):
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = [rng.exponential(size=m).round(1) for m in rng.integers(20, 40, 3)]
        kept, told = of_folds(0, sizes), [rng.normal(0, 0.3, 1) for _ in sizes]
        low, high = kept.intervals(told, coverage)
        for y in np.linspace(-9, 9, 400):
            if covers(sizes, [abs(y - one[0]) for one in told], coverage):
                assert low[0] <= y <= high[0]
        for y in (low[0] - 0.01, high[0] + 0.01):  # no larger than it must be
            assert not covers(sizes, [max(0, abs(y - one[0])) for one in told], coverage)
        gaps = [rng.exponential(size=(5, 4)).round(1) for _ in sizes]
        inside = kept.sets(gaps, coverage)
        for i, j in np.ndindex(inside.shape):
            assert inside[i, j] == covers(sizes, [gap[i, j] for gap in gaps], coverage)


def test_what_is_kept_of_many_rows_makes_sets_larger_alone():
    rng = np.random.default_rng(1)
    sizes = [rng.exponential(size=m) for m in (3000, 2999, 1234)]
    kept, every = of_folds(0, sizes), FoldSizes(0, (3000, 2999, 1234), tuple(tuple(np.sort(one)) for one in sizes))
    assert max(map(len, kept.sizes)) <= 2000 // 3
    told = [rng.normal(size=50) for _ in sizes]
    (low, high), (least, most) = kept.intervals(told, 0.9), every.intervals(told, 0.9)
    assert (low <= least).all()
    assert (most <= high).all()
    assert (high - most).max() < 0.05
    gaps = [rng.exponential(size=(50, 3)) * 4 for _ in sizes]
    assert (kept.sets(gaps, 0.9) >= every.sets(gaps, 0.9)).all()


def test_too_few_rows_and_classes_of_their_own_are_said():
    with pytest.raises(ValueError, match=r"20 rows in 5 folds cannot promise a coverage of 0.9: the most is 0.6"):
        cross_index(20, 5, 0.9)
    sizes = [np.append(np.zeros(30), [LARGEST] * 9)] * 2
    with pytest.raises(ValueError, match="no set covers"):
        of_folds(0, sizes).sets([np.zeros((1, 2))] * 2, 0.8)


def drawn(rng, n):
    x = rng.normal(size=n)
    return x, x + rng.standard_t(3, size=n) * (1 + (x > 0))


def one_study(rng, folds, n, coverage, shrink=1.0):
    """Fit a line to the rows outside each fold, and ask whether a new row is covered."""
    x, y = drawn(rng, n)
    fold, fits, sizes = fold_of_rows(n, folds, 3), [], []
    for k in range(folds):
        fits.append(np.polyfit(x[fold != k], y[fold != k], 1))
        sizes.append(np.abs(y[fold == k] - np.polyval(fits[-1], x[fold == k])) * shrink)
    new, target = drawn(rng, 20)
    low, high = of_folds(3, sizes).intervals([np.polyval(one, new) for one in fits], coverage)
    return np.mean((low <= target) & (target <= high)), np.median(high - low)


def test_the_marginal_coverage_of_a_known_truth():
    rng = np.random.default_rng(2)
    for folds, n, coverage in ((5, 47, 0.6), (4, 90, 0.8)):
        hits = [one_study(rng, folds, n, coverage)[0] for _ in range(300)]
        assert np.mean(hits) >= coverage - 3 * np.std(hits) / np.sqrt(300)
    short = [one_study(rng, 4, 90, 0.8, shrink=0.25)[0] for _ in range(300)]  # the test would see a defect
    assert np.mean(short) < 0.7


class Wild:
    """A model that no symmetry holds for: it answers with the target of the last row that it saw."""

    def __init__(self, x, y):
        self.last = float(y[-1])

    def __call__(self, x):
        return np.full(len(x), self.last)


@pytest.mark.long
@pytest.mark.parametrize("fit", [Wild, lambda x, y: np.poly1d(np.polyfit(x, y, 3))], ids=["order", "cubic"])
@pytest.mark.parametrize(("folds", "n", "coverage"), [(2, 23, 0.5), (5, 47, 0.6), (10, 103, 0.7), (4, 150, 0.9)])
def test_the_marginal_coverage_of_many_studies(fit, folds, n, coverage):
    rng, hits = np.random.default_rng(5), []
    for _ in range(3000):
        x, y = drawn(rng, n + 1)
        fold = fold_of_rows(n, folds, 7)
        models = [fit(x[:n][fold != k], y[:n][fold != k]) for k in range(folds)]
        sizes = [np.abs(y[:n][fold == k] - models[k](x[:n][fold == k])) for k in range(folds)]
        low, high = of_folds(7, sizes).intervals([one(x[n:]) for one in models], coverage)
        hits.append(float(low[0] <= y[n] <= high[0]))
    assert np.mean(hits) >= coverage - 3 * np.sqrt(coverage * (1 - coverage) / 3000)


def test_studies_of_folds_have_intervals_and_sets_that_cover(tmp_path):
    study = learnt(numbers(240, 1), learners=["Ridge"])
    assert judged(study).holds
    new = numbers(4000, 77)
    low, high = study.model.predict_interval(new, 0.8)
    assert 0.77 <= np.mean((low <= new["y"]) & (new["y"] <= high)) < 0.97
    sets = learnt(columns(300, 0), folds=3)
    fresh = columns(4000, 78)
    inside = sets.model.predict_set(fresh, 0.9)
    held = inside[np.arange(4000), np.searchsorted(sets.model.classes_, fresh["y"])]
    assert held.mean() >= 0.87
    assert not inside.all()
    assay.save(sets.model, tmp_path / "model.assay", certificate=sets.certificate)
    again = assay.load(tmp_path / "model.assay").model
    assert (again.predict_set(fresh, 0.9) == inside).all()
    with pytest.raises(ValueError, match="cannot promise"):
        sets.model.predict_set(fresh, 0.999)


def test_a_forged_memory_of_folds_is_found_out():
    study = learnt(columns(300, 0), folds=3)
    honest = study.model.memory
    smaller = tuple(tuple(size / 2 for size in one) for one in honest.folds.sizes)
    for folds in (replace(honest.folds, sizes=smaller), replace(honest.folds, seed=honest.folds.seed + 1)):
        study.model.memory = replace(honest, folds=folds)
        reference = replace(study.certificate.model, digest=study.model.stored().digest())
        sealed = replace(study.certificate, model=reference)
        assert "remembers are not what its rows give" in assay.verify(sealed, study.model, study.raw).reason
    study.model.memory = honest
    assert judged(study).holds


def test_the_command_says_that_the_coverage_is_marginal(tmp_path):
    study = learnt(numbers(240, 1), learners=["Ridge"])
    assay.save(study.model, tmp_path / "model.assay", certificate=study.certificate)
    new = numbers(5, 3)
    rows = tmp_path / "new.csv"
    names = [name for name in new if name != "y"]
    lines = [",".join(names), *(",".join(str(new[name][i]) for name in names) for i in range(5))]
    rows.write_text("\n".join(lines))
    result = runner.invoke(app, ["predict", str(tmp_path / "model.assay"), str(rows), "--intervals", "0.8"])
    assert result.exit_code == 0, result.output
    assert "marginal" in result.output
    assert "low" in result.output


@pytest.mark.parametrize(
    "change",
    [{"seed": -1}, {"rows": [1, 2]}, {"rows": [100, 100, 101]}, {"sizes": [[0.0], [0.0]]}, {"sizes": [[2.0, 1.0]] * 3},
     {"sizes": [[], [], []]}, {"sizes": [[-1.0]] * 3}, {"more": 1}],
    ids=str,
)  # fmt: skip
def test_malformed_memories_of_folds_are_rejected(change):
    from assay.checker.family import read_model
    from assay.checker.record import Rejected

    stored = learnt(columns(300, 0), folds=3).model.stored()
    read_model(stored, any_size=True)
    memory = stored.parameters["memory"]
    forged = {**memory, "folds": {**memory["folds"], **change}}
    with pytest.raises(Rejected):
        read_model(replace(stored, parameters={**stored.parameters, "memory": forged}), any_size=True)
