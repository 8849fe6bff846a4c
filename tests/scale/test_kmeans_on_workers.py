"""k-means on the workers of a cluster: the bits of a pass over files, whatever the layout; blocks stay; a killed worker
changes nothing."""

import numpy as np
import pyarrow as pa
import pytest

from assay.cluster import KMeans
from assay.cluster._assignment import drawn
from assay.scan import rows
from assay.scan.dask import Pinned
from assay.scan.memory import KeptRows, MemoryRows
from tests.scale.killed import cluster_that_loses_a_worker

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D, K = 9_000, 40, 5  # blocks of 2,048 rows
MODEL = {"n_clusters": K, "n_init": 2, "max_iter": 6, "random_state": 0}


def draw():
    rng = np.random.default_rng(2)
    return rng.normal(size=(N, D)) + 3 * rng.integers(0, 3, size=(N, 1))


def streamed():
    X = draw()
    return KMeans(**MODEL).fit(pa.table({f"x{j}": X[:, j] for j in range(D)}))


def same(a, b):
    return np.array_equal(a.cluster_centers_, b.cluster_centers_) and np.array_equal(a.labels_, b.labels_)


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("chunks", [(1, 3_000, 511, 5_000, 2, 486), 700, N])
def test_workers_give_the_centres_of_a_file(chunks, client):
    assert same(KMeans(**MODEL).fit(da.from_array(draw(), chunks=(chunks, (D,)))), streamed())


def test_starting_rows_are_those_of_memory(client):
    X = draw()
    spread = rows(da.from_array(X, chunks=(700, D))).kept()
    assert isinstance(spread, KeptRows)
    assert np.array_equal(drawn(spread, np.random.RandomState(0)).X, X)
    plain = KMeans(**MODEL | {"n_init": 1, "max_iter": 1}).fit(X)
    other = KMeans(**MODEL | {"n_init": 1, "max_iter": 1}).fit(da.from_array(X, chunks=(700, D)))
    assert other.cluster_centers_ == pytest.approx(plain.cluster_centers_, rel=1e-12)
    assert np.array_equal(other.labels_, plain.labels_)


def test_few_rows_of_many_are_fetched_for_the_start(client, monkeypatch):
    monkeypatch.setattr("assay.cluster._assignment._MOST_SEEDED", 300)
    sizes, each = [], Pinned.each

    def watched(self, method, *arguments):
        results = each(self, method, *arguments)
        sizes.append(sum(part[0].size for result in results for _, part in result))
        return results

    X = draw()
    spread = rows(da.from_array(X, chunks=(1_000, D))).kept()
    monkeypatch.setattr(Pinned, "each", watched)
    found = drawn(spread, np.random.RandomState(4))
    assert isinstance(found, MemoryRows)
    assert sizes == [300 * D]
    assert np.array_equal(found.X, X[np.sort(np.random.RandomState(4).choice(N, 300, replace=False))])


def test_rows_that_do_not_fit_are_not_kept(client, monkeypatch):
    monkeypatch.setattr("assay.scan.memory._SHARE", 0.0)
    spread = rows(da.from_array(draw(), chunks=(1_000, D)))
    assert spread.kept() is spread


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_killed_worker_changes_no_centre():
    """A worker is killed between two passes, and when it is asked next it is gone."""
    with cluster_that_loses_a_worker(lambda calls: calls.count("sum") == 3) as killed:
        model = KMeans(**MODEL).fit(da.from_array(draw(), chunks=(2_000, D)))
    assert killed
    assert same(model, streamed())


@pytest.mark.parametrize("name", ["LogisticRegression", "GaussianMixture"])
def test_sums_over_kept_rows_have_the_bits_of_files(name, client):
    from assay.linear_model import LogisticRegression
    from assay.mixture import GaussianMixture

    X = draw()[:5_000, :4]
    y = (X[:, 0] + X[:, 1] ** 2 > 2).astype(int)
    table = pa.table({f"x{j}": X[:, j] for j in range(4)} | {"y": y})
    parts = [da.from_array(part, chunks=(700, 4)[: part.ndim]) for part in (X, y)]
    if name == "LogisticRegression":
        plain, spread = LogisticRegression().fit(table, "y"), LogisticRegression().fit(*parts)
        assert np.array_equal(plain.coef_, spread.coef_)
        return
    settings = {"covariance_type": "diag", "init_params": "random", "random_state": 0, "max_iter": 3, "tol": 0.0}
    models = [GaussianMixture(2, **settings).fit(rows) for rows in (table.drop_columns(["y"]), parts[0])]
    assert np.array_equal(models[0].means_, models[1].means_)
