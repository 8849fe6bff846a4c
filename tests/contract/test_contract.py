"""What every learner of the registry keeps: scikit-learn's checks, and Assay's own contract."""

import doctest
import importlib
import pkgutil
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import assay
from assay.claims.directory import codes, definition
from assay.fitlog import Step
from assay.scan.memory import MemoryRows
from tests.callbacks import Interrupt

VARIANTS = {
    "GaussianMixture": [{"n_components": 3}, {"n_components": 2, "covariance_type": "tied", "max_iter": 3}],
    "GaussianMixtureClassifier": [{"n_components": 2, "covariance_type": "diag"}],
    "LinearRegression": [{"fit_intercept": False}],
    "LogisticRegression": [{"solver": "lbfgs", "class_weight": "balanced"}, {"C": np.inf}],
    "Perceptron": [{"shuffle": False, "fit_intercept": False}],
    "Ridge": [{"alpha": 0.0}],
}
FEW = {"n_estimators": 5}  # trees or rounds: the contract does not depend on how many there are


def example(learner):
    """Return the learner with its defaults and a seed, few members in an ensemble, a radius that reaches other rows."""
    near = {"radius": 4.0, "weights": "distance"}
    settings = FEW | {"random_state": 0} | (near if learner.__name__.startswith("RadiusNeighbors") else {})
    settings |= {"cv": 2} if learner.__name__ == "LogisticRegressionCV" else {}  # some checks have few rows of a class
    return learner(**{name: few for name, few in settings.items() if name in learner._get_param_names()})


LEARNERS = [example(learner) for learner in assay.learners()]
EVERY = LEARNERS + [
    learner(**parameters) for learner in assay.learners() for parameters in VARIANTS.get(learner.__name__, [])
]
ITERATIVE = [model for model in EVERY if hasattr(model, "max_iter")]


def names(model):
    return repr(model).replace("\n", "")


def suited(model, X):
    """Return rows that the learner reads: not negative, or levels 0, 1, 2, if its tags say so."""
    tags = get_tags(model).input_tags
    if tags.categorical:
        return np.clip(np.round(X), -1.0, 1.0) + 1.0
    return np.maximum(X + 4.0, 0.0) if tags.positive_only else X


def suited_target(model, y):
    """Return targets that the learner reads: positive ones, if its tags say so."""
    return np.exp(y / 4) if get_tags(model).target_tags.positive_only else y


