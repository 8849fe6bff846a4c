"""Rows and folds that a seed gives: producer and checker draw alike, and the draws look random."""

import numpy as np
import pytest

from assay.checker import identity as checker
from assay.guarantees import fingerprint


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (10, 7), (100_001, -3), (5000, 2**70 + 1)])
def test_producer_and_checker_draw_alike(n, seed):
    for purpose in (fingerprint.HOLDOUT, fingerprint.GROUPS, fingerprint.FOLDS):
        assert np.array_equal(fingerprint.permutation(n, seed, purpose), checker.drawn_order(n, seed, purpose))
    if n > 9:
        assert np.array_equal(fingerprint.fold_of_rows(n, 3, seed), checker.drawn_folds(n, 3, seed))


def test_first_output_of_splitmix64_is_the_published_one():
    assert fingerprint._scramble(0) == 0xE220A8397B1DCDAF


def test_every_row_is_held_out_as_often_as_any_other():
    counts = np.zeros(50)
    for seed in range(4000):
        counts[fingerprint.permutation(50, seed, fingerprint.HOLDOUT)[:10]] += 1
    expected = 4000 * 0.2
    assert np.sum((counts - expected) ** 2 / (expected * 0.8)) < 90  # chi-squared with 49 degrees: P = 0.0003


def test_purposes_draw_apart():
    assert not np.array_equal(
        fingerprint.permutation(100, 1, fingerprint.HOLDOUT), fingerprint.permutation(100, 1, fingerprint.FOLDS)
    )
