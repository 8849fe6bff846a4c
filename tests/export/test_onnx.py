"""ONNX graphs predict what the models predict, by ONNX Runtime on 10,000 rows."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from typer.testing import CliRunner

import assay
from assay.checker.family import read_model
from assay.checker.record import Refused, Rejected
from assay.cli.app import app
from assay.cluster import KMeans
from assay.decomposition import PCA, TruncatedSVD
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    ForestCommitteeClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
)
from assay.export import onnx_model, save_onnx
from assay.imbalance import ThresholdClassifier
from assay.kernel_model import KernelLogisticRegression
from assay.linear_model import (
    GammaRegressor,
    Lasso,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
)
from assay.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB, PoissonNB
from assay.neighbors import KNeighborsClassifier
from assay.neural_network import MLPClassifier, MLPRegressor, RBFRegressor
from assay.persist import built
from assay.svm import SVC, SVR, LinearSVC
from assay.tree import C45, DecisionTreeClassifier, DecisionTreeRegressor
from tests import differential
from tests.differential_inputs import borderline, changed, name_of, quiet, subjects
from tests.differential_inputs import table as rows_of

CLASSIFIERS: list[Callable[[], Any]] = [
    LogisticRegression,
    Perceptron,
    lambda: SGDClassifier(random_state=0),
    LinearSVC,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    GaussianNB,
    lambda: SVC(gamma=0.01),
    lambda: SVC(kernel="poly", degree=3, coef0=1.0, gamma=0.01),
    lambda: KernelLogisticRegression(gamma=0.01),
    lambda: MLPClassifier(hidden_layer_sizes=(8,), max_iter=20, random_state=0),
    lambda: MLPClassifier(
        hidden_layer_sizes=(8,), max_iter=20, loss="squared_error", activation="tanh", random_state=0
    ),
    lambda: DecisionTreeClassifier(random_state=0),
    C45,
    lambda: RandomForestClassifier(20, random_state=0),
    lambda: ExtraTreesClassifier(20, random_state=0),
    lambda: ForestCommitteeClassifier(random_state=0),
    lambda: AdaBoostClassifier(n_estimators=20, random_state=0),
    lambda: GradientBoostingClassifier(n_estimators=20, random_state=0),
    lambda: HistGradientBoostingClassifier(max_iter=20),
    lambda: ThresholdClassifier(LogisticRegression()),
    lambda: VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
]
REGRESSIONS: list[Callable[[], Any]] = [
    Ridge,
    Lasso,
    PoissonRegressor,
    GammaRegressor,
    SVR,
    lambda: MLPRegressor(hidden_layer_sizes=(8, 4), activation="logistic", max_iter=20, random_state=0),
    lambda: RBFRegressor(random_state=0),
    lambda: DecisionTreeRegressor(max_depth=6, random_state=0),
    lambda: RandomForestRegressor(20, random_state=0),
    lambda: BaggingRegressor(n_estimators=5, random_state=0),
    lambda: AdaBoostRegressor(n_estimators=11, random_state=0),
    lambda: HistGradientBoostingRegressor(max_iter=20),
    lambda: HistGradientBoostingRegressor(max_iter=20, loss="poisson"),
    lambda: StackingRegressor([("a", Ridge()), ("b", DecisionTreeRegressor(max_depth=3, random_state=0))]),
]


def _run(model: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(onnx_model(model).SerializeToString())
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def _near(X: np.ndarray) -> np.ndarray:
    """Return 10,000 rows between and around those of X."""
    random = np.random.default_rng(0)
    return X[random.integers(len(X), size=10_000)] + random.normal(size=(10_000, X.shape[1])) * X.std(axis=0) / 2


def _check_classes(model: Any, X: np.ndarray) -> None:
    found = _run(model, {"X": X})
    assert np.array_equal(found["label"], model.predict(X))
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("make", CLASSIFIERS, ids=lambda make: type(make()).__name__)
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_predict_the_same(make: Callable[[], Any], load: Callable[..., Any]) -> None:
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    _check_classes(make().fit(X, np.array(["no", "yes", "perhaps"])[y]), _near(X))


@pytest.mark.parametrize("make", [BernoulliNB, ComplementNB, MultinomialNB, PoissonNB])
def test_naive_bayes_of_counts(make: Callable[[], Any]) -> None:
    random = np.random.default_rng(0)
    y = random.integers(3, size=200)
    X = random.poisson(np.array([[1.0, 5, 2], [4, 1, 2], [2, 2, 6]])[y]).astype(float)
    X[y == 0, 2] = 0  # never there: a probability of zero where nothing is added
    _check_classes(make().fit(X, y), random.poisson(3.0, size=(10_000, 3)).astype(float))


@pytest.mark.parametrize("make", REGRESSIONS, ids=lambda make: type(make()).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_regressions_predict_the_same(make: Callable[[], Any]) -> None:
    X, y = load_diabetes(return_X_y=True)
    X = X / X.std(axis=0)
    model, rows = make().fit(X, y), _near(X)
    np.testing.assert_allclose(_run(model, {"X": rows})["variable"][:, 0], model.predict(rows), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("make", [PCA, lambda: PCA(2, whiten=True), lambda: TruncatedSVD(2)])
def test_transformers_transform_the_same(make: Callable[[], Any]) -> None:
    X = load_iris().data
    model, rows = make().fit(X), _near(X)
    np.testing.assert_allclose(_run(model, {"X": rows})["variable"], model.transform(rows), atol=1e-9)


def test_k_means_gives_the_nearest_centre() -> None:
    X = load_iris().data
    model, rows = KMeans(4, random_state=0).fit(X), _near(X)
    found = _run(model, {"X": rows})
    assert np.array_equal(found["label"], model.predict(rows))
    np.testing.assert_allclose(np.sqrt(found["scores"]), model.transform(rows), atol=1e-9)


def test_numbered_labels_keep_their_type() -> None:
    X = load_iris().data
    assert _run(LogisticRegression().fit(X, load_iris().target + 5), {"X": X})["label"].dtype == np.int64
    assert _run(LogisticRegression().fit(X, load_iris().target.astype(float)), {"X": X})["label"].dtype == np.float64


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(3)
    n = 400
    frame = pd.DataFrame(
        {
            "size": random.normal(10, 3, n),
            "colour": random.choice(["red", "green", "blue", "grey"], n),
            "when": pd.Timestamp("1968-01-01") + pd.to_timedelta(random.integers(0, 40_000, n), unit="D"),
        }
    )
    frame.loc[random.random(n) < 0.1, "size"] = np.nan
    frame.loc[random.random(n) < 0.1, "colour"] = None
    good = (frame["size"].fillna(9) > 10) ^ (frame["colour"] == "red") ^ (frame["when"].dt.month > 6)
    frame["kind"] = np.where(good, "good", "bad")
    return frame


def _inputs(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    seconds = (frame["when"] - pd.Timestamp(0)).dt.total_seconds().to_numpy()
    return {
        "size": frame[["size"]].to_numpy(dtype=float),
        "colour": frame[["colour"]].fillna("").to_numpy(dtype=object),
        "when": seconds[:, None],
    }


@pytest.mark.parametrize(
    "learner", ["LogisticRegression", "RandomForestClassifier", "HistGradientBoostingClassifier", "MixedNB"]
)
def test_the_reading_of_a_table_is_in_the_graph(table: pd.DataFrame, learner: str) -> None:
    """Missing values, a level that training rows lack, and every part of a date, leap years included."""
    model = assay.learn(table, "kind", learners=[learner], trials=1, workers=0).model
    new = table.sample(10_000, replace=True, random_state=0).drop(columns="kind").reset_index(drop=True)
    new.loc[::7, "colour"] = "violet"
    new["when"] = pd.Timestamp("1899-03-01") + pd.to_timedelta(np.arange(10_000) * 17_003, unit="min")
    found = _run(model, _inputs(new))
    assert np.array_equal(found["label"], model.predict(new))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), rtol=0, atol=1e-9)


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_names_of_columns_are_no_names_of_values_in_the_graph(task: str) -> None:
    """A column `c3` took the place of a constant, and columns `v1` or `label` could not be exported."""
    random = np.random.default_rng(0)
    names = [*(f"{letter}{i}" for letter in ("v", "c", ".v") for i in range(12)), "label", "probabilities", "variable"]
    frame = pd.DataFrame(random.normal(size=(150, len(names))), columns=names)
    y = frame["label"] - 2 * frame["v1"] + frame["variable"]
    table = frame.assign(y=np.where(y > 0, "yes", "no") if task == "classify" else y)
    learner = "LogisticRegression" if task == "classify" else "Ridge"
    model = assay.learn(table, "y", learners=[learner], trials=1, workers=0).model
    found = _run(model, {name: frame[[name]].to_numpy() for name in names})
    if task == "classify":
        assert list(found) == ["label_", "probabilities_"]
        assert np.array_equal(found["label_"], model.predict(frame))
    else:
        np.testing.assert_allclose(found["variable_"][:, 0], model.predict(frame), rtol=1e-12, atol=1e-12)


def test_the_command_writes_the_fingerprint(table: pd.DataFrame, tmp_path: Path) -> None:
    study = assay.learn(table, "kind", learners=["LogisticRegression"], trials=1, workers=0)
    study.save(tmp_path / "m.assay")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "m.assay")])
    assert done.exit_code == 0, done.output
    written = {entry.key: entry.value for entry in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert written["assay.model"] == study.certificate.model.digest
    wrong = CliRunner().invoke(app, ["export", str(tmp_path / "m.assay"), "--out", str(tmp_path / "m.txt")])
    assert wrong.exit_code == 2


def test_what_has_no_graph_is_refused(table: pd.DataFrame, tmp_path: Path) -> None:
    shares = assay.learn(table, "kind", learners=["C45"], trials=1, workers=0).model
    with pytest.raises(ValueError, match="down several branches"):
        onnx_model(shares)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"neighbors\.classifier cannot be exported"):
        onnx_model(KNeighborsClassifier().fit(X, y))
    with pytest.raises(ValueError, match="precomputed"):
        onnx_model(SVC(kernel="precomputed").fit(X @ X.T, y))
    hard = VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())]).fit(X, y)
    with pytest.raises(ValueError, match="ties of a hard vote"):
        save_onnx(hard, tmp_path / "never.onnx")
    assert not list(tmp_path.iterdir())


def test_the_blocks_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})
        assert f"    {capsys.readouterr().out.strip()}\n" in page


def test_nothing_else_needs_the_extra() -> None:
    """The list of learners, and so the main job, works without onnx; the export says what to install."""
    code = (
        "import sys; sys.modules['onnx'] = None; from assay import export, registry; assert registry.learners()\n"
        "try: export.onnx_model\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "assay[onnx]" in done.stdout


BORDERS = [one for one in subjects() if type(one).__name__ in (
    "LogisticRegression", "QuadraticDiscriminantAnalysis", "SVC", "DecisionTreeClassifier", "RandomForestClassifier",
    "ForestCommitteeClassifier", "AdaBoostClassifier", "AdaBoostRegressor", "HistGradientBoostingClassifier",
    "GaussianNB", "MLPClassifier", "Lasso", "StackingRegressor", "KMeans",
)]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", BORDERS, ids=name_of)
@pytest.mark.parametrize("way", ["fitted", "changed"])
def test_the_graph_says_what_the_checker_is_sure_of_on_borderline_rows(model: Any, way: str) -> None:
    """Thresholds and their neighbours, ties, sums that cancel: what a certificate counts as right is right here too."""
    rng = np.random.default_rng(list(name_of(model).encode()))
    X, y = rows_of(model, rng)
    stored = quiet(clone(model).fit, X, y).stored()
    try:
        stored = changed(stored, rng) if way == "changed" else stored
        predictor = read_model(stored)
        graph = onnx_model(built(stored)).SerializeToString()
    except (ValueError, Refused, Rejected):
        pytest.skip("no such model, or no graph of it")
    face = differential.face_of(predictor)
    assert face is not None
    session = onnxruntime.InferenceSession(graph)
    rows = quiet(borderline, built(stored), None, X, 300, rng)
    name = "scores" if isinstance(face, differential.Nearest) else "label" if predictor.classes else "variable"
    said = session.run([name], {"X": rows})[0]
    said = said.min(axis=1) if name == "scores" else said
    try:
        known = quiet(face.known, predictor, rows)
    except Refused:
        pytest.skip("a score overflows")
    assert face.agrees(known, np.arange(len(rows)), said).all()


def _forged(model: Any, **arrays: Any) -> Any:
    stored = model.stored()
    return built(replace(stored, arrays={**stored.arrays, **arrays}))


def test_a_small_model_makes_a_small_graph() -> None:
    """A table of levels that many nodes share, and votes of pairs of many classes: once as large as their product."""
    X, y = load_iris(return_X_y=True)
    K = 300
    pairs, machine = K * (K - 1) // 2, SVC(kernel="linear").fit(X, y)
    many = _forged(
        machine, classes_=np.arange(K), pair_coef_=np.zeros((pairs, 1)), intercept_=np.zeros(pairs),
        support_vectors_=machine.support_vectors_[:1], support_=np.zeros(1, np.int64), class_weight_=np.ones(K),
    )  # fmt: skip
    n = 2001
    inner = (np.arange(n) % 2 == 0) & (np.arange(n) < n - 1)
    tree = DecisionTreeClassifier(max_depth=1).fit(X[:, :1], y > 0)
    arrays = {name: np.resize(a, (n, *a.shape[1:])) for name, a in tree.stored().arrays.items() if "node_" in name}
    arrays |= {
        "tree_root_": np.zeros(1, np.int64), "node_child_": np.where(inner, np.arange(n) + 1, -1),
        "node_table_": np.where(inner, 0, -1), "node_column_": np.where(inner, 0, -1),
        "node_missing_": np.where(inner, 0, -1), "branch_tables_": np.arange(n)[None] % 2,
    }  # fmt: skip
    for model in (many, _forged(tree, **arrays)):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="far larger than the model"):
                onnx_model(model)
            assert tracemalloc.get_traced_memory()[1] < 2**28
        finally:
            tracemalloc.stop()
