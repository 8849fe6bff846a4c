"""The code of trees: words are distinct and decodable, their sum is at most one, and short thresholds are shortest."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from assay.checker.rules.trees import threshold_word
from assay.theory.pac import exponent, shortest, threshold_bits
from tests.certificate import tree_forge


def numbers(longest=6, widest=6):
    """Yield zero and all +- m 2^(E - L + 1) with m odd of L <= longest bits and |E| <= widest."""
    yield 0.0
    for E in range(-widest, widest + 1):
        for L in range(1, longest + 1):
            for m in range(2 ** (L - 1), 2**L):
                if m % 2:
                    yield from (m * 2.0 ** (E - L + 1), -m * 2.0 ** (E - L + 1))


@pytest.mark.parametrize("last", [-3, 0, 5])
def test_words_are_distinct_and_no_word_begins_another(last):
    words = sorted(tree_forge.threshold_word(t, last)[0] for t in numbers())
    assert all(not b.startswith(a) for a, b in pairwise(words))


def decoded(word, last):
    """Read a threshold from the left, as a decoder would."""
    bits = iter(word)

    def gamma():
        zeros = 0
        while next(bits) == "0":
            zeros += 1
        return int("1" + "".join(next(bits) for _ in range(zeros)), 2)

    if next(bits) == "0":
        return 0.0
    sign, place, length = -1 if next(bits) == "1" else 1, gamma(), gamma()
    shift = place // 2 if place % 2 == 0 else -(place // 2)
    middle = "".join(next(bits) for _ in range(max(0, length - 2)))
    m = int("1" + middle + ("1" if length > 1 else ""), 2)
    assert next(bits, None) is None
    return sign * m * 2.0 ** (last + shift - length + 1)


def test_words_are_decoded_and_both_sides_count_their_bits():
    rng = np.random.default_rng(0)
    others = (rng.normal(size=200) * 10.0 ** rng.integers(-20, 20, 200)).tolist()
    for t in [*numbers(), *others]:
        for last in (-2, 0, 7):
            word, after = tree_forge.threshold_word(t, last)
            assert decoded(word, last) == t
            assert threshold_bits(t, last) == len(word)
            assert threshold_word(t, last) == (len(word), after)
            assert t == 0 or exponent(t) == after


def test_the_sum_over_thresholds_tends_to_one():
    sums = [sum(Fraction(1, 2 ** threshold_bits(t)) for t in numbers(size, size)) for size in (3, 6, 9)]
    assert sums == sorted(sums)
    assert 0.7 < sums[-1] < 1


def test_the_sum_over_trees_of_any_depth_is_at_most_one():
    """m(k + 1) = 1/2 + m(k)^2 / 2 is the mass of trees of depth at most k + 1; it rises to 1."""
    mass = Fraction(1, 2)
    for _ in range(12):
        mass = Fraction(1, 2) + mass * mass / 2
        assert mass < 1
    assert mass > Fraction(4, 5)


def test_short_thresholds_are_the_shortest_there_are():
    rng = np.random.default_rng(1)
    every = sorted(numbers(8, 8))
    for _ in range(300):
        low, high = np.sort(rng.normal(size=2) * rng.choice([0.1, 1, 30]))
        if high - low < 0.02 or (min(abs(low), abs(high)) < 2**-7 and low * high > 0):
            continue
        last = int(rng.integers(-2, 4))
        found = shortest(float(low), float(high), last)
        assert low <= found < high
        best = min(threshold_bits(t, last) for t in every if low <= t < high)
        assert threshold_bits(found, last) <= best


def test_neighbouring_floats_leave_no_choice():
    for low in (1.0, -3.7, 1e-300, 123456.789):
        assert shortest(low, math.nextafter(low, math.inf)) == low
