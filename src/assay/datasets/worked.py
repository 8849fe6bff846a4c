"""Small data sets of worked examples: programmers, a film review, generated vehicles, and points with labels -1, +1."""

from itertools import product
from typing import NamedTuple

import numpy as np

REVIEW = (
    "I love this movie! It's sweet, but with satirical humor. The dialogue is great and the adventure scenes are "
    "fun... It manages to be whimsical and romantic while laughing at the conventions of the fairy tale genre. I would "
    "recommend it to just about anyone. I've seen it several times, and I'm always happy to see it again whenever I "
    "have a friend who hasn't seen it yet!"
)
REVIEW_COUNTS = {
    "it": 6, "i": 5, "the": 4, "to": 3, "and": 3, "seen": 2, "yet": 1, "would": 1, "whimsical": 1, "times": 1,
    "sweet": 1, "satirical": 1, "adventure": 1, "genre": 1, "fairy": 1, "humor": 1, "have": 1, "great": 1,
}  # fmt: skip
VEHICLE_COLUMNS = ("wheels", "power", "doors", "length")
"""Columns of `vehicles`: number of wheels, kilowatts, number of doors, metres."""


def film_review() -> tuple[str, dict[str, int]]:
    """Return the text of a film review and the 18 counts of words that the notes print, in small letters.

    Returns
    -------
    tuple of str, dict
        The text, and the counts.

    Examples
    --------
    >>> text, counts = film_review()
    >>> text[:18], counts["it"], len(counts)
    ('I love this movie!', 6, 18)
    """
    return REVIEW, dict(REVIEW_COUNTS)


class Programmers(NamedTuple):
    """Six people: whether each attribute holds ("yes", "no"), and +1 for a programmer, -1 for another."""

    names: tuple[str, ...]
    attributes: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...]


def programmers() -> Programmers:
    """Return the printed table of programmers, of which two rows contradict each other
    (`textbook.concepts.contradictions`).

    Returns
    -------
    Programmers
        Rows and labels.

    Examples
    --------
    >>> table = programmers()
    >>> table.names[3], table.rows[3] == table.rows[4], table.labels[3:5]
    ('doctor A', True, (-1, 1))
    """
    printed = {
        "programmer A": ("yes", "no", "yes", "yes"),
        "writer A": ("no", "no", "yes", "no"),
        "programmer B": ("yes", "yes", "no", "no"),
        "doctor A": ("yes", "yes", "yes", "yes"),
        "programmer C": ("yes", "yes", "yes", "yes"),
        "programmer D": ("yes", "yes", "yes", "no"),
    }
    labels = tuple(1 if name.startswith("programmer") else -1 for name in printed)
    attributes = ("good at mathematics", "healthy", "can program", "loud")
    return Programmers(tuple(printed), attributes, tuple(printed.values()), labels)


def vehicles(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of wheels, engine power, doors and length, and whether each is a "car", "truck" or "trailer".

    The three kinds are equally likely. A car has 4 wheels, 40 to 200 kW, 2 to 5 doors and 3 to 5.2 m; a truck 6, 8 or
    10 wheels, 120 to 500 kW, 2 doors and 6 to 12 m; a trailer 2, 4 or 6 wheels, no engine, no doors and 2 to 14 m. The
    numbers are drawn evenly from these ranges: wheels and length alone do not tell kinds apart, all four columns do.

    Parameters
    ----------
    n : int, default=300
        Number of rows.
    seed : int, default=0
        Seed of what is drawn.

    Returns
    -------
    tuple of ndarray
        Rows and labels.

    Examples
    --------
    >>> X, kind = vehicles(3, seed=1)
    >>> X.shape, sorted(set(vehicles()[1].tolist()))
    ((3, 4), ['car', 'trailer', 'truck'])
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"vehicles: n must be an integer >= 1; got {n!r}.")
    rng = np.random.default_rng(seed)
    kind = rng.choice(["car", "truck", "trailer"], n)
    even = rng.random((n, 2))
    car, truck = kind == "car", kind == "truck"
    wheels = np.where(car, 4, np.where(truck, rng.choice([6, 8, 10], n), rng.choice([2, 4, 6], n)))
    power = np.where(car, 40 + 160 * even[:, 0], np.where(truck, 120 + 380 * even[:, 0], 0.0))
    doors = np.where(car, rng.integers(2, 6, n), np.where(truck, 2, 0))
    length = np.where(car, 3 + 2.2 * even[:, 1], np.where(truck, 6 + 6 * even[:, 1], 2 + 12 * even[:, 1]))
    return np.column_stack([wheels, power.round(1), doors, length.round(2)]).astype(float), kind


def first_one_parity(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all 2^d - 1 non-zero vectors of zeros and ones; label +1 if the first one stands at an odd
    place, counted from 1.

    (1, -1/2, 1/4, ...) separates them, but the best margin of the normalised rows shrinks by the golden
    ratio with each
    dimension: the perceptron needs exponentially many updates.

    >>> X, y = first_one_parity(2)
    >>> X.tolist(), y.tolist()
    ([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [-1, 1, 1])
    """
    X = np.array(list(product((0.0, 1.0), repeat=d))[1:])
    return X, np.where(X.argmax(axis=1) % 2 == 0, 1, -1)


def four_quadrants(n: int, seed: int = 0, gap: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of the square [-1, 1]^2, label the sign of x_1 x_2; `gap` keeps them away from the
    axes.

    No line separates them, the polynomial x_1 x_2 does.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(gap, 1.0, size=(n, 2)) * rng.choice([-1.0, 1.0], size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def checkerboard(k: int, per_cell: int = 4, seed: int = 0, gap: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return points of k x k unit cells whose labels alternate; `gap` keeps them away from the cells'
    borders."""
    rng = np.random.default_rng(seed)
    cells = np.repeat(np.array(list(product(range(k), repeat=2)), dtype=float), per_cell, axis=0)
    X = cells + rng.uniform(gap, 1 - gap, size=cells.shape) - k / 2
    return X, np.where(cells.sum(axis=1) % 2 == 0, 1, -1)


def noisy_labels(X: np.ndarray, w: np.ndarray, b: float = 0.0, seed: int = 0) -> np.ndarray:
    """Return labels drawn with P(y = +1 | x) = 1 / (1 + exp(-(<w, x> + b))): the noise that logistic
    regression assumes."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / (1.0 + np.exp(-(np.asarray(X, dtype=np.float64) @ np.asarray(w, dtype=np.float64) + b)))
    return np.where(rng.random(len(chance)) < chance, 1, -1)
