"""Semi-supervised learners against scikit-learn's, closed forms and their supervised limits."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn import semi_supervised as theirs
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import assay
from assay import scan
from assay.kernel_model import Kernelized
from assay.linear_model import LogisticRegression
from assay.mixture import GaussianMixtureClassifier
from assay.neighbors import KNeighborsClassifier
from assay.semi_supervised import (
    EntropyLogisticRegression,
    GaussianEM,
    LabelPropagation,
    LabelSpreading,
    MaskedFeatures,
    MultinomialEM,
    SelfTrainingClassifier,
    VouchedClassifier,
    graph_kernel,
    labelled,
    labelled_rows,
    neighbour_graph,
)
from assay.semi_supervised._graph import gaussian


def rows(n=200, classes=3, seed=0, share=0.2):
    """Return overlapping classes, all labels, and labels of which only a share is known."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[y % 3]
    known = rng.random(n) < share
    known[:classes] = True
    y[:classes] = np.arange(classes)
    return X, y, np.where(known, y, -1)


def moons(seed=0, n=300, labels=4):
    X, y = make_moons(n, noise=0.08, random_state=seed)
    marked = np.full(n, -1)
    for k in (0, 1):
        marked[np.flatnonzero(y == k)[: labels // 2]] = k
    return X, y, marked


class TestMarks:
    def test_all_kinds_of_labels(self):
        assert labelled(np.array([0, -1, 2])).tolist() == [True, False, True]
        assert labelled(np.array([True, False])).all()
        assert labelled(np.array(["a", "-1"])).tolist() == [True, False]
        assert labelled(np.array(["a", None, np.nan, -1, -1.0], dtype=object)).tolist() == [True] + [False] * 4

    @pytest.mark.parametrize(
        "model",
        [EntropyLogisticRegression(), SelfTrainingClassifier(), LabelPropagation(), GaussianEM(), VouchedClassifier()],
        ids=lambda model: type(model).__name__,
    )
    def test_marks_of_any_kind_give_the_same_model(self, model):
        X, _, marked = rows(share=0.4)
        if hasattr(model, "random_state"):
            model.set_params(random_state=0)
        first = clone(model).fit(X, marked).predict(X)
        for none in (None, np.nan, -1):
            objects = marked.astype(object)
            objects[marked < 0] = none
            assert np.array_equal(clone(model).fit(X, objects).predict(X), first)
        import pandas as pd

        series = pd.Series(marked).where(marked >= 0, pd.NA).astype("Int64")
        assert np.array_equal(clone(model).fit(X, series).predict(X), first)
        words = np.array(["zero", "one", "two", "-1"])[marked]
        again = clone(model).fit(X, words).predict(X)
        if not hasattr(model, "random_state"):  # the order of the classes is another
            assert np.mean(again == np.array(["zero", "one", "two"])[first]) > 0.99

    def test_no_label_at_all_is_refused(self):
        with pytest.raises(ValueError, match="no row has a label"):
            LabelPropagation().fit(np.eye(9), np.full(9, -1))

    def test_files_are_refused(self):
        with pytest.raises(ValueError, match="in memory"):
            EntropyLogisticRegression().fit("rows.parquet", "y")


@pytest.mark.mission("CON-40")
class TestEntropy:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_without_the_entropy_it_is_logistic_regression(self, classes):
        X, _, marked = rows(classes=classes)
        ours = EntropyLogisticRegression(alpha=0.0, beta=0.25).fit(X, marked)
        plain = LogisticRegression(C=2.0).fit(*labelled_rows(X, marked))
        assert ours.coef_ == pytest.approx(plain.coef_, abs=1e-6)
        assert ours.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-6)
        everything = EntropyLogisticRegression(alpha=5.0, beta=0.25).fit(*labelled_rows(X, marked))
        assert everything.coef_ == pytest.approx(plain.coef_, abs=1e-6)

    @pytest.mark.parametrize("classes", [2, 3, 4])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_the_gradient_is_that_of_differences(self, classes, intercept):
        X, _, marked = rows(60, classes=classes)
        model = EntropyLogisticRegression(alpha=0.7, beta=0.3, fit_intercept=intercept).fit(X, marked)
        codes = np.where(marked < 0, -1, marked)
        source = scan.rows(X, codes, np.linspace(0.5, 2.0, len(X)))
        at = np.random.default_rng(1).normal(size=model.coef_.size + len(model.intercept_))
        if not intercept:
            at.reshape(len(model.intercept_), -1)[:, -1] = 0.0
        terms, gradient = model._value(source, at)
        steps = np.eye(len(at)) * 1e-6
        slopes = np.array(
            [
                (model._value(source, at + h)[0].objective - model._value(source, at - h)[0].objective) / 2e-6
                for h in steps
            ]
        )
        moved = np.abs(steps).sum(axis=0) > 0
        if not intercept:
            moved.reshape(len(model.intercept_), -1)[:, -1] = False
        assert gradient[moved] == pytest.approx(slopes[moved], abs=1e-5)
        assert terms.objective == pytest.approx(terms.labelled + terms.unlabelled + terms.penalty)

    def test_the_terms_are_those_of_the_formula(self):
        X, _, marked = rows(classes=2)
        model = EntropyLogisticRegression(alpha=0.2, beta=0.4).fit(X, marked)
        p, known = model.predict_proba(X), marked >= 0
        assert model.terms_.labelled == pytest.approx(-np.log(p[known, marked[known]]).sum())
        entropy = -(p[~known] * np.log(p[~known])).sum()
        assert model.terms_.unlabelled == pytest.approx(0.2 * entropy)
        assert model.terms_.penalty == pytest.approx(0.4 * np.sum(model.coef_**2))
        objectives = [step.objective for step in model.history_]
        assert min(objectives) == objectives[-1] == pytest.approx(model.terms_.objective)
        plain = EntropyLogisticRegression(alpha=0.0, beta=0.4).fit(X, marked)
        q = plain.predict_proba(X)[~known]
        assert entropy < -(q * np.log(q)).sum()

    def test_unlabelled_rows_help_exactly_where_the_classes_are_clusters(self):
        """Settings fixed in advance: the alpha of the docstring, beta as it is; 4 labels, 400 rows without; errors by
        the normal law. Classes N(-+2, I) have a gap between them, N(-+1, I) have none: 16 % of the rows lie beyond."""
        apart, overlapping = (np.array([gaussian_errors(mu, seed) for seed in range(40)]) for mu in (2.0, 1.0))
        gain, loss = apart[:, 0] - apart[:, 1], overlapping[:, 1] - overlapping[:, 0]
        assert gain.mean() > 0.02
        assert gain.mean() > 4 * standard_error(gain)
        assert np.mean(gain > 0) > 0.8
        left = apart.mean(axis=0) - norm.cdf(-2.0)  # above the least possible error
        assert left[1] < 0.5 * left[0]
        assert loss.mean() > 4 * standard_error(loss)

    def test_on_two_moons_with_four_labels_the_accuracy_does_not_fall(self):
        """In the space of the graph, where the moons are clusters; alpha and beta as the docstring has them. On the
        bare columns no line separates moons, and the entropy, which wants one, makes it worse."""
        scores = []
        for seed in range(20):
            X, y = make_moons(300, noise=0.05, random_state=seed)
            marked = np.full(300, -1)
            marked[[*np.flatnonzero(y == 0)[:2], *np.flatnonzero(y == 1)[:2]]] = [0, 0, 1, 1]
            K = graph_kernel(X)
            models = [EntropyLogisticRegression(alpha=alpha) for alpha in (0.0, 4 / 296, 0.1)]
            known = [Kernelized(model, kernel="precomputed").fit(K, marked).score(K, y) for model in models]
            plain = LogisticRegression(C=1.0).fit(*labelled_rows(X, marked)).score(X, y)
            scores.append([plain, *known])
        plain, without, balanced, default = np.array(scores).T
        assert (balanced >= without).all()
        assert (default >= without).all()
        assert (default - plain).mean() > 4 * standard_error(default - plain)
        assert default.mean() > 0.99

    def test_the_graph_kernel_is_the_inverse_of_the_quadratic_form(self):
        X = np.random.default_rng(0).normal(size=(30, 2))
        K, f = graph_kernel(X, 4, ridge=0.3), np.random.default_rng(1).normal(size=30)
        graph = neighbour_graph(X, 4).toarray()
        roughness = sum(graph[i, j] * (f[i] - f[j]) ** 2 for i in range(30) for j in range(i)) + 0.3 * f @ f
        assert f @ np.linalg.solve(K, f) == pytest.approx(roughness)

    def test_on_two_moons_a_term_of_the_graph_helps_where_entropy_does_not(self):
        """The same objective with the smoothness over neighbours as the unlabelled loss; no line separates moons."""
        scores = []
        for seed in range(20):
            X, y, marked = moons(seed)
            models = [EntropyLogisticRegression(alpha=alpha, beta=0.5) for alpha in (0.0, 4 / 296)]
            models += [LabelPropagation(), KNeighborsClassifier(1)]
            given = [(X, marked)] * 3 + [labelled_rows(X, marked)]
            scores.append([model.fit(*rows).score(X, y) for model, rows in zip(models, given)])
        plain, entropy, graph, nearest = np.array(scores).T
        assert (graph - plain).mean() > 4 * standard_error(graph - plain)
        assert (graph - nearest).mean() > 4 * standard_error(graph - nearest)
        assert entropy.mean() < plain.mean()  # on the bare columns, as the docstring warns

    def test_a_large_penalty_leaves_even_probabilities(self):
        """Without intercept, beta -> infinity: the terms are n ln 2, alpha m ln 2 and nearly 0."""
        X, _, marked = rows(classes=2)
        terms = EntropyLogisticRegression(alpha=0.3, beta=1e9, fit_intercept=False).fit(X, marked).terms_
        known = int(np.sum(marked >= 0))
        assert terms.penalty < 1e-6
        assert terms.labelled == pytest.approx(known * np.log(2), rel=1e-6)
        assert terms.unlabelled == pytest.approx(0.3 * (len(X) - known) * np.log(2), rel=1e-6)

    def test_the_boundary_moves_to_where_rows_are_few(self):
        """Two labels on a line that is no boundary; a threshold of the first column alone is right."""
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 400)
        X = np.column_stack([4.0 * y + rng.normal(size=400) * 0.7, rng.normal(size=400)])
        X[:2], y[:2] = [[1.5, 2.0], [3.5, -2.0]], [0, 1]
        marked = np.where(np.arange(400) < 2, y, -1)
        plain, other = (EntropyLogisticRegression(alpha=a, beta=0.05).fit(X, marked) for a in (0.0, 2 / 398))
        assert other.score(X, y) > plain.score(X, y) + 0.05
        tilt = [abs(model.coef_[0, 1] / model.coef_[0, 0]) for model in (plain, other)]
        assert tilt[1] < 0.7 * tilt[0]