def small(model, seed=0, n=90, classes=3):
    """Return rows that overlap a little, with labels or targets as the learner's task asks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    if model.card.task == "classify":
        classes = classes if get_tags(model).classifier_tags.multi_class else 2
        y = rng.integers(0, classes, n)
        X[:, 0] += 1.5 * y
        return suited(model, X), np.array(["pear", "apple", "fig"])[y]
    return suited(model, X), suited_target(model, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=n))


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        callbacks = getattr(model, "_skl_callbacks", [])
        seeded = {"random_state": 0} if hasattr(model, "random_state") else {}
        return clone(model).set_params(**seeded).set_callbacks(*callbacks).fit(X, y)


@cache
def ready(model):
    """Return the model fitted to `small(model)`: for tests that only read it, once in a process."""
    return fitted(model, *small(model))


def output(model, X):
    """Return what the model says of the rows: its predictions, the rows transformed, or their log-density."""
    return next(getattr(model, name)(X) for name in ("predict", "transform", "score_samples") if hasattr(model, name))


SVM_WEIGHTS = "gamma='scale' looks at the rows without their weights, as in scikit-learn, whose machines fail it too"


def not_met(model):
    """Return scikit-learn's checks that a learner cannot meet, and why."""
    if type(model).__name__ in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "KernelLogisticRegression"):
        kinds = ("dense", "sparse") if get_tags(model).input_tags.sparse else ("dense",)
        unmet = {f"check_sample_weight_equivalence_on_{kind}_data": SVM_WEIGHTS for kind in kinds}
        if type(model).__name__ == "NuSVC":
            unmet["check_class_weight_classifiers"] = "weights bound the dual variables and make nu infeasible"
        return unmet
    if type(model).__name__ in ("SGDClassifier", "SGDRegressor", "Perceptron"):
        reason = "a row of weight two is visited once, not twice, and rows are counted, not weights, as in scikit-learn"
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if getattr(model, "C", None) == np.inf:
        reason = "the check's classes are separable, so without penalty there is no optimum to compare"
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if type(model).__name__ == "Ridge":
        reason = "n_iter_ is None where the minimum is computed directly, as in scikit-learn"
        return {"check_non_transformer_estimators_n_iter": reason}
    if type(model).__name__ == "TunedThresholdClassifierCV":
        return {"check_classifiers_train": "the threshold is elsewhere than where decision values change their sign"}
    if type(model).__name__ == "EasyEnsembleClassifier":
        reason = "samples are drawn by row, and a row of weight 0 can be drawn, as in scikit-learn's forests"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    if type(model).__name__ == "LPBoost":
        reason = "of several votes with the largest margin one is found, and which one depends on the order of the rows"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    if type(model).__name__ == "BayesianNetworkClassifier":
        reason = "so few rows in each class that many graphs fit them equally well, and rounding chooses one"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    if type(model).__name__ == "CategoricalNB":
        reason = "the check's rows are no whole numbers, which are refused here and cut off by scikit-learn"
        names = ("classifiers_one_label_sample_weights", "sample_weight_equivalence_on_dense_data")
        return {f"check_{name}": reason for name in names}
    if getattr(model, "semi_supervised", False):
        if type(model).__name__ in ("LabelPropagation", "LabelSpreading"):
            return {}
        if type(model).__name__ == "SelfTrainingClassifier":
            return {"check_non_transformer_estimators_n_iter": "with every row labelled there is no round, as there"}
        unmet = {"check_classifiers_classes": "the label -1 stands for none; scikit-learn's own are excepted by name"}
        if get_tags(model).input_tags.positive_only:
            reason = "the check's rows are negative, and counts are wanted"
            unmet |= {"check_decision_proba_consistency": reason, "check_sparsify_coefficients": reason}
        return unmet
    if "Mixture" in type(model).__name__ and model.n_components > 1:
        reason = "the first centres are drawn from the rows, so that a weight of two is not two rows"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    if type(model).__name__ == "BernoulliRBM":
        reason = "score_samples draws an entry of each row in order, as in scikit-learn, whose machine fails it too"
        return dict.fromkeys(("check_methods_subset_invariance", "check_methods_sample_order_invariance"), reason)
    if type(model).__name__ in ("KMeans", "MiniBatchKMeans"):
        reason = (
            "the first centres are drawn from the rows, so that a weight of two is not two rows, as in scikit-learn"
        )
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if type(model).__name__ == "KModes":
        reason = "numbers are only names to it, and in the check's heaps no two rows have the same"
        return {"check_clustering": reason, "check_clustering(readonly_memmap=True)": reason}
    drawn = ("RandomForestClassifier", "RandomForestRegressor", "BaggingClassifier", "BaggingRegressor", "CART")
    drawn += ("AdaBoostRegressor",)
    if type(model).__name__ in drawn:
        reason = "bootstrap samples and folds are drawn from the rows, so that a weight of two is not two rows"
        kinds = ("dense", "sparse") if get_tags(model).input_tags.sparse else ("dense",)
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}
    if "HMM" in type(model).__name__:
        reason = "rows of one sequence depend on each other, so that each is judged by all of them"
        return {"check_methods_subset_invariance": reason, "check_methods_sample_order_invariance": reason}
    return {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(5)
@parametrize_with_checks(EVERY, expected_failed_checks=not_met)
def test_scikit_learn_contract(estimator, check):
    if type(estimator).__name__ == "AdaBoostClassifier" and "sample_weight_equivalence" in check.func.__name__:
        pytest.skip("which of two equally good stumps a round takes follows the rounding of the weights' sums")
    check(estimator)


@pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)
class TestCard:
    def test_every_element_is_told(self, learner):
        card = learner.card
        assert card.task in {"classify", "regress", "cluster", "transform", "density"}
        assert all(isinstance(text, str) and len(text) > 3 for text in (card.name, card.strategy, card.algorithm))
        assert set(card.guarantee) <= {name for code in codes() for name in definition(code).names}

    def test_hypothesis_space_knows_its_size(self, learner):
        if learner.card.task == "classify":
            space = learner.card.model.at(3, 2, True)
            assert space.vc_dimension > 0
            if np.isfinite(space.vc_dimension):
                assert space.log_growth(50) <= 50 * np.log(2) + 1e-9


