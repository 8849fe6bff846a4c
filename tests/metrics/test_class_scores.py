"""Precision, recall and F1 against scikit-learn; their limits against simulation; the example that recommends films."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import precision_recall_fscore_support

from assay.metrics import class_scores

ROOT = Path(__file__).parents[2]


def confused(rng, n, shares, table):
    """Return labels and answers: the answer to a row of class k is drawn from row k of the table."""
    y = rng.choice(len(shares), size=n, p=shares)
    return y, np.array([rng.choice(len(shares), p=table[k]) for k in y])


SHARES = np.array([0.6, 0.3, 0.1])
TABLE = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])


def test_the_values_are_scikit_learns():
    y, said = confused(np.random.default_rng(0), 300, SHARES, TABLE)
    found = class_scores(y, said)
    values = np.array([[one.precision.value, one.recall.value, one.f1.value] for one in found]).T
    *theirs, support = precision_recall_fscore_support(y, said)
    np.testing.assert_allclose(values, theirs, rtol=1e-14)
    assert [one.rows for one in found] == support.tolist()
    assert [one.said for one in found] == np.bincount(said).tolist()


def test_limits_hold_at_once_as_often_as_they_say():
    """The truth by Bayes: precision_k = share_k p(k|k) / sum_j share_j p(k|j)."""
    joint = SHARES[:, None] * TABLE
    precision, recall = np.diag(joint) / joint.sum(axis=0), np.diag(TABLE)
    f1 = 2 / (1 / precision + 1 / recall)
    rng, broken, widths = np.random.default_rng(1), 0, []
    for _ in range(300):
        found = class_scores(*confused(rng, 80, SHARES, TABLE), delta=0.3)
        ends = [(one.precision, one.recall, one.f1) for one in found]
        held = [
            limited.low <= truth[one.label] <= limited.high
            for one, limits in zip(found, ends)
            for limited, truth in zip(limits, (precision, recall, f1))
        ]
        broken += not all(held)
        widths.append(ends[0][0].high - ends[0][0].low)
    assert broken <= binom.isf(1e-4, 300, 0.3)
    assert broken > 5  # delta is used, not given away
    assert np.mean(widths) < 0.4


def test_classes_without_rows_or_answers():
    found = {one.label: one for one in class_scores(["a", "a", "b"], ["a", "a", "c"])}
    assert np.isnan(found["b"].precision.value)
    assert np.isnan(found["c"].recall.value)
    assert (found["b"].precision.low, found["b"].precision.high) == (0.0, 1.0)
    assert found["b"].f1.value == 0.0
    with pytest.raises(ValueError, match="one label and one answer"):
        class_scores([1, 2], [1])


def test_films_are_recommended(capsys):
    spec = importlib.util.spec_from_file_location("recommendation", ROOT / "examples" / "recommendation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for seed in range(3):
        found = module.recommend(40, 20, seed)
        assert found.learnt > found.popular + 0.1 > found.at_random
        assert found.holds
    module.main()
    assert "the certificate holds" in capsys.readouterr().out
