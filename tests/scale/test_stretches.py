"""Sums of stretches of blocks: the same nodes of the same tree, so that no bit depends on who works on what."""

import numpy as np
import pytest

from assay.linear_model import _logistic_problem
from assay.scan import thread_map
from assay.scan.memory import MemoryRows, in_stretches, stretches
from assay.scan.source import Total


@pytest.mark.parametrize("count", [1, 2, 3, 7, 24, 25, 64, 129, 200])
@pytest.mark.parametrize("most", [1, 2, 5, 64])
@pytest.mark.parametrize("last", [0, 1])
def test_stretches_are_nodes_of_the_tree_and_cover_every_block_once(count, most, last):
    """`last` blocks at the end are not whole and stand alone."""
    covered = []
    for level, number in stretches(count - last, count, most):
        assert 1 << level <= max(1, most)
        covered += range(number << level, (number + 1) << level)
        assert level == 0 or covered[-1] < count - last
    assert covered == list(range(count))


def test_a_total_of_stretches_is_that_of_blocks():
    values = np.random.default_rng(0).normal(size=25) * 10.0 ** np.arange(25)
    plain, long = Total(), Total()
    for i, value in enumerate(values):
        plain.add(i, value)

    def tree(part):
        return part[0] if len(part) == 1 else tree(part[: len(part) // 2]) + tree(part[len(part) // 2 :])

    for level, number in stretches(24, 25, 8):
        long.add(number, tree(values[number << level : (number + 1) << level]), level=level)
    assert long.value() == plain.value()


@pytest.mark.parametrize(("n", "d"), [(50_000, 28), (32_768, 28), (3_000, 28), (9_000, 200)])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_bit_of_the_logistic_sums_depends_on_stretches_or_threads(n, d, weighted):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(n, d)), rng.integers(0, 2, n), rng.random(n) if weighted else None
    at = rng.normal(size=(1, d)) / d, np.array([0.1]), np.array([1.0, 2.0] if weighted else [1.0, 1.0])
    for statistic in (_logistic_problem.binary, _logistic_problem.binary_hessian):
        plain = MemoryRows(X, y, weight, n_jobs=1).sum(lambda *given, statistic=statistic: statistic(*given), *at)
        for jobs in (1, 2, 3):
            rows = MemoryRows(X, y, weight, n_jobs=jobs)
            beside = thread_map(lambda _, rows=rows, statistic=statistic: rows.sum(statistic, *at), range(2), n_jobs=2)
            for found in (rows.sum(statistic, *at), *beside):
                for one, other in zip(*((each,) if isinstance(each, np.ndarray) else each for each in (found, plain))):
                    assert np.array_equal(one, other)


def test_a_stretch_has_whole_blocks_and_other_rows_come_block_by_block():
    seen = []

    def stretch(block, step):
        seen.append((block.start, len(block.X), step))
        return float(block.X.sum())

    @in_stretches(stretch)
    def statistic(block):
        seen.append((block.start, len(block.X), 0))
        return float(block.X.sum())

    X = np.ones((20 * 4096 + 10, 28))
    assert MemoryRows(X, n_jobs=1).sum(statistic) == X.size
    assert seen == [(0, 16 * 4096, 4096), (16 * 4096, 4 * 4096, 4096), (20 * 4096, 10, 0)]
    for other in (X.astype(np.float32), X.astype(int), np.asfortranarray(X)):
        seen.clear()
        assert MemoryRows(other, n_jobs=1).sum(statistic) == X.size
        assert {step for _, _, step in seen} == {0}
