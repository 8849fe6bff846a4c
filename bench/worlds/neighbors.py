"""Nearest neighbours on a line: two classes whose labels are flips of x > 0.4, or coins."""

import numpy as np

from assay.theory.neighbors import loo_bound, majority
from bench.worlds._case import case

THETA, N = 0.4, 600


def draw(rng, n, noise):
    x = rng.random(n)
    return x, ((x > THETA) ^ (rng.random(n) < noise)).astype(int)


def nearest(x, queries, k, leave_out=False):
    """Return the k nearest of the sorted positions x for each query; with `leave_out` queries are x itself."""
    window = k + leave_out
    first = np.searchsorted(x, queries)[:, None] + np.arange(-window, window)[None, :]
    inside = (first >= 0) & (first < len(x))
    gap = np.where(inside, np.abs(x[np.clip(first, 0, len(x) - 1)] - queries[:, None]), np.inf)
    if leave_out:
        gap[first == np.arange(len(x))[:, None]] = np.inf
    best = np.argpartition(gap, k - 1, axis=1)[:, :k]
    return np.take_along_axis(first, best, axis=1)


def lost(x, y, k):
    """Return how many rows lack a majority of their label among the k nearest others; x sorted."""
    return int(np.sum((y[nearest(x, x, k, leave_out=True)] == y[:, None]).sum(axis=1) < majority(k)))


def risk(x, y, k, noise):
    """Return the error rate of the vote; neighbours change where x_i is as far as x_(i+k)."""
    borders = np.unique(np.concatenate([[0.0, 1.0, THETA], (x[k:] + x[:-k]) / 2]))
    middle, length = (borders[1:] + borders[:-1]) / 2, np.diff(borders)
    says = y[nearest(x, middle, k)].sum(axis=1) >= majority(k)
    right = says == (middle > THETA)
    return float(length @ np.where(right, noise, 1 - noise))


def outcome(rng, delta, k, noise, errors):
    x, y = draw(rng, N, noise)
    order = np.argsort(x)
    x, y = x[order], y[order]
    bound = loo_bound(errors(x, y, k), N, k, delta)
    return bound < risk(x, y, k, noise), bound < 0.5


@case("knn.loo", "1 neighbour on a line, n = 600, noise 0.1")
def one_neighbour(rng, delta):
    return outcome(rng, delta, 1, 0.1, lost)


@case("knn.loo", "5 neighbours on a line, n = 600, noise 0.1")
def five_neighbours(rng, delta):
    return outcome(rng, delta, 5, 0.1, lost)


@case("knn.loo", "3 neighbours, coin labels, n = 600 (below one: informative)")
def coins(rng, delta):
    violated, _ = outcome(rng, delta, 3, 0.5, lost)
    return violated, True


def resubstituted(x, y, k):
    return int(np.sum((y[nearest(x, x, k)] == y[:, None]).sum(axis=1) < majority(k)))


@case("knn.loo", "1 neighbour, noise 0.4, each row its own neighbour", control=True)
def own_neighbour(rng, delta):
    return outcome(rng, delta, 1, 0.4, resubstituted)