@pytest.mark.parametrize("model", EVERY, ids=names)
class TestEveryLearner:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_certificate_holds(self, model, classes):
        X, y = small(model, classes=classes)
        Xh, yh = small(model, seed=1, classes=classes)
        model = ready(model) if classes == 3 else fitted(model, X, y)
        report = assay.verify(model.certify(X, y, holdout=(Xh, yh)), model, X, y, holdout=(Xh, yh))
        assert report.holds, report.reason

    def test_threads_change_no_bit(self, model, long):
        rng = np.random.default_rng(5)
        # Three blocks, the last one short; fewer rows where the work grows faster than their number.
        n = 9_000 if hasattr(model, "coef_") or "linear" in type(model).__module__ else 3_000
        n = 1_100 if (model.card.most_rows or n) <= 10_000 else n
        X = suited(model, rng.normal(size=(n, 28)))
        y = suited_target(model, X[:, 0] + rng.normal(size=n))
        X = suited(model, X)
        if is_classifier(model):
            y = np.digitize(y, [-0.7, 0.7] if get_tags(model).classifier_tags.multi_class else [0.0])
        if hasattr(model, "max_iter"):
            model = clone(model).set_params(max_iter=5)
        one, *others = (fitted(clone(model).set_params(n_jobs=k), X, y) for k in ((1, 2, 5) if long else (1, 3)))
        digest = one.certify(X, y).data["train"].digest
        for many in others:
            for name in ("coef_", "intercept_"):
                if hasattr(one, name):
                    assert np.array_equal(getattr(one, name), getattr(many, name))
            assert np.array_equal(output(one, X), output(many, X))
            assert many.certify(X, y).data["train"].digest == digest

    def test_fit_changes_no_parameter_and_no_data(self, model):
        X, y = small(model)
        before, X0, y0 = dict(vars(model)), X.copy(), y.copy()
        model = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(model).fit(X, y).certify(X, y)
            model.fit(X, y)
        assert {name: vars(model)[name] for name in before} == before
        assert np.array_equal(X, X0)
        assert np.array_equal(y, y0)

    def test_can_be_read(self, model):
        X, y = small(model)
        model = ready(model)
        certificate = model.certify(X, y)
        assert repr(model).startswith(type(model).__name__ + "(")
        assert type(model).__name__ in model._repr_html_()
        assert type(model).__name__ in repr(certificate)
        for claim in certificate.claims:
            assert claim.statement in str(certificate)
            assert claim.statement[0].isupper()
            assert claim.statement.endswith(".")
        for gap in certificate.not_applicable:
            assert gap.reason in str(certificate)
        made = {claim.kind for claim in certificate.claims} - {"data.identity", "train.errors", "train.error-floor"}
        assert made <= set(model.card.guarantee)

    def test_history(self, model):
        history = ready(model).history_
        assert history
        assert all(isinstance(step, Step) for step in history)
        assert [step.iteration for step in history] == list(range(1, len(history) + 1))
        assert all(np.isfinite(step.objective) and step.violation >= 0 for step in history)
        seconds = [step.seconds for step in history]
        assert seconds == sorted(seconds)
        assert seconds[0] > 0

    def test_sparse_rows_as_the_tags_say(self, model):
        from scipy.sparse import csr_array

        X, y = small(model)
        if type(model).__name__.startswith("SGD"):  # as in scikit-learn, sparse rows move the intercept slowly
            model = clone(model).set_params(fit_intercept=False)
        if get_tags(model).input_tags.sparse:
            dense = fitted(model, X, y) if type(model).__name__.startswith("SGD") else ready(model)
            sparse, dense = (output(m, X) for m in (fitted(model, csr_array(X), y), dense))
            assert np.array_equal(sparse, dense) if is_classifier(model) else np.allclose(sparse, dense, rtol=1e-6)
        else:
            with pytest.raises(TypeError, match=r"[Ss]parse"):
                fitted(model, csr_array(X), y)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("frames", ["pandas.DataFrame", "polars.DataFrame", "pyarrow.table"])
    def test_frames_keep_their_names(self, model, frames):
        library, make = frames.split(".")
        X, y = small(model)
        frame = getattr(importlib.import_module(library), make)({name: X[:, j] for j, name in enumerate("abcd")})
        plain, named = ready(model), fitted(model, frame, y)
        assert named.feature_names_in_.tolist() == list("abcd")
        if hasattr(plain, "coef_"):
            assert np.array_equal(named.coef_, plain.coef_)
        elif is_classifier(plain):
            assert np.array_equal(named.predict(frame), plain.predict(X))


