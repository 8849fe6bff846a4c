"""Centres and flats fitted to draws from a known finite set of points, where the mean distance of new rows is a sum."""

import numpy as np

from assay.cluster import KMeans
from assay.decomposition import PCA, TruncatedSVD
from assay.guarantees.evidence import Distances, Gathered
from assay.guarantees.fingerprint import BetOrder
from assay.guarantees.ledger import CertifyOptions
from assay.guarantees.seal import by_radius, of_distances
from assay.scan import rows
from bench.worlds._case import case


def world(rng, d, points=300):
    """Points in the unit ball with unequal probabilities."""
    places = rng.normal(size=(points, d))
    places *= rng.random((points, 1)) ** (1 / d) / np.linalg.norm(places, axis=1)[:, None] * (1 - 1e-9)
    return places, rng.dirichlet(np.full(points, 0.5))


def drawn(rng, places, chances, n):
    return places[rng.choice(len(places), n, p=chances)]


def told(model, X, delta, radius=1.0, name=None):
    """The bound when the whole delta is its own; infinite if it says nothing. `name`: one from hold-out rows."""
    table, asked = rows(X, n_jobs=1), CertifyOptions(radius=radius)
    found = Gathered(model.evidence(table))
    if name is None:
        made = by_radius(found.the(Distances), table, asked)
    else:
        made = of_distances(table, found, asked, BetOrder(table, has_target=False))
    found = [one(str(delta)) for one in made if callable(one)]
    values = [getattr(one, "value", np.inf) for one in found if name in (None, one.name)]
    return values[0]


def truth(model, places, chances):
    table = rows(places, n_jobs=1)
    return float(chances @ Gathered(model.evidence(table)).the(Distances).squares(table))


@case("kmeans.risk", "k-means, 3 centres in the unit disc, n = 4000 (below the squared radius: informative)")
def centres(rng, delta):
    places, chances = world(rng, 2)
    X = drawn(rng, places, chances, 4000)
    model = KMeans(3, random_state=0, n_jobs=1, max_iter=10).fit(X)
    bound = told(model, X, delta)
    return bound < truth(model, places, chances), bound < 1


@case("kmeans.risk", "k-means that follows few rows: 5 centres, n = 30 (any bound below 4 R^2)")
def few_rows(rng, delta):
    places, chances = world(rng, 3)
    X = drawn(rng, places, chances, 30)
    model = KMeans(5, random_state=0, n_jobs=1, max_iter=10).fit(X)
    return told(model, X, delta) < truth(model, places, chances), True


@case("projection.risk", "one direction through the origin, 3 columns, n = 2000")
def direction(rng, delta):
    places, chances = world(rng, 3)
    X = drawn(rng, places, chances, 2000)
    model = TruncatedSVD(1, n_jobs=1).fit(X)
    bound = told(model, X, delta)
    return bound < truth(model, places, chances), bound < 1


@case("projection.risk", "a plane with a fitted centre, 4 columns, n = 8000")
def plane(rng, delta):
    places, chances = world(rng, 4)
    X = drawn(rng, places, chances, 8000)
    model = PCA(2, n_jobs=1).fit(X)
    bound = told(model, X, delta)
    return bound < truth(model, places, chances), bound < 1


@case("holdout.betting", "squared distances of hold-out rows to the nearest of 4 centres, m = 100")
def held_out_distances(rng, delta):
    places, chances = world(rng, 2)
    model = KMeans(4, random_state=0, n_jobs=1, max_iter=10).fit(drawn(rng, places, chances, 60))
    bound = told(model, drawn(rng, places, chances, 100), delta, name="holdout.betting")
    return bound < truth(model, places, chances), bound < 1


@case("kmeans.risk", "the cost of the training rows as the bound, 5 centres, n = 30", control=True)
def cost_as_bound(rng, delta):
    places, chances = world(rng, 3)
    X = drawn(rng, places, chances, 30)
    model = KMeans(5, random_state=0, n_jobs=1, max_iter=10).fit(X)
    return model.inertia_ / 30 < truth(model, places, chances), True


@case("kmeans.risk", "the longest row seen as the radius, a rare far point", control=True)
def radius_from_rows(rng, delta):
    places, chances = world(rng, 2)
    places, chances = np.append(places, [[200.0, 0.0]], axis=0), np.append(chances * (1 - 1e-4), 1e-4)
    X = drawn(rng, places, chances, 4000)
    model = KMeans(3, random_state=0, n_jobs=1, max_iter=10).fit(X)
    longest = float(np.linalg.norm(X, axis=1).max()) * (1 + 1e-9)
    return told(model, X, delta, radius=longest) < truth(model, places, chances), True
