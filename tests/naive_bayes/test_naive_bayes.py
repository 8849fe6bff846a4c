"""Naive Bayes against scikit-learn, worked examples of the books, and direct products."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.naive_bayes as sk
from scipy import stats
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

import assay
from assay import naive_bayes as nb
from assay.data.blocks import rows_per_block
from tests.tree.melons import melons, melons_with_gaps

PAIRS = [
    (nb.GaussianNB, {}),
    (nb.GaussianNB, {"priors": [0.2, 0.3, 0.5], "var_smoothing": 0.1}),
    (nb.MultinomialNB, {}),
    (nb.MultinomialNB, {"alpha": 0.3, "fit_prior": False}),
    (nb.MultinomialNB, {"alpha": [0.1, 0.2, 0.3, 0.4, 0.5], "class_prior": [0.2, 0.3, 0.5]}),
    (nb.BernoulliNB, {"binarize": 1.0}),
    (nb.BernoulliNB, {"alpha": 0.5, "fit_prior": False}),
    (nb.ComplementNB, {}),
    (nb.ComplementNB, {"norm": True, "alpha": 0.2}),
    (nb.CategoricalNB, {}),
    (nb.CategoricalNB, {"alpha": 0.1, "min_categories": 6, "class_prior": [0.2, 0.3, 0.5]}),
]
ARRAYS = ("class_count_", "theta_", "var_", "class_prior_", "epsilon_", "class_log_prior_", "feature_count_")
ARRAYS += ("feature_log_prob_", "category_count_", "n_categories_", "feature_all_")
LINEAR_COST = [nb.GaussianNB, nb.MultinomialNB, nb.ComplementNB, nb.BernoulliNB, nb.CategoricalNB, nb.MixedNB]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    return rng.poisson(1 + y[:, None] % [1, 2, 3, 2, 3]).clip(0, 4).astype(float), np.array(["a", "b", "c"])[y]


def same_model(one, other, X):
    for name in ARRAYS:
        if hasattr(other, name):
            for a, b in zip(np.atleast_1d(getattr(one, name)), np.atleast_1d(getattr(other, name))):
                assert np.allclose(a, b, rtol=1e-10, atol=1e-12), name
    assert np.array_equal(one.classes_, other.classes_)
    for name in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
        assert np.allclose(getattr(one, name)(X), getattr(other, name)(X), rtol=1e-9, atol=1e-12), name
    assert np.array_equal(one.predict(X), other.predict(X))


@pytest.mark.mission("BAY-10", "BAY-11", "BAY-13", "BAY-16")
@pytest.mark.parametrize(("learner", "parameters"), PAIRS, ids=lambda value: getattr(value, "__name__", ""))
class TestScikitLearn:
    def test_the_same_model(self, learner, parameters, rows):
        X, y = rows
        same_model(learner(**parameters).fit(X, y), getattr(sk, learner.__name__)(**parameters).fit(X, y), X)

    def test_weights(self, learner, parameters, rows):
        X, y = rows
        weight = np.random.default_rng(1).uniform(0.1, 2, len(y))
        one = learner(**parameters).fit(X, y, sample_weight=weight)
        other = getattr(sk, learner.__name__)(**parameters).fit(X, y, sample_weight=weight)
        tolerance = 1e-2 if "var_smoothing" in parameters else 1e-9  # there the variance added is that of weighted rows
        assert np.allclose(one.predict_log_proba(X), other.predict_log_proba(X), rtol=tolerance, atol=tolerance)

    def test_rows_in_parts_are_one_fit(self, learner, parameters, rows):
        X, y = rows
        parts = learner(**parameters)
        for start in range(0, 300, 70):
            parts.partial_fit(X[start : start + 70], y[start : start + 70], classes=["a", "b", "c"])
        same_model(parts, learner(**parameters).fit(X, y), X)

    def test_same_bits_from_files_and_threads(self, learner, parameters, rows, tmp_path):
        X, y = (np.tile(rows[0], (60, 1)), np.tile(rows[1], 60))
        pd.DataFrame({**{f"x{j}": X[:, j] for j in range(5)}, "y": y}).to_parquet(tmp_path / "rows.parquet")
        models = [learner(**parameters, n_jobs=jobs).fit(X, y) for jobs in (1, 3)]
        models.append(learner(**parameters).fit(str(tmp_path / "rows.parquet"), "y"))
        stored = [model.stored().arrays for model in models]
        for name in set(stored[0]) - {"feature_names_in_", "classes_"}:
            assert all(np.array_equal(stored[0][name], other[name]) for other in stored[1:]), name


def test_dask_gives_the_same_bits(rows):
    dask = pytest.importorskip("dask.array")
    X, y = np.tile(rows[0], (120, 1)), np.tile((rows[1] == "a").astype(int), 120)
    size = rows_per_block(5)
    for learner in (nb.GaussianNB, nb.MultinomialNB, nb.MixedNB):
        parts = dask.from_array(X, chunks=(size, 5)), dask.from_array(y, size)
        one, other = learner().fit(X, y), learner().fit(*parts)
        assert np.array_equal(one.predict_joint_log_proba(X), other.predict_joint_log_proba(X))


@pytest.mark.parametrize("learner", [nb.MultinomialNB, nb.BernoulliNB, nb.ComplementNB])
def test_sparse_rows_stay_sparse(learner, rows):
    X, y = rows
    dense, sparse = learner().fit(X, y), learner().fit(csr_array(X), y)
    same_model(sparse, dense, X)
    assert np.allclose(sparse.predict_joint_log_proba(csr_array(X)), dense.predict_joint_log_proba(X), rtol=1e-12)


# Worked examples --------------------------------------------------------------------------------------------

LI = pd.DataFrame({"x1": list("111112222233333"), "x2": list("SMMSSSMMLLLMMLL")})
LI_Y = np.array([-1, -1, 1, 1, -1, -1, -1, 1, 1, 1, 1, 1, 1, 1, -1])


@pytest.mark.mission("BAY-09", "BAY-10")
def test_li_hang_4_1():
    model = nb.MixedNB(alpha=0.0).fit(LI, LI_Y)
    joint = np.exp(model.predict_joint_log_proba(pd.DataFrame({"x1": ["2"], "x2": ["S"]})))[0]
    assert joint == pytest.approx([1 / 15, 1 / 45], rel=1e-12)
    assert np.exp(model.tables_[0][1]) == pytest.approx([2 / 9, 3 / 9, 4 / 9])


@pytest.mark.mission("BAY-14")
def test_li_hang_4_2():
    """The prior is smoothed as the tables are: (6 + 1) / (15 + 2) and (9 + 1) / (15 + 2)."""
    mixed = nb.MixedNB(alpha=1.0, prior_alpha=1.0).fit(LI, LI_Y)
    joint = np.exp(mixed.predict_joint_log_proba(pd.DataFrame({"x1": ["2"], "x2": ["S"]})))[0]
    assert joint.round(4).tolist() == [0.0610, 0.0327]
    assert mixed.class_prior_ == pytest.approx([7 / 17, 10 / 17], rel=1e-15)
    codes = LI.apply(lambda column: column.astype("category").cat.codes)
    model = nb.CategoricalNB(alpha=1.0, prior_alpha=1.0).fit(codes.to_numpy(), LI_Y)
    assert np.exp(model.class_log_prior_) == pytest.approx([7 / 17, 10 / 17], rel=1e-15)
    even = nb.CategoricalNB(prior_alpha=1.0, fit_prior=False).fit(codes.to_numpy(), LI_Y)
    assert even.class_prior_.tolist() == [0.5, 0.5]


def test_a_smoothed_prior_is_certified_and_none_other():
    X, y = np.array([[0], [1], [1], [0], [1]]), np.array([0, 0, 0, 1, 1])
    model = nb.CategoricalNB(prior_alpha=0.5).fit(X, y)
    assert model.class_prior_ == pytest.approx([3.5 / 6, 2.5 / 6], rel=1e-15)
    certificate = model.certify(X, y)
    assert "0.5 rows added to each" in certificate["counts.mle"].statement
    assert assay.verify(certificate, model, X, y).holds
    model.class_prior_ = nb.CategoricalNB(prior_alpha=0.6).fit(X, y).class_prior_
    assert not assay.verify(model.certify(X, y), model, X, y).holds


@pytest.mark.mission("BAY-11", "BAY-12")
def test_the_first_melon():
    X, y = melons(continuous=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nb.ZeroProbabilityWarning)
        model = nb.MixedNB(alpha=0.0, ddof=1, var_smoothing=0.0).fit(X, y)
    joint = dict(zip(model.classes_, np.exp(model.predict_joint_log_proba(X.iloc[:1]))[0]))
    assert joint["是"] == pytest.approx(0.0524, abs=5e-5)
    assert joint["否"] == pytest.approx(6.86e-5, abs=5e-8)


@pytest.mark.mission("BAY-12")
def test_a_product_by_hand_with_gaps():
    X, y = melons_with_gaps()
    X["sugar"] = np.where(np.arange(17) % 5 == 0, np.nan, melons(continuous=True)[0]["含糖率"])
    model = nb.MixedNB(alpha=0.7, m=None, var_smoothing=0.0).fit(X, y)
    for i in range(17):
        expected = []
        for label in model.classes_:
            own = X[y == label]
            p = np.log(np.mean(y == label))
            for name in X.columns[:-1]:
                if pd.notna(X[name].iloc[i]):
                    there = own[name].dropna()
                    levels = X[name].dropna().nunique()
                    p += np.log(((there == X[name].iloc[i]).sum() + 0.7) / (len(there) + 0.7 * levels))
            if not np.isnan(X["sugar"].iloc[i]):
                p += stats.norm.logpdf(X["sugar"].iloc[i], own["sugar"].mean(), own["sugar"].std(ddof=0))
            expected.append(p)
        assert model.predict_joint_log_proba(X.iloc[i : i + 1])[0] == pytest.approx(expected, rel=1e-12)


def test_the_m_estimate():
    X, y = melons()
    model = nb.MixedNB(m=3.0).fit(X, y)
    table = np.exp(model.tables_[0])
    for k, label in enumerate(model.classes_):
        for v, level in enumerate(model.columns_[0].levels):
            n, share = np.sum((X["色泽"] == level) & (y == label)), np.mean(X["色泽"] == level)
            assert table[k, v] == pytest.approx((n + 3.0 * share) / (np.sum(y == label) + 3.0), rel=1e-12)
    assert np.allclose(table.sum(axis=1), 1)


def test_mixed_columns_are_the_two_alone(rows):
    X, y = rows
    mixed = nb.MixedNB(nominal=[0, 1, 2, 3, 4]).fit(X, y)
    assert np.allclose(mixed.predict_joint_log_proba(X), nb.CategoricalNB().fit(X, y).predict_joint_log_proba(X))
    numbers = nb.MixedNB(var_smoothing=0.0).fit(X, y)
    plain = nb.GaussianNB(var_smoothing=0.0).fit(X, y)
    assert np.allclose(numbers.predict_joint_log_proba(X), plain.predict_joint_log_proba(X), rtol=1e-10)
    parts = nb.MixedNB(nominal=[0, 2])
    for start in range(0, 300, 100):
        parts.partial_fit(X[start : start + 100], y[start : start + 100], classes=["a", "b", "c"])
    whole = nb.MixedNB(nominal=[0, 2]).fit(X, y)
    assert np.allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)


def test_a_table_of_assay_and_levels_that_are_new():
    X, y = melons()
    table = assay.data.read(X)
    model = nb.MixedNB().fit(table, y)
    assert np.array_equal(model.predict(table), nb.MixedNB().fit(X, y).predict(X))
    new = X.iloc[:1].copy()
    new["色泽"] = "紫"
    gap = X.iloc[:1].copy()
    gap["色泽"] = None
    assert np.array_equal(model.predict_joint_log_proba(new), model.predict_joint_log_proba(gap))


# Zeros, underflow, linear forms -------------------------------------------------------------------------------


@pytest.mark.mission("BAY-14")
class TestWithoutSmoothing:
    def test_what_never_was_is_impossible_and_told(self):
        X, y = np.array([[0, 0], [0, 1], [1, 1], [1, 1]]), np.array([0, 0, 1, 1])
        with pytest.warns(nb.ZeroProbabilityWarning, match="3 of 8 probabilities are 0"):
            model = nb.CategoricalNB(alpha=0.0).fit(X, y)
        assert model.predict_proba([[0, 1], [1, 1]]).tolist() == [[1, 0], [0, 1]]
        assert model.predict_joint_log_proba([[0, 1]])[0, 1] == -np.inf
        # 1 and 0 never came together: nothing is known but the shares
        assert model.predict_proba([[1, 0]]).tolist() == [[0.5, 0.5]]

    @pytest.mark.parametrize("learner", [nb.MultinomialNB, nb.BernoulliNB])
    def test_words_that_a_class_never_had(self, learner):
        X, y = np.array([[2.0, 0, 1], [1, 0, 0], [0, 3, 1], [0, 1, 1]]), np.array([0, 0, 1, 1])
        with pytest.warns(nb.ZeroProbabilityWarning):
            model = learner(alpha=0.0).fit(X, y)
        proba = model.predict_proba([[1, 0, 1], [0, 1, 1], [1, 1, 1]])
        assert not np.isnan(proba).any()
        assert proba[:2].argmax(axis=1).tolist() == [0, 1]
        assert proba[2].tolist() == [0.5, 0.5]

    def test_a_small_alpha_is_near_none(self, rows):
        X, y = rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, small = (nb.CategoricalNB(alpha=alpha).fit(X, y) for alpha in (0.0, 1e-12))
        assert np.allclose(plain.predict_proba(X), small.predict_proba(X), atol=1e-6)

    def test_complement_needs_some(self):
        with pytest.raises(ValueError, match="alpha = 0 makes its weight infinite"):
            nb.ComplementNB(alpha=0.0).fit([[1, 0], [0, 1]], [0, 1])


@pytest.mark.mission("BAY-07")
@pytest.mark.parametrize("learner", LINEAR_COST)
def test_thousands_of_columns_have_finite_logarithms(learner):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(60, 2000)).astype(float), np.arange(60) % 2
    model = learner().fit(X, y)
    joint = model.predict_joint_log_proba(X)
    assert np.isfinite(joint).all()
    assert np.isfinite(model.predict_log_proba(X)[np.arange(60), y]).all()
    if learner.__name__ != "ComplementNB":
        assert (np.exp(joint) == 0).all()


def test_a_constant_column_is_told():
    with pytest.warns(nb.DegenerateVarianceWarning):
        model = nb.GaussianNB(var_smoothing=0.0).fit([[1.0, 0.0], [1.0, 1.0], [2.0, 5.0], [3.0, 6.0]], [0, 0, 1, 1])
    assert model.predict([[1.0, 0.5], [2.5, 5.5]]).tolist() == [0, 1]
    assert np.isfinite(model.predict_proba([[9.0, 9.0]])).all()


@pytest.mark.mission("BAY-17")
class TestLinearForm:
    @pytest.mark.parametrize("learner", [nb.MultinomialNB, nb.ComplementNB, nb.BernoulliNB])
    def test_counts(self, learner, rows):
        X, y = rows
        X = np.minimum(X, 1.0) if learner is nb.BernoulliNB else X
        model = learner().fit(X, y)
        w, b = model.linear_form()
        assert np.allclose(X @ w.T + b, model.predict_joint_log_proba(X), rtol=1e-10)

    def test_levels(self, rows):
        X, y = rows
        model = nb.CategoricalNB().fit(X, y)
        w, b = model.linear_form()
        one_hot = np.hstack([np.eye(size)[X[:, j].astype(int)] for j, size in enumerate(model.n_categories_)])
        assert np.allclose(one_hot @ w.T + b, model.predict_joint_log_proba(X), rtol=1e-10)

    def test_numbers_of_shared_variance_alone(self):
        X = np.array([[0.0, 1], [2, 3], [5, 1], [7, 3]])
        model = nb.GaussianNB().fit(X, [0, 0, 1, 1])
        w, b = model.linear_form()
        assert np.array_equal((X @ w.T + b).argmax(axis=1), model.predict_joint_log_proba(X).argmax(axis=1))
        scores, joint = X @ w.T + b, model.predict_joint_log_proba(X)
        assert np.allclose(scores[:, 1] - scores[:, 0], joint[:, 1] - joint[:, 0])
        with pytest.raises(ValueError, match="column 1 differ, so that squares remain"):
            nb.GaussianNB().fit([[0.0, 1], [2, 3], [5, 1], [7, 4]], [0, 0, 1, 1]).linear_form()

    def test_no_weight_for_a_probability_of_zero(self):
        with pytest.warns(nb.ZeroProbabilityWarning):
            model = nb.CategoricalNB(alpha=0.0).fit([[0], [1]], [0, 1])
        with pytest.raises(ValueError, match="its weight is infinite"):
            model.linear_form()


@pytest.mark.mission("BAY-15")
@pytest.mark.parametrize("learner", [nb.CategoricalNB(), nb.MixedNB(nominal=range(5))], ids=["categorical", "mixed"])
def test_answers_from_tables_are_the_direct_product(learner, rows):
    """P(c) prod (n_xc + 1) / (n_c + S), multiplied from the rows themselves; the answers need the tables alone."""
    X, y = rows
    model = learner.fit(X, y)
    direct = np.ones((len(X), len(model.classes_)))
    for c, label in enumerate(model.classes_):
        own = X[y == label]
        direct[:, c] = len(own) / len(X)
        for j in range(X.shape[1]):
            same = (own[:, j][None, :] == X[:, j][:, None]).sum(axis=1)
            direct[:, c] *= (same + 1) / (len(own) + len(np.unique(X[:, j])))
    assert np.exp(model.predict_joint_log_proba(X)) == pytest.approx(direct, rel=1e-12)
    assert model.predict_proba(X) == pytest.approx(direct / direct.sum(axis=1, keepdims=True), rel=1e-12)
    assert [table.shape for table in model.tables_] == [(len(model.classes_), len(np.unique(x))) for x in X.T]
    looked_up = sum(table[:, X[:, j].astype(int)].T for j, table in enumerate(model.tables_))
    assert np.log(model.class_prior_) + looked_up == pytest.approx(np.log(direct), rel=1e-12)


@pytest.mark.parametrize("learner", [nb.MixedNB, nb.TAN, nb.AODE])
def test_all_columns_can_be_nominal(learner, rows):
    X, y = rows
    one, other = learner(nominal="all").fit(X, y), learner(nominal=[0, 1, 2, 3, 4]).fit(X, y)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    with pytest.raises(ValueError, match="nominal must be 'all', or list"):
        learner(nominal="some").fit(X, y)


def test_refusals(rows):
    X, y = rows
    with pytest.raises(ValueError, match="whole numbers"):
        nb.CategoricalNB().fit(X + 0.5, y)
    with pytest.raises(ValueError, match="levels are 0 to 4"):
        nb.CategoricalNB().fit(X, y).predict(X + 3)
    with pytest.raises(ValueError, match="Number of priors"):
        nb.GaussianNB(priors=[0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="sum of the priors"):
        nb.GaussianNB(priors=[0.5, 0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="classes must be passed"):
        nb.GaussianNB().partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same as on last call"):
        nb.GaussianNB().partial_fit(X, y, classes=["a", "b", "c"]).partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(ValueError, match="n_features"):
        nb.MultinomialNB(alpha=[1.0, 2.0]).fit(X, y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nb.BernoulliNB(binarize=None).fit(X, y)
    with pytest.raises(ValueError, match="column positions"):
        nb.MixedNB(nominal=[7]).fit(X, y)
    with pytest.raises(ValueError, match="too large to square"):
        nb.GaussianNB().fit(X * 1e200, y)


@pytest.mark.parametrize("learner", [nb.GaussianNB, nb.MultinomialNB, nb.BernoulliNB, nb.CategoricalNB])
@pytest.mark.parametrize("weight", [None, np.ones(300)], ids=["plain", "weighted"])
def test_gaps_are_refused_where_they_are_not_read(learner, weight, rows):
    X, y = rows[0].copy(), rows[1]
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learner().fit(X, y, sample_weight=weight)


def test_streamed_weights_are_checked(rows, tmp_path):
    frame = pd.DataFrame({**{f"x{j}": rows[0][:, j] for j in range(5)}, "y": rows[1], "w": np.linspace(-1, 1, 300)})
    frame.to_parquet(tmp_path / "rows.parquet")
    for learner in (nb.MixedNB, nb.AODE, nb.GaussianNB):
        with pytest.raises(ValueError, match="weights must be"):
            learner().fit(str(tmp_path / "rows.parquet"), "y", sample_weight="w")


def test_accuracy_of_iris_is_that_of_the_textbooks():
    X, y = load_iris(return_X_y=True)
    assert nb.GaussianNB().fit(X, y).score(X, y) == 0.96


@pytest.mark.parametrize("learner", [nb.GaussianNB, nb.CategoricalNB, nb.MixedNB, nb.MultinomialNB, nb.BernoulliNB])
def test_rows_that_are_drawn_are_those_of_the_model(learner, rows):
    X, y = rows
    model = learner(**{"nominal": [0, 2]} if learner is nb.MixedNB else {}).fit(X, y)
    drawn, labels = model.sample(40_000, random_state=0)
    assert drawn.shape == (40_000, 5)
    assert np.bincount(np.searchsorted(model.classes_, labels)) / 40_000 == pytest.approx(model.class_prior_, abs=0.02)
    again = learner(**{"nominal": [0, 2]} if learner is nb.MixedNB else {}).fit(drawn, labels)
    if learner is nb.BernoulliNB:
        X = np.minimum(X, 1.0)
    assert np.abs(again.predict_proba(X) - model.predict_proba(X)).mean() < 0.01
    with pytest.raises(ValueError, match="n_samples must be an integer"):
        model.sample(0)
