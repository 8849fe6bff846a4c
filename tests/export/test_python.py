"""Python source of fitted models predicts what the models predict, and needs nothing but the standard library."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from assay.export import python_source
from assay.linear_model import GammaRegressor, LinearRegression, LogisticRegression, Perceptron, PoissonRegressor
from assay.neighbors import KNeighborsClassifier
from assay.svm import LinearSVC
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor


def _run(model: Any) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(python_source(model), names)
    return names


def _near(X: np.ndarray, rows: int = 10_000) -> np.ndarray:
    """Rows about those that the model was fitted to."""
    rng = np.random.default_rng(0)
    return X[rng.integers(len(X), size=rows)] + rng.normal(size=(rows, X.shape[1])) * X.std(axis=0) * 0.3


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize(
    "make",
    [
        LogisticRegression,
        Perceptron,
        LinearSVC,
        LinearDiscriminantAnalysis,
        lambda: DecisionTreeClassifier(random_state=0),
        lambda: RandomForestClassifier(7, random_state=0),
        lambda: AdaBoostClassifier(n_estimators=7, random_state=0),
        lambda: HistGradientBoostingClassifier(max_iter=7, random_state=0),
        lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    ],
    ids=["logistic", "perceptron", "svm", "lda", "tree", "forest", "adaboost", "boosting", "exact boosting"],
)
def test_classifiers_predict_the_same(make: Callable[[], Any], load: Callable[..., Any]) -> None:
    X, y = load(return_X_y=True)
    model = make().fit(X, np.array(["no", "yes", "per'haps\n"])[y])
    names, new = _run(model), _near(X)
    assert [names["predict"](row) for row in new.tolist()] == model.predict(new).tolist()
    if "predict_proba" in names:
        np.testing.assert_allclose(
            [names["predict_proba"](row) for row in new[:500].tolist()], model.predict_proba(new[:500]), atol=1e-12
        )


@pytest.mark.parametrize(
    "make",
    [
        LinearRegression,
        PoissonRegressor,
        GammaRegressor,
        lambda: DecisionTreeRegressor(random_state=0),
        lambda: RandomForestRegressor(5, random_state=0),
        lambda: AdaBoostRegressor(n_estimators=5, random_state=0),
        lambda: HistGradientBoostingRegressor(max_iter=7, random_state=0),
        lambda: HistGradientBoostingRegressor(max_iter=7, loss="poisson", random_state=0),
    ],
    ids=["least squares", "poisson", "gamma", "tree", "forest", "adaboost", "boosting", "boosting of counts"],
)
def test_regressions_predict_the_same(make: Callable[[], Any]) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = make().fit(X, y)
    new = _near(X)
    predict = _run(model)["predict"]
    np.testing.assert_allclose([predict(row) for row in new.tolist()], model.predict(new), rtol=1e-11)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 600
    frame = pd.DataFrame({
        "x nan": rng.normal(size=n), "job's": rng.choice(["cook", "clerk", "judge\n", None], n),
        "when": pd.Timestamp("1890-05-03") + pd.to_timedelta(rng.integers(0, 5_000_000_000, n), unit="s"),
        "ROW": rng.normal(50, 9, n),
    })  # fmt: skip
    frame.loc[::7, "x nan"] = np.nan
    score = frame["x nan"].fillna(1) + (frame["job's"] == "cook") + rng.normal(size=n) / 2
    frame["y"] = np.where(score > 0.5, "a", "b")
    return frame


@pytest.mark.parametrize("learner", ["LogisticRegression", "RandomForestClassifier", "HistGradientBoostingClassifier"])
def test_the_reading_of_a_table_is_in_the_source(table: pd.DataFrame, learner: str) -> None:
    model = assay.learn(table, "y", trials=1, learners=[learner], workers=0).model
    new = table.drop(columns="y")
    new.loc[::5, "job's"] = "pilot"
    seconds = (new["when"] - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
    rows = new.assign(when=seconds).astype(object).where(new.notna(), None).to_dict("records")
    names = _run(model)
    assert [names["predict"](row) for row in rows] == model.predict(new).tolist()
    expected = model.predict_proba(new)
    np.testing.assert_allclose([names["predict_proba"](row) for row in rows], expected, atol=1e-12)


def test_the_command_writes_source_that_runs_alone(table: pd.DataFrame, tmp_path: Path) -> None:
    study = assay.learn(table, "y", trials=1, learners=["LogisticRegression"], workers=0)
    study.save(tmp_path / "model.assay")
    result = CliRunner().invoke(app, ["export", str(tmp_path / "model.assay"), "--to", "python"])
    assert result.exit_code == 0, result.output
    source = (tmp_path / "model.py").read_text("utf-8")
    assert study.certificate.model.digest in source
    run = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import model; print(model.predict({{'ROW': 50.0}}))"
    alone = subprocess.run([sys.executable, "-I", "-S", "-c", run], capture_output=True, text=True, check=True)
    row = pd.DataFrame({"x nan": [np.nan], "job's": [None], "when": [pd.NaT], "ROW": [50.0]})
    assert alone.stdout.strip() == study.model.predict(row)[0]
    for more in (["--to", "fortran"], ["--to", "python", "--out", "m.onnx"]):
        assert CliRunner().invoke(app, ["export", str(tmp_path / "model.assay"), *more]).exit_code == 2


def test_what_has_no_source_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="cannot be written as Python source"):
        python_source(KNeighborsClassifier().fit(X, y))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at most 200,000 numbers"):
        python_source(DecisionTreeRegressor().fit(rng.normal(size=(30_000, 2)), rng.normal(size=30_000)))