# Iterations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ITERATIVE, ids=names)
class TestIterations:
    def test_scoring_monitor_sees_every_iteration(self, model):
        if not hasattr(model, "score") or model.card.task not in ("classify", "regress"):
            pytest.skip("has no score, or one of its own")
        X, y = small(model)
        metric = "accuracy" if is_classifier(model) else "r2"
        monitor = ScoringMonitor(scoring=metric)
        model = fitted(clone(model).set_params(max_iter=20).set_callbacks(monitor), X, y)
        scores = [row[metric] for row in monitor.get_logs().data]
        assert len(scores) == len(model.history_)
        judge = accuracy_score if is_classifier(model) else r2_score
        assert scores[-1] == pytest.approx(judge(y, model.predict(X)), rel=1e-5)

    def test_progress_bar(self, model, capsys):
        X, y = small(model)
        model = clone(model).set_params(max_iter=20)
        plain = fitted(model, X, y)
        shown = fitted(clone(model).set_callbacks(ProgressBar()), X, y)
        assert type(model).__name__ in capsys.readouterr().out
        assert np.array_equal(output(plain, X), output(shown, X))

    @pytest.mark.parametrize("error", [KeyboardInterrupt, None], ids=["interrupt", "stop"])
    def test_ctrl_c_keeps_the_model_so_far(self, model, error):
        X, y = small(model)
        whole = fitted(clone(model).set_params(tol=1e-13), X, y) if hasattr(model, "tol") else ready(model)
        if len(whole.history_) < 2:
            pytest.skip("is done in one step")
        model = fitted(clone(model).set_callbacks(Interrupt(1, error)), X, y)
        assert len(model.history_) == 1
        assert len(output(model, X)) == len(X)
        report = assay.verify(model.certify(X, y), model, X, y)
        assert report.holds, report.reason


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_an_interrupt_anywhere_leaves_no_worse_model_than_the_start(solver, monkeypatch):
    from assay.linear_model import LogisticRegression, _logistic_problem

    monkeypatch.setattr(_logistic_problem, "_SAMPLE", 30)  # so that Newton starts on a sample here too
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    real, calls = MemoryRows.sum, 0

    def interrupted(rows, *args):
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return real(rows, *args)

    monkeypatch.setattr(MemoryRows, "sum", interrupted)
    kept = 0
    for at in range(1, 60):
        calls, counter = 0, Interrupt(at=0)
        try:
            fitted_model = fitted(LogisticRegression(solver=solver, tol=1e-12).set_callbacks(counter), X, y)
        except KeyboardInterrupt:
            assert counter.seen == 0  # there was no model to keep
            continue
        if calls < at:
            break
        kept += 1
        z = (X @ fitted_model.coef_[0] + fitted_model.intercept_[0]) * (2 * y - 1)
        objective = 0.5 * fitted_model.coef_[0] @ fitted_model.coef_[0] + np.logaddexp(0, -z).sum()
        assert objective <= 400 * np.log(2) + 1e-9
        if fitted_model.history_:
            assert objective == pytest.approx(fitted_model.history_[-1].objective, rel=1e-12)
            assert objective == pytest.approx(min(step.objective for step in fitted_model.history_), rel=1e-12)
    assert kept >= 4


# Refusals ---------------------------------------------------------------------------------------------------

