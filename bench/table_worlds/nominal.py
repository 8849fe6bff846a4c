"""Columns of names: many, rare, new and missing ones."""

import numpy as np

from bench.table_worlds._world import QUICK_NUMBERS, chance, labels, with_gaps, world


def _codes(numbers):
    return np.array([f"c{i:04d}" for i in numbers], dtype=object)


def _of_codes(rng, n, codes=1500):
    """Codes of which a table sees a part; each has a class of its own, which one row in ten does not have."""
    found = rng.integers(0, codes, n)
    return found, chance(rng, np.where(found * 7919 % codes < codes / 2, 0.9, 0.1))


@world(1000, also=("drift",))
def many_codes(rng, n):
    """A column of 1,500 codes, of which 1,000 rows see a part."""
    codes, positive = _of_codes(rng, n)
    return {"code": _codes(codes), "x": rng.normal(size=n), "y": labels(positive)}


@world(1000)
def many_codes_gaps(rng, n):
    """A column of 1,500 codes, 15 % of its cells empty for no reason."""
    codes, positive = _of_codes(rng, n)
    return {"code": with_gaps(rng, _codes(codes), 0.15), "x": rng.normal(size=n), "y": labels(positive)}


@world(1000)
def many_codes_telling_gaps(rng, n):
    """A column of 1,500 codes, 15 % of its cells empty, mostly in rows of one class."""
    codes, gap = rng.integers(0, 1500, n), rng.random(n) < 0.15
    cells = np.where(gap, None, _codes(codes))
    return {"code": cells, "x": rng.normal(size=n), "y": labels(chance(rng, np.where(gap, 0.95, 0.25)))}


@world(1000)
def two_code_columns(rng, n):
    """Two columns of 800 codes each, one of them with gaps that tell the class."""
    gap = rng.random(n) < 0.2
    columns = {"first": np.where(gap, None, _codes(rng.integers(0, 800, n))), "second": _codes(rng.integers(0, 800, n))}
    return {**columns, "y": labels(chance(rng, np.where(gap, 0.9, 0.2)))}


@world(300)
def telling_gaps(rng, n):
    """Numbers and names whose gaps mean something."""
    positive = rng.random(n) < 0.4
    size = with_gaps(rng, rng.choice(["s", "m", "l"], n), np.where(positive, 0.5, 0.05))
    weight = with_gaps(rng, rng.normal(size=n).round(3), np.where(positive, 0.1, 0.3))
    return {"size": size, "weight": weight, "y": labels(positive)}


@world(400, also=("drift",))
def rare_levels(rng, n):
    """Levels of which most are rare, the rarer the more often of one class."""
    level = np.minimum(rng.zipf(1.5, n), 400)
    positive = chance(rng, np.where(level > 5, 0.8, 0.25))
    return {"town": _codes(level), "x": rng.normal(size=n), "y": labels(positive)}


@world(500)
def endless_levels(rng, n):
    """Names of which new ones come for ever, and a gap that tells the class."""
    name = rng.pareto(0.7, n).astype(np.int64)
    gap = rng.random(n) < 0.12
    positive = chance(rng, np.where(gap, 0.9, np.where(name > 20, 0.2, 0.4)))
    return {"name": np.where(gap, None, np.array([f"n{i}" for i in name], dtype=object)), "y": labels(positive)}


@world(400)
def leading_zeros(rng, n):
    """Codes of digits with leading zeros, which are names and not numbers."""
    code = rng.integers(0, 300, n)
    positive = chance(rng, np.where(code * 37 % 300 < 150, 0.85, 0.15))
    return {"zip": np.array([f"{i:05d}" for i in code], dtype=object), "x": rng.normal(size=n), "y": labels(positive)}


@world(600, numbers=True, learners=QUICK_NUMBERS[:2])
def many_codes_numbers(rng, n):
    """A number that depends on which of 900 codes a row has, and on whether it has one."""
    code, gap = rng.integers(0, 900, n), rng.random(n) < 0.15
    y = np.where(gap, 4.0, (code * 7919 % 900) / 900) + rng.normal(size=n) * 0.3
    return {"code": np.where(gap, None, _codes(code)), "x": rng.normal(size=n), "y": y}


@world(450, certify="folds", trials=2, learners=("LogisticRegression", "MixedNB"))
def folds_codes(rng, n):
    """Every row is fitted to, and 600 codes have gaps that tell the class."""
    gap = rng.random(n) < 0.2
    cells = np.where(gap, None, _codes(rng.integers(0, 600, n)))
    return {"code": cells, "x": rng.normal(size=n), "y": labels(chance(rng, np.where(gap, 0.95, 0.25)))}
