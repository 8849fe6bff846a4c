"""Votes on out-of-bag rows, codes for trees, growth functions of trees: worlds of finitely many points."""

import numpy as np

from assay.theory.pac_bayes import OutOfBag, mean_risk_bound
from bench.worlds._case import case

CELLS = 16


def cells(rng, n):
    """Draw rows from 16 equally likely cells, where the second class has probability 0.1 or 0.9."""
    chance = np.where(rng.random(CELLS) < 0.5, 0.1, 0.9)
    x = rng.integers(0, CELLS, n)
    return x, (rng.random(n) < chance[x]).astype(int), chance


def rote(x, y):
    """Return the majority label of each cell, the second class where there is none."""
    ones, all_rows = np.bincount(x, y, CELLS), np.bincount(x, minlength=CELLS)
    return (2 * ones >= all_rows).astype(int)


def vote_of_tables(rng, n, members, size):
    """Return the out-of-bag sums of a vote of lookup tables, and its exact error."""
    x, y, chance = cells(rng, n)
    tables, losses, out = [], [], []
    for _ in range(members):
        drawn = rng.integers(0, n, size)
        tables.append(rote(x[drawn], y[drawn]))
        unseen = np.ones(n, dtype=bool)
        unseen[drawn] = False
        out.append(unseen)
        losses.append(tables[-1][x] != y)
    share = np.mean(tables, axis=0)
    wrong = np.where(share > 0.5, 1 - chance, np.where(share < 0.5, chance, 1.0))
    return OutOfBag(members).add(np.array(losses, dtype=float).T, np.array(out).T), float(wrong.mean())


@case("pac-bayes.vote", "eleven lookup tables on bags of 60 of 600 rows, best form and rate")
def vote_of_rote_learners(rng, delta):
    sums, risk = vote_of_tables(rng, 600, 11, 60)
    bound = sums.bound(delta, 6 / 11).bound
    return bound < risk, bound < 0.5


@case("pac-bayes.vote", "mean risk of dependent members at one rate, n = 100")
def mean_risk(rng, delta):
    """Members that are equal, where averaging gains nothing and the bound is tightest."""
    errors = rng.binomial(100, 0.2)
    bound = mean_risk_bound(errors / 100, 100.0, delta, 1.0)
    return bound < 0.2, bound < 0.5


@case("pac-bayes.vote", "the same tables judged on their own rows", control=True)
def vote_judged_inside(rng, delta):
    """Coin labels, every row a cell of its own: a table is always right inside its bag, and its risk is 1/2."""
    inside = rng.random((300, 11)) < 0.4
    return OutOfBag(11).add(np.zeros((300, 11)), inside).bound(delta, 6 / 11).bound < 0.5, True