BAD_PARAMETERS = [
    ("LinearRegression", {"fit_intercept": "yes"}, "fit_intercept must be one of True, False; got 'yes'"),
    ("LinearRegression", {"n_jobs": 0}, "n_jobs must be None"),
    ("Ridge", {"alpha": -1.0}, "alpha must be a finite number >= 0 .*; got -1.0"),
    ("Ridge", {"alpha": np.nan}, "alpha must be a finite number >= 0 .*; got nan"),
    ("Ridge", {"n_jobs": "two"}, "n_jobs must be None"),
    ("LogisticRegression", {"C": 0.0}, "C must be a number > 0 .*; got 0.0"),
    ("LogisticRegression", {"C": "1"}, "C must be a number > 0 .*; got '1'"),
    ("LogisticRegression", {"solver": "cg"}, "solver must be one of 'newton', 'lbfgs', 'newton-cg'"),
    ("LogisticRegression", {"tol": -1}, "tol must be a finite number >= 0; got -1"),
    ("LogisticRegression", {"max_iter": -1}, "max_iter must be an integer >= 0; got -1"),
    ("LogisticRegression", {"class_weight": {"apple": -1}}, "class_weight must hold finite numbers >= 0"),
    ("LogisticRegression", {"n_jobs": 1.5}, "n_jobs must be None"),
    ("Perceptron", {"eta0": np.inf}, "eta0 must be a finite number > 0; got inf"),
    ("Perceptron", {"shuffle": 1}, "shuffle must be one of True, False; got 1"),
    ("Perceptron", {"max_iter": 2.5}, "max_iter must be an integer >= 1; got 2.5"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), BAD_PARAMETERS)
def test_parameters_are_refused_by_name(name, parameters, message):
    learner = next(one for one in assay.learners() if one.__name__ == name)
    model = learner(**parameters)
    with pytest.raises(ValueError, match=f"^{name}: {message}"):
        model.fit(*small(model))


@pytest.mark.parametrize("model", LEARNERS, ids=names)
class TestCertifyRefuses:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("delta", [0, 1, 1.0, -0.1, np.nan, 1e-300, "0.05", None])
    def test_delta(self, model, delta):
        X, y = small(model)
        with pytest.raises((ValueError, TypeError), match="delta"):
            ready(model).certify(X, y, delta=delta)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize(
        "holdout", [[], [0.5], [0, 0], [-1], [90], np.arange(90), [[0, 1]], np.zeros(90, dtype=bool)], ids=str
    )
    def test_holdout_rows(self, model, holdout):
        X, y = small(model)
        with pytest.raises(ValueError, match="holdout"):
            ready(model).certify(X, y, holdout=holdout)

    def test_before_fit(self, model):
        with pytest.raises(ValueError, match="not fitted"):
            clone(model).certify(*small(model))

    def test_other_columns_and_bad_entries(self, model):
        X, y = small(model)
        model = ready(model)
        with pytest.raises(ValueError, match="features"):
            model.certify(X[:, :2], y)
        reads_gaps = getattr(model, "has_nodes", False)  # trees are certified on rows that lack values
        reads_gaps = reads_gaps or bool(getattr(model, "reads_gaps_", False)) or "HMM" in type(model).__name__
        X[3, 1] = np.inf if reads_gaps else np.nan
        with pytest.raises(ValueError, match=r"infinity|NaN"):
            model.certify(X, y)


def test_compared_predictions_must_fit():
    from assay.linear_model import LogisticRegression, Ridge

    X, y = small(LogisticRegression())
    model = LogisticRegression().fit(X, y)
    own = model.predict(X)
    with pytest.raises(ValueError, match="own predictions"):
        model.certify(X, y, holdout=(X[::-1], y[::-1]), compared=[np.full(90, "fig")])
    with pytest.raises(ValueError, match="one predicted label for each"):
        model.certify(X, y, holdout=(X, y), compared=[own[:5]])
    with pytest.raises(ValueError, match="not among the classes"):
        model.certify(X, y, holdout=(X, y), compared=[own, np.full(90, "plum")])
    with pytest.raises(ValueError, match="hold-out rows"):
        model.certify(X, y, compared=[own])
    with pytest.raises(ValueError, match="one prediction for each"):
        Ridge().fit(X, X[:, 0]).certify(X, X[:, 0], holdout=(X, X[:, 0]), compared=[X[:5, 0]])


# Documentation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "room", [room.name for room in pkgutil.iter_modules(assay.__path__) if room.name != "__main__"]
)
def test_docstring_examples_run(room):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    modules = [importlib.import_module(f"assay.{room}")]
    inside = getattr(modules[0], "__path__", [])
    modules += [importlib.import_module(one.name) for one in pkgutil.walk_packages(inside, f"assay.{room}.")]
    for module in modules:
        for example in finder.find(module):
            runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("learner", assay.learners(), ids=lambda learner: learner.__name__)
def test_every_learner_has_an_example(learner):
    assert any(example.examples for example in doctest.DocTestFinder(recurse=False).find(learner))
