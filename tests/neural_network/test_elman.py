"""Elman networks: gradients by differences, a feed-forward network inside, memory tasks, certificates of sequences."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import assay
from assay.neural_network import ElmanClassifier, ElmanRegressor, MLPClassifier
from assay.neural_network._recurrence import Batch, laid_out, loss_gradient, start, unpacked

REBER = {  # state: (symbol, next state)
    0: [("B", 1)],
    1: [("T", 2), ("P", 3)],
    2: [("S", 2), ("X", 4)],
    3: [("T", 3), ("V", 5)],
    4: [("X", 3), ("S", 6)],
    5: [("P", 4), ("V", 6)],
    6: [("E", 7)],
}
SYMBOLS = "BTPSXVE"


def reber(rng, many):
    """Return strings of the Reber grammar as one-hot steps, the next symbol of each step, and those that are legal."""
    X, after, legal = [], [], []
    for _ in range(many):
        state, text, may = 0, "", []
        while state != 7:
            choices = REBER[state]
            may.append({symbol for symbol, _ in choices})
            symbol, state = choices[rng.integers(len(choices))]
            text += symbol
        codes = np.array([SYMBOLS.index(symbol) for symbol in text])
        X.append(np.eye(7)[codes[:-1]])
        after.append(codes[1:])
        legal.append(may[1:])
    return X, after, legal


def streams(seed, many=200, steps=8):
    """Return bits, and for each step after the first whether it differs from the one before."""
    rng = np.random.default_rng(seed)
    X = [rng.integers(0, 2, (steps, 1)).astype(float) for _ in range(many)]
    return X, [np.append(0, np.diff(x[:, 0]) != 0).astype(int) for x in X]


def quiet(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


@pytest.mark.mission("NNW-33")
@pytest.mark.parametrize(("unit", "output"), [("tanh", "softmax"), ("logistic", "logistic"), ("identity", "identity")])
def test_back_propagation_through_time_is_the_gradient(unit, output):
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(t, 2)) for t in (1, 4, 3, 6)]
    outputs = 1 if output == "logistic" else 3
    Y = [np.eye(3)[rng.integers(3, size=len(x))][:, :outputs] for x in sequences]
    X, mask = laid_out(sequences, 6)
    for asked in (mask, mask & (np.arange(6) == 5)):
        batch = Batch(X, mask, laid_out(Y, 6)[0], asked)
        theta = start(2, 4, outputs, np.random.RandomState(1)).packed() + rng.normal(size=8 + 16 + 4 + 5 * outputs) / 5
        slope = loss_gradient(unpacked(theta, 2, 4, outputs), batch, unit, output, 0.1)[1].packed()
        value = lambda t, b=batch: loss_gradient(unpacked(t, 2, 4, outputs), b, unit, output, 0.1)[0]  # noqa: E731
        assert np.allclose(slope, approx_fprime(theta, value, 1e-7), atol=1e-5)


@pytest.mark.mission("NNW-33")
def test_without_the_way_back_it_is_a_feed_forward_network():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    plain = MLPClassifier(5, "tanh", solver="lbfgs", alpha=0.1, random_state=0).fit(X, y)
    model = ElmanClassifier(5, random_state=0, max_iter=1)
    quiet(lambda: model.fit(X, y))
    model.input_weights_, model.hidden_intercept_ = plain.coefs_[0], plain.intercepts_[0]
    model.coef_, model.intercept_ = plain.coefs_[1].T, plain.intercepts_[1]
    model.state_weights_ = np.zeros((5, 5))
    assert np.allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-12)
    model.last_only_ = False
    assert np.allclose(model.predict_proba(X, lengths=[80]), model.predict_proba(X), atol=1e-12)


@pytest.mark.mission("NNW-33")
@pytest.mark.parametrize("seed", range(10))
def test_temporal_exclusive_or(seed):
    X, y = streams(seed)
    model = ElmanClassifier(6, random_state=seed).fit(X, y)
    new, truth = streams(100 + seed, steps=20)
    assert model.score(new, truth) == 1


@pytest.mark.mission("NNW-33")
def test_a_delayed_copy_is_learnt():
    rng = np.random.default_rng(2)
    X = [rng.uniform(-1, 1, (20, 1)) for _ in range(20)]
    y = [np.concatenate([[0.0, 0.0], x[:-2, 0]]) for x in X]
    for seed in range(10):
        model = ElmanRegressor(5, activation="identity", alpha=0, tol=1e-7, max_iter=1000, random_state=seed)
        quiet(partial(model.fit, X, y))
        assert np.abs(model.predict(X) - np.concatenate(y)).max() < 1e-2


@pytest.mark.mission("NNW-33")
@pytest.mark.parametrize("seed", range(10))
def test_the_reber_grammar(seed):
    """At every step of new strings the symbols with a probability above 0.15 are those that the grammar allows."""
    rng = np.random.default_rng(seed)
    X, after, _ = reber(rng, 250)
    model = ElmanClassifier(7, alpha=4e-3, max_iter=200, random_state=seed)
    quiet(lambda: model.fit(X, after))
    new, _, legal = reber(rng, 100)
    p = model.predict_proba(np.concatenate(new), lengths=[len(x) for x in new])
    likely = [{SYMBOLS[model.classes_[j]] for j in np.flatnonzero(row > 0.15)} for row in p]
    assert likely == [may for string in legal for may in string]


@pytest.mark.mission("NNW-34")
def test_the_same_history_gives_the_same_output_whole_or_step_by_step():
    X, y = streams(0)
    model = ElmanClassifier(6, random_state=0).fit(X, y)
    long = np.concatenate(X[:5])
    whole, end = model.predict(long, return_state=True)
    said, state = [], None
    for row in long:
        one, state = model.predict(row[None], state=state, return_state=True)
        said.append(one[0])
    assert np.array_equal(whole, said)
    assert np.allclose(end, state, atol=1e-13)
    halves, state = model.predict(long[:17], return_state=True)
    assert np.array_equal(np.append(halves, model.predict(long[17:], state=state)), whole)
    apart = model.predict(long, lengths=[len(x) for x in X[:5]])
    assert np.array_equal(apart, np.concatenate([model.predict(x, lengths=[len(x)]) for x in X[:5]]))
    with pytest.raises(ValueError, match="state must be"):
        model.predict(long, state=np.zeros((2, 6)))


def whole_sequences(seed):
    """Return sequences of 3 to 6 bits, and whether the first two differ."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(t, 1)) for t in rng.integers(3, 7, 150)]
    return X, np.array([int((x[0, 0] > 0) != (x[1, 0] > 0)) for x in X])


