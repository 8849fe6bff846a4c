"""VotedPerceptron: the pass by rational arithmetic, the vote by counting, orders, refusals."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.guarantees.evidence import Decided
from assay.linear_model import Perceptron, VotedPerceptron
from assay.plot import frames, mistakes
from tests.evidence import evidence


def draw(seed, n=60, d=3, classes=2, whole=False):
    """Rows with overlapping classes; small whole numbers make many exact ties."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float) if whole else rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def exact_scores(W, row):
    return [sum((Fraction(a) * Fraction(b) for a, b in zip(w, row)), Fraction(0)) for w in W]


def winner(scores):
    return scores.index(max(scores)) if scores.count(max(scores)) == 1 else -1


def replay(X, y, classes, constant, order):
    """The pass in plain Python: (rows of the updates, classes taken for, weights of every hypothesis, places)."""
    W, rows, lost, places = np.zeros((classes, X.shape[1] + 1)), [], [], []
    kept = [W.copy()]
    for place, i in enumerate(order):
        row = [*X[i].tolist(), constant]
        scores = exact_scores(W.tolist(), row)
        if winner(scores) == y[i]:
            continue
        others = [k for k in range(classes) if k != y[i]]
        taken = max(others, key=lambda k: scores[k])
        W[y[i]] += row
        W[taken] -= row
        rows, lost, places = [*rows, i], [*lost, taken], [*places, place]
        kept.append(W.copy())
    return rows, lost, kept, places


def counted(kept, votes, X, constant, classes):
    totals = np.zeros((len(X), classes), dtype=int)
    for W, vote in zip(kept, votes):
        for i, x in enumerate(X):
            k = winner(exact_scores(W.tolist(), [*x.tolist(), constant]))
            if k >= 0:
                totals[i, k] += vote
    return totals


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_pass_and_the_vote_are_those_of_rational_arithmetic(classes, whole, intercept):
    X, y = draw(classes, classes=classes, whole=whole)
    model = VotedPerceptron(shuffle=False, fit_intercept=intercept, burn_in=0.25).fit(X, y)
    rows, lost, kept, places = replay(X, y, classes, float(intercept), range(60))
    assert model.updates_.tolist() == rows
    assert model.lost_.tolist() == lost
    assert model.progressive_error_ == pytest.approx(sum(p >= 15 for p in places) / 45)
    borders = np.maximum([0, *(p + 1 for p in places), 60], 15)
    assert model.votes_.tolist() == np.diff(borders).tolist()
    new = draw(9, classes=classes, whole=whole)[0]
    totals = counted(kept, model.votes_, new, float(intercept), classes)
    shares = totals / 45
    expected = shares[:, 1] - shares[:, 0] if classes == 2 else shares
    if not whole:  # scores of zero, exactly, are decided in binary64 by `predict`
        np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-12)
        assert model.predict(new).tolist() == totals.argmax(axis=1).tolist()
    own = totals[np.arange(60), draw(9, classes=classes, whole=whole)[1]]
    others = np.sort(totals, axis=1)
    wrong = int(np.sum((own < others[:, -1]) | (others[:, -1] == others[:, -2])))
    rows = model._known_rows(new, draw(9, classes=classes, whole=whole)[1])
    low, high = evidence(model, rows, Decided).count_errors(rows)
    assert low <= wrong <= high
    tied = int(np.sum(others[:, -1] == others[:, -2]))  # the rule is the first class, which is not claimed
    assert high - low <= tied or whole


@given(seed=st.integers(0, 50))
def test_one_epoch_of_the_perceptron_makes_the_same_updates(seed):
    X, y = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = Perceptron(max_iter=1, shuffle=False).fit(X, y)
    voted = VotedPerceptron(shuffle=False).fit(X, y)
    assert voted.updates_.tolist() == plain.updates_[0].tolist()
    signs = np.where(voted.gained_ == 1, 1.0, -1.0)
    np.testing.assert_allclose(signs @ voted.vectors_, plain.coef_[0], atol=1e-12)


