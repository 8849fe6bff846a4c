"""Winners, maps and resonance: against loops by hand, on classic tasks, and what their certificates say."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.cluster import KMeans

import assay
from assay.metrics import distance_correlation
from assay.neural_network import ART1, CompetitiveLearning, FuzzyART, SelfOrganizingMap

RNG = np.random.default_rng(0)
PLANE = RNG.uniform(size=(600, 2))
LETTERS = {
    "A": "01110100011000111111100011000110001",
    "E": "11111100001000011110100001000011111",
    "L": "10000100001000010000100001000011111",
    "O": "01110100011000110001100011000101110",
    "T": "11111001000010000100001000010000100",
    "X": "10001100010101000100010101000110001",
    "Z": "11111000010001000100010001000011111",
}
CLEAN = np.array([[float(dot) for dot in picture] for picture in LETTERS.values()])


def noisy(seed, each, flips):
    """Return pictures of letters with some dots flipped, and which letter each is."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(CLEAN)), each))
    X = CLEAN[y].copy()
    for row in X:
        dots = rng.choice(X.shape[1], flips, replace=False)
        row[dots] = 1 - row[dots]
    return X, y


def colours(seed):
    """Return 500 colours, mixed around six of them."""
    rng = np.random.default_rng(seed)
    six = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1.0]])
    return np.clip(six[rng.integers(6, size=500)] + rng.normal(scale=0.15, size=(500, 3)), 0, 1)


