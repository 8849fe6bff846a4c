"""Nearest neighbours: how far the leave-one-out error is from the error rate of the same rule on all rows.

The rule looks at the k nearest of its rows; of rows at the same distance the ones that come first are nearer. A pair
z = (x, y) is *lost* by rows S, v(z; S) = 1, unless at least m = floor(k/2) + 1 of the k nearest rows of x in S have
the label y. For two classes and odd k that is an error of the vote; otherwise errors are lost, so that the rate at
which pairs are lost is at least the error rate. With rows Z_1, ..., Z_n drawn independently from one distribution,

    loo = (1/n) sum_i v(Z_i; rows without i),     L = E[v(Z; all rows) | rows],  Z a new pair.

**Theorem.** For n >= k + 2, any distribution and any distance fixed in advance (a function of a point and a row: it
need not be symmetric, and the triangle inequality plays no part),

    E (loo - L)^2 <= V = [1/4 + f (1 + (8k + 2m + 8)/n)] / (n - 1),
    f = m C(k+1, m) (m/(k+1))^m (1 - m/(k+1))^(k+1-m),  which is about sqrt(k / (2 pi)) for odd k,

so by Markov's inequality L <= loo + sqrt(V / delta) with probability at least 1 - delta. (Rogers and Wagner 1978 have
(6k + 1)/n, by the same start: the square is written out, and terms that differ in one row are compared. What follows
keeps the differences instead of their absolute values, most of which cancel.)

**Ties.** Give each row a mark, drawn independently and uniformly, and let the smaller mark be nearer among equals.
Sorting by marks makes an independent sample another one of the same law, for which that rule is the one above;
so loo and L have the same joint law under either. From here on ties are broken by marks: then keys (distance, mark)
differ almost surely, and everything is symmetric in the rows. (An order of the rows that was made by looking at
them, such as all of one label first, is not covered.)

**Double precision.** The proof looks at distances through the keys of the rows of one point alone, so it holds as it
stands for the number that a distance is rounded to, if that is the same function of the two for rows left out and for
new points: terms added column by column, whatever other rows are there. Rounding makes more ties, which the marks
break; which of the rows that are equally near in double precision is nearer in truth does not matter. (It would not
hold of distances by one product of matrices, whose rounding depends on the rows beside.)

**1. Flips.** Row i *flips* z in S if v(z; S) differs from v(z; S without i). Only the k nearest rows can, as the
(k+1)-st then takes the place of i; and only if exactly m of the k + 1 nearest rows have the label y: with m of the
k nearest right and the next one wrong, i must be one of the m right ones; with m - 1 right and the next one right,
i must be one of the k + 1 - m <= m wrong ones. So at most m rows flip z. Given the key of the (k+2)-nd nearest row, the
k + 1 nearer ones are independent draws from the law of a row given that its key is smaller; the number of right ones
is binomial, and takes the value m with probability at most f/m, whatever the chance of a right one. Hence
    (a) E[number of rows of S that flip z] <= f, for |S| >= k + 1.
Leave out each of the k + 2 nearest rows in turn: the same argument, with k + 2 independent rows of which a random one
is left out, gives
    (b) E[sum over i among the k + 2 nearest of the number of rows that flip z in S without i] <= (k + 2) f.

**2. The square.** Let D be n - 2 rows, Z_0, Z_0', Z_1, Z_2 four more. Write a(T) for v(Z_1; D and the rows T), b(T) for
v(Z_2; D and T), a = a(), b = b(). Then, by symmetry in the rows and in Z_1, Z_2,
    E loo^2 = p/n + (1 - 1/n) c,  p = E a(0),  c = E a(2) b(1),
    E loo L = E a(0) b(01) = E a(02) b(0),      E L^2 = E a(00') b(00').
Since the variance of n loo is n p (1-p) + n (n-1) (c - p^2) >= 0, (p - c)/n <= p (1-p)/(n-1) <= 1/(4 (n-1)). It remains
to bound  M = E[a(2) b(1) - a(0) b(01) - a(02) b(0) + a(00') b(00')].

**3. Differences.** Write d_t a(T) = a(T t) - a(T), and dd a = a(st) - a(s) - a(t) + a for two rows s, t. Expanding,
    M = E[d_2 a d_1 b] - 2 E[b(0) dd_{02} a] - 2 E[d_2 a d_0 b]
        + E[(b(00') + b) dd_{00'} a] + E[d_0' a d_0 b(0')] + E[d_0 a d_0' b(0)].
dd_{02} a and dd_{00'} a have one law, b(0) and (b(00') + b)/2 lie between 0 and 1, so these two terms together are at
most 2 E|dd a|. The last two are equal by symmetry. Therefore
    M <= P1 + 2 E|dd a| + 2 P2 + 2 P3,
    P1 = P(2 flips Z_1 in D2),                          P2 = P(2 flips Z_1 in D2, and 0 flips Z_2 in D0),
    P3 = P(0' flips Z_1 in D0', and 0 flips Z_2 in D00').

**4. Counting.** Rows are exchangeable, so each is an expected number of tuples divided by the number of all tuples.
    P1 <= f/(n-1), by (a).
    E|dd a| <= (2k+2) f/(n(n-1)): in S = D00', dd a is zero unless both rows are among the k + 1 nearest of Z_1, since a
        row outside changes neither list; and |dd a| <= 1[i flips Z_1 in S] + 1[i flips Z_1 in S without j]. The first
        has k other rows j at most, (a); the second is part of the sum in (b).
    P2 <= (2k+2) f/(n(n-1)): let W be all n + 1 rows. If 0 is not among the k + 1 nearest rows of 1 in W, then 2 flips 1
        without 0 iff it does with it, (a), and 0 is one of the k nearest of 2; else (b).
    P3 <= m f/(n(n-1)): for given Z_1, Z_2, (a) for 0, and then at most m rows 0'.
Together M <= f (1 + (8k + 8 + 2m)/n)/(n-1), which with step 2 is the theorem.

tests/theory/test_neighbors.py checks every step by enumerating all samples of small worlds in rational arithmetic.
"""

