"""Transforms of columns against scikit-learn, kernels and trees."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression as TheirLinear
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import assay
from assay import data
from assay.data.columns import Column
from assay.datasets import VEHICLE_COLUMNS, vehicles
from assay.datasets.worked import four_quadrants
from assay.kernels import PowerSeries
from assay.linear_model import LinearSeparator, LogisticRegression
from assay.metrics.distance import MinkovDM, Weighted
from assay.neighbors import KNeighborsClassifier
from assay.preprocessing import BiPartition, PolynomialTransform, ScaledColumns, UnitRows, augment, monomial_count
from assay.svm import SVC, LinearSVC
from assay.theory.vc import separate
from assay.tree import DecisionTreeClassifier, column_scores

RNG = np.random.default_rng(0)


def sorted_columns(A):
    return A[:, np.lexsort(A)]


@parametrize_with_checks(
    [
        PolynomialTransform(2),
        PolynomialTransform(2, weighted=True),
        UnitRows(zero="keep"),
        BiPartition(),
        ScaledColumns(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


class TestPolynomial:
    @pytest.mark.mission("FEA-16")
    def test_two_features_of_degree_two(self):
        X = RNG.normal(size=(7, 2))
        found = PolynomialTransform(2).fit_transform(X)
        x, z = X.T
        assert sorted_columns(found) == pytest.approx(
            sorted_columns(np.column_stack([np.ones(7), x, z, x * x, z * z, x * z]))
        )
        assert sorted_columns(found) == pytest.approx(sorted_columns(PolynomialFeatures(2).fit_transform(X)))

    @pytest.mark.mission("FEA-17")
    @pytest.mark.parametrize(("d", "degree"), [(1, 4), (3, 3), (4, 2)])
    @pytest.mark.parametrize("bias", [True, False])
    def test_all_monomials(self, d, degree, bias):
        X = RNG.normal(size=(9, d))
        theirs = PolynomialFeatures(degree, include_bias=bias).fit_transform(X)
        assert sorted_columns(PolynomialTransform(degree, include_bias=bias).fit_transform(X)) == pytest.approx(
            sorted_columns(theirs)
        )

    @pytest.mark.mission("FEA-18")
    def test_their_number(self):
        assert monomial_count(2, 2) == 6
        assert monomial_count(3, 4) == 35
        for d, degree in itertools.product(range(1, 5), range(1, 5)):
            listed = {tuple(sorted(one)) for k in range(degree + 1) for one in itertools.product(range(d), repeat=k)}
            assert monomial_count(d, degree) == len(listed)
            made = PolynomialTransform(degree, include_bias=False).fit(np.zeros((1, d)))
            assert len(made.powers_) == len(listed) - 1

    @pytest.mark.mission("FEA-19")
    @pytest.mark.parametrize("form", ["repeated", "weighted"])
    @pytest.mark.parametrize("degree", [2, 3])
    def test_inner_products_are_sums_of_powers(self, form, degree):
        X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
        made = PolynomialTransform(degree, **{form: True}).fit(X)
        inner = X @ Z.T
        assert made.transform(X) @ made.transform(Z).T == pytest.approx(sum(inner**k for k in range(degree + 1)))
        width = sum(3**k for k in range(degree + 1)) if form == "repeated" else monomial_count(3, degree)
        assert made.transform(X).shape == (6, width)
        assert len(set(made.get_feature_names_out())) == width

    def test_both_forms_at_once_are_refused(self):
        with pytest.raises(ValueError, match="ask for one of them"):
            PolynomialTransform(repeated=True, weighted=True).fit([[1.0]])

    @pytest.mark.mission("FEA-20")
    def test_without_the_constant_five_columns_are_left(self):
        found = PolynomialTransform(2, include_bias=False).fit_transform([[2.0, 3.0]])
        assert sorted(found[0].tolist()) == [2.0, 3.0, 4.0, 6.0, 9.0]

    @pytest.mark.mission("FEA-21")
    @pytest.mark.parametrize("shape", ["circle", "quadrants"])
    def test_what_no_line_separates_a_polynomial_does(self, shape):
        if shape == "circle":
            angle, radius = RNG.uniform(0, 2 * np.pi, 60), np.where(np.arange(60) % 2, 1.0, 2.0)
            X, y = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.where(radius > 1.5, 1, -1)
        else:
            X, y = four_quadrants(60, seed=1, gap=0.1)
        assert not separate(X, y).separable
        lifted = PolynomialTransform(2, include_bias=False).fit_transform(X)
        assert separate(lifted, y).separable
        model = make_pipeline(PolynomialTransform(2, include_bias=False), LinearSeparator()).fit(X, y)
        assert model.score(X, y) == 1.0

    @pytest.mark.mission("FEA-22")
    def test_the_kernel_is_the_transform(self):
        X, y = four_quadrants(80, seed=2, gap=0.05)
        kernel = PowerSeries([1.0, 1.0, 1.0])
        explicit = PolynomialTransform(2, weighted=True).fit_transform(X)
        assert explicit @ explicit.T == pytest.approx(kernel(X))
        implicit = SVC(kernel=kernel, C=5.0, tol=1e-6).fit(X, y)
        plain = SVC(kernel="linear", C=5.0, tol=1e-6).fit(kernel.features(X), y)
        fresh = RNG.uniform(-1, 1, size=(200, 2))
        assert implicit.decision_function(fresh) == pytest.approx(
            plain.decision_function(kernel.features(fresh)), abs=1e-4
        )

    def test_it_is_stored(self, tmp_path):
        X = RNG.normal(size=(5, 3))
        model = PolynomialTransform(3, weighted=True).fit(X)
        assay.save(model, tmp_path / "p.assay")
        assert np.array_equal(assay.load(tmp_path / "p.assay").model.transform(X), model.transform(X))


class TestRows:
    @pytest.mark.mission("FEA-23")
    def test_unit_rows(self, tmp_path):
        X = RNG.normal(size=(8, 3)) * 10.0 ** RNG.integers(-150, 150, (8, 1))
        model = UnitRows().fit(X)
        assert np.linalg.norm(model.transform(X), axis=1) == pytest.approx(1.0)
        moderate = RNG.normal(size=(8, 3))
        assert UnitRows().fit_transform(moderate) == pytest.approx(Normalizer().fit_transform(moderate))
        X[5] = 0.0
        with pytest.raises(ValueError, match="row 5"):
            model.transform(X)
        assert np.array_equal(UnitRows(zero="keep").fit_transform(X)[5], np.zeros(3))
        assay.save(model, tmp_path / "u.assay")
        assert np.array_equal(assay.load(tmp_path / "u.assay").model.transform(moderate), model.transform(moderate))

    @pytest.mark.mission("FEA-24")
    def test_a_constant_first_or_last_is_an_intercept(self):
        X, y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
        with_intercept = TheirLinear().fit(X, y)
        last, first = augment(X), augment(X, position="first")
        assert np.array_equal(last[:, -1], np.ones(40))
        assert np.array_equal(first[:, 0], np.ones(40))
        assert np.array_equal(first[:, 1:], last[:, :-1])
        for rows, place in ((last, -1), (first, 0)):
            model = TheirLinear(fit_intercept=False).fit(rows, y)
            assert model.coef_[place] == pytest.approx(with_intercept.intercept_)
            assert np.delete(model.coef_, place) == pytest.approx(with_intercept.coef_)
        with pytest.raises(ValueError, match="position must be"):
            augment(X, position="middle")


class TestColumns:
    @pytest.mark.mission("FEA-25")
    def test_thresholds_are_those_of_trees(self, tmp_path):
        X, y = load_iris(return_X_y=True)
        model = BiPartition().fit(X, y)
        scores = column_scores(X, y)
        assert model.thresholds_ == pytest.approx([score.threshold for score in scores])
        assert model.gains_ == pytest.approx([score.gain for score in scores])
        assert set(np.unique(model.transform(X))) == {0.0, 1.0}
        for j, score in enumerate(scores):
            assert np.array_equal(model.transform(X)[:, j], X[:, j] > score.threshold)
            stump = DecisionTreeClassifier(max_depth=1, criterion="entropy").fit(X[:, [j]], y)
            leaf, cut = stump.apply(X[:, [j]]), model.transform(X)[:, j]
            assert np.array_equal(leaf == leaf[0], cut == cut[0])
        assay.save(model, tmp_path / "b.assay")
        assert np.array_equal(assay.load(tmp_path / "b.assay").model.transform(X), model.transform(X))

    @pytest.mark.mission("FEA-26")
    def test_levels_keep_their_kind_on_the_way(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text(
            "colour,size,weight,kind\nred,small,1.5,a\nblue,large,2.5,b\nred,middle,2.0,a\nblue,small,1.0,b\n"
        )
        table = data.read(path, ordered={"size": ["small", "middle", "large"]})
        colour, size = table.column("colour"), table.column("size")
        assert colour.type.kind == "nominal"
        assert size.type.kind == "ordered"
        assert colour.values().tolist() == ["red", "blue", "red", "blue"]
        assert size.type.levels == ("small", "middle", "large")
        assert size.data.tolist() == [0.0, 2.0, 1.0, 0.0]
        for column in (colour, size):
            assert np.array_equal(Column(column.type, column.data).values(), column.values())
            back = {level: place for place, level in enumerate(column.type.levels)}
            assert [back[level] for level in column.values()] == column.data.tolist()
        X, target = table.split_target("kind")
        y = target.values()
        tree = DecisionTreeClassifier(nominal=X.positions("nominal")).fit(X.matrix(), y)
        assert tree.score(X.matrix(), y) == 1.0
        distance = MinkovDM().fit(X, y)
        assert distance.unordered_.tolist() == [0]  # the ordered one keeps its order
        rows = X.matrix()
        assert distance(rows[0], rows[0]) == 0
        assert distance(rows[0], rows[1]) > distance(rows[0], rows[2])

    @pytest.mark.mission("FEA-27")
    def test_scales_and_weights(self):
        X = RNG.normal(size=(30, 3)) * [1.0, 10.0, 0.1]
        scaled = StandardScaler().fit_transform(X)
        weights = 1 / X.var(axis=0)
        apart = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2) ** 0.5
        shares = weights / weights.sum()  # the weights of `Weighted` sum to 1, which scales all distances alike
        for i in range(5):
            for j in range(5):
                assert Weighted(shares)(X[i], X[j]) * np.sqrt(weights.sum()) == pytest.approx(apart[i, j])

    @pytest.mark.mission("FEA-27")
    def test_columns_of_unit_variance_are_scikit_learns(self, tmp_path):
        X = RNG.normal(size=(9000, 4)) * [1.0, 10.0, 0.1, 1e-9] + [0.0, 1e6, -3.0, 1.0]
        own, theirs = ScaledColumns().fit(X), StandardScaler().fit(X)
        np.testing.assert_allclose(own.center_, theirs.mean_, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(1 / own.factor_, theirs.scale_, rtol=1e-7)  # the last column has 7 digits left
        np.testing.assert_allclose(own.transform(X)[:, :3], theirs.transform(X)[:, :3], atol=1e-9)
        np.testing.assert_allclose(own.inverse_transform(own.transform(X)), X, rtol=1e-12)
        assert np.array_equal(ScaledColumns(n_jobs=1).fit(X).factor_, ScaledColumns(n_jobs=3).fit(X).factor_)
        constant = ScaledColumns().fit(np.full((50, 2), 0.1))
        assert not constant.transform([[5.0, 7.0]]).any()
        assert constant.inverse_transform([[0.0, 0.0]]) == pytest.approx(np.full((1, 2), 0.1))
        pd.DataFrame(X, columns=list("abcd")).to_parquet(tmp_path / "rows.parquet")
        assert np.array_equal(ScaledColumns().fit(str(tmp_path / "rows.parquet")).factor_, own.factor_)

    @pytest.mark.mission("FEA-27")
    def test_weights_of_columns_are_those_of_distances(self):
        X, weights = RNG.normal(size=(40, 3)), np.array([0.5, 0.0, 3.5])
        Z = ScaledColumns(weights).fit_transform(X)
        for i, j in ((0, 1), (3, 7), (12, 30)):
            wanted = Weighted(weights / weights.sum())(X[i], X[j]) * np.sqrt(weights.sum())
            assert np.linalg.norm(Z[i] - Z[j]) == pytest.approx(wanted)
        y = (X[:, 2] > 0).astype(int)
        near = make_pipeline(ScaledColumns([0.0, 0.0, 1.0]), KNeighborsClassifier(1)).fit(X, y)
        moved = X + np.array([100.0, -100.0, 0.0])
        assert np.array_equal(near.predict(moved), y)
        for wrong in ([1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], "range"):
            with pytest.raises(ValueError, match="by must be"):
                ScaledColumns(wrong).fit(X)


@pytest.mark.mission("FEA-15")
class TestVehicles:
    def test_the_table_is_what_it_says(self):
        X, kind = vehicles(400, seed=3)
        assert X.shape == (400, 4)
        assert VEHICLE_COLUMNS == ("wheels", "power", "doors", "length")
        assert np.array_equal(vehicles(400, seed=3)[0], X)
        assert not np.array_equal(vehicles(400, seed=4)[0], X)
        assert set(X[kind == "car", 0]) == {4.0}
        assert set(X[kind == "truck", 0]) == {6.0, 8.0, 10.0}
        assert not X[kind == "trailer", 1].any()
        for name, (low, high) in {"car": (3, 5.2), "truck": (6, 12), "trailer": (2, 14)}.items():
            assert low <= X[kind == name, 3].min() <= X[kind == name, 3].max() <= high
        with pytest.raises(ValueError, match="n must be"):
            vehicles(0)

    def test_learners_separate_it(self):
        X, kind = vehicles(400, seed=5)
        tree = DecisionTreeClassifier().fit(X, kind)
        assert tree.score(X, kind) == 1.0
        fresh = vehicles(400, seed=6)
        assert tree.score(*fresh) > 0.99
        machine = make_pipeline(StandardScaler(), LinearSVC(C=100.0)).fit(X, kind)
        assert machine.score(*fresh) > 0.98
        assert clone(make_pipeline(StandardScaler(), LogisticRegression(C=100.0))).fit(X, kind).score(*fresh) > 0.98
