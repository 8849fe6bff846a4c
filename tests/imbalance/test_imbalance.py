"""Imbalance and costs: the notes' formulas, scikit-learn and imbalanced-learn, enumeration, certificates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.metrics import roc_auc_score

import assay
from assay.imbalance import (
    CostClassifier,
    EasyEnsembleClassifier,
    OverSampler,
    ResampledWarning,
    ThresholdClassifier,
    UnderSampler,
    prior_correction,
    rescale,
)
from assay.linear_model import LogisticRegression
from assay.neighbors import KNeighborsClassifier
from assay.tree import DecisionTreeClassifier

X, Y = make_classification(600, 6, weights=[0.9], class_sep=0.7, random_state=3)
THREE, FLOWER = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
THREE, FLOWER = THREE[ORDER], FLOWER[ORDER]
DEAR = np.array([[0, 1, 4], [2, 0, 1], [9, 3, 0.5]])


class TestRescaling:
    @pytest.mark.mission("MUL-08", "MUL-09")
    @given(st.floats(0.001, 0.999), st.integers(1, 1000), st.integers(1, 1000))
    def test_above_a_half_exactly_if_the_odds_exceed_the_ratio(self, p, plus, minus):
        new = float(rescale(p, plus / minus))
        assert new / (1 - new) == pytest.approx(p / (1 - p) * minus / plus, rel=1e-9)
        if abs(p - plus / (plus + minus)) > 1e-9:
            assert (new > 0.5) == (p / (1 - p) > plus / minus) == (p > plus / (plus + minus))

    @pytest.mark.mission("MUL-09")
    def test_published_value_and_balanced_data(self):
        assert float(rescale(0.1, 1 / 9)) == pytest.approx(0.5, abs=1e-15)
        p = np.linspace(0.01, 0.99, 30)
        assert rescale(p, 1.0) == pytest.approx(p, abs=1e-15)

    def test_two_columns_are_the_form_of_two_classes(self):
        p = np.linspace(0.05, 0.95, 20)
        both = rescale(np.column_stack([1 - p, p]), [80, 20])
        assert both[:, 1] == pytest.approx(rescale(p, 20 / 80), abs=1e-14)

    def test_correction_undoes_rescaling(self):
        rng = np.random.default_rng(0)
        p, shares = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4))
        assert prior_correction(rescale(p, shares), np.full(4, 0.25), shares) == pytest.approx(p, abs=1e-12)

    @pytest.mark.parametrize(("p", "ratio"), [(1.2, 1.0), (0.5, 0.0), ([[0.5, 0.5]], [1, 1, 1]), (-0.1, 1)])
    def test_refusals(self, p, ratio):
        with pytest.raises(ValueError, match="rescale"):
            rescale(p, ratio)


class TestThreshold:
    @pytest.mark.mission("MUL-12")
    def test_same_ranking_and_only_the_threshold_moves(self):
        base = LogisticRegression().fit(X, Y)
        model = ThresholdClassifier(LogisticRegression()).fit(X, Y)
        before, after = base.predict_proba(X)[:, 1], model.predict_proba(X)[:, 1]
        assert np.array_equal(np.argsort(before, kind="stable"), np.argsort(after, kind="stable"))
        assert roc_auc_score(Y, before) == roc_auc_score(Y, after)
        assert np.array_equal(model.predict(X), (before > Y.mean()).astype(int))
        assert after == pytest.approx(rescale(before, Y.sum() / (Y == 0).sum()), abs=1e-12)

    @pytest.mark.mission("LIN-24")
    @pytest.mark.parametrize("t", [0.1, 0.5, 0.8])
    def test_a_threshold_for_logistic_regression(self, t):
        """The probability is a confidence: monotone in the score, one half at zero; the threshold is a parameter."""
        base = LogisticRegression().fit(X, Y)
        score, p = base.decision_function(X), base.predict_proba(X)[:, 1]
        order = np.argsort(score)
        assert np.all(np.diff(p[order]) >= 0)
        assert base.predict_proba(np.zeros((1, 6)) - base.intercept_ * base.coef_ / (base.coef_ @ base.coef_.T))[
            0, 1
        ] == pytest.approx(0.5)
        said = ThresholdClassifier(LogisticRegression(), threshold=t).fit(X, Y).predict(X)
        assert np.array_equal(said, (p > t).astype(int))
        assert np.array_equal(said, (score > np.log(t / (1 - t))).astype(int))

    def test_many_classes(self):
        model = ThresholdClassifier(LogisticRegression(), threshold=[1, 1, 1]).fit(THREE, FLOWER)
        plain = LogisticRegression().fit(THREE, FLOWER)
        assert np.array_equal(model.predict(THREE), plain.predict(THREE))
        shifted = ThresholdClassifier(LogisticRegression(), threshold=[1, 1, 50]).fit(THREE, FLOWER)
        assert np.sum(shifted.predict(THREE) == 2) > np.sum(plain.predict(THREE) == 2)

    @pytest.mark.parametrize("threshold", [0, 1.0, "most", [1, -1], [1, 1, 1]])
    def test_refusals(self, threshold):
        with pytest.raises(ValueError, match="threshold must be"):
            ThresholdClassifier(threshold=threshold).fit(X, Y)


class TestCosts:
    def test_no_decision_has_a_smaller_expected_cost(self):
        for reject in (None, 0.3):
            model = CostClassifier(LogisticRegression(), DEAR, reject=reject).fit(THREE, FLOWER)
            p = model.predict_proba(THREE)
            table = DEAR if reject is None else np.column_stack([DEAR, np.full(3, reject)])
            expected = np.array([[sum(p[i, k] * table[k, j] for k in range(3)) for j in range(table.shape[1])]
                                 for i in range(len(p))])  # fmt: skip
            assert model.expected_costs(THREE) == pytest.approx(expected, abs=1e-12)
            names = [0, 1, 2, -1]
            assert model.predict(THREE).tolist() == [names[k] for k in expected.argmin(axis=1)]

    def test_one_for_every_error_is_the_most_probable_class(self):
        plain = LogisticRegression().fit(THREE, FLOWER)
        assert np.array_equal(
            CostClassifier(LogisticRegression()).fit(THREE, FLOWER).predict(THREE), plain.predict(THREE)
        )

    @pytest.mark.parametrize(("miss", "alarm"), [(1.0, 1.0), (1.0, 2.0), (5.0, 1.0), (5.0, 2.0)])
    def test_threshold_of_two_classes(self, miss, alarm):
        model = CostClassifier(LogisticRegression(), [[0, alarm], [miss, 0]]).fit(X, Y)
        assert model.threshold_ == pytest.approx(alarm / (alarm + miss))
        p = model.predict_proba(X)[:, 1]
        assert np.array_equal(model.predict(X), (p > alarm / (alarm + miss)).astype(int))

    def test_rejected_rows_are_visible(self):
        model = CostClassifier(LogisticRegression(C=0.05), reject=0.2).fit(THREE, FLOWER)
        away = model.rejected(THREE)
        assert 0 < away.mean() < 1
        assert model.coverage(THREE) == pytest.approx(1 - away.mean())
        assert np.all(model.predict(THREE)[away] == -1)
        assert model.score(THREE, FLOWER) <= model.coverage(THREE)
        assert np.array_equal(away, 1 - model.predict_proba(THREE).max(axis=1) > 0.2)
        words = CostClassifier(LogisticRegression(C=0.05), reject=0.2).fit(THREE, np.array(["a", "b", "c"])[FLOWER])
        assert np.array_equal(words.predict(THREE) == "reject", away)

    def test_chosen_threshold_is_the_best_of_the_grid_on_the_held_rows(self):
        cost = np.array([[0, 1.0], [8.0, 0]])
        model = CostClassifier(LogisticRegression(), cost, choose="holdout", random_state=0).fit(X, Y)
        held, own = X[model.held_], Y[model.held_]
        p = model.estimator_.predict_proba(held)[:, 1]
        paid = [np.mean(cost[own, (p > g / 100).astype(int)]) for g in range(1, 100)]
        assert model.mean_cost(held, own) == pytest.approx(min(paid))
        curve = model.cost_curve(held, own)
        assert curve.cost == pytest.approx(paid)
        assert np.all(curve.limit >= curve.cost)
        assert curve.threshold[0] == 0.01

    def test_strength_of_costs_of_many_classes(self):
        model = CostClassifier(DecisionTreeClassifier(max_depth=2), DEAR, choose="holdout", random_state=1).fit(
            THREE, FLOWER
        )
        assert 0 <= model.threshold_ <= 1
        held, own = THREE[model.held_], FLOWER[model.held_]
        plain = model.estimator_.predict(held)
        assert model.mean_cost(held, own) <= DEAR[own, plain].mean() + 1e-12

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"cost": [[0, 1]]}, "cost must be"),
            ({"cost": [[0, -1], [1, 0]]}, "cost must be"),
            ({"reject": -1.0}, "reject must be the cost"),
            ({"reject": 0.1, "choose": "holdout"}, "cannot reject"),
            ({"reject": 0.1, "reject_label": 1}, "must be no class"),
            ({"choose": "oracle"}, "choose must be one of"),
        ],
    )
    def test_refusals(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            CostClassifier(**parameters).fit(X, Y)


class TestSampling:
    @pytest.mark.mission("MUL-10")
    def test_under_sampling_takes_a_subset_with_equal_counts(self):
        sampler = UnderSampler(random_state=0, warn=False)
        rows, labels = sampler.fit_resample(X, Y)
        assert np.bincount(labels).tolist() == [np.sum(Y == 1)] * 2
        assert np.array_equal(rows, X[sampler.sample_indices_])
        assert np.array_equal(labels, Y[sampler.sample_indices_])
        assert len(np.unique(sampler.sample_indices_)) == len(labels)
        again = UnderSampler(random_state=0, warn=False).fit_resample(X, Y)[0]
        assert np.array_equal(rows, again)

    @pytest.mark.mission("MUL-11")
    @pytest.mark.parametrize("how", ["repeat", "interpolate"])
    def test_over_sampling_keeps_the_originals(self, how):
        rows, labels = OverSampler(how, random_state=0, warn=False).fit_resample(X, Y)
        assert np.bincount(labels).tolist() == [np.sum(Y == 0)] * 2
        assert np.array_equal(rows[: len(X)], X)
        assert np.array_equal(labels[: len(X)], Y)
        if how == "repeat":
            known = {row.tobytes() for row in X[Y == 1]}
            assert all(row.tobytes() in known for row in rows[len(X) :])

    @pytest.mark.mission("MUL-11")
    def test_interpolated_rows_lie_between_neighbours_of_their_class(self):
        sampler = OverSampler("interpolate", k=3, random_state=0, warn=False)
        rows, labels = sampler.fit_resample(X, Y)
        new, (first, second) = rows[len(X) :], sampler.parents_.T
        assert np.all(Y[first] == labels[len(X) :])
        assert np.all(Y[second] == Y[first])
        step = X[second] - X[first]
        along = np.einsum("ij,ij->i", new - X[first], step) / np.einsum("ij,ij->i", step, step)
        assert along.min() >= 0
        assert along.max() <= 1
        assert new == pytest.approx(X[first] + along[:, None] * step, abs=1e-12)
        own = np.flatnonzero(Y == 1)
        for i, j in zip(first, second):
            nearest = own[np.argsort(((X[own] - X[i]) ** 2).sum(axis=1), kind="stable")][1:4]
            assert j in nearest

    def test_frames_and_three_classes(self):
        import pandas as pd

        frame = pd.DataFrame(THREE[:100], columns=list("abcd"))
        for sampler in (UnderSampler(warn=False), OverSampler(warn=False), OverSampler("interpolate", warn=False)):
            rows, labels = sampler.fit_resample(frame, FLOWER[:100])
            assert list(rows.columns) == list("abcd")
            assert len(set(np.bincount(labels))) == 1

    def test_a_class_of_one_row_cannot_be_interpolated(self):
        with pytest.raises(ValueError, match="has one row"):
            OverSampler("interpolate", warn=False).fit_resample(X[:5], [0, 0, 0, 0, 1])

    @pytest.mark.parametrize("sampler", [UnderSampler(), OverSampler(), OverSampler("interpolate")], ids=str)
    def test_warns_that_calibration_breaks(self, sampler):
        with pytest.warns(ResampledWarning, match="not calibrated"):
            sampler.fit_resample(X, Y)

    def test_prior_correction_restores_calibration(self):
        """Gaussian classes at 9 : 1: with balanced rows the mean probability is far from 1/10, corrected it is near,
        and each probability is near the true posterior."""
        rng = np.random.default_rng(5)
        y = (rng.random(20_000) < 0.1).astype(int)
        A = rng.normal(size=(20_000, 1)) + 1.5 * y[:, None]
        true = 0.1 * norm.pdf(A[:, 0], 1.5) / (0.1 * norm.pdf(A[:, 0], 1.5) + 0.9 * norm.pdf(A[:, 0]))
        for sampler in (UnderSampler(random_state=0, warn=False), OverSampler(random_state=0, warn=False)):
            p = LogisticRegression(C=1e6).fit(*sampler.fit_resample(A, y)).predict_proba(A)
            corrected = sampler.correct(p)
            assert p[:, 1].mean() > 0.25
            assert corrected[:, 1].mean() == pytest.approx(0.1, abs=0.01)
            assert np.abs(corrected[:, 1] - true).max() < 0.1
            assert np.abs(corrected[:, 1] - true).mean() < 0.1 * np.abs(p[:, 1] - true).mean()

    def test_in_the_pipeline_of_imbalanced_learn(self):
        pipeline = pytest.importorskip("imblearn.pipeline")
        from sklearn.model_selection import GridSearchCV

        for sampler in (
            UnderSampler(random_state=0, warn=False),
            OverSampler("interpolate", random_state=0, warn=False),
        ):
            chain = pipeline.Pipeline([("sample", sampler), ("fit", LogisticRegression())])
            chain.fit(X, Y)
            assert chain.predict(X).shape == Y.shape  # rows to predict are not resampled
            assert chain.predict(X)[Y == 1].mean() > LogisticRegression().fit(X, Y).predict(X)[Y == 1].mean()
            search = GridSearchCV(chain, {"fit__C": [0.1, 1.0]}, cv=2).fit(X, Y)
            assert search.best_score_ > 0.5

    def test_under_sampling_as_imbalanced_learn_counts(self):
        peer = pytest.importorskip("imblearn.under_sampling")
        over = pytest.importorskip("imblearn.over_sampling")
        theirs = peer.RandomUnderSampler(random_state=0).fit_resample(X, Y)[1]
        ours = UnderSampler(random_state=0, warn=False).fit_resample(X, Y)[1]
        assert np.array_equal(np.bincount(theirs), np.bincount(ours))
        theirs = over.SMOTE(random_state=0).fit_resample(X, Y)[1]
        ours = OverSampler("interpolate", random_state=0, warn=False).fit_resample(X, Y)[1]
        assert np.array_equal(np.bincount(theirs), np.bincount(ours))

    @pytest.mark.parametrize(
        "strategy",
        ["auto", "majority", "minority", "not majority", "not minority", "all", {0: 30, 2: 20}, lambda y: {1: 35}],
        ids=lambda strategy: "function" if callable(strategy) else str(strategy),
    )
    def test_numbers_asked_for_are_those_of_imbalanced_learn(self, strategy):
        peer = pytest.importorskip("imblearn.under_sampling")
        rows = np.r_[
            np.flatnonzero(FLOWER == 0)[:50], np.flatnonzero(FLOWER == 1)[:40], np.flatnonzero(FLOWER == 2)[:25]
        ]
        A, y = THREE[rows], FLOWER[rows]
        if strategy != "minority":  # which they refuse
            theirs = peer.RandomUnderSampler(sampling_strategy=strategy).fit_resample(A, y)[1]
            ours = UnderSampler(sampling_strategy=strategy, warn=False).fit_resample(A, y)[1]
            assert np.bincount(ours).tolist() == np.bincount(theirs).tolist()
        more = {1: 60, 2: 45} if isinstance(strategy, dict) or callable(strategy) else strategy
        over = pytest.importorskip("imblearn.over_sampling")
        if strategy != "majority":
            theirs = over.RandomOverSampler(sampling_strategy=more).fit_resample(A, y)[1]
            for how in ("repeat", "interpolate"):
                ours = OverSampler(how, sampling_strategy=more, warn=False).fit_resample(A, y)[1]
                assert np.bincount(ours).tolist() == np.bincount(theirs).tolist()

    def test_a_ratio_of_two_classes(self):
        rare, frequent = int(Y.sum()), int((1 - Y).sum())
        fewer = UnderSampler(sampling_strategy=0.5, warn=False).fit_resample(X, Y)[1]
        more = OverSampler(sampling_strategy=0.5, warn=False).fit_resample(X, Y)[1]
        assert np.bincount(fewer).tolist() == [2 * rare, rare]
        assert np.bincount(more).tolist() == [frequent, frequent // 2]

    @pytest.mark.parametrize(
        ("strategy", "message"),
        [
            ("most", "must be auto, all"),
            (0.01, "asks for"),
            ({0: 10_000}, "more than the"),
            ({7: 1}, "is no class"),
            (1.5, r"in \(0, 1\]"),
        ],
    )
    def test_refused_strategies(self, strategy, message):
        with pytest.raises(ValueError, match=message):
            UnderSampler(sampling_strategy=strategy, warn=False).fit_resample(X, Y)

    @pytest.mark.parametrize(
        "sampler", [UnderSampler(warn=False), OverSampler(warn=False), OverSampler("interpolate", warn=False)], ids=str
    )
    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_and_series_come_back_as_such(self, library, sampler):
        made = pytest.importorskip(library)
        names = list("abcdef")
        frame = made.DataFrame(X.astype(np.float32), **{"columns" if library == "pandas" else "schema": names})
        target = made.Series(Y, name="y") if library == "pandas" else made.Series("y", Y)
        rows, labels = sampler.fit_resample(frame, target)
        plain, codes = sampler.__class__(**sampler.get_params()).set_params(random_state=1).fit_resample(X, Y)
        assert type(rows) is type(frame)
        assert type(labels) is type(target)
        assert (list(rows.columns), labels.name, len(rows)) == (names, "y", len(plain))
        assert np.bincount(labels.to_numpy()).tolist() == np.bincount(codes).tolist()
        if library == "pandas":
            assert rows.index.equals(labels.index)
            assert set(rows.dtypes) == {np.dtype(np.float32)}


class TestWeights:
    """A row of weight k counts as k rows, one of weight 0 not at all."""

    COUNTS = np.random.default_rng(2).integers(0, 4, len(X))

    @pytest.mark.parametrize(
        "model",
        [ThresholdClassifier(), ThresholdClassifier(threshold=[1, 3]), CostClassifier(cost=[[0, 1], [9, 0]])],
        ids=str,
    )
    def test_weights_are_repetitions(self, model):
        at = np.repeat(np.arange(len(X)), self.COUNTS)
        weighed = model.fit(X, Y, sample_weight=self.COUNTS).predict_proba(X)
        repeated = model.fit(X[at], Y[at]).predict_proba(X)
        assert weighed == pytest.approx(repeated, abs=1e-5)

    @pytest.mark.parametrize("metric", ["f1", "balanced"])
    def test_the_threshold_is_the_best_of_weighted_counts(self, metric):
        from sklearn.metrics import balanced_accuracy_score, f1_score

        model = ThresholdClassifier(threshold=metric)
        weight = np.where(Y == 1, 5.0, 1.0)
        model.fit(X, Y, sample_weight=weight)
        plain = ThresholdClassifier(threshold=metric).fit(X, Y)
        moved = model.class_weights_[0] - plain.class_weights_[0]
        assert (abs(moved) < 0.3) if metric == "balanced" else (moved > 0)  # F1 alone depends on the share of a class
        from assay.imbalance._thresholds import _loss

        called = X[:, 0] > 0
        scores = {
            "f1": f1_score(Y, called, sample_weight=weight),
            "balanced": balanced_accuracy_score(Y, called, sample_weight=weight),
        }
        assert _loss(metric, Y, called, weight) == pytest.approx(1 - scores[metric], abs=1e-12)

    def test_members_of_a_committee_and_chosen_costs_have_them(self):
        weight = np.where(X[:, 0] > 0, 1.0, 1e-9)
        committee = EasyEnsembleClassifier(LogisticRegression(), random_state=0).fit(X, Y, sample_weight=weight)
        alone = EasyEnsembleClassifier(LogisticRegression(), random_state=0).fit(X, Y)
        assert np.abs(committee.predict_proba(X) - alone.predict_proba(X)).max() > 0.01
        assert committee.shares_ == pytest.approx(np.bincount(Y, weight) / weight.sum())
        chosen = CostClassifier(cost=[[0, 1], [9, 0]], choose="holdout", random_state=0).fit(X, Y, sample_weight=weight)
        certificate = chosen.certify(X, Y, sample_weight=weight)
        assert certificate["cost.chosen"].value > 0
        assert assay.verify(certificate, chosen, X, Y, sample_weight=weight).holds

    def test_a_member_without_weights_is_refused(self):
        with pytest.raises(TypeError, match="does not support sample weights"):
            ThresholdClassifier(KNeighborsClassifier(7)).fit(X, Y, sample_weight=np.ones(len(X)))


class TestEasyEnsemble:
    def test_every_member_sees_equal_classes_and_the_rare_class_is_found(self):
        model = EasyEnsembleClassifier(LogisticRegression(), 7, random_state=0).fit(X, Y)
        plain = LogisticRegression().fit(X, Y)
        assert model.predict(X)[Y == 1].mean() > plain.predict(X)[Y == 1].mean()
        shares = np.mean([one.predict_proba(X) for one in model.estimators_], axis=0)
        assert model.predict_proba(X) == pytest.approx(shares, abs=1e-14)
        assert model.corrected_proba(X)[:, 1].mean() == pytest.approx(Y.mean(), abs=0.05)
        assert len({tuple(one.coef_.ravel()) for one in model.estimators_}) == 7

    def test_threads_change_no_bit(self):
        one, three = (EasyEnsembleClassifier(random_state=0, n_jobs=k).fit(X, Y).predict_proba(X) for k in (1, 3))
        assert np.array_equal(one, three)


class TestCertificate:
    MODELS = [
        ThresholdClassifier(),
        ThresholdClassifier(KNeighborsClassifier(7)),
        ThresholdClassifier(DecisionTreeClassifier(max_depth=3), threshold=0.2),
        CostClassifier(cost=[[0, 1], [9, 0]]),
        CostClassifier(cost=[[0, 1], [9, 0]], reject=0.4),
        CostClassifier(cost=[[0, 1], [9, 0]], choose="holdout", random_state=0),
        EasyEnsembleClassifier(random_state=0),
    ]

    @pytest.mark.parametrize("model", MODELS, ids=str)
    def test_holds_for_two_classes(self, model):
        train, held = (X[:400], Y[:400]), (X[400:], Y[400:])
        self.check(model, train, held)

    @pytest.mark.parametrize(
        "model",
        [
            ThresholdClassifier(threshold=[1, 2, 3]),
            CostClassifier(cost=DEAR, reject=0.4),
            CostClassifier(cost=DEAR, choose="holdout", random_state=0),
        ],
        ids=str,
    )
    def test_holds_for_many_classes(self, model):
        self.check(model, (THREE[:90], FLOWER[:90]), (THREE[90:], FLOWER[90:]))

    @staticmethod
    def check(model, train, held):
        model.fit(*train)
        found = model.certify(*train, holdout=held)
        report = assay.verify(found, model, *train, holdout=held)
        assert report.holds, report.reason
        errors = next(one for one in found.claims if one.params.get("set") == "holdout" and one.name == "train.errors")
        assert errors.params["low"] <= np.sum(model.predict(held[0]) != held[1]) <= errors.value
        if not isinstance(model, EasyEnsembleClassifier):
            assert found.find("cost.holdout").value >= model.mean_cost(*held)

    def test_forged_costs_are_rejected(self):
        model = CostClassifier(cost=[[0, 1], [9, 0]], choose="holdout", random_state=0).fit(X, Y)
        found = model.certify(X, Y)
        assert assay.verify(found, model, X, Y).holds
        at = next(i for i, one in enumerate(found.claims) if one.name == "cost.chosen")
        claim = found.claims[at]
        cheap = np.flatnonzero(model.predict(X) == Y)
        for one in (
            replace(claim, value=claim.value * 0.9),
            replace(claim, params={**claim.params, "options": 1}),
            replace(claim, params={"rows": claim.params["rows"]}),
            replace(claim, params={**claim.params, "seed": 2**31}),
            replace(claim, params={**claim.params, "held": len(X) + 1}),
            replace(claim, witness={"held": cheap}),
            replace(claim, name="cost.holdout"),
        ):
            claims = (*found.claims[:at], one, *found.claims[at + 1 :])
            assert not assay.verify(replace(found, claims=claims), model, X, Y).holds

    def test_a_threshold_off_the_grid_was_not_fixed_in_advance(self):
        model = CostClassifier(cost=[[0, 1], [9, 0]], choose="holdout", random_state=0).fit(X, Y)
        model.matrix_ = np.diag([0.123, 0.877])
        assert not assay.verify(model.certify(X, Y), model, X, Y).holds

    @pytest.mark.parametrize("delta", [0.1, 0.5])
    def test_the_bound_of_the_chosen_cost_keeps_its_promise(self, delta):
        """The score is N(0, 1) or N(1, 1): the true cost of every threshold is known. The threshold is the best of 99
        on 60 rows, and a bound that did not pay for the choice would fail more often."""
        from assay.theory.concentration import kl_upper

        rng, broken, unpaid = np.random.default_rng(2), 0, 0
        cost = np.array([[0, 1.0], [3.0, 0]])
        grid = np.arange(1, 100) / 100
        cut = np.log(grid / (1 - grid)) + 0.5  # where the posterior of balanced classes is above the threshold
        truth = 0.5 * norm.sf(cut) * 1 + 0.5 * norm.cdf(cut - 1) * 3
        for _ in range(400):
            y = rng.integers(0, 2, 60)
            z = rng.normal(size=60) + y
            paid = np.array([cost[y, (z > c).astype(int)].mean() for c in cut])
            best = int(paid.argmin())
            broken += 3 * kl_upper(paid[best] / 3, np.log(99 / delta) / 60) < truth[best]
            unpaid += paid[best] < truth[best]
        assert broken <= binom.ppf(1 - 1e-6, 400, delta)
        assert unpaid > 200

    def test_a_file_says_the_same(self, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model in (CostClassifier(cost=DEAR, reject=0.3), ThresholdClassifier()):
                model.fit(THREE, FLOWER)
                assay.save(model, tmp_path / "model.assay")
                again = assay.load(tmp_path / "model.assay").model
                assert np.array_equal(again.predict(THREE), model.predict(THREE))


def test_members_of_scikit_learn_decide_by_costs_too():
    model = CostClassifier(PeerLogistic(), [[0, 1], [9, 0]]).fit(X, Y)
    p = PeerLogistic().fit(X, Y).predict_proba(X)[:, 1]
    assert np.array_equal(model.predict(X), (p > 0.1).astype(int))
