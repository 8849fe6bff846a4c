"""Measures of diversity against scikit-learn, identities and hand examples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import ensemble as peer
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef

from assay.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, VotingClassifier
from assay.linear_model import LogisticRegression
from assay.metrics.diversity import Pair, ambiguity, counts, kappa_error, pairwise, votes
from assay.tree import DecisionTreeClassifier

COUNTS = st.tuples(*[st.integers(0, 60)] * 4).filter(lambda four: sum(four) > 0)


def columns(pair):
    """Return predictions of two classifiers with these counts."""
    parts = [(1, 1, pair.a), (1, -1, pair.b), (-1, 1, pair.c), (-1, -1, pair.d)]
    return [np.concatenate([np.full(n, part[k]) for *part, n in parts]) for k in (0, 1)]


@pytest.mark.mission("ENS-59", "ENS-60", "ENS-61", "ENS-62", "ENS-63")
class TestPairs:
    def test_layout_of_the_notes(self):
        first, second = [1, 1, 1, -1, -1, -1], [1, 1, -1, 1, -1, -1]
        assert counts(first, second) == Pair(a=2, b=1, c=1, d=2)
        assert counts(first, second).rows == 6

    @given(COUNTS)
    def test_against_scikit_learn(self, four):
        pair = Pair(*four)
        first, second = columns(pair)
        assert counts(first, second, 1) == pair
        assert pair.disagreement == np.mean(first != second)
        if not math.isnan(pair.correlation):
            assert pair.correlation == pytest.approx(matthews_corrcoef(first, second), abs=1e-12)
        if not math.isnan(pair.kappa):
            assert pair.kappa == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)

    @given(COUNTS)
    def test_q_is_never_smaller_in_magnitude_than_the_correlation_and_has_its_sign(self, four):
        pair = Pair(*four)
        if math.isnan(pair.q) or math.isnan(pair.correlation):
            return
        assert abs(pair.correlation) <= abs(pair.q) + 1e-12
        assert np.sign(pair.correlation) == np.sign(pair.q)

    @given(COUNTS)
    def test_what_has_no_value_has_a_reason(self, four):
        pair = Pair(*four)
        assert set(pair.why_nan) == {name for name in ("correlation", "q", "kappa") if math.isnan(getattr(pair, name))}

    def test_refuses_three_labels_and_other_lengths(self):
        with pytest.raises(ValueError, match="two labels"):
            counts([0, 1, 2], [0, 1, 2])
        with pytest.raises(ValueError, match="one prediction for each"):
            counts([0, 1], [0])


@pytest.mark.mission("ENS-64")
class TestPairwise:
    def test_identical_members(self):
        found = pairwise(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0]]))
        assert not found.disagreement.any()
        assert (found.correlation == 1).all()
        assert (found.kappa == 1).all()
        assert found.means == {"disagreement": 0.0, "correlation": 1.0, "q": 1.0, "kappa": 1.0}

    @pytest.mark.parametrize(
        "ensemble",
        [
            BaggingClassifier(n_estimators=4, random_state=0),
            RandomForestClassifier(4, random_state=0),
            AdaBoostClassifier(n_estimators=4),
            VotingClassifier(),
            BaggingClassifier(LogisticRegression(), n_estimators=3, random_state=0),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_any_ensemble_of_assay(self, ensemble):
        X, y = load_iris(return_X_y=True)
        names = np.array(["a", "b", "c"])[y]
        model = ensemble.fit(X, names)
        said = votes(model, X)
        members = said.shape[1]
        assert members >= 2
        assert set(np.unique(said)) <= {0, 1, 2}
        for labels in (None, names):
            found = pairwise(model, X, labels)
            for matrix in found[:4]:
                assert matrix.shape == (members, members)
                assert np.array_equal(matrix, matrix.T, equal_nan=True)
            assert 0 <= found.means["disagreement"] <= 1
        i, j = 0, members - 1
        assert pairwise(model, X).kappa[i, j] == pytest.approx(cohen_kappa_score(said[:, i], said[:, j]), abs=1e-12)
        assert pairwise(model, X).disagreement[i, j] == np.mean(said[:, i] != said[:, j])

    @pytest.mark.parametrize("names", [[1, 2, 3], [0, 2, 5], ["a", "b", "c"], [-1, 0, 1]])
    def test_a_list_of_classifiers_that_never_say_some_class(self, names):
        """Members that know two of three classes each; what they say is right or wrong by its name."""
        X, y = load_iris(return_X_y=True)
        y = np.array(names)[y]
        pairs = [(0, 1), (1, 2), (1, 2)]
        members = [DecisionTreeClassifier(max_depth=k + 1, random_state=0) for k in range(3)]
        for one, (a, b) in zip(members, pairs):
            part = np.isin(y, [names[a], names[b]])
            one.fit(X[part][::3], y[part][::3])
        late = X[y == names[2]]  # the first never says the third class, the others nothing else
        for rows in (X, late):
            said, truth = np.stack([one.predict(rows) for one in members], axis=1), y if rows is X else y[y == names[2]]
            found, right = pairwise(members, rows, truth), (said == truth[:, None]).astype(int)
            plain = pairwise(members, rows)
            assert np.isnan(plain.correlation).all()  # three classes, though two may be said
            for i, j in [(0, 1), (0, 2), (1, 2)]:
                expected = counts(right[:, i], right[:, j], 1)
                assert found.disagreement[i, j] == expected.disagreement
                assert found.kappa[i, j] == pytest.approx(expected.kappa, abs=1e-12, nan_ok=True)
                assert plain.disagreement[i, j] == np.mean(said[:, i] != said[:, j])
            alone = kappa_error(members, rows, truth)
            assert alone.error == pytest.approx([1 - right[:, [i, j]].mean() for i, j in alone.pairs])

    @pytest.mark.parametrize("names", [[1, 2], [0, 1], [3, 5], ["no", "yes"], [1, 2, 3]])
    @pytest.mark.parametrize(
        "ensemble", [peer.RandomForestClassifier(4, max_depth=2), peer.BaggingClassifier(n_estimators=4)], ids=str
    )
    def test_ensembles_of_scikit_learn_whatever_the_labels(self, ensemble, names):
        X, y = load_iris(return_X_y=True)
        X, y = X[y < len(names), 1:2], np.array(names)[y[y < len(names)]]
        model = clone(ensemble).set_params(random_state=0).fit(X, y)
        said = np.stack([one.predict(X) for one in model.estimators_], axis=1).astype(int)  # positions, as they have it
        assert np.array_equal(votes(model, X), said)
        right = np.array(names)[said] == y[:, None]
        found = pairwise(model, X, y)
        assert found.disagreement[0, 3] == np.mean(right[:, 0] != right[:, 3])
        assert kappa_error(model, X, y).error[0] == pytest.approx(1 - right[:, :2].mean())

    def test_labels_that_no_member_knows_are_refused(self):
        X, y = load_iris(return_X_y=True)
        model = RandomForestClassifier(3, random_state=0).fit(X, y)
        for function in (pairwise, kappa_error):
            for wrong in (y + 1, y[:-1]):
                with pytest.raises(ValueError, match="a label of the classes"):
                    function(model, X, wrong)

    def test_kappa_error_diagram(self):
        X, y = load_iris(return_X_y=True)
        model = RandomForestClassifier(5, max_depth=1, random_state=0).fit(X, y)
        found, said = kappa_error(model, X, y), votes(model, X)
        wrong = (said != y[:, None]).mean(axis=0)
        assert len(found.kappa) == 10
        for (i, j), kappa, error in zip(found.pairs, found.kappa, found.error):
            assert kappa == pytest.approx(cohen_kappa_score(said[:, i], said[:, j]), abs=1e-12)
            assert error == pytest.approx((wrong[i] + wrong[j]) / 2)


@pytest.mark.mission("ENS-55", "ENS-56", "ENS-57", "ENS-58")
class TestAmbiguity:
    @given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32 - 1))
    def test_error_is_mean_error_less_ambiguity(self, rows, members, seed):
        rng = np.random.default_rng(seed)
        outputs, y = rng.normal(size=(rows, members)), rng.normal(size=rows)
        w = rng.dirichlet(np.ones(members))
        found = ambiguity(outputs, w, y)
        assert np.all(found.of_members >= 0)
        assert found.ensemble_error == pytest.approx(found.member_error - found.ambiguity, abs=1e-12)
        means = found.means
        assert means["ensemble_error"] == pytest.approx(means["member_error"] - means["ambiguity"], abs=1e-12)
        assert means["ensemble_error"] <= means["member_error"] + 1e-12

    def test_equal_weights_give_the_variance_of_the_members(self):
        outputs = np.random.default_rng(0).normal(size=(7, 5))
        assert ambiguity(outputs, None, np.zeros(7)).ambiguity == pytest.approx(outputs.var(axis=1), abs=1e-14)

    @pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1.0]])
    def test_weights_off_the_simplex_are_refused(self, weights):
        with pytest.raises(ValueError, match="weights must be 2 numbers"):
            ambiguity([[1.0, 2.0]], weights, [0.0])
