"""Many classes from two: counts, enumeration of wrong bits, scikit-learn, certificates and forgeries."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import multiclass as peer
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.naive_bayes import GaussianNB

import assay
from assay.checker.families.codes import corrected_bits
from assay.datasets import vehicles
from assay.discriminant_analysis import QuadraticDiscriminantAnalysis
from assay.ensemble._combined import MemberError
from assay.linear_model import LogisticRegression, Perceptron
from assay.multiclass import (
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    bch_code,
    code_distance,
    exhaustive_code,
    random_code,
    ternary_code,
)
from assay.multiclass._reductions import decode
from assay.naive_bayes import MultinomialNB
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

X, Y = load_digits(return_X_y=True)
X, Y = X[:500, ::3], Y[:500]
LEARNT, HELD = (X[:300], Y[:300]), (X[300:], Y[300:])
FAST = LogisticRegression(C=0.01)


@pytest.mark.mission("MUL-01")
@pytest.mark.parametrize("kind", [OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier])
def test_exactly_one_class_for_every_row(kind):
    """The vehicles of the notes, standardised by hand; then anywhere in the plane of columns, far from any vehicle."""
    A, names = vehicles(300, seed=0)
    fresh, truth = vehicles(300, seed=1)
    mean, spread = A.mean(axis=0), A.std(axis=0)
    model = kind(LogisticRegression()).fit((A - mean) / spread, names)
    said = model.predict((fresh - mean) / spread)
    assert np.mean(said == truth) > 0.97
    anywhere = model.predict(np.random.default_rng(0).normal(scale=20, size=(500, 4)))
    assert anywhere.shape == (500,)
    assert set(anywhere) == {"car", "truck", "trailer"}


@pytest.mark.mission("MUL-01")
def test_conflicting_answers_are_settled_by_the_score():
    """Car or not, truck or not, trailer or not: rows that none or several claim go to the largest score."""
    A, names = vehicles(300, seed=0)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    model = OneVsRestClassifier(LogisticRegression()).fit(A, names)
    anywhere = np.random.default_rng(0).normal(scale=3, size=(500, 4))
    scores = np.stack(
        [
            TheirLogistic(tol=1e-10, max_iter=9999).fit(A, names == kind).decision_function(anywhere)
            for kind in model.classes_
        ],
        1,
    )
    claimed = (scores > 0).sum(axis=1)
    assert min(np.sum(claimed == 0), np.sum(claimed > 1)) > 10
    clear = np.diff(np.sort(scores, axis=1)[:, -2:]).ravel() > 1e-2
    assert clear.mean() > 0.95
    assert np.array_equal(model.predict(anywhere)[clear], model.classes_[scores.argmax(axis=1)][clear])


class TestAgainstScikitLearn:
    @pytest.mark.mission("MUL-02")
    @pytest.mark.parametrize("base", [FAST, GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)])
    def test_one_against_one(self, base):
        model, theirs = OneVsOneClassifier(base).fit(*LEARNT), peer.OneVsOneClassifier(base).fit(*LEARNT)
        assert len(model.estimators_) == 45
        if hasattr(base, "decision_function"):
            assert model.decision_function(HELD[0]) == pytest.approx(theirs.decision_function(HELD[0]), abs=1e-9)
            assert np.array_equal(model.predict(HELD[0]), theirs.predict(HELD[0]))
        else:  # sums of probabilities, not of differences, break its ties
            won = np.stack([(model.member_bits(HELD[0]) * row > 0).sum(axis=1) for row in model.code_], axis=1)
            ranked = np.sort(won, axis=1)
            clear = ranked[:, -1] > ranked[:, -2]
            assert clear.mean() > 0.7
            assert np.array_equal(model.predict(HELD[0])[clear], theirs.predict(HELD[0])[clear])

    @pytest.mark.mission("MUL-03")
    @pytest.mark.parametrize("base", [FAST, GaussianNB()])
    def test_one_against_rest(self, base):
        model, theirs = OneVsRestClassifier(base).fit(*LEARNT), peer.OneVsRestClassifier(base).fit(*LEARNT)
        assert len(model.estimators_) == 10
        assert np.array_equal(model.predict(HELD[0]), theirs.predict(HELD[0]))
        assert model.predict_proba(HELD[0]) == pytest.approx(theirs.predict_proba(HELD[0]), abs=1e-9)
        positive = np.sum([one.predict(LEARNT[0]) for one in model.estimators_], axis=0)
        assert model.conflicts_ == {"none": int(np.sum(positive == 0)), "several": int(np.sum(positive > 1))}

    @pytest.mark.mission("MUL-04")
    def test_output_code_with_the_same_matrix(self):
        for seed in range(20):
            theirs = peer.OutputCodeClassifier(FAST, code_size=2, random_state=seed).fit(*LEARNT)
            code = theirs.code_book_.astype(int)
            if np.all((code == 1).any(axis=0) & (code == -1).any(axis=0)):
                break
        model = OutputCodeClassifier(FAST, code=code, decoding="euclidean").fit(*LEARNT)
        assert np.array_equal(model.predict(HELD[0]), theirs.predict(HELD[0]))

    def test_two_classes(self):
        two = Y < 2
        for kind in (OneVsOneClassifier, OneVsRestClassifier):
            model = kind(FAST).fit(X[two], Y[two])
            assert len(model.estimators_) == 1
            assert np.array_equal(model.predict(X[two]), FAST.fit(X[two], Y[two]).predict(X[two]))


class TestMoreThanOneClassEach:
    def test_several_labels(self):
        A, labels = make_multilabel_classification(120, 10, n_classes=4, random_state=0)
        ours, theirs = OneVsRestClassifier(FAST).fit(A, labels), peer.OneVsRestClassifier(FAST).fit(A, labels)
        assert ours.multilabel_
        assert np.array_equal(ours.predict(A), theirs.predict(A))
        assert ours.decision_function(A) == pytest.approx(theirs.decision_function(A))
        assert ours.predict_proba(A) == pytest.approx(theirs.predict_proba(A))
        sparse = OneVsRestClassifier(FAST).fit(A, csr_array(labels)).predict(A)
        assert np.array_equal(sparse.toarray(), theirs.predict(A))
        with pytest.raises(ValueError, match="no certificate"):
            ours.certify(A, labels)

    def test_labels_that_all_rows_have_or_none(self):
        labels = np.column_stack([Y[:50] > 4, np.ones(50, int), np.zeros(50, int)]).astype(int)
        with pytest.warns(UserWarning, match="present in all training examples"):
            model = OneVsRestClassifier(FAST).fit(X[:50], labels)
        assert np.array_equal(model.predict(X[:50])[:, 1:], labels[:, 1:])

    @pytest.mark.parametrize("kind", [OneVsOneClassifier, OneVsRestClassifier])
    def test_some_rows_at_a_time(self, kind):
        model = kind(MultinomialNB()).partial_fit(X[:150], Y[:150], np.unique(Y)).partial_fit(X[150:], Y[150:])
        assert np.array_equal(model.predict(X), kind(MultinomialNB()).fit(X, Y).predict(X))
        assert not hasattr(kind(SVC()), "partial_fit")

    @pytest.mark.parametrize("kind", [OneVsOneClassifier, OneVsRestClassifier])
    def test_kernel_values_and_sparse_rows(self, kind):
        few = Y < 4
        A, y = X[few], Y[few]
        by_values = kind(SVC(kernel="precomputed")).fit(A @ A.T, y)
        by_rows = kind(SVC(kernel="linear")).fit(A, y)
        assert np.array_equal(by_values.predict(A @ A.T), by_rows.predict(A))
        sparse = kind(FAST).fit(csr_array(A), y)
        assert np.array_equal(sparse.predict(csr_array(A)), kind(FAST).fit(A, y).predict(A))

    def test_regressors_vote_too(self):
        model = OneVsRestClassifier(DecisionTreeRegressor(random_state=0)).fit(X, Y)
        assert model.score(X, Y) > 0.99


class TestCodes:
    @pytest.mark.mission("MUL-04")
    @pytest.mark.parametrize("K", [3, 5, 8])
    def test_words_differ_and_columns_cut_the_classes(self, K):
        random = np.random.RandomState(0)
        for code in (
            exhaustive_code(K),
            random_code(K, 3 * K, random),
            ternary_code(K, 5 * K, random),
            bch_code(K, 31),
        ):
            assert len(np.unique(code, axis=0)) == K
            assert np.all((code == 1).any(axis=0) & (code == -1).any(axis=0))
            columns = {min(tuple(c), tuple(-c)) for c in code.T}
            assert len(columns) == code.shape[1]

    def test_exhaustive_code_has_all_cuts(self):
        for K in range(3, 8):
            code = exhaustive_code(K)
            assert code.shape[1] == 2 ** (K - 1) - 1
            assert code_distance(code) == 2 ** (K - 2)

    def test_bch_words_are_code_words(self):
        """BCH(15, 7) has distance 5, (15, 5) 7, (31, 6) 15: the published distances of the whole codes."""
        from assay.multiclass._codes import _generator

        for m, k, distance in [(4, 7, 5), (4, 5, 7), (5, 6, 15), (6, 7, 31)]:
            generator = _generator(m, k)
            n = 2**m - 1
            assert n - len(generator) + 1 == k
            least = n
            for message in range(1, 2**k):
                bits = np.array([(message >> i) & 1 for i in range(k)])
                least = min(least, int((np.convolve(bits, generator) % 2).sum()))
            assert least == distance

    @pytest.mark.mission("MUL-05", "ENS-69")
    def test_as_many_wrong_bits_as_promised_are_corrected(self):
        for code in (
            exhaustive_code(4),
            exhaustive_code(5),
            bch_code(6, 15),
            random_code(6, 20, np.random.RandomState(1)),
        ):
            c, M = corrected_bits(code), code.astype(float)
            assert c == (code_distance(code) - 1) // 2
            for k, word in enumerate(code):
                for flips in combinations(range(code.shape[1]), min(c, 3)):
                    said = word.copy()
                    said[list(flips)] *= -1
                    assert decode(said[None].astype(float), M, 0).argmax() == k
        assert corrected_bits(exhaustive_code(4)) == 1

    def test_ternary_words_correct_as_many_bits_as_told_whatever_unused_members_say(self):
        code = ternary_code(4, 24, np.random.RandomState(5))
        c, M, rng = corrected_bits(code), code.astype(float), np.random.default_rng(0)
        assert c >= 1
        for k, word in enumerate(code):
            used = np.flatnonzero(word)
            for _ in range(300):
                said = np.where(word == 0, rng.choice([-1, 1], len(word)), word)
                said[rng.permutation(used)[:c]] *= -1
                assert decode(said[None].astype(float), M, 0).argmax() == k

    @pytest.mark.mission("MUL-06")
    def test_distances_agree_on_bits(self):
        code, rng = exhaustive_code(5), np.random.default_rng(2)
        said = rng.choice([-1.0, 1.0], size=(200, code.shape[1]))
        scores = [decode(said, code.astype(float), kind) for kind in (0, 1, 2)]
        hamming = np.sum(said[:, None, :] != code[None], axis=2)
        square = ((said[:, None, :] - code[None]) ** 2).sum(axis=2)
        for score in scores:
            assert np.array_equal(score == score.max(axis=1, keepdims=True), hamming == hamming.min(axis=1)[:, None])
        assert np.array_equal(square, 4 * hamming)

    @pytest.mark.mission("MUL-06")
    def test_a_class_is_judged_by_the_bits_that_it_uses(self):
        """By hand: scores (0.5, -3, 0.25), words (+ 0 -), (0 - +), (- + +); -3 counts as -1."""
        code = np.array([[1.0, 0.0, -1.0], [0.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
        (score,) = decode(np.array([[0.5, -3.0, 0.25]]), code, 1)
        assert score == pytest.approx([-(0.25 + 1.5625) / 2, -0.5625 / 2, -(2.25 + 4 + 0.5625) / 3])
        rng = np.random.default_rng(3)
        code = ternary_code(5, 20, np.random.RandomState(0)).astype(float)
        said = rng.choice([-1.0, 1.0], size=(200, code.shape[1]))
        used = np.abs(code).sum(axis=1)
        wrong = np.sum((said[:, None, :] * code[None]) < 0, axis=2)
        assert decode(said, code, 1) == pytest.approx(-4 * wrong / used, abs=1e-12)  # the share of wrong bits

    @pytest.mark.mission("MUL-06")
    @pytest.mark.parametrize("code", ["ternary", "pairs"])
    def test_euclidean_decoding_of_ternary_codes_is_as_good_as_that_by_losses(self, code):
        for (A, y), base in ((load_iris(return_X_y=True), LogisticRegression()), ((X, Y), FAST)):
            right = {
                decoding: np.mean(
                    [
                        OutputCodeClassifier(base, code=code, code_size=4, decoding=decoding, random_state=seed)
                        .fit(A[::2], y[::2])
                        .score(A[1::2], y[1::2])
                        for seed in range(3)
                    ]
                )
                for decoding in ("euclidean", "loss")
            }
            assert right["euclidean"] > right["loss"] - 0.03
            assert right["euclidean"] > 0.75

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ([[1, -1], [1, -1], [-1, 1]], "same code word"),
            ([[1, 1], [-1, 1], [1, 1]], "same code word|both sides"),
            ([[1, 2], [-1, 1], [1, -1]], "of -1, 0, \\+1"),
            ([[1, -1], [-1, 1]], "must be \\(3, bits\\)"),
            ("golay", "code must be one of"),
        ],
    )
    def test_refusals(self, code, message):
        A, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match=message):
            OutputCodeClassifier(FAST, code=code).fit(A, y)

    def test_a_member_that_fails_is_named(self):
        A, y = load_iris(return_X_y=True)
        with pytest.raises(MemberError, match="the member '1 against 0'"):
            OneVsOneClassifier(LogisticRegression(C=-1)).fit(A, y)


class TestCertificate:
    MODELS = [
        OneVsOneClassifier(FAST),
        OneVsOneClassifier(DecisionTreeClassifier(max_depth=4, random_state=0)),
        OneVsRestClassifier(FAST),
        OneVsRestClassifier(Perceptron(max_iter=20, random_state=0)),
        OutputCodeClassifier(FAST, code="bch", code_size=1.5),
        OutputCodeClassifier(FAST, code="bch", code_size=1.5, decoding="euclidean"),
        OutputCodeClassifier(FAST, code="ternary", decoding="loss", random_state=0),
        OutputCodeClassifier(QuadraticDiscriminantAnalysis(reg_param=0.5), random_state=0, code_size=1.5),
    ]

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("model", MODELS, ids=str)
    def test_holds(self, model):
        model.fit(*LEARNT)
        found = model.certify(*LEARNT, holdout=HELD)
        report = assay.verify(found, model, *LEARNT, holdout=HELD)
        assert report.holds, report.reason
        errors = next(one for one in found.claims if one.params.get("set") == "holdout" and one.name == "train.errors")
        ties = 4 if isinstance(model, OutputCodeClassifier) and model.decoding == "hamming" else 0  # ties are errors
        assert errors.params["low"] - ties <= np.sum(model.predict(HELD[0]) != HELD[1]) <= errors.value

    @pytest.mark.mission("MUL-05")
    def test_wrong_bits_bound_the_error_and_forgeries_are_rejected(self):
        A, y = load_iris(return_X_y=True)
        rng = np.random.default_rng(0)
        order = rng.permutation(150)
        A, y = A[order], y[order]
        model = OutputCodeClassifier(DecisionTreeClassifier(max_depth=3), code="exhaustive").fit(A[:75], y[:75])
        held = A[75:], y[75:]
        found = model.certify(A[:75], y[:75], holdout=held)
        at = next(i for i, one in enumerate(found.claims) if one.name == "output-code.bits")
        bits = found.claims[at]
        wrong = np.sum(model.member_bits(held[0]) != model.code_[held[1]])
        assert bits.params["wrong"] >= wrong
        assert bits.value >= wrong / 75 / (model.corrected_ + 1)
        for one in (
            replace(bits, value=bits.value * 0.9),
            replace(bits, params={**bits.params, "wrong": 0}),
            replace(bits, params={**bits.params, "corrected": 1}),
            replace(bits, params={**bits.params, "bits": 4}),
        ):
            claims = (*found.claims[:at], one, *found.claims[at + 1 :])
            assert not assay.verify(replace(found, claims=claims), model, A[:75], y[:75], holdout=held).holds
        assert assay.verify(found, model, A[:75], y[:75], holdout=held).holds

    def test_the_bound_by_bits_keeps_its_promise(self):
        """Members err independently with known rates: in how many draws is the bound below the true error rate?"""
        from scipy.stats import binom

        from assay.theory.concentration import kl_upper

        rng, code, rate, broken = np.random.default_rng(3), exhaustive_code(4), 0.1, 0
        L, c, m = code.shape[1], corrected_bits(code), 60
        many = rng.random((200_000, L)) < rate
        said = np.where(many, -1, 1) * code[0]
        ranked = np.sort(decode(said.astype(float), code.astype(float), 0), axis=1)
        scores = decode(said.astype(float), code.astype(float), 0)
        truth = np.mean((scores.argmax(axis=1) != 0) | (ranked[:, -1] == ranked[:, -2]))
        for _ in range(400):
            wrong = int(np.sum(rng.random((m, L)) < rate))
            broken += L / (c + 1) * kl_upper(wrong / (m * L), np.log(1 / 0.1) / m) < truth
        assert broken <= binom.ppf(1 - 1e-6, 400, 0.1)

    @pytest.mark.parametrize("kind", [OneVsOneClassifier, OneVsRestClassifier])
    def test_prediction_sets_can_be_asked_for(self, kind):
        model = kind(FAST).fit(*LEARNT)
        found = model.certify(*LEARNT, holdout=HELD, coverage=0.8)
        assert found.find("conformal.coverage").value > 0
        assert assay.verify(found, model, *LEARNT, holdout=HELD).holds

    def test_a_file_says_the_same(self, tmp_path):
        model = OutputCodeClassifier(FAST, code="bch", decoding="loss").fit(*LEARNT)
        assay.save(model, tmp_path / "code.assay")
        again = assay.load(tmp_path / "code.assay").model
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.distance_ == model.distance_
