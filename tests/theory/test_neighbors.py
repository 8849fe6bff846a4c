"""The leave-one-out bound of nearest neighbours: every step of its proof, by enumeration in rational arithmetic.

A world is a list of (position, label, probability). Samples are sequences of its pairs; of rows at the same distance
the first of the sequence is nearer. Averaging over the places of named rows in the sequence is what random marks do.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product

import numpy as np
import pytest

from assay.theory.neighbors import expected_flips, loo_bound, loo_second_moment, majority


def world(seed, places=2, labels=2):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 6, places * labels)
    pairs = [(x, y) for x in range(places) for y in range(labels)]
    return [(x, y, Fraction(int(w), int(weight.sum()))) for (x, y), w in zip(pairs, weight)]


COINS = [(0, 0, Fraction(1, 4)), (0, 1, Fraction(1, 4)), (1, 0, Fraction(1, 4)), (1, 1, Fraction(1, 4))]
WORLDS = {"coins": COINS, **{f"seed {s}": world(s) for s in range(4)}, "three labels": world(9, 1, 3)}


@lru_cache(None)
def lost(k, pair, rows):
    """v: whether fewer than a majority of the k nearest rows have the label of the pair."""
    order = sorted(range(len(rows)), key=lambda i: (abs(rows[i][0] - pair[0]), i))
    return int(sum(rows[i][1] == pair[1] for i in order[:k]) < majority(k))


def samples(law, n):
    pairs = [(x, y) for x, y, _ in law]
    chance = {(x, y): w for x, y, w in law}
    for rows in product(pairs, repeat=n):
        yield rows, math.prod(chance[pair] for pair in rows)


def but(rows, *out):
    return tuple(row for i, row in enumerate(rows) if i not in out)


def nearest(pair, rows, many):
    return sorted(range(len(rows)), key=lambda i: (abs(rows[i][0] - pair[0]), i))[:many]


def flips(k, pair, rows):
    return [i for i in range(len(rows)) if lost(k, pair, rows) != lost(k, pair, but(rows, i))]


def second_moment(law, n, k):
    total = Fraction(0)
    for rows, chance in samples(law, n):
        loo = Fraction(sum(lost(k, rows[i], but(rows, i)) for i in range(n)), n)
        risk = sum(w * lost(k, (x, y), rows) for x, y, w in law)
        total += chance * (loo - risk) ** 2
    return total


@pytest.mark.parametrize("law", WORLDS.values(), ids=list(WORLDS))
@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 1), (4, 2), (5, 3)])
def test_theorem_on_every_sample(law, n, k):
    if len(law) ** n > 5000:
        n = 4 if k < 3 else 5
    assert second_moment(law, n, k) <= loo_second_moment(n, k)


@pytest.mark.parametrize("law", WORLDS.values(), ids=list(WORLDS))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_flips(law, k):
    """Step 1: at most m rows flip a pair, only if m of the k + 1 nearest are right; their mean is at most f."""
    m, f = majority(k), expected_flips(k)
    mean, left_out = Fraction(0), Fraction(0)
    for rows, chance in samples(law, k + 2):
        for x, y, w in law:
            found = flips(k, (x, y), rows)
            right = sum(rows[i][1] == y for i in nearest((x, y), rows, k + 1))
            assert len(found) <= m
            assert not found or right == m
            assert set(found) <= set(nearest((x, y), rows, k))
            mean += chance * w * len(found)
            left_out += chance * w * sum(len(flips(k, (x, y), but(rows, i))) for i in range(k + 2))
    assert mean <= f
    assert left_out <= (k + 2) * f
    if law is COINS and k % 2:
        assert mean == f  # the constant is attained


NAMES = ("p", "c", "loo L", "L L", "first", "both", "paths", "pairs", "sum")


def named_terms(k, rows, zero, other, one, two):
    """Return, for one sample and the places of its four named rows, what steps 2 and 3 take means of."""

    def at(query, *kept):
        return lost(k, rows[query], but(rows, *{zero, other, one, two} - set(kept)))

    a, a0, a_other, a2 = at(one), at(one, zero), at(one, other), at(one, two)
    a02, a_both = at(one, zero, two), at(one, zero, other)
    b, b0, b1, b_other = at(two), at(two, zero), at(two, one), at(two, other)
    b01, b_both = at(two, zero, one), at(two, zero, other)
    near = a_both - a0 - a_other + a
    expanded = (
        (a2 - a) * (b1 - b)
        - 2 * b0 * (a02 - a0 - a2 + a)
        - 2 * (a2 - a) * (b0 - b)
        + (b_both + b) * near
        + (a_other - a) * (b_both - b_other)
        + (a0 - a) * (b_both - b0)
    )
    paths, pairs = (a2 != a) and (b0 != b), (a_other != a) and (b_both != b_other)
    return a0, a2 * b1, a0 * b01, a_both * b_both, a2 != a, abs(near), paths, pairs, expanded


def terms(law, n, k):
    """Return the means over samples and over the places of the named rows."""
    places, mean = list(permutations(range(n + 2), 4)), [Fraction(0)] * len(NAMES)
    for rows, chance in samples(law, n + 2):
        found = [sum(column) for column in zip(*(named_terms(k, rows, *four) for four in places))]
        mean = [old + chance * Fraction(int(new), len(places)) for old, new in zip(mean, found)]
    return dict(zip(NAMES, mean))


SMALL = [("seed 3", 3, 1), ("three labels", 3, 1), pytest.param("three labels", 4, 2, marks=pytest.mark.long)]


@pytest.mark.parametrize(("name", "n", "k"), SMALL)
def test_square_differences_and_counts(name, n, k):
    law, m, f = WORLDS[name], majority(k), expected_flips(k)
    mean = terms(law, n, k)
    rest = mean["c"] - 2 * mean["loo L"] + mean["L L"]
    # Step 2: the square written out, exactly.
    assert second_moment(law, n, k) == (mean["p"] - mean["c"]) / n + rest
    assert (mean["p"] - mean["c"]) / n <= Fraction(1, 4 * (n - 1))
    # Step 3: the expansion, exactly, and what it is bounded by.
    assert rest == mean["sum"]
    assert rest <= mean["first"] + 2 * (mean["both"] + mean["paths"] + mean["pairs"])
    # Step 4: the counts.
    assert mean["first"] <= f / (n - 1)
    assert mean["both"] <= (2 * k + 2) * f / (n * (n - 1))
    assert mean["paths"] <= (2 * k + 2) * f / (n * (n - 1))
    assert mean["pairs"] <= m * f / (n * (n - 1))


def test_order_by_the_labels_is_not_covered():
    """With rows sorted by their label the first label wins all ties, and the theorem's means change."""
    law, n, k = COINS, 4, 1

    def mean(arrange):
        total = Fraction(0)
        for rows, chance in samples(law, n):
            rows = arrange(rows)
            total += chance * sum(w * lost(k, (x, y), rows) for x, y, w in law if y == 1)
        return total

    assert mean(lambda rows: tuple(sorted(rows, key=lambda row: row[1]))) > mean(lambda rows: rows)


def test_values():
    assert expected_flips(1) == Fraction(1, 2)
    assert expected_flips(5) == 3 * Fraction(20, 64)
    for k in (1, 9, 49):  # about sqrt(k / 2 pi), and far below the 6k of Rogers and Wagner
        assert float(expected_flips(k)) == pytest.approx(math.sqrt((k + 1) / (2 * math.pi)), rel=0.15)
        assert loo_second_moment(10_000, k) < Fraction(6 * k + 1, 10_000)
    assert loo_bound(0, 20, 5, 0.05) == 1.0
    assert loo_bound(100, 1000, 1, 0.2) == pytest.approx(0.1 + math.sqrt((0.25 + 0.5 * 1.018) / 999 / 0.2))
    with pytest.raises(ValueError, match="n >= k \\+ 2 = 7"):
        loo_second_moment(6, 5)