def quiet(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


def sound(model, X, **options):
    certificate = model.certify(X, **options)
    report = assay.verify(certificate, model, X, holdout=options.get("holdout"))
    assert report.holds, report.reason
    return certificate


def forged(certificate, code, model, X, **changes):
    """Tell whether the checker still accepts the certificate after one of its claims was changed."""
    claims = [replace(one, **changes) if one.name == code else one for one in certificate.claims]
    return assay.verify(replace(certificate, claims=tuple(claims)), model, X).holds


# Winner takes all


def online_k_means(X, centers, order):
    """The textbook's loop: the nearest centre becomes the mean of the rows that it has won."""
    centers, won = centers.copy(), np.zeros(len(centers))
    for i in order:
        c = np.argmin(((X[i] - centers) ** 2).sum(axis=1))
        won[c] += 1
        centers[c] += (X[i] - centers[c]) / won[c]
    return centers


@pytest.mark.mission("NNW-27")
def test_one_winner_moves_and_with_counts_it_is_online_k_means():
    start = PLANE[:4]
    model = quiet(lambda: CompetitiveLearning(4, init=start, max_iter=1, shuffle=False).fit(PLANE))
    assert np.allclose(model.prototypes_, online_k_means(PLANE, start, range(600)), atol=1e-12)
    assert model.wins_.sum() == 600
    one = CompetitiveLearning(4, init=start, learning_rate=0.25, max_iter=1).fit(PLANE[10:11])
    moved = np.flatnonzero(np.any(one.prototypes_ != start, axis=1))
    assert moved.tolist() == one.cells(PLANE[10:11]).tolist()
    assert np.allclose(one.prototypes_[moved[0]], start[moved[0]] + 0.25 * (PLANE[10] - start[moved[0]]))


@pytest.mark.mission("NNW-27")
def test_competition_comes_near_to_k_means_and_its_cost_is_proved():
    X = np.vstack([RNG.normal(m, 0.3, size=(100, 2)) for m in ((0, 0), (4, 0), (0, 4))])
    model = CompetitiveLearning(3, init=X[[0, 100, 200]], max_iter=50, random_state=0).fit(X)
    best = KMeans(3, n_init=5, random_state=0).fit(X).inertia_
    assert -model.score(X) < 1.02 * best
    assert sound(model, X, radius=7.0).find("kmeans.fixed-point").value == pytest.approx(-model.score(X), rel=1e-5)


def test_partial_fit_goes_on_where_the_last_call_ended():
    start = PLANE[:3]
    parts = CompetitiveLearning(3, init=start, shuffle=False)
    for part in (PLANE[:200], PLANE[200:]):
        parts.partial_fit(part)
    assert np.allclose(parts.prototypes_, online_k_means(PLANE, start, range(600)), atol=1e-12)


# Adaptive resonance


@pytest.mark.mission("NNW-28")
def test_vigilance_one_has_a_category_for_each_distinct_row_and_zero_a_single_one():
    rows = np.unique((RNG.uniform(size=(80, 8)) < 0.4).astype(float), axis=0)
    rows = np.vstack([rows, rows[::2]])
    distinct = len(np.unique(rows, axis=0))
    for kind, X in ((ART1, rows), (FuzzyART, np.vstack([PLANE[:50], PLANE[:20]]))):
        narrow, wide = kind(vigilance=1.0).fit(X), kind(vigilance=0.0).fit(X)
        assert len(narrow.weights_) == (distinct if kind is ART1 else 50)
        assert len(np.unique(X[np.argsort(narrow.labels_)], axis=0)) == len(narrow.weights_)
        assert len(wide.weights_) == 1
        for model in (narrow, wide):
            assert sound(model, X).find("art.rest").value == 0


def by_hand(I, vigilance, choice, passes):
    """Adaptive resonance as the books print it, one row and one category after the other."""
    W, labels = [], [0] * len(I)
    for _ in range(passes):
        for i, row in enumerate(I):
            ranked = sorted(range(len(W)), key=lambda j: (-np.minimum(row, W[j]).sum() / (choice + W[j].sum()), j))
            passing = [j for j in ranked if np.minimum(row, W[j]).sum() >= vigilance * row.sum()]
            if passing:
                W[passing[0]] = np.minimum(row, W[passing[0]])
                labels[i] = passing[0]
            else:
                W.append(row.copy())
                labels[i] = len(W) - 1
    return np.array(W), labels


@pytest.mark.mission("NNW-28")
def test_both_networks_follow_the_books():
    rows = (RNG.uniform(size=(60, 7)) < 0.5).astype(float)
    rows[:, 0] = 1.0
    model = ART1(0.7, max_iter=50).fit(rows)
    W, labels = by_hand(rows, 0.7, 0.5, model.n_iter_)
    assert np.array_equal(model.weights_, W)
    assert model.labels_.tolist() == labels == model.predict(rows).tolist()
    span = np.ptp(PLANE[:60], axis=0)
    u = (PLANE[:60] - PLANE[:60].min(axis=0)) / span
    fuzzy = FuzzyART(0.8).fit(PLANE[:60])
    W, labels = by_hand(np.hstack([u, 1 - u]), 0.8, 1e-3, fuzzy.n_iter_)
    assert np.array_equal(fuzzy.weights_, W)
    assert fuzzy.labels_.tolist() == labels


@pytest.mark.mission("NNW-28")
@pytest.mark.parametrize("seed", range(10))
def test_noisy_letters_are_told_apart(seed):
    X, y = noisy(seed, each=10, flips=1)
    model = ART1(0.85).fit(X)
    assert all(len(set(y[model.labels_ == c])) == 1 for c in np.unique(model.labels_))
    assert len(model.weights_) < len(X) / 2
    clean = FuzzyART(0.85, bounds=[[0.0] * 35, [1.0] * 35]).fit(CLEAN)
    X, y = noisy(100 + seed, each=10, flips=2)
    assert np.array_equal(clean.predict(X), clean.labels_[y])
    assert (clean.predict(1 - CLEAN) == -1).all()


@pytest.mark.mission("NNW-29")
def test_new_rows_found_categories_and_old_rows_stay_where_they_were():
    X, y = noisy(0, each=10, flips=1)
    for model in (ART1(0.85), FuzzyART(0.9, bounds=[[0.0] * 35, [1.0] * 35])):
        old = X[y < 4]
        model.fit(old)
        before, many = model.predict(old), len(model.weights_)
        model.partial_fit(X[y >= 4])
        assert len(model.weights_) > many
        assert np.array_equal(model.predict(old), before)


def test_a_category_that_still_moves_is_not_at_rest():
    X = PLANE[:80]
    model = FuzzyART(0.8).fit(X)
    certificate = sound(model, X)
    grown = model.weights_.copy()
    grown[0] = np.minimum(grown[0] + 0.05, 1.0)
    model.weights_ = grown
    assert model.certify(X).find("art.rest").value > 0
    honest = model.certify(X)
    assert not forged(honest, "art.rest", model, X, value=0.0)
    assert not assay.verify(certificate, model, X).holds


def test_rows_that_are_not_binary_are_refused_if_asked():
    with pytest.raises(ValueError, match="0 and 1"):
        ART1(binarize=None).fit(PLANE)
    with pytest.raises(ValueError, match="bounds must be"):
        FuzzyART(bounds=[[1.0, 1.0], [0.0, 0.0]]).fit(PLANE)


# Self-organising maps


def slow_map(X, W, places, radius, rate, order):
    """Kohonen's rule, one row after the other."""
    W = W.copy()
    for i in order:
        c = np.argmin(((X[i] - W) ** 2).sum(axis=1))
        h = np.exp(-((places - places[c]) ** 2).sum(axis=1) / (2 * radius**2))
        W += rate * h[:, None] * (X[i] - W)
    return W


@pytest.mark.mission("NNW-30")
@pytest.mark.parametrize("grid", ["rectangular", "hexagonal"])
def test_the_online_map_is_kohonens_rule(grid):
    start = RNG.uniform(size=(12, 2))
    options = {"grid": grid, "radius": 1.5, "radius_end": 1.5, "learning_rate": 0.1, "learning_rate_end": 0.1}
    model = SelfOrganizingMap((3, 4), algorithm="online", init=start, max_iter=1, random_state=3, **options).fit(PLANE)
    r, c = np.divmod(np.arange(12), 4)
    places = np.column_stack([r * np.sqrt(0.75), c + 0.5 * (r % 2)] if grid == "hexagonal" else [r, c])
    order = np.random.RandomState(3).permutation(len(PLANE))
    assert np.allclose(model.prototypes_, slow_map(PLANE, start, places, 1.5, 0.1, order), atol=1e-12)
    assert np.allclose(model.transform(PLANE), places[model.predict(PLANE)])


@pytest.mark.mission("NNW-30")
@pytest.mark.parametrize("decay", ["geometric", "linear"])
def test_rate_and_radius_shrink_by_the_law_that_is_asked_for(decay):
    """Rows are visited in chunks of 256, each with the radius and the rate of its middle."""
    start = RNG.uniform(size=(9, 2))
    options = {"radius": 2.0, "radius_end": 0.5, "learning_rate": 0.4, "learning_rate_end": 0.0, "decay": decay}
    model = SelfOrganizingMap((3, 3), algorithm="online", init=start, max_iter=1, random_state=3, **options).fit(PLANE)
    places = np.column_stack(np.divmod(np.arange(9), 3))
    order, expected = np.random.RandomState(3).permutation(len(PLANE)), start
    for first in (0, 256, 512):
        part = order[first : first + 256]
        share = (first + len(part) / 2) / len(PLANE)
        radius = 2.0 - 1.5 * share if decay == "linear" else 2.0 * 0.25**share
        expected = slow_map(PLANE, expected, places, radius, 0.4 * (1 - share), part)
    assert np.allclose(model.prototypes_, expected, atol=1e-3)  # what is far from the winner stays where it is
    assert not np.allclose(model.prototypes_, slow_map(PLANE, start, places, 2.0, 0.4, order), atol=1e-2)


@pytest.mark.mission("NNW-30")
def test_radius_zero_is_online_k_means():
    start = PLANE[:6]
    options = {"radius": 0.0, "radius_end": 0.0, "learning_rate": "count"}
    model = SelfOrganizingMap((2, 3), algorithm="online", init=start, max_iter=1, random_state=1, **options).fit(PLANE)
    order = np.random.RandomState(1).permutation(len(PLANE))
    assert np.allclose(model.prototypes_, online_k_means(PLANE, start, order), atol=1e-12)
    batch = SelfOrganizingMap((2, 3), init=start, radius=0.0, radius_end=0.0, max_iter=300).fit(PLANE)
    lloyd = KMeans(6, init=start, n_init=1, tol=0, max_iter=300).fit(PLANE)
    assert np.allclose(batch.prototypes_, lloyd.cluster_centers_, atol=1e-9)


@pytest.mark.mission("NNW-30")
@pytest.mark.parametrize("algorithm", ["batch", "online"])
def test_a_square_is_mapped_and_the_quantisation_error_falls(algorithm):
    model = quiet(lambda: SelfOrganizingMap((8, 8), algorithm=algorithm, random_state=0).fit(PLANE))
    errors = [step.objective for step in model.history_]
    assert errors[-1] < 0.5 * max(errors)
    assert model.topographic_error(PLANE) < 0.05
    assert model.quantization_error(PLANE) < 0.06
    assert model.u_matrix_.shape == (8, 8)


@pytest.mark.mission("NNW-30", "NNW-31")
@pytest.mark.parametrize("grid", ["rectangular", "hexagonal"])
def test_every_seed_maps_colours(grid):
    for seed in range(10):
        X = colours(seed)
        for algorithm in ("batch", "online"):
            model = SelfOrganizingMap((10, 10), grid=grid, algorithm=algorithm, random_state=seed)
            assert quiet(partial(model.fit, X)).topographic_error(X) < 0.1


@pytest.mark.mission("NNW-31")
@pytest.mark.parametrize(
    ("grid", "neighbours"),
    # cells of 4 rows of 4; in a hexagonal grid odd rows are shifted by half a cell to the right
    [("rectangular", {0, 1, 2, 4, 6, 8, 9, 10}), ("hexagonal", {1, 2, 4, 6, 9, 10})],
)
def test_the_topographic_error_counts_rows_whose_two_nearest_cells_do_not_touch(grid, neighbours):
    """Prototypes are so placed that cell 5 is nearest and another one second; the only neighbours are those around."""
    for other in set(range(16)) - {5}:
        places = 100.0 + 10.0 * np.arange(16.0)[:, None]
        places[5], places[other] = 0.0, 1.0
        model = quiet(lambda places=places: _resting(grid, places))
        assert model.topographic_error([[0.1]]) == (0.0 if other in neighbours else 1.0), other


def _resting(grid, places):
    """Return a map whose prototypes are where they were put."""
    shared = {"algorithm": "online", "radius": 0.0, "radius_end": 0.0, "max_iter": 1}
    return SelfOrganizingMap((4, 4), grid=grid, init=places, **shared).fit(places)


@pytest.mark.mission("NNW-31", "DEC-09")
def test_a_trained_map_keeps_distances_better_than_a_random_one():
    X = colours(0)
    trained = quiet(lambda: SelfOrganizingMap((10, 10)).fit(X))
    start = X[np.random.default_rng(0).choice(500, 100, replace=False)]
    chance = SelfOrganizingMap((10, 10), init=start, algorithm="online", radius=0.0, radius_end=0.0, max_iter=1).fit(X)
    good, bad = (distance_correlation(X, model.transform(X)) for model in (trained, chance))
    assert good > bad + 0.2
    assert trained.topographic_error(X) < chance.topographic_error(X)
    assert trained.transform(X).shape == (500, 2)
    assert trained.inverse_transform(trained.transform(X)).shape == X.shape


def test_files_clusters_and_threads_give_the_same_map(tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = np.random.default_rng(1).normal(size=(3000, 3))
    pq.write_table(pa.table({name: X[:, j] for j, name in enumerate("abc")}), tmp_path / "rows.parquet")
    one, two, file, spread = (
        quiet(lambda n=n, rows=rows: SelfOrganizingMap((4, 4), max_iter=12, n_jobs=n).fit(rows))
        for n, rows in ((1, X), (3, X), (2, str(tmp_path / "rows.parquet")), (1, da.from_array(X, chunks=(700, 3))))
    )
    assert np.allclose(one.prototypes_, spread.prototypes_, atol=1e-12)
    assert np.array_equal(one.prototypes_, two.prototypes_)
    assert np.allclose(one.prototypes_, file.prototypes_, atol=1e-12)


def test_the_batch_map_rests_where_its_certificate_says():
    model = SelfOrganizingMap((5, 5), max_iter=400).fit(PLANE)
    certificate = sound(model, PLANE, holdout=(PLANE[::2] + 0.01, None), clip=1.0)
    assert certificate.find("som.fixed-point").value < 1e-6
    assert certificate.find("som.topographic-error").value == pytest.approx(model.topographic_error(PLANE))
    fixed = certificate.find("som.fixed-point")
    bare = model.certify(PLANE)
    assert not forged(bare, "som.fixed-point", model, PLANE, params=fixed.params | {"radius": 0.9})
    assert not forged(bare, "som.fixed-point", model, PLANE, value=fixed.value / 1e9)
    rough = SelfOrganizingMap((5, 5), init=PLANE[:25], radius=0.0, radius_end=0.0, max_iter=300).fit(PLANE)
    torn = sound(rough, PLANE).find("som.topographic-error")
    assert torn.value > 0.1
    assert not forged(rough.certify(PLANE), "som.topographic-error", rough, PLANE, value=torn.value / 2)
    model.prototypes_ = model.prototypes_ + 1e-3
    assert model.certify(PLANE).find("som.fixed-point").value > 1e-4


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"shape": 5}, "shape must be"),
        ({"shape": (0, 3)}, "shape must be"),
        ({"radius": 0.1}, "radius must be at least"),
        ({"learning_rate": 2.0}, "learning_rate must be at most 1"),
        ({"init": np.zeros((3, 2))}, "init must be"),
    ],
)
def test_maps_that_cannot_be_are_refused(parameters, word):
    with pytest.raises(ValueError, match=word):
        SelfOrganizingMap(**parameters).fit(PLANE)


def test_distances_without_order_are_refused():
    with pytest.raises(ValueError, match="no order"):
        distance_correlation(np.zeros((4, 2)), PLANE[:4])
