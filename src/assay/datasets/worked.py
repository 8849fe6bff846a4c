"""Worked examples of the notes as tables: programmers, a film review, and vehicles from a documented generator."""

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


def film_review() -> tuple[str, dict[str, int]]:
    """Return the text of a film review and the 18 counts of words that the notes print, in small letters.

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
    (`theory.concepts.contradictions`).

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


VEHICLE_COLUMNS = ("wheels", "power", "doors", "length")
"""Columns of `vehicles`: number of wheels, kilowatts, number of doors, metres."""


def vehicles(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of wheels, engine power, doors and length, and whether each is a "car", "truck" or "trailer".

    The three kinds are equally likely. A car has 4 wheels, 40 to 200 kW, 2 to 5 doors and 3 to 5.2 m; a truck 6, 8 or
    10 wheels, 120 to 500 kW, 2 doors and 6 to 12 m; a trailer 2, 4 or 6 wheels, no engine, no doors and 2 to 14 m. The
    numbers are drawn evenly from these ranges: wheels and length alone do not tell kinds apart, all four columns do.

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