def gaussian_errors(mu, seed, d=5, unlabelled=400):
    """Return the error rates without and with unlabelled rows, classes N(-+mu e_1, I) with two labels each."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, unlabelled)])
    X = rng.normal(size=(len(y), d))
    X[:, 0] += mu * (2 * y - 1)
    found = []
    for alpha in (0.0, 4 / unlabelled):
        model = EntropyLogisticRegression(alpha=alpha).fit(X, np.where(np.arange(len(y)) < 4, y, -1))
        w, b = model.coef_[0], model.intercept_[0]
        below, above = norm.cdf((-w[0] * mu + np.array([-b, b])) / np.linalg.norm(w))
        found.append(0.5 * (below + above))
    return found


def standard_error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.mission("CON-41")
class TestSelfTraining:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"threshold": 0.6, "max_iter": 3},
            {"criterion": "k_best", "k_best": 7},
            {"max_iter": None, "threshold": 0.9},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("classes", [2, 3])
    def test_same_labels_as_scikit_learn(self, options, classes):
        X, _, marked = rows(classes=classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = theirs.SelfTrainingClassifier(TheirLogistic(tol=1e-10, max_iter=10_000), **options).fit(X, marked)
        ours = SelfTrainingClassifier(TheirLogistic(tol=1e-10, max_iter=10_000), **options).fit(X, marked)
        assert np.array_equal(ours.transduction_, other.transduction_)
        assert np.array_equal(ours.labeled_iter_, other.labeled_iter_)
        assert ours.n_iter_ == other.n_iter_
        assert ours.termination_condition_ == other.termination_condition_
        mine = SelfTrainingClassifier(LogisticRegression(), **options).fit(X, marked)
        assert np.mean(mine.transduction_ == other.transduction_) > 0.98

    def test_texts_through_a_pipeline(self):
        texts = ["good fine film", "bad dull film", "fine good acting", "dull bad plot", "good acting", "dull plot"]
        labels = ["up", "down", None, None, None, None]
        model = SelfTrainingClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), threshold=0.5)
        model.fit(texts, labels)
        assert model.transduction_.tolist() == ["up", "down", "up", "down", "up", "down"]
        assert model.predict(["fine acting"]).tolist() == ["up"]
        with pytest.raises(ValueError, match="Pipeline, which the checker does not know"):
            model.certify(texts, labels)

    def test_the_certificate_is_about_the_labelled_rows(self, tmp_path):
        X, _y, marked = rows(600, classes=2)
        model = SelfTrainingClassifier().fit(X, marked)
        Xh, yh, _ = rows(300, classes=2, seed=1)
        certificate = model.certify(X, marked, holdout=(Xh, yh))
        own = labelled_rows(X, marked)
        assert assay.verify(certificate, model, *own, holdout=(Xh, yh)).holds
        assert certificate.find("holdout.binomial").value < 0.5
        assert certificate.find("vc").params["rows"] == len(own[1])
        assay.save(model, tmp_path / "model.assay", certificate=certificate)
        again = assay.load(tmp_path / "model.assay").model
        assert np.array_equal(again.predict(Xh), model.predict(Xh))
        with pytest.raises(ValueError, match="as a pair"):
            model.certify(X, marked, holdout=[1, 2, 3])

    def test_an_estimator_without_probabilities_is_refused(self):
        from assay.svm import LinearSVC

        X, _, marked = rows()
        with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
            SelfTrainingClassifier(LinearSVC()).fit(X, marked)


class TestGraph:
    @pytest.mark.parametrize("classes", [2, 3])
    def test_the_fixed_points_are_those_of_scikit_learn(self, classes):
        X, _, marked = rows(150, classes=classes)
        W = neighbour_graph(X, 6).toarray()
        assert np.array_equal(W, W.T)

        def graph(A, B):  # the same weights, as a dense matrix
            return W

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spread = theirs.LabelSpreading(kernel=graph, alpha=0.3, max_iter=10_000, tol=1e-13).fit(X, marked)
            held = theirs.LabelPropagation(kernel=graph, max_iter=100_000, tol=1e-13).fit(X, marked)
        ours = LabelSpreading("knn", n_neighbors=6, alpha=0.3, tol=1e-12).fit(X, marked)
        assert ours.label_distributions_ == pytest.approx(spread.label_distributions_, abs=1e-8)
        assert np.array_equal(ours.transduction_, spread.transduction_)
        ours = LabelPropagation("knn", n_neighbors=6, tol=1e-12).fit(X, marked)
        assert ours.label_distributions_ == pytest.approx(held.label_distributions_, abs=1e-6)
        assert ours.label_distributions_.sum(axis=1) == pytest.approx(1.0, abs=1e-8)

    def test_moons_with_four_labels(self):
        X, y, marked = moons()
        plain = LogisticRegression().fit(*labelled_rows(X, marked)).score(X, y)
        for model in (LabelPropagation("knn"), LabelSpreading("knn", alpha=0.9)):
            model.fit(X, marked)
            assert np.mean(model.transduction_ == y) > 0.95 > plain
            assert model.score(X, y) > 0.95

    @pytest.mark.parametrize(
        "model",
        [
            LabelPropagation("knn", n_neighbors=5),
            LabelSpreading("knn", n_neighbors=5, alpha=0.5),
            LabelPropagation(gamma=0.5),
            LabelSpreading(gamma=0.5, alpha=0.5),
        ],
        ids=str,
    )
    def test_the_fixed_point_is_certified_and_forgeries_fail(self, model, tmp_path):
        X, _y, marked = rows(120, classes=2)
        model.fit(X, marked)
        certificate = model.certify(X, marked)
        own = labelled_rows(X, marked)
        claim = certificate.find("graph.fixed-point")
        assert claim.value < 1e-6
        assert assay.verify(certificate, model, *own).holds
        model.spread_ = model.spread_ + 1e-3
        again = model.certify(X, marked)
        assert again.find("graph.fixed-point").value > 1e-4
        assert assay.verify(again, model, *own).holds

    def test_parts_of_the_graph_without_a_label(self):
        X = np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0]])
        model = LabelPropagation("knn", n_neighbors=1).fit(X, ["a", "b", -1, -1, -1, -1])
        assert model.label_distributions_[3:] == pytest.approx(0.5)
        assert assay.verify(model.certify(X, ["a", "b", -1, -1, -1, -1]), model, X[:2], ["a", "b"]).holds

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="less than the number of rows"):
            LabelPropagation("knn", n_neighbors=5).fit(np.eye(3), [0, 1, -1])

    @pytest.mark.parametrize("sparse", [False, True])
    def test_gaussian_weights_are_those_of_scikit_learn(self, sparse):
        X, _, marked = rows(120, classes=3)
        X = csr_array(X) if sparse else X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for kind in ("LabelPropagation", "LabelSpreading"):
                there = getattr(theirs, kind)(gamma=0.5, max_iter=100_000, tol=1e-13).fit(X, marked)
                ours = globals()[kind](gamma=0.5).fit(X, marked)
                assert ours.label_distributions_ == pytest.approx(there.label_distributions_, abs=1e-5)
                assert np.array_equal(ours.transduction_, there.transduction_)
                assert ours.predict_proba(X[:20] * 1.1) == pytest.approx(there.predict_proba(X[:20] * 1.1), abs=1e-5)

    def test_a_function_as_kernel_leaves_no_certificate(self):
        X, _, marked = rows(60)
        own = LabelSpreading(lambda A, B: gaussian(A, B, 0.5)).fit(X, marked)
        named = LabelSpreading(gamma=0.5).fit(X, marked)
        assert own.label_distributions_ == pytest.approx(named.label_distributions_, abs=1e-12)
        assert np.array_equal(own.predict(X), named.predict(X))
        with pytest.raises(ValueError, match="function as kernel"):
            own.certify(X, marked)

    def test_rows_that_no_weight_reaches(self):
        X, marked = np.array([[0.0], [0.1], [0.2], [9.0]]), [0, -1, 1, -1]
        for model in (LabelPropagation(), LabelSpreading()):
            model.fit(X, marked)
            assert np.isfinite(model.label_distributions_).all()
            assert np.isfinite(model.predict_proba([[50.0]])).all()
            assert assay.verify(model.certify(X, marked), model, X[[0, 2]], [0, 1]).holds


class TestEM:
    def test_without_unlabelled_rows_it_is_naive_bayes(self):
        rng = np.random.default_rng(0)
        for classes in (2, 3):
            X, y = rng.poisson(2.0, size=(80, 5)), rng.integers(0, classes, 80)
            marked = np.where(np.arange(80) < 40, y, -1)
            plain = MultinomialNB().fit(X[:40], y[:40])
            for model in (MultinomialEM().fit(X[:40], y[:40]), MultinomialEM(weight=0.0).fit(X, marked)):
                assert model.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-10)

    def test_the_objective_never_falls_and_unlabelled_texts_help(self):
        rng = np.random.default_rng(3)
        themes = rng.dirichlet(np.full(60, 0.2), size=2)
        y = rng.integers(0, 2, 600)
        X = np.array([rng.multinomial(12, themes[k]) for k in y])
        marked = np.where(np.arange(600) < 6, y, -1)
        marked[:2], y[:2] = [0, 1], [0, 1]
        X[:2] = [rng.multinomial(12, themes[k]) for k in (0, 1)]
        plain = MultinomialEM(weight=0.0).fit(X, marked)
        model = MultinomialEM().fit(X, marked)
        values = [-step.objective for step in model.history_]
        assert all(b >= a - 1e-9 * abs(a) for a, b in itertools.pairwise(values))
        assert model.score(X, y) > plain.score(X, y)
        again = model.certify(X, marked)
        assert assay.verify(again, model, *labelled_rows(X, marked)).holds

    def test_counts_are_wanted(self):
        with pytest.raises(ValueError, match="Negative values"):
            MultinomialEM().fit([[-1.0], [2.0]], [0, 1])

    @pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
    def test_gaussians_of_labelled_rows_alone(self, kind):
        X, y, _ = rows(150)
        model = GaussianEM(covariance_type=kind, reg_covar=0.0).fit(X, y)
        if kind == "tied":
            within = sum(np.cov(X[y == k].T, bias=True) * np.sum(y == k) for k in range(3)) / len(y)
            assert model.covariances_[0] == pytest.approx(within, rel=1e-6)
            return
        plain = GaussianMixtureClassifier(covariance_type=kind, reg_covar=0.0).fit(X, y)
        assert model.means_ == pytest.approx(plain.means_)
        assert model.covariances_ == pytest.approx(plain.covariances_)
        assert model.priors_ == pytest.approx(plain.priors_)

    @pytest.mark.parametrize("components", [1, 2])
    def test_the_likelihood_never_falls_and_unlabelled_rows_help(self, components):
        better = 0
        for seed in range(5):
            X, y, marked = rows(400, classes=3, seed=seed, share=0.03 * components)
            for k in range(3):
                marked[np.flatnonzero(y == k)[: 2 * components]] = k
            model = GaussianEM(components, reg_covar=1e-3, random_state=0).fit(X, marked)
            values = [-step.objective for step in model.history_]
            assert all(b >= a - 1e-6 * abs(a) for a, b in itertools.pairwise(values))
            plain = GaussianMixtureClassifier(components, covariance_type="diag", reg_covar=1e-3, random_state=0)
            plain.fit(*labelled_rows(X, marked))
            better += model.score(X, y) >= plain.score(X, y)
        assert better >= 4


@pytest.mark.mission("CON-42")
class TestMasked:
    def test_identity_reaches_least_squares(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(300, 5)) + 4.0
        model = MaskedFeatures(5, activation="identity", alpha=0.0, tol=1e-9, max_iter=5000, random_state=0).fit(X)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        best = 0.0
        for j in range(5):
            others = np.delete(Z, j, axis=1)
            best += np.linalg.lstsq(others, Z[:, j], rcond=None)[1][0]
        assert model.error_ == pytest.approx(best / X.size, rel=1e-4)
        assert np.mean(((model.fill(X) - X) / X.std(axis=0)) ** 2) == pytest.approx(model.error_, rel=1e-9)
        assert model.transform(X).shape == (300, 5)

    @pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
    def test_the_error_is_certified(self, activation, tmp_path):
        X = np.random.default_rng(1).normal(size=(80, 1)) @ np.ones((1, 4)) + 0.1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MaskedFeatures(2, activation=activation, max_iter=200, random_state=0).fit(X)
        certificate = model.certify(X)
        assert assay.verify(certificate, model, X).holds
        assert certificate.find("masked.error").value == pytest.approx(model.error_, rel=1e-3, abs=1e-8)
        assay.save(model, tmp_path / "m.assay")
        again = assay.load(tmp_path / "m.assay").model
        assert np.array_equal(again.transform(X), model.transform(X))
        certificate = model.certify(X)
        model.V_ = model.V_ * 1.5
        assert not assay.verify(certificate, model, X).holds