import math
from fractions import Fraction

from assay.theory import _checks as check


def majority(k: int) -> int:
    """Return floor(k/2) + 1: how many of k votes are more than half.

    Parameters
    ----------
    k : int
        Number of neighbours.

    Returns
    -------
    int
        Number of votes.

    Examples
    --------
    >>> majority(5), majority(4)
    (3, 3)
    """
    return k // 2 + 1


def expected_flips(k: int) -> Fraction:
    """Return f, the largest expected number of rows without which the k nearest rows would decide otherwise.

    Parameters
    ----------
    k : int
        Number of neighbours.

    Returns
    -------
    Fraction
        The number, exactly.

    Examples
    --------
    >>> expected_flips(1), float(expected_flips(5))
    (Fraction(1, 2), 0.9375)
    """
    m = majority(check.whole("expected_flips: k", k))
    q = Fraction(m, k + 1)
    return m * math.comb(k + 1, m) * q**m * (1 - q) ** (k + 1 - m)


def loo_second_moment(n: int, k: int) -> Fraction:
    """Return V, an upper bound of the mean of (loo - L)^2 over samples of n rows; n >= k + 2.

    Parameters
    ----------
    n : int
        Number of training rows.
    k : int
        Number of neighbours.

    Returns
    -------
    Fraction
        The bound, exactly.

    Examples
    --------
    >>> round(float(loo_second_moment(1000, 5)), 6)
    0.001239
    """
    if n < k + 2:
        raise ValueError(f"loo_second_moment: it takes n >= k + 2 = {k + 2} rows; got {n}.")
    f = expected_flips(k)
    return (Fraction(1, 4) + f * (1 + Fraction(8 * k + 2 * majority(k) + 8, n))) / (n - 1)


def loo_bound(lost: int, n: int, k: int, delta: float) -> float:
    """Return an upper bound of the error rate of k nearest neighbours: lost/n + sqrt(V/delta), at most 1.

    Parameters
    ----------
    lost : int
        Rows whose own label has no majority among their k nearest other rows.
    n, k : int
        Training rows, neighbours.
    delta : float in (0, 1)
        Probability over samples that the bound fails.

    Returns
    -------
    float
        Upper bound of the error rate.

    Examples
    --------
    >>> round(loo_bound(500, 10_000, 5, 0.05), 4)
    0.0988
    """
    check.probability("loo_bound: delta", delta)
    return min(1.0, lost / n + math.sqrt(float(loo_second_moment(n, k)) / delta))
