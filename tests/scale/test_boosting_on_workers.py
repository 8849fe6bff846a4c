"""Histogram boosting on the workers of a cluster: the bits of one machine, whatever the layout; sums travel, rows do
not; a killed worker changes nothing."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from assay.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tests.scale.killed import cluster_that_loses_a_worker

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning"),
]

N, D = 12_000, 130  # 13 columns more than one line of bins; blocks of 512 rows
RAGGED = ((1, 3_000, 511, 5_000, 2, 3_486), (D,))
FEW = {"max_iter": 4, "max_leaf_nodes": 9, "random_state": 0}
LEARNERS = {
    "defaults": HistGradientBoostingClassifier(**FEW),  # stops early: more than 10,000 rows
    "three classes": HistGradientBoostingClassifier(subsample=0.5, early_stopping=False, **FEW),
    "columns drawn": HistGradientBoostingClassifier(loss="exponential", max_features=0.5, early_stopping=True, **FEW),
    "monotone": HistGradientBoostingRegressor(monotonic_cst=[1, 0, 1] + [0] * (D - 3), **FEW),
    "groups": HistGradientBoostingRegressor(interaction_cst=[[0, 1], [2]], validation_fraction=500, **FEW),
    "gamma": HistGradientBoostingRegressor(loss="gamma", early_stopping=False, **FEW),
    "medians": HistGradientBoostingRegressor(loss="absolute_error", early_stopping=False, **FEW),  # read here
}


def draw(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, D))
    X[:, 0] = np.round(X[:, 0], 1)
    target = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=N)
    weight = rng.uniform(0.5, 2.0, N)
    weight[::50] = 0.0
    if isinstance(LEARNERS[name], HistGradientBoostingRegressor):
        return X, np.exp(target) if name == "gamma" else target, weight
    return (
        X,
        np.array(["high", "low", "mid"])[np.digitize(target, [0.0, 1.0] if name == "three classes" else [0.0])],
        weight,
    )


def same(a, b):
    scores = np.array_equal(a.train_score_, b.train_score_) and np.array_equal(a.validation_score_, b.validation_score_)
    return scores and all(np.array_equal(a.trees_[name], b.trees_[name]) for name in a.trees_)


@pytest.fixture(scope="module")
def threads():
    cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("name", LEARNERS)
def test_workers_give_the_model_of_memory(name, threads):
    X, y, weight = draw(name)
    weighted = name in ("columns drawn", "monotone", "gamma")
    plain = clone(LEARNERS[name]).fit(X, y, weight if weighted else None)
    spread = [da.from_array(part, chunks=RAGGED[: part.ndim]) for part in (X, y, weight)]
    assert same(clone(LEARNERS[name]).fit(*spread[: 2 + weighted]), plain)


def test_the_layout_does_not_matter(threads, tmp_path):
    X, y, _ = draw("defaults")
    plain = clone(LEARNERS["defaults"]).fit(X, y)
    assert len(plain.validation_score_)
    for chunks in (400, 4_096, N):
        model = clone(LEARNERS["defaults"]).fit(da.from_array(X, chunks=(chunks, D)), da.from_array(y, chunks=chunks))
        assert same(model, plain)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(D)} | {"y": y}), tmp_path / "a.parquet")
    assert same(clone(LEARNERS["defaults"]).fit(tmp_path / "a.parquet", "y"), plain)


def test_rows_stay_on_the_workers(threads, monkeypatch):
    """No array with an entry for each row reaches the client."""
    from assay.scan.dask import Pinned

    X, y, _ = draw("defaults")
    sizes, each = [], Pinned.each

    def watched(self, method, *arguments):
        results = each(self, method, *arguments)
        sizes.extend(part.shape for result in results for part in _arrays(result))
        return results

    monkeypatch.setattr(Pinned, "each", watched)
    model = clone(LEARNERS["defaults"]).fit(da.from_array(X, chunks=(5_000, D)), da.from_array(y, chunks=5_000))
    assert model.n_iter_ == 4
    assert (3, D * 256) in sizes
    assert all(shape in [(3, D * 256)] or np.prod(shape) < 100 for shape in sizes)


def _arrays(result):
    if isinstance(result, np.ndarray):
        return [result]
    return [a for part in result for a in _arrays(part)] if isinstance(result, (list, tuple)) else []


def test_what_is_wrong_on_a_worker_is_said(threads):
    X, y, weight = draw("monotone")
    weight[7_000] = -1.0
    with pytest.raises(ValueError, match="row 7000"):
        clone(LEARNERS["monotone"]).fit(*(da.from_array(part, chunks=RAGGED[: part.ndim]) for part in (X, y, weight)))
    with pytest.raises(ValueError, match="strictly positive"):
        clone(LEARNERS["gamma"]).fit(da.from_array(X, chunks=RAGGED), da.from_array(y, chunks=RAGGED[:1]))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("at", ["slopes", pytest.param("divide", marks=pytest.mark.long)])
def test_a_killed_worker_changes_no_tree(at):
    """A worker is killed between two calls of the second round, and when it is asked next it is gone."""
    X, y, _ = draw("defaults")
    plain = clone(LEARNERS["defaults"]).fit(X, y)

    def due(calls):
        return calls[-1] == at and calls.count("begin") and calls.count("draw") == 2

    with cluster_that_loses_a_worker(due) as killed:
        model = clone(LEARNERS["defaults"]).fit(da.from_array(X, chunks=(2_000, D)), da.from_array(y, chunks=2_000))
    assert killed
    assert same(model, plain)