@pytest.mark.mission("NNW-34")
@pytest.mark.parametrize("unit", ["tanh", "logistic", "relu"])
def test_certificates_are_about_sequences_and_forgeries_fall(unit, tmp_path):
    X, y = whole_sequences(0)
    held = whole_sequences(1)
    model = ElmanClassifier(6, activation=unit, alpha=0.01, max_iter=100, random_state=0)
    quiet(lambda: model.fit(X, y))
    certificate = model.certify(X, y, holdout=(*held, None))
    rows, labels = model.table(X, y)
    report = assay.verify(certificate, model, rows, labels, holdout=model.table(*held))
    assert report.holds, report.reason
    assert certificate.find("holdout.binomial") is not None
    assert certificate.find("train.errors").value == np.sum(model.predict(X) != y)
    slope = certificate.find("elman.gradient")
    Xs, mask = laid_out(X, 6)
    batch = Batch(Xs, mask, np.tile(y[:, None, None], (1, 6, 1)).astype(float), mask & (np.arange(6) == 5))
    exact = np.linalg.norm(loss_gradient(model.net, batch, unit, "logistic", 0.01)[1].packed())
    assert exact <= slope.value <= exact * (1 + 1e-5) + 1e-9
    for changes in ({"value": 0.99 * exact}, {"params": slope.params | {"alpha": 0.02}}):
        claims = tuple(replace(one, **changes) if one.name == "elman.gradient" else one for one in certificate.claims)
        forged = replace(certificate, claims=claims)
        assert not assay.verify(forged, model, rows, labels, holdout=model.table(*held)).holds
    assay.save(model, tmp_path / "model.assay", certificate=certificate)
    again = assay.load(tmp_path / "model.assay").model
    assert np.array_equal(again.predict(X), model.predict(X))


def test_steps_with_targets_are_certified_at_their_last_and_told_so():
    X, y = streams(3)
    model = ElmanClassifier(6, max_steps=12, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert "not part of the rows" in str(certificate)
    rows, labels = model.table(X, y)
    assert rows.shape == (200, 13)
    assert assay.verify(certificate, model, rows, labels).holds
    with pytest.raises(ValueError, match="fit with max_steps"):
        model.table(*streams(4, steps=13))


def test_regression_of_sequences_is_certified():
    rng = np.random.default_rng(5)
    X = [rng.uniform(-1, 1, (rng.integers(2, 5), 2)) for _ in range(80)]
    y = np.array([x[:, 0].sum() for x in X])
    model = ElmanRegressor(6, random_state=0)
    quiet(lambda: model.fit(X, y))
    assert model.score(X, y) > 0.98
    rows, targets = model.table(X, y)
    report = assay.verify(model.certify(X, y), model, rows, targets)
    assert report.holds, report.reason


@pytest.mark.parametrize(
    ("X", "y", "options", "word"),
    [
        (np.zeros((4, 1)), [0, 1, 0, 1], {"lengths": [3]}, "lengths must be"),
        (np.zeros((4, 1)), [0, 1, 0, 1], {"lengths": [4, 0]}, "lengths must be"),
        ([np.zeros((4, 1))], [[0, 1, 0, 1]], {"lengths": [4]}, "its own lengths"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(X, y, options, word):
    with pytest.raises(ValueError, match=word):
        ElmanClassifier().fit(X, y, **options)


def test_an_interrupt_keeps_the_best_and_divergence_names_the_step(monkeypatch):
    from assay.neural_network._recurrence import Objective

    X, y = streams(6)
    real, calls = Objective.__call__, []

    def interrupted(self, theta):
        calls.append(1)
        if len(calls) > 20:
            raise KeyboardInterrupt
        return real(self, theta)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    model = ElmanClassifier(6, random_state=0)
    quiet(lambda: model.fit(X, y))
    assert model.loss_ <= min(step.objective for step in model.history_)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"overflows in step \d"):
        quiet(
            lambda: ElmanRegressor(activation="identity").fit(np.full((300, 1), 1e200), np.arange(300.0), lengths=[300])
        )
