"""What `compare` prints is about all rows, holds as often as it says, and does not depend on the order of the table."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import assay
from assay.data import ColumnType, read
from assay.explain import compare
from assay.explain.comparison import _limits
from assay.guarantees.seal import RepeatedUseWarning
from assay.messages import Message
from assay.theory.concentration import betting_upper
from assay.theory.holdout import mean_limits, sign_test


class Column:
    """A model that says what stands in a column."""

    memory = None

    def __init__(self, name, task="classify"):
        self.name, self.task = name, task
        self.columns = (ColumnType(name, "numeric"),)
        self.target = ColumnType("y", "numeric")

    def predict(self, table):
        return table.read_as(self.columns).column(self.name).data

    def labels(self, table):
        return table.read_as((self.target,)).column("y").data

    def own_rows(self, table):
        return np.flatnonzero(table.present("y"))


def saved(name, task="classify"):
    return SimpleNamespace(model=Column(name, task), certificate=None)


def wrong(first, second, both, right):
    """Return rows that the first alone, the second alone, both and neither get wrong, in this order."""
    n = first + second + both + right
    kinds = np.repeat([0, 1, 2, 3], [first, second, both, right])
    y = np.arange(n) % 2
    return {
        "a": np.where((kinds == 0) | (kinds == 2), 1 - y, y),
        "b": np.where((kinds == 1) | (kinds == 2), 1 - y, y),
        "row": np.arange(n), "y": y,
    }  # fmt: skip


def test_ties_are_rows_too():
    """90 against 40 of 1,000 rows: five per cent, and not the share among 130."""
    found = compare(saved("a"), saved("b"), wrong(90, 40, 0, 870))
    assert found.alone == (90, 40)
    assert found.verdict == "second"
    assert 0.01 < found.low < 0.05 < found.high < 0.09
    assert all(isinstance(sentence, Message) for sentence in found.sentences)


def test_numbers_are_compared_over_all_rows():
    y = np.zeros(1000)
    a = np.repeat([1.0, 0.0, 0.5], [90, 40, 870])
    b = np.repeat([0.0, 1.0, 0.5], [90, 40, 870])
    found = compare(saved("a", "regress"), saved("b", "regress"), {"a": a, "b": b, "row": np.arange(1000.0), "y": y})
    assert found.alone == (90, 40)
    assert 0.0 < found.low < 0.05 < found.high < 0.1
    assert all(isinstance(sentence, Message) for sentence in found.sentences)


def test_the_order_of_the_table_does_not_matter():
    rows = wrong(30, 14, 20, 200)
    order = np.random.default_rng(0).permutation(264)
    shuffled = {name: values[order] for name, values in rows.items()}
    one, two = (compare(saved("a"), saved("b"), read(table)) for table in (rows, shuffled))
    assert (one.low, one.high, one.verdict) == (two.low, two.high, two.verdict)


def test_a_class_that_no_model_knows_is_an_error_of_both():
    rows = {"a": [0, 1] * 20, "b": [0, 1] * 20, "y": ["0", "1"] * 18 + ["x", "x", "x", "x"]}
    found = compare(saved("a"), saved("b"), rows)
    assert found.losses == (0.1, 0.1)


def test_the_sign_test_is_the_binomial_tail():
    for a, b in [(0, 0), (0, 9), (7, 7), (12, 30)]:
        assert sign_test(a, b) == pytest.approx(binom.cdf(a, a + b, 0.5), rel=1e-6)


def test_limits_of_a_mean_hold_on_either_side_and_are_those_of_betting():
    rng, above, below = np.random.default_rng(5), 0, 0
    for _ in range(300):
        values = rng.choice([-1.0, 0.0, 1.0], 80, p=[0.1, 0.8, 0.1])
        low, high = mean_limits(values, 0.2, -1.0, 1.0)
        assert low <= values.mean() <= high
        above, below = above + (high < 0), below + (low > 0)
    for count in (above, below):
        assert binomtest(count, 300, 0.1, "greater").pvalue > 1e-3
    x = rng.random(50)
    ends = 1 - 2 * betting_upper(1 - x, 0.025), 2 * betting_upper(x, 0.025) - 1
    assert mean_limits(2 * x - 1, 0.05, -1.0, 1.0) == pytest.approx(ends, abs=1e-8)


@pytest.mark.long
@pytest.mark.parametrize(("p", "q"), [(0.05, 0.05), (0.02, 0.2), (0.3, 0.3), (0.004, 0.004)])
def test_verdict_and_limits_are_wrong_together_at_most_delta(p, q):
    rng, failures = np.random.default_rng(1), 0
    for _ in range(4000):
        drawn = rng.choice(3, 150, p=[p, q, 1 - p - q])
        losses = [(drawn == kind).astype(float) for kind in (0, 1)]
        low, high, verdict = _limits(losses, 0.05, None, "classify")
        failures += not low <= p - q <= high or (verdict == "first" and p >= q) or (verdict == "second" and q >= p)
    assert binomtest(failures, 4000, 0.05, "greater").pvalue > 1e-3


def test_rows_that_had_been_looked_at_before_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_LOOKS", str(tmp_path / "looks.sqlite"))
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    table = {"x": x, "z": rng.normal(size=200), "y": np.where(x + rng.normal(size=200) > 0, "yes", "no")}
    with pytest.warns(RepeatedUseWarning):
        studies = [
            assay.learn(table, "y", learners=[name], trials=1, workers=0)
            for name in ("LogisticRegression", "GaussianNB")
        ]
    found = compare(*studies, table)
    looked = [one for one in found.sentences if "had been looked at" in one]
    assert [("second" in one, isinstance(one, Message)) for one in looked] == [(True, True)]
