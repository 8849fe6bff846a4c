"""Points on the unit sphere of many dimensions: nearly all of them lie near any equator.

(w.x)^2 for x uniform on the sphere of R^d has the Beta(1/2, (d-1)/2) law, for x uniform in the ball Beta(1/2,
(d+1)/2). Cover 1965: n points in general position, labelled by coins, are separable by a hyperplane through the
origin with probability 2^(1-n) (C(n-1,0) + ... + C(n-1,d-1)), which is 1/2 at n = 2d.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.special import betainc

from assay.theory import _checks as check
from assay.theory.vc import cover


def mass_beyond(t: float, d: int, *, ball: bool = False) -> float:
    """Return P[|w.x| >= t] for a unit w and x uniform on the unit sphere of R^d (or in the unit ball).

    >>> round(mass_beyond(0.5, 3), 6)  # Archimedes: uniform in three dimensions
    0.5
    """
    t, d = check.number("t", t, low=0.0, high=1.0), check.whole("d", d, low=1 if ball else 2)
    return float(betainc((d + 1) / 2.0 if ball else (d - 1) / 2.0, 0.5, 1.0 - t * t))


def separable_share(n: int, d: int) -> Fraction:
    """Return the probability that coin labels of n points in general position in R^d are separable."""
    return Fraction(cover(n, d), 2 ** check.whole("n", n))


def random_points(n: int, d: int, rng: np.random.Generator, *, ball: bool = False) -> np.ndarray:
    """Return n points uniform on the unit sphere of R^d, or in the unit ball."""
    x = rng.standard_normal((check.whole("n", n), check.whole("d", d)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x * rng.random((n, 1)) ** (1.0 / d) if ball else x


def best_margin(X: np.ndarray, y: np.ndarray, rounds: int = 2000) -> tuple[float, float]:
    """Return a lower and an upper bound of max over unit w of min_i y_i w.x_i.

    Frank-Wolfe steps towards the point of the hull of y_i x_i nearest to the origin: its norm is an upper
    bound, and its direction a hyperplane whose smallest margin is a lower one (negative if it does not
    separate).
    """
    Z = np.asarray(y)[:, None] * np.asarray(X, dtype=np.float64)
    p = Z.mean(axis=0)
    for _ in range(check.whole("rounds", rounds)):
        q = Z[int(np.argmin(Z @ p))]
        step = p - q
        length = float(step @ step)
        if length == 0.0:
            break
        p = p - min(1.0, max(0.0, float(p @ step) / length)) * step
    norm = math.sqrt(float(p @ p))
    return (float((Z @ p).min()) / norm if norm > 0.0 else -1.0), norm