def test_rows_by_hand():
    """x = 1, -1, 2, ...: the first row is a mistake of zero, the second of w = b = 1 (score 0), then w = 2, b = 0."""
    model = VotedPerceptron(shuffle=False).fit([[1.0], [-1.0], [2.0], [-2.0]], ["a", "b", "a", "b"])
    assert model.votes_.tolist() == [1, 1, 2]
    assert model.gained_.tolist() == [0, 1]
    assert model.progressive_error_ == 0.5
    assert model.decision_function([[-3.0]]).tolist() == [0.75]  # h_1 has no vote; h_2 and h_3 say b
    assert model.decision_function([[-1.0]]).tolist() == [0.5]  # h_2 scores exactly zero


def test_a_seed_gives_an_order_and_another_seed_another():
    X, y = draw(3, n=200)
    one, same, other = (VotedPerceptron(random_state=s).fit(X, y) for s in (0, 0, 1))
    assert np.array_equal(one.updates_, same.updates_)
    assert one.seed_ == same.seed_
    assert not np.array_equal(one.updates_[:20], other.updates_[:20])
    assert one.updates_.tolist() != sorted(one.updates_.tolist())
    rows, *_ = replay(X, y, 2, 1.0, np.argsort(splitmix(one.seed_, 200), kind="stable"))
    assert one.updates_.tolist() == rows


def splitmix(seed, n):
    """n draws of SplitMix64 from the state mix(seed), in plain integers."""
    word = 2**64

    def mix(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
        return z ^ (z >> 31)

    return np.array([mix((mix(seed) + i * 0x9E3779B97F4A7C15) % word) for i in range(1, n + 1)], dtype=np.uint64)


def test_files_are_read_in_order(tmp_path):
    import pandas as pd

    X, y = draw(4, n=500)
    pd.DataFrame(X, columns=list("abc")).assign(target=y).to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    inside, outside = VotedPerceptron(shuffle=False).fit(X, y), VotedPerceptron(shuffle=False)
    outside.fit(str(tmp_path / "rows.parquet"), "target")
    assert np.array_equal(inside.updates_, outside.updates_)
    assert np.array_equal(inside.votes_, outside.votes_)
    with pytest.raises(ValueError, match="pass shuffle=False"):
        VotedPerceptron().fit(str(tmp_path / "rows.parquet"), "target")


def test_saved_and_loaded(tmp_path):
    X, y = draw(5, classes=3)
    model = VotedPerceptron(random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assay.save(model, tmp_path / "m.assay", certificate=certificate)
    back = assay.load(tmp_path / "m.assay")
    assert assay.verify(back.certificate, back.model, X, y).holds
    assert np.array_equal(back.model.predict(X), model.predict(X))


@pytest.mark.parametrize("burn_in", [-0.1, 1.0, 1.5, np.nan, "half"])
def test_a_burn_in_that_leaves_no_vote_is_refused(burn_in):
    with pytest.raises(ValueError, match="VotedPerceptron: burn_in must be a finite number >= 0 and < 1"):
        VotedPerceptron(burn_in=burn_in).fit(*draw(0))


@pytest.mark.parametrize("power", [-600, 600])
def test_products_that_overflow_or_vanish_are_decided_exactly(power):
    X, y = draw(6)
    plain, scaled = (VotedPerceptron(shuffle=False, fit_intercept=False).fit(Z, y) for Z in (X, X * 2.0**power))
    assert plain.updates_.tolist() == scaled.updates_.tolist()
    assert np.array_equal(plain.votes_, scaled.votes_)


def test_the_picture_shows_the_mistakes():
    X, y = draw(7, n=100)
    model = VotedPerceptron(random_state=0, burn_in=0.3).fit(X, y)
    frame = frames.mistakes(model)
    assert frame["share"][-1] == model.n_updates_ / 100
    assert frame["share"][0] == 1.0  # the first row is a mistake of the hypothesis zero
    assert frame["voting"] == 30
    assert len(mistakes(model).axes[0].lines) == 1
    assert model.plot().axes[0].patches
    with pytest.raises(ValueError, match="made no pass"):
        frames.mistakes(Perceptron(max_iter=1000).fit([[1.0], [-1.0]], [0, 1]))
