"""Trees at scale: arrays, Parquet and Dask give the same trees; rows larger than memory; a killed worker."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone, is_classifier

import assay
from assay.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.scan import rows
from assay.tree import DecisionTreeClassifier
from assay.tree.growth import _bins
from tests.scale.killed import begin, one_is_killed

N, D = 20_000, 12
IN_THE_SECOND_PASS = 14  # over ten partitions

LEARNERS = {
    "forest": RandomForestClassifier(6, random_state=0),
    "weighted forest": RandomForestClassifier(3, random_state=0, class_weight="balanced"),
    "regression forest": RandomForestRegressor(4, max_features=0.5, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=5, early_stopping=False, random_state=0),
    "three classes": HistGradientBoostingClassifier(max_iter=3, subsample=0.5, early_stopping=False, random_state=0),
    "regression boosting": HistGradientBoostingRegressor(loss="huber", max_iter=5, early_stopping=False),
    "one tree": DecisionTreeClassifier(max_depth=5),
}
weighted = ("regression forest", "boosting", "regression boosting", "one tree")


def draw(name, n=N):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, D))
    X[:, 0] = np.round(X[:, 0], 1)
    target = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    weight = rng.uniform(0.5, 2.0, n)
    weight[::50] = 0.0
    if not is_classifier(LEARNERS[name]):
        return X, target, weight
    cuts = [0.0, 1.0] if name == "three classes" else [0.0]
    return X, np.array(["high", "low", "mid"])[np.digitize(target, cuts)], weight


def options(name, weight):
    return {"sample_weight": weight} if name in weighted else {}


def table_of(name, X, y, weight):
    columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y}
    return pa.table(columns | ({"w": weight} if name in weighted else {}))


def same(one, other):
    return all(np.array_equal(one.trees_[name], other.trees_[name]) for name in one.trees_)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_parquet_gives_the_trees_of_arrays(name, tmp_path):
    X, y, weight = draw(name)
    table = table_of(name, X, y, weight)
    for k, (a, b) in enumerate([(0, 7_000), (7_000, N)]):
        pq.write_table(table.slice(a, b - a), tmp_path / f"part{k}.parquet", row_group_size=3_000)
    plain = clone(LEARNERS[name]).fit(X, y, **options(name, weight))
    for source, n_jobs in ((str(tmp_path / "*.parquet"), 1), (table, 2)):
        model = clone(LEARNERS[name]).set_params(n_jobs=n_jobs).fit(source, "y", **options(name, "w"))
        assert same(model, plain)
        assert model.feature_names_in_.tolist() == [f"x{j}" for j in range(D)]
    if name in weighted:  # rows of weight 0 are not trained on, but the certificate is about all rows given
        return
    one, two = plain.certify(X, y), model.certify(tmp_path, "y")
    assert one.data == two.data
    assert assay.verify(two, model, X, y).holds


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("form", ["array", "frame"])
def test_dask_gives_the_trees_of_arrays(name, form):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, y, weight = draw(name)
    plain = clone(LEARNERS[name]).fit(X, y, **options(name, weight))
    if form == "array":
        X, y, weight = (da.from_array(part, chunks=(7_777, *part.shape[1:])) for part in (X, y, weight))
        model = clone(LEARNERS[name]).fit(X, y, **options(name, weight))
    else:
        frame = dd.from_pandas(table_of(name, X, y, weight).to_pandas(), chunksize=7_777)
        model = clone(LEARNERS[name]).fit(frame, "y", **options(name, "w"))
    assert same(model, plain)


def test_a_few_rows_are_taken_from_every_source(tmp_path):
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(10_000, 300))  # several blocks
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(300)}), tmp_path / "a.parquet")
    numbers = np.array([0, 1, 255, 256, 4_000, 9_999])
    for source in (X, tmp_path / "a.parquet", da.from_array(X, chunks=(3_333, -1))):
        assert np.array_equal(rows(source).take(numbers), X[numbers])


@pytest.mark.parametrize("name", ["forest", "regression forest", "boosting"])
def test_bins_on_disk_change_no_bit(name, monkeypatch):
    X, y, weight = draw(name)
    plain = clone(LEARNERS[name]).fit(X, y, **options(name, weight))
    made = []
    on_disk = _bins._on_disk
    monkeypatch.setattr(_bins, "memory_bytes", lambda: 1_000.0)
    monkeypatch.setattr(_bins, "_on_disk", lambda shape: made.append(shape) or on_disk(shape))
    assert same(clone(LEARNERS[name]).fit(X, y, **options(name, weight)), plain)
    assert sum(a * b for a, b in made) >= X.size * 0.98  # rows of weight 0 are left out


LIMITED = """
import resource, sys
import numpy as np
from pathlib import Path
from assay.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from assay.scan import rows
from assay.tree.growth import _bins

