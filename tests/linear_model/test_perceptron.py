"""The perceptron against worked examples, replay, the mistake bounds and scikit-learn's implementation."""

import warnings

import numpy as np
import pytest
import sklearn.linear_model as peers
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import zero_one_loss

import assay
from assay.guarantees.evidence import Decided
from assay.linear_model import Perceptron
from tests.evidence import evidence

LI_HANG = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]]), np.array([1, 1, -1])
XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def separable(seed, n=25, d=3, gap=0.05, unit=False):
    """Return rows on either side of a plane through the origin, with labels -1 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * n, d))
    if unit:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.normal(size=d)
    score = X @ w / np.linalg.norm(w)
    X, score = X[np.abs(score) > gap][:n], score[np.abs(score) > gap][:n]
    return X, np.where(score > 0, 1, -1)


def best_margin(signed):
    """Return an upper bound, almost attained, on the largest min_i <w, a_i> over unit w.

    It is the distance of the hull of the rows from the origin.
    """
    weights, _ = nnls(np.vstack([signed.T, 1e3 * np.ones(len(signed))]), np.append(np.zeros(signed.shape[1]), 1e3))
    point = signed.T @ (weights / weights.sum())
    distance = np.linalg.norm(point)
    assert (signed @ point).min() / distance > 0.999 * distance  # the bound is close
    return distance


def replayed(X, signs, sequence, eta=1.0, intercept=True):
    w, b = np.zeros(X.shape[1]), 0.0
    for i in sequence:
        assert signs[i] * (X[i] @ w + b) <= 1e-12  # each update corrected a mistake
        w, b = w + eta * signs[i] * X[i], b + (eta * signs[i] if intercept else 0.0)
    return w, b


@pytest.mark.mission("LIN-45")
def test_worked_example():
    X, y = LI_HANG
    model = Perceptron(shuffle=False).fit(X, y)
    assert model.coef_.tolist() == [[1.0, 1.0]]
    assert model.intercept_.tolist() == [-3.0]
    assert model.n_updates_ == 7
    assert model.updates_[0].tolist() == [0, 2, 2, 2, 0, 2, 2]
    assert model.converged_
    assert model.margin_ == pytest.approx(1 / np.sqrt(2))
    assert [step.objective for step in model.history_][-1] == 0  # the last epoch has no mistake


@pytest.mark.mission("LIN-48")
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("shuffle", [True, False])
def test_updates_stay_within_novikoffs_bound(seed, shuffle):
    rng = np.random.default_rng(seed)
    X, y = separable(seed, n=int(rng.integers(2, 40)), d=int(rng.integers(1, 8)))
    X = X * 10.0 ** rng.uniform(-2, 2)
    if len(set(y)) < 2:
        X, y = np.vstack([X, -X[:1]]), np.append(y, -y[0])
    for intercept in (True, False):
        model = Perceptron(shuffle=shuffle, fit_intercept=intercept, random_state=seed, max_iter=100_000).fit(X, y)
        assert model.converged_
        assert (model.predict(X) == y).all()
        augmented = np.column_stack([X, np.ones(len(X))]) if intercept else X
        radius = np.linalg.norm(augmented, axis=1).max()
        assert model.n_updates_ <= (radius / best_margin(augmented * y[:, None])) ** 2
        assert model.n_updates_ == len(model.updates_[0])


@pytest.mark.mission("LIN-47")
@pytest.mark.parametrize("seed", range(60))
def test_updates_after_the_first_on_unit_vectors(seed):
    rng = np.random.default_rng(seed)
    X, y = separable(seed, d=int(rng.integers(2, 7)), unit=True)
    if len(set(y)) < 2:
        X, y = np.vstack([X, -X[:1]]), np.append(y, -y[0])
    bound = 1 / best_margin(X * y[:, None]) ** 2 - 1
    for order in ({"shuffle": False}, *({"shuffle": True, "random_state": k} for k in range(4))):
        model = Perceptron(fit_intercept=False, max_iter=100_000, **order).fit(X, y)
        assert model.converged_
        # The first visit makes w = y_1 x_1, where the theorem starts to count.
        assert model.n_updates_ - 1 <= bound


@pytest.mark.mission("LIN-46")
@pytest.mark.parametrize("gate", [[0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 0, 0]], ids=["and", "or", "not"])
def test_the_learning_rate_scales_and_nothing_else(gate):
    X, y = XOR[0], np.array(gate)
    one = Perceptron(shuffle=False).fit(X, y)
    assert (one.predict(X) == y).all()
    for eta in (0.25, 2.0, 1024.0):
        other = Perceptron(shuffle=False, eta0=eta).fit(X, y)
        assert np.array_equal(other.coef_, eta * one.coef_)
        assert np.array_equal(other.intercept_, eta * one.intercept_)
        assert np.array_equal(other.updates_[0], one.updates_[0])
    w, b = replayed(X, 2 * y - 1, one.updates_[0], eta=1.0)
    assert np.array_equal(w, one.coef_[0])
    assert b == one.intercept_[0]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epochs", [1, 3, 10])
def test_the_same_hyperplanes_as_scikit_learn(classes, intercept, epochs):
    rng = np.random.default_rng(classes)
    X = rng.integers(-9, 10, size=(80, 3)).astype(float)  # integers: no rounding, so no excuse
    y = rng.integers(0, classes, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = Perceptron(shuffle=False, fit_intercept=intercept, max_iter=epochs).fit(X, y)
        theirs = peers.Perceptron(shuffle=False, fit_intercept=intercept, max_iter=epochs, tol=None).fit(X, y)
    assert np.array_equal(ours.coef_, theirs.coef_)
    assert np.array_equal(ours.intercept_, theirs.intercept_)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("eta", [1.0, 0.1])
def test_sequence_replays_to_the_last_bit(shuffle, eta):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = rng.integers(0, 3, 60)
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(shuffle=shuffle, eta0=eta, max_iter=7, random_state=1).fit(X, y)
    assert model.n_updates_ == sum(len(sequence) for sequence in model.updates_)
    for k, sequence in enumerate(model.updates_):
        w, b = replayed(X, np.where(y == k, 1, -1), sequence, eta)
        assert np.array_equal(w, model.coef_[k])
        assert b == model.intercept_[k]
    mistakes = [int(step.objective) for step in model.history_]
    assert sum(mistakes) == model.n_updates_
    assert len(mistakes) == 3 * 7


def test_the_seed_decides_the_order():
    X, y = separable(5, n=200, d=5, gap=0.01)
    runs = [Perceptron(random_state=seed, max_iter=10_000).fit(X, y) for seed in (0, 0, 1)]
    assert np.array_equal(runs[0].coef_, runs[1].coef_)
    assert np.array_equal(runs[0].updates_[0], runs[1].updates_[0])
    assert not np.array_equal(runs[0].updates_[0], runs[2].updates_[0])
    state = np.random.RandomState(0)
    assert np.array_equal(Perceptron(random_state=state, max_iter=10_000).fit(X, y).coef_, runs[0].coef_)


@pytest.mark.mission("LIN-50")
@pytest.mark.parametrize("seed", range(10))
def test_the_loss_is_the_number_of_errors(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(max_iter=3, random_state=seed).fit(X, y)
    wrong = int((np.where(X @ model.coef_[0] + model.intercept_[0] > 0, 1, 0) != y).sum())
    assert wrong == zero_one_loss(y, model.predict(X), normalize=False)
    rows = assay.scan.rows(X, y)
    assert evidence(model, rows, Decided).count_errors(rows) == (wrong, wrong)


@pytest.mark.mission("LIN-52")
@pytest.mark.parametrize("shuffle", [True, False])
def test_xor_never_ends(shuffle):
    X, y = XOR
    with pytest.warns(ConvergenceWarning, match="still making mistakes after 50 epochs"):
        model = Perceptron(shuffle=shuffle, max_iter=50, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 50
    assert model.margin_ <= 0
    assert all(step.objective > 0 for step in model.history_)
    score = (X @ model.coef_[0] + model.intercept_[0]) * (2 * y - 1)
    rows = assay.scan.rows(X, y)
    low, high = evidence(model, rows, Decided).count_errors(rows)
    assert (score < 0).sum() == low
    assert (score <= 0).sum() == high  # rows on the plane, where rounding decides, count against
    claim = model.certify(X, y).find("inseparability")
    assert sorted(claim.witness["rows"].tolist()) == [0, 1, 2, 3]


def test_margin_is_the_least_distance():
    X, y = separable(8, gap=0.2)
    model = Perceptron(random_state=0).fit(X, y)
    distances = (X @ model.coef_[0] + model.intercept_[0]) * y / np.linalg.norm(model.coef_[0])
    assert model.margin_ == pytest.approx(distances.min(), rel=1e-12)
    assert model.certify(X, y).find("margin.bounds").value > 0
    with pytest.warns(ConvergenceWarning):
        early = Perceptron(max_iter=1, shuffle=False).fit(X, y)
    distances = (X @ early.coef_[0] + early.intercept_[0]) * y / np.linalg.norm(early.coef_[0])
    assert early.margin_ == pytest.approx(distances.min(), rel=1e-12)


def test_three_classes_one_against_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) * 0.4 + np.repeat([[0, 5], [5, -2], [-5, -2]], 30, axis=0)
    y = np.repeat(["a", "b", "c"], 30)
    model = Perceptron(random_state=0).fit(X, y)
    assert model.converged_
    assert model.coef_.shape == (3, 2)
    assert (model.predict(X) == y).all()
    for k, label in enumerate(model.classes_):
        sign = np.where(y == label, 1, -1)
        assert ((X @ model.coef_[k] + model.intercept_[k]) * sign > 0).all()
    claims = model.certify(X, y).claims
    assert [claim.params["class"] for claim in claims if claim.name == "perceptron.mistakes"] == [0, 1, 2]


def test_the_steps_do_not_depend_on_the_layout_of_the_data():
    X, y = separable(9, n=100)
    runs = [Perceptron(shuffle=False).fit(table, y) for table in (X, np.asfortranarray(X), X.tolist(), X[::1])]
    assert all(np.array_equal(run.updates_[0], runs[0].updates_[0]) for run in runs)
    frozen = X.copy()
    frozen.flags.writeable = False
    assert np.array_equal(Perceptron(shuffle=False).fit(frozen, y).coef_, runs[0].coef_)


def test_certificates_of_other_rows_do_not_borrow_the_updates():
    X, y = separable(10, n=60)
    model = Perceptron(random_state=0).fit(X, y)
    for other, labels in ((X[:30], y[:30]), (X[::-1], y[::-1])):
        certificate = model.certify(other, labels)
        assert any(
            "not the rows" in gap.reason for gap in certificate.not_applicable if gap.name == "perceptron.mistakes"
        )
        assert assay.verify(certificate, model, other, labels).holds
    weighted = model.certify(X, y, sample_weight=np.linspace(1, 2, 60))
    assert assay.verify(weighted, model, X, y, sample_weight=np.linspace(1, 2, 60)).holds


def test_refusals():
    X, y = separable(11)
    with pytest.raises(ValueError, match="at least 2 classes"):
        Perceptron().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="entries are too large"):
        Perceptron(max_iter=3).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="contains NaN"):
        Perceptron().fit(np.where(X > 1, np.nan, X), y)
    import pyarrow as pa

    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    with pytest.raises(ValueError, match="shuffle=False"):
        Perceptron().fit(table, "y")
