"""The checker's bells, cascades, recurrences and machines against the same formulas in extended precision: what it
computes is off by no more than it says, also for weights and rows that are large."""

import numpy as np
import pytest

from assay.checker.families.basis import read_cascade, read_radial
from assay.checker.families.elman import read_recurrent
from assay.checker.families.rbm import read_machine, read_stack
from assay.checker.families.resonance import read_fuzzy
from assay.checker.record import Rejected

Long = np.longdouble
SCALES = (0.1, 1.0, 30.0)


def long(*parts):
    return tuple(np.asarray(part).astype(Long) for part in parts)


def radial(rng, scale):
    C, betas, W, b = (
        rng.normal(size=(5, 3)),
        scale * rng.uniform(0.1, 2, 5),
        rng.normal(size=(2, 5)),
        rng.normal(size=2),
    )
    X = scale * rng.normal(size=(40, 3))
    x, c, beta, w, o = long(X, C, betas, W, b)
    F = np.exp(-beta * ((x[:, None, :] - c) ** 2).sum(axis=2))
    return read_radial(C, betas, W, b, None), X, F @ w.T + o


def cascade(rng, scale):
    d, H = 3, 4
    units = scale * rng.normal(size=(H, d + H + 1))
    for k in range(H):
        units[k, d + k : -1] = 0.0
    W, b, X = rng.normal(size=(1, d + H)), rng.normal(size=1), rng.normal(size=(40, d))
    x, u, w, o = long(X, units, W, b)
    F = x
    for k in range(H):
        F = np.column_stack([F, np.tanh(F @ u[k, : d + k] + u[k, -1])])
    return read_cascade(units, W, b, None), X, F @ w.T + o


def recurrent(rng, scale):
    d, k, T = 2, 4, 5
    U, V, b = scale * rng.normal(size=(d, k)), scale * rng.normal(size=(k, k)) / 2, rng.normal(size=k)
    W, c = rng.normal(size=(2, k)), rng.normal(size=2)
    lengths = rng.integers(1, T + 1, 30)
    steps = rng.normal(size=(30, T, d)) * (np.arange(T) >= T - lengths[:, None])[:, :, None]
    u, v, o, w, e = long(U, V, b, W, c)
    truth = []
    for row, many in zip(steps.astype(Long), lengths):
        h = np.zeros(k, dtype=Long)
        for x in row[T - many :]:
            h = np.tanh(x @ u + h @ v + o)
        truth.append(w @ h + e)
    X = np.column_stack([lengths, steps.reshape(30, -1)]).astype(float)
    return read_recurrent(U, V, b, W, c, np.array([2, T, 1]), None), X, np.array(truth)


def machine(rng, scale):
    parts = [(scale * rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3))]
    parts.append((scale * rng.normal(size=(2, 4)), rng.normal(size=2), rng.normal(size=4)))
    X = rng.normal(size=(40, 3))
    values = X.astype(Long)
    for W, b, _ in parts:
        values = 1 / (1 + np.exp(-(values @ W.astype(Long).T + b.astype(Long))))
    return read_stack([read_machine(*part, None) for part in parts], None), X, values


def fuzzy(rng, scale):
    W, X = rng.uniform(size=(6, 4)), rng.uniform(size=(40, 2))
    given = {"vigilance": 0.5, "choice": 0.01 * scale, "learning_rate": 1.0}
    coded = np.hstack([X, 1 - X]).astype(Long)  # with bounds 0 and 1 a row is its own code
    both = np.minimum(coded[:, None, :], W.astype(Long)).sum(axis=2)
    truth = both / (Long(0.01 * scale) + W.astype(Long).sum(axis=1))
    return read_fuzzy(given, W, np.zeros(2), np.ones(2), None), X, truth


@pytest.mark.parametrize("case", [radial, cascade, recurrent, machine, fuzzy], ids=lambda case: case.__name__)
@pytest.mark.parametrize("scale", SCALES)
def test_scores_are_off_by_no_more_than_is_said(case, scale):
    for seed in range(8):
        model, X, truth = case(np.random.default_rng(seed), scale)
        assert model.columns == X.shape[1]
        values, errors = model.scores(X, np.abs(X).max(axis=0))
        assert np.all(np.abs(values - truth) <= errors)
        assert np.all(np.abs(values - truth) <= model.row_errors(X))
        assert np.median(model.row_errors(X)) < 1e-6  # and it says something


@pytest.mark.parametrize(
    ("read", "arrays"),
    [
        (read_radial, (np.ones((2, 3)), -np.ones(2), np.ones((1, 2)), np.zeros(1))),
        (read_radial, (np.ones((3, 3)), np.ones(2), np.ones((1, 2)), np.zeros(1))),
        (read_cascade, (np.ones((3, 4)), np.ones((1, 3)), np.zeros(1))),
        (read_machine, (np.ones((2, 3)), np.ones(3), np.ones(2))),
        (
            read_recurrent,
            (np.ones((2, 3)), np.ones((3, 3)), np.ones(3), np.ones((1, 3)), np.ones(1), np.array([7, 1, 1])),
        ),
        (
            read_recurrent,
            (np.ones((2, 3)), np.ones((2, 3)), np.ones(3), np.ones((1, 3)), np.ones(1), np.array([2, 1, 1])),
        ),
    ],
)
def test_arrays_that_do_not_fit_are_rejected(read, arrays):
    with pytest.raises(Rejected):
        read(*arrays, None)


def test_a_sequence_longer_than_the_table_is_rejected():
    model, X, _ = recurrent(np.random.default_rng(0), 1.0)
    for steps in (0.0, 6.0, 1.5):
        X[0, 0] = steps
        with pytest.raises(Rejected, match="from 1 to 5 steps"):
            model.scores(X, np.abs(X).max(axis=0))
