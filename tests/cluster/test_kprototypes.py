"""KModes and KPrototypes: brute force, k-means as a special case, frames with gaps, certificates and forgeries."""

import doctest
import itertools
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import assay
from assay import persist
from assay.cluster import KMeans, KModes, KPrototypes


def mixed(seed, n=200):
    """Return three heaps with two numbers and three names each."""
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n)
    numbers = 5 * np.stack([z, -z], axis=1) + rng.normal(size=(n, 2))
    names = np.where(rng.uniform(size=(n, 3)) < 0.8, z[:, None], rng.integers(3, size=(n, 3)))
    return np.column_stack([numbers, names]), z


def differing(rows, modes):
    return (rows[:, None, :] != modes[None]).sum(axis=2)


def test_modes_against_all_partitions_of_few_rows():
    X = np.random.default_rng(0).integers(3, size=(7, 3)).astype(float)
    best = np.inf
    for labels in itertools.product(range(2), repeat=7):
        labels = np.array(labels)
        cost = 0
        for j in range(2):
            for column in X[labels == j].T:
                cost += len(column) - np.unique(column, return_counts=True)[1].max(initial=0)
        best = min(best, cost)
    model = KModes(2, n_init=20, random_state=0).fit(X)
    assert model.cost_ == best
    assert model.cost_ == differing(X, model.prototypes_).min(axis=1).sum()
    assert np.array_equal(model.labels_, differing(X, model.prototypes_).argmin(axis=1))


def test_names_alone_are_modes_and_numbers_alone_are_means():
    X, _ = mixed(1)
    names, numbers = X[:, 2:], X[:, :2]
    start = names[[0, 50, 100]]
    modes = KModes(3, init=start).fit(names)
    same = KPrototypes(3, nominal=[0, 1, 2], gamma=1.0, init=start).fit(names)
    assert np.array_equal(modes.prototypes_, same.prototypes_)
    assert same.cost_ == modes.cost_
    means = KPrototypes(3, init=numbers[:3]).fit(numbers)
    peer = KMeans(3, init=numbers[:3], tol=0).fit(numbers)
    assert means.prototypes_ == pytest.approx(peer.cluster_centers_, abs=1e-12)
    assert means.cost_ == pytest.approx(peer.inertia_, rel=1e-12)


def test_a_step_never_raises_the_cost_and_the_end_is_a_fixed_point():
    X, z = mixed(2)
    model = KPrototypes(3, nominal=[2, 3, 4], n_init=1, random_state=1).fit(X)
    costs = [step.objective for step in model.history_]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(costs))
    assert model.gamma_ == pytest.approx(0.5 * X[:, :2].std(axis=0).mean())
    for j in range(3):
        own = X[model.labels_ == j]
        assert model.prototypes_[j, :2] == pytest.approx(own[:, :2].mean(axis=0), abs=1e-12)
        for f in (2, 3, 4):
            values, counts = np.unique(own[:, f], return_counts=True)
            assert model.prototypes_[j, f] == values[counts.argmax()]
    by_hand = ((X[:, None, :2] - model.prototypes_[None, :, :2]) ** 2).sum(axis=2)
    by_hand = by_hand + model.gamma_ * differing(X[:, 2:], model.prototypes_[:, 2:])
    assert model.cost_ == pytest.approx(by_hand.min(axis=1).sum(), rel=1e-12)
    assert len({(int(a), int(b)) for a, b in zip(z, model.labels_)}) < 9  # heaps are found, up to names
    one, many = (KPrototypes(3, nominal=[2, 3, 4], random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 3))
    assert np.array_equal(one.prototypes_, many.prototypes_)


def test_gaps_add_nothing_and_are_left_out():
    X = np.array([[0.0, 1], [np.nan, 1], [2, np.nan], [10, 2], [12, 2], [np.nan, 2]])
    model = KPrototypes(2, nominal=[1], gamma=1.0, init=[[0.0, 1], [10, 2]]).fit(X)
    assert model.prototypes_.tolist() == [[1.0, 1.0], [11.0, 2.0]]
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 1]
    assert model.cost_ == 4.0
    with pytest.raises(ValueError, match="certificates need complete rows"):
        model.certify(X)
    empty = KModes(1).fit([[1.0, np.nan], [1.0, np.nan], [2.0, np.nan]])
    assert empty.cost_ == 1.0


