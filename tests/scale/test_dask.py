"""Dask: the same sums as memory, on threads of this process and on worker processes that may be killed."""

import os

import numpy as np
import pytest

from assay.scan import rows
from tests.scale.killed import begin, one_is_killed

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")


def moments(block, scale=1.0):
    return len(block.X), scale * block.X.T @ block.X, block.X.T @ (block.y * block.weight)


def draw(n=50_000, d=28):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng.random(n)


def frame_of(X, y, weight, partition):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y, w=weight)
    return dd.from_pandas(frame, chunksize=partition, sort=False)


def same_bits(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("form", ["array", "frame"])
@pytest.mark.parametrize("blocks_each", [1, 3, 5])
def test_whole_blocks_give_the_bits_of_memory(form, blocks_each):
    X, y, weight = draw()
    partition = 4096 * blocks_each
    if form == "array":
        spread = rows(*(da.from_array(a, chunks=(partition, *a.shape[1:])) for a in (X, y, weight)))
    else:
        spread = rows(frame_of(X, y, weight, partition), "y", "w")
        assert spread.feature_names == [f"x{j}" for j in range(28)]
    assert (spread.n_rows, spread.n_features) == X.shape
    assert same_bits(spread.sum(moments, 3.0), rows(X, y, weight).sum(moments, 3.0))


@pytest.mark.parametrize("partition", [999, 7777])
def test_ragged_partitions_give_the_bits_of_memory(partition):
    X, y, weight = draw()
    spread = rows(
        da.from_array(X, chunks=(partition, 5)),
        da.from_array(y, chunks=333),
        da.from_array(weight, chunks=-1),
    )
    assert same_bits(spread.sum(moments), rows(X, y, weight).sum(moments))
    ragged = da.from_array(X, chunks=((1, 4095, 9000, 1, 1, 30_000, 6_902), (28,)))
    assert same_bits(rows(ragged).sum(gram), rows(X).sum(gram))


def gram(block):
    return block.start, block.X.T @ block.X


def test_blocks_map_and_labels_in_order():
    X, _, weight = draw(10_000)
    y = np.random.default_rng(1).choice(["b", "a"], size=10_000)
    spread = rows(frame_of(X, y, weight, 4500), "y", "w")
    for cut in (list(spread.blocks()), spread.map(lambda block: block)):
        assert [b.start for b in cut] == [0, 4096, 8192]
        assert np.array_equal(np.concatenate([b.X for b in cut]), X)
    assert spread.labels().tolist() == ["a", "b"]
    counts = spread.encoded(spread.labels()).sum(lambda block: np.bincount(block.y, minlength=2))
    assert counts.tolist() == [(y == "a").sum(), (y == "b").sum()]


def test_unknown_chunk_sizes_are_counted():
    X, y, weight = draw(10_000)
    frame = frame_of(X, y, weight, 3000)
    spread = rows(frame[[f"x{j}" for j in range(28)]].to_dask_array(), frame["y"].to_dask_array())
    assert spread.n_rows == 10_000
    np.testing.assert_allclose(spread.sum(lambda block: block.X.T @ block.y), X.T @ y, rtol=1e-12, atol=1e-9)


def test_refusals():
    X, y, weight = draw(10_000)
    frame = frame_of(X, y, weight, 3000)
    with pytest.raises(ValueError, match="y must name a column of the Dask data frame"):
        rows(frame, "z")
    with pytest.raises(ValueError, match="column 'name' holds"):
        rows(frame.assign(name="a"), "y")
    with pytest.raises(ValueError, match="with a Dask array X, y must be a Dask array; got ndarray"):
        rows(da.from_array(X), y)
    with pytest.raises(ValueError, match=r"y must have one value for each of 10000 rows; got shape \(9,\)"):
        rows(da.from_array(X), da.from_array(y[:9]))
    with pytest.raises(ValueError, match="must be a Dask data frame or a Dask array with rows and columns"):
        rows(da.from_array(y))
    X[7000, 4] = np.nan
    with pytest.raises(ValueError, match="column 'x4' has a missing or infinite value in row 1000 of partition 2"):
        rows(frame_of(X, y, weight, 3000), "y", "w").sum(moments)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def test_two_processes_give_the_bits_of_memory(client):
    X, y, weight = draw()
    spread = rows(*(da.from_array(a, chunks=(8192, *a.shape[1:])) for a in (X, y, weight)))
    assert same_bits(spread.sum(moments, 3.0), rows(X, y, weight).sum(moments, 3.0))
    workers = set(spread.map(lambda block: os.getpid()))
    assert len(workers) == 2
    assert os.getpid() not in workers


def test_an_error_on_a_worker_says_in_which_rows(client):
    def fails(block):
        raise ZeroDivisionError("no") if block.start == 8192 else ArithmeticError("later")

    X, y, _ = draw(12_000)
    with pytest.raises(ArithmeticError) as caught:
        rows(da.from_array(X, chunks=(4096, 28)), da.from_array(y, chunks=4096)).sum(fails)
    assert "in the block of" in caught.value.__notes__[0]


@pytest.mark.parametrize("persisted", [False, True])
def test_a_killed_worker_changes_no_bit(client, tmp_path, persisted):
    def told(block, folder):
        begin(folder, 12)  # of 49 blocks
        return moments(block)

    X, y, weight = draw(200_000)
    expected = rows(X, y, weight).sum(moments)
    arrays = [da.from_array(a, chunks=(8192, *a.shape[1:])) for a in (X, y, weight)]
    if persisted:
        arrays = list(client.persist(arrays))
        distributed.wait(arrays)
    spread = rows(*arrays)
    with one_is_killed(tmp_path, 12) as killed:
        total = spread.sum(told, str(tmp_path))
    assert killed[0] not in client.run(os.getpid).values()
    assert same_bits(total, expected)