def used():
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()

made, on_disk = [], _bins._on_disk
_bins._on_disk = lambda shape: made.append(shape) or on_disk(shape)
kinds = {"boosting": HistGradientBoostingClassifier(max_iter=3, early_stopping=False, random_state=0, n_jobs=2)}
kinds["forest"] = RandomForestClassifier(4, max_leaf_nodes=200, random_state=0, n_jobs=2)
path, model, held = sys.argv[1], kinds[sys.argv[2]], float(sys.argv[3])
X = np.random.default_rng(0).normal(size=(6_000, rows(path, "y").n_features))
model.fit(X, np.arange(6_000) % 2)  # compile, start threads
model.fit(rows(path, "y").take(np.arange(100)), np.arange(100) % 2)
data = 8.0 * rows(path).n_rows * rows(path).n_features
resource.setrlimit(resource.RLIMIT_DATA, (int(used() + held * data), resource.RLIM_INFINITY))
try:
    rows(path, "y").take(np.arange(rows(path, "y").n_rows))
except MemoryError:
    print("too large")
model.fit(path, "y")
print(len(made))
print(model.trees_["threshold"].tobytes().hex())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory by RLIMIT_DATA, which Linux has")
@pytest.mark.parametrize("name", [pytest.param("forest", marks=pytest.mark.long), "boosting"])
def test_rows_larger_than_the_memory_they_may_use(name, tmp_path):
    n, d = 300_000, 50
    X = np.random.default_rng(3).normal(size=(n, d))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(np.int64)
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(d)} | {"y": y}), path, row_group_size=20_000)
    answer = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), name, "0.7"], capture_output=True, text=True, timeout=600
    )
    assert answer.returncode == 0, answer.stderr
    too_large, spilled, thresholds = answer.stdout.split("\n")[:3]
    assert too_large == "too large"
    assert int(spilled) > 0  # the bins, an eighth of the data, were more than their share of what is left
    forest = RandomForestClassifier(4, max_leaf_nodes=200, random_state=0)
    boosting = HistGradientBoostingClassifier(max_iter=3, early_stopping=False, random_state=0)
    plain = (forest if name == "forest" else boosting).fit(X, y)
    assert plain.trees_["threshold"].tobytes().hex() == thresholds


def told(part, folder):
    begin(folder, IN_THE_SECOND_PASS)
    return part


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [pytest.param("forest", marks=pytest.mark.long), "boosting"])
def test_a_killed_worker_changes_no_tree(name, tmp_path):
    distributed, da = pytest.importorskip("distributed"), pytest.importorskip("dask.array")
    X, y, _ = draw(name)
    plain = clone(LEARNERS[name]).fit(X, y)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        table = da.from_array(X, chunks=(2_000, D))
        table = table.map_blocks(told, str(tmp_path), dtype=np.float64, meta=np.empty((0, D)))
        with one_is_killed(tmp_path, IN_THE_SECOND_PASS) as killed:
            model = clone(LEARNERS[name]).fit(table, da.from_array(y, chunks=2_000))
        assert killed[0] not in client.run(os.getpid).values()
    assert same(model, plain)
