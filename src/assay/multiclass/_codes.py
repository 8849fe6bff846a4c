"""Codes for classes: a word of -1, +1 and, in ternary codes, 0 for each class; a learner for each bit.

Two words at Hamming distance d are told apart as long as fewer than d/2 bits are wrong, so that a code with least
distance d corrects floor((d - 1) / 2) of them. A bit that says the same as another, or the opposite, is learnt twice
and errs twice: such columns are left out. Dietterich and Bakiri 1995; ternary codes and decoding by losses: Allwein,
Schapire and Singer 2000.
"""

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np

MOST_EXHAUSTIVE = 11
_DRAWS = 200


def code_distance(code: Any) -> int:
    """Return the least number of bits in which two words differ; bits where either is 0 do not count.

    Parameters
    ----------
    code : array-like
        A row of -1, 0 and +1 for each class.

    Returns
    -------
    int
        Number of bits.

    Examples
    --------
    >>> code_distance([[1, 1, 1], [-1, -1, 1], [-1, 1, -1]])
    2
    """
    code = np.asarray(code)
    return min(int(np.sum(a * b < 0)) for a, b in combinations(code, 2))


def corrected_bits(code: np.ndarray) -> int:
    """Return how many wrong bits Hamming decoding surely corrects; -1 if it may err with none.

    The members' bits agree with a word k on all that it uses: its score is the number of these. That of l is at most
    their product plus the bits that l alone uses. Each wrong bit takes at most 4 off the lead of k over l.

    >>> corrected_bits(exhaustive_code(4))
    1
    """
    leads = [np.sum(k * k - k * l) - np.sum((k == 0) & (l != 0)) for k, l in permutations(np.asarray(code), 2)]
    return max(-1, (int(min(leads)) - 1) // 4)


def exhaustive_code(classes: int) -> np.ndarray:
    """Return all 2^(K-1) - 1 ways to cut the classes in two; the distance is 2^(K-2).

    Parameters
    ----------
    classes : int
        Number of classes.

    Returns
    -------
    ndarray
        The code: a row for each class.

    Examples
    --------
    >>> exhaustive_code(3).tolist()
    [[1, 1, 1], [-1, -1, 1], [-1, 1, -1]]
    """
    if not 2 <= classes <= MOST_EXHAUSTIVE:
        most = MOST_EXHAUSTIVE
        raise ValueError(f"an exhaustive code is for 2 to {most} classes (it doubles with each); got {classes}.")
    bits = np.arange(2 ** (classes - 1) - 1)
    rest = [np.where((bits >> (classes - 2 - k)) & 1, 1, -1) for k in range(classes - 1)]
    return np.stack([np.ones(len(bits), dtype=np.int64), *rest]).astype(np.int64)


def pairs_code(classes: int) -> np.ndarray:
    """Return a ternary bit for every pair of classes, (0, 1), (0, 2), ...: one against one as a code.

    Parameters
    ----------
    classes : int
        Number of classes.

    Returns
    -------
    ndarray
        The code: a row for each class.

    Examples
    --------
    >>> pairs_code(3).tolist()
    [[-1, -1, 0], [1, 0, -1], [0, 1, 1]]
    """
    first, second = np.triu_indices(classes, 1)
    code = np.zeros((classes, len(first)), dtype=np.int64)
    code[first, np.arange(len(first))], code[second, np.arange(len(first))] = -1, 1
    return code


def random_code(classes: int, bits: int, random: np.random.RandomState) -> np.ndarray:
    """Return the best of many codes drawn with fair bits, by the least distance of two words.

    Parameters
    ----------
    classes : int
        Number of classes.
    bits : int
        Number of columns.
    random : RandomState
        Random generator.

    Returns
    -------
    ndarray
        The code: a row for each class.
    """
    return _best(classes, bits, random, lambda shape: random.choice([-1, 1], size=shape))


def ternary_code(classes: int, bits: int, random: np.random.RandomState) -> np.ndarray:
    """Return the best of many codes whose entries are 0 with probability 1/2, by the least distance of two words.

    Parameters
    ----------
    classes : int
        Number of classes.
    bits : int
        Number of columns.
    random : RandomState
        Random generator.

    Returns
    -------
    ndarray
        The code: a row for each class.
    """
    return _best(classes, bits, random, lambda shape: random.choice([-1, 0, 0, 1], size=shape))


def _best(classes: int, bits: int, random: np.random.RandomState, draw: Any) -> np.ndarray:
    best, result = -1, None
    for _ in range(_DRAWS):
        code = useful_columns(draw((classes, bits)))
        far = code_distance(code) if code.shape[1] else -1
        if far > best:
            best, result = far, code
    if result is None or best < 1:
        raise ValueError(f"no code of {bits} bits that tells {classes} classes apart was drawn; raise code_size.")
    return result.astype(np.int64)


def useful_columns(code: np.ndarray) -> np.ndarray:
    """Return the code without columns that have one sign alone, or say what an earlier one says, or its opposite."""
    kept: list[np.ndarray] = []
    seen = set()
    for column in code.T:
        if not (np.any(column > 0) and np.any(column < 0)):
            continue
        key = (column * (1 if column[np.flatnonzero(column)[0]] > 0 else -1)).tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(column)
    return np.stack(kept, axis=1) if kept else np.empty((len(code), 0), dtype=code.dtype)


def bch_code(classes: int, bits: int) -> np.ndarray:
    """Return words of the BCH code of the largest length 2^m - 1 <= bits that has enough words, with the largest
    distance that leaves them.

    Any words of the code keep its distance, but a few of them have columns that repeat, which are left out: of many
    choices of words, always the same, that with the largest distance afterwards is kept.

    Parameters
    ----------
    classes : int
        Number of classes.
    bits : int
        Number of columns.

    Returns
    -------
    ndarray
        The code: a row for each class.

    Examples
    --------
    >>> code = bch_code(16, 31)
    >>> code.shape[1] > 20, code_distance(code) > 8
    (True, True)
    """
    m = max(3, math.floor(math.log2(bits + 1)), math.ceil(math.log2(classes)) + 1)
    if m > 10:
        raise ValueError(f"a BCH code of {bits} bits for {classes} classes is longer than 1023 bits; lower code_size.")
    generator = _generator(m, math.ceil(math.log2(classes)))
    n = 2**m - 1
    k = min(n - len(generator) + 1, 11)  # information bits that are used
    words = np.zeros((2**k, n), dtype=np.int64)
    for row in range(k):
        shifted = np.zeros(n, dtype=np.int64)
        shifted[row : row + len(generator)] = generator
        words ^= ((np.arange(2**k) >> row) & 1)[:, None] * shifted
    random = np.random.RandomState(0)
    drawn = (useful_columns(2 * words[random.permutation(2**k)[:classes]] - 1) for _ in range(_DRAWS))
    return max((code for code in drawn if code.shape[1]), key=code_distance)


_PRIMITIVE = {3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10001001, 8: 0b100011101, 9: 0b1000010001,
              10: 0b10000001001}  # fmt: skip


def _generator(m: int, least: int) -> np.ndarray:
    """Return the generator polynomial over GF(2) of the BCH code of length 2^m - 1 with the largest designed distance
    that has `least` information bits: the product of the minimal polynomials of alpha, alpha^3, alpha^5, ..."""
    n, powers = 2**m - 1, [1]
    for _ in range(n - 1):
        power = powers[-1] << 1
        powers.append(power ^ _PRIMITIVE[m] if power >> m else power)
    log = {power: at for at, power in enumerate(powers)}
    result, used = np.array([1], dtype=np.int64), set()
    for root in range(1, n, 2):
        if root in used:
            continue
        coset = {root * 2**j % n for j in range(m)}
        minimal = _minimal(coset, powers, log, n)
        if n - (len(result) + len(minimal) - 2) < least:
            break
        used |= coset
        result = np.convolve(result, minimal) % 2
    return result


def _minimal(coset: set[int], powers: list[int], log: dict[int, int], n: int) -> np.ndarray:
    """Return the product of (x - alpha^i) over a coset, whose coefficients are 0 and 1."""
    polynomial = [1]
    for i in sorted(coset):
        longer = [0, *polynomial]
        for place, value in enumerate(polynomial):
            if value:
                longer[place] ^= powers[(log[value] + i) % n]
        polynomial = longer
    return np.array(polynomial, dtype=np.int64)