def test_frames_are_read_by_their_types_and_saved_with_their_levels(tmp_path):
    X, _ = mixed(3, n=90)
    words = np.array(["low", "middle", "high"])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": words[X[:, 2].astype(int)], "d": words[X[:, 3].astype(int)]})
    model = KPrototypes(3, random_state=0).fit(frame)
    assert model.nominal_columns_.tolist() == [0, 0, 1, 1]
    assert {row["c"] for row in model.described()} == set(words)
    new = frame.head(4).copy()
    new.loc[0, "c"] = "never seen"
    assert model.predict(new).shape == (4,)
    path = tmp_path / "model.assay"
    persist.save(model, path)
    again = persist.load(path).model
    assert np.array_equal(again.predict(frame), model.labels_)
    assert again.described() == model.described()
    certificate = model.certify(frame)
    report = assay.verify(certificate, model, model.codes(frame))
    assert report.holds, report.reason
    with pytest.raises(ValueError, match="must have them too"):
        model.predict(X[:, :4])
    numbers = KPrototypes(3, random_state=0).fit(X[:, :2])
    with pytest.raises(ValueError, match="fitted to numbers"):
        numbers.predict(frame[["a", "c"]])
    modes = KModes(3, random_state=0).fit(frame[["c", "d"]])
    text = KModes(3, random_state=0).fit(frame[["c", "d"]].to_numpy())
    assert modes.cost_ == text.cost_


@pytest.mark.parametrize("kind", ["mixed", "names"])
def test_the_certificate_holds_and_forgeries_are_refused(kind):
    X, new = mixed(4)[0], mixed(5)[0]
    X, new = (X, new) if kind == "mixed" else (X[:, 2:], new[:, 2:])
    model = (KPrototypes(3, nominal=[2, 3, 4], random_state=0) if kind == "mixed" else KModes(3, random_state=0)).fit(X)
    # Rows of names repeat, so that hold-out rows would be training rows again; numbers do not.
    holdout = {"holdout": (new, None)} if kind == "mixed" else {}
    certificate = model.certify(X, **holdout, **({"clip": 60.0} if holdout else {}))
    report = assay.verify(certificate, model, X, **holdout)
    assert report.holds, report.reason
    fact = certificate.find("prototypes.fixed-point")
    assert fact.value == pytest.approx(model.cost_, rel=1e-5)
    assert fact.params["odd"] == 0
    assert fact.params["shift"] < 1e-9
    forged = [
        replace(fact, value=fact.value * 0.999),
        replace(fact, params={**fact.params, "clusters": 2}),
        replace(fact, params={**fact.params, "rows": 1}),
    ]
    for one in forged:
        claims = tuple(one if claim is fact else claim for claim in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, **holdout).holds
    model.prototypes_ = model.prototypes_.copy()
    model.prototypes_[0, -1] = (model.prototypes_[0, -1] + 1) % 3
    honest = model.certify(X)
    assert honest.find("prototypes.fixed-point").params["odd"] >= 1
    assert assay.verify(honest, model, X).holds
    lie = replace(
        honest.find("prototypes.fixed-point"), params={**honest.find("prototypes.fixed-point").params, "odd": 0}
    )
    claims = tuple(lie if claim.name == "prototypes.fixed-point" else claim for claim in honest.claims)
    assert not assay.verify(replace(honest, claims=claims), model, X).holds


def test_refusals_and_examples():
    X, _ = mixed(6, n=20)
    for model, message in (
        (KPrototypes(21), "needs as many rows"),
        (KPrototypes(2, nominal=[7]), "column positions from 0 to 4"),
        (KPrototypes(2, gamma=-1.0), "gamma"),
        (KPrototypes(2, init=X[:3]), "2 prototypes"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X)
    same = KModes(3, random_state=0).fit(np.ones((5, 2)))
    assert same.cost_ == 0
    outcome = doctest.testmod(import_module("assay.cluster._kprototypes"))
    assert outcome.failed == 0 < outcome.attempted
