"""LinearSVC and LinearSVR: interruptions, the history of a fit, what is said and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from assay.svm import LinearSVC, LinearSVR
from tests.callbacks import Interrupt
from tests.svm.linear_problems import HINGE, certified, objective, random_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("loss", HINGE)
@pytest.mark.parametrize("dual", [True, False])
def test_ctrl_c_keeps_the_best_so_far(loss, dual):
    X, y, *_ = random_problem(10)
    model = LinearSVC(loss=loss, dual=dual, random_state=0, tol=1e-7).set_callbacks(Interrupt(2))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert len(model.history_) == 2
    assert objective(model, X, y, None, {"loss": loss, "C": 1.0}) <= len(X)
    certified(model, X, y)


def test_history_ends_at_the_objective_of_the_model():
    X, y, *_ = random_problem(10)
    for loss in HINGE:
        for dual in (True, False):
            model = LinearSVC(loss=loss, dual=dual, random_state=0).fit(X, y)
            last = model.history_[-1]
            assert last.objective == pytest.approx(objective(model, X, y, None, {"loss": loss, "C": 1.0}), rel=1e-9)
            assert last.violation == pytest.approx(model.gap_, rel=1e-6, abs=1e-12)


def test_a_fit_cut_short_says_so():
    X, y, *_ = random_problem(3)
    with pytest.warns(
        ConvergenceWarning, match="LinearSVC: not converged after 1 iterations; the objective is at most"
    ):
        LinearSVC(dual=True, C=100.0, max_iter=1).fit(X, y)


def test_seeds_and_verbosity(capsys):
    X, y, *_ = random_problem(11)
    fits = [LinearSVC(dual=True, max_iter=3, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    assert np.array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    assert capsys.readouterr().out == ""
    LinearSVC(verbose=1).fit(X, y)
    assert "LinearSVC: hyperplane 1 of 1: objective" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (LinearSVC, {"penalty": "elastic"}, "penalty must be one of"),
        (LinearSVC, {"penalty": "l1", "loss": "hinge"}, "Unsupported set of arguments: penalty=.l1. goes with"),
        (LinearSVC, {"penalty": "l1", "dual": True}, "Unsupported set of arguments: penalty=.l1. goes with"),
        (LinearSVC, {"loss": "log"}, "loss must be one of 'squared_hinge', 'hinge'; got 'log'"),
        (LinearSVC, {"C": 0.0}, "C must be a finite number > 0"),
        (LinearSVC, {"tol": -1.0}, "tol must be a finite number > 0"),
        (LinearSVC, {"dual": "yes"}, "dual must be one of 'auto', True, False"),
        (LinearSVC, {"intercept_scaling": 0.0}, "intercept_scaling must be a finite number > 0"),
        (LinearSVC, {"class_weight": {0: -1.0}}, "class_weight must hold finite numbers > 0"),
        (LinearSVC, {"max_iter": 0}, "max_iter must be an integer >= 1"),
        (LinearSVR, {"epsilon": -0.1}, "epsilon must be a finite number >= 0"),
        (LinearSVR, {"loss": "hinge"}, "loss must be one of 'epsilon_insensitive'"),
    ],
)
def test_parameters_are_refused_by_name(kind, params, message):
    X, y, *_ = random_problem(0)
    with pytest.raises(ValueError, match=f"^{kind.__name__}: {message}"):
        kind(**params).fit(X, y)


def test_bad_rows_are_refused():
    X, y, *_ = random_problem(0)
    table = sp.csr_matrix(X)
    table.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().fit(table, y)
    with pytest.raises(ValueError, match="has no row of positive weight"):
        LinearSVC().fit(X, y, sample_weight=(y == 0).astype(float))
    for dual in (True, False):
        with pytest.raises(ValueError, match="too large"):
            LinearSVC(dual=dual).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="too large"):
        LinearSVC(loss="hinge").fit(X * 1e200, y)
