"""Concepts and version spaces against truth tables and enumeration."""

import itertools
import math

import numpy as np
import pytest

from assay.datasets import programmers, vehicles
from assay.ensemble import RandomForestClassifier
from assay.neighbors import KNeighborsClassifier
from assay.textbook.concepts import (
    Concept,
    Conjunctions,
    LookupTable,
    Pattern,
    Problem,
    RuleBook,
    VersionSpace,
    consistent,
    contradictions,
    disagreement,
    polygons,
)
from assay.textbook.risk import FiniteDistribution
from assay.theory.spaces import Finite, HalfSpaces
from assay.theory.vc import separate
from assay.tree import DecisionTreeClassifier

BOOLEAN = ("yes", "no")


@pytest.mark.mission("CON-02")
def test_the_triangle_concept():
    assert polygons()[0]([3, 4, 5]).tolist() == [1, -1, -1]
    names = {concept.name: concept([3, 4, 5, 6]).tolist() for concept in polygons()}
    assert names["quadrilateral"] == [-1, 1, -1, -1]
    assert names["pentagon"] == [-1, -1, 1, -1]


@pytest.mark.mission("CON-03", "CON-08")
def test_a_target_concept_agrees_with_every_row_and_one_flip_breaks_it():
    rng = np.random.default_rng(0)
    target = Concept("even", lambda v: v % 2 == 0)
    rows = rng.integers(0, 100, 30)
    labels = target(rows)
    assert consistent(target, rows, labels)
    labels[7] *= -1
    assert not consistent(target, rows, labels)
    assert consistent(target, rows, labels) == (np.mean(target(rows) != labels) == 0)


@pytest.mark.mission("CON-04")
def test_a_concept_class_of_polygons():
    space = Finite(polygons())
    assert len(space) == 3
    patterns = space.patterns([3, 4, 5])
    assert np.array_equal(patterns, 2 * np.eye(3, dtype=int) - 1)
    assert [concept.name for concept in space] == ["triangle", "quadrilateral", "pentagon"]
    triangle, *others = polygons()
    assert triangle in space
    assert triangle not in Finite(others)
    assert Concept("triangle", lambda corners: corners == 4) not in space
    left = VersionSpace(space).observe(3, -1)
    assert list(left) == others
    assert triangle not in left
    assert others[0] in left
    for asked in (lambda: list(Finite(3)), lambda: triangle in Finite(3)):
        with pytest.raises(ValueError, match="only the number"):
            asked()


@pytest.mark.mission("CON-05", "CON-10")
@pytest.mark.parametrize("k", [1, 2, 4])
def test_conjunctions_are_counted_listed_and_drawn(k):
    space = Conjunctions((BOOLEAN,) * k)
    listed = list(space)
    assert len(space) == len(listed) == len(set(listed)) == 3**k + 1
    assert all(pattern in space for pattern in listed)
    assert Pattern(("maybe",) * k) not in space
    rng = np.random.default_rng(1)
    drawn = [space.sample(rng) for _ in range(40 * len(space))]
    counts = np.array([drawn.count(pattern) for pattern in listed])
    assert counts.min() > 10
    rows = list(itertools.product(BOOLEAN, repeat=k))
    assert len({tuple(pattern(rows)) for pattern in listed}) == 3**k + 1  # no two mean the same
    assert {label for pattern in listed for label in pattern(rows)} == {-1, 1}


@pytest.mark.mission("CON-10")
def test_a_pattern_matches_by_its_truth_table():
    pattern = Pattern(("yes", None, "yes", None))
    rows = list(itertools.product(BOOLEAN, repeat=4))
    assert pattern(rows).tolist() == [1 if a == "yes" and c == "yes" else -1 for a, _, c, _ in rows]
    assert str(pattern) == "(yes, ?, yes, ?)"
    assert set(Pattern(None)(rows)) == {-1}


@pytest.mark.mission("CON-11")
def test_the_table_of_programmers_contradicts_itself():
    names, _, rows, labels = programmers()
    pattern = Pattern(("yes", None, "yes", None))
    wrong = [name for name, guess, label in zip(names, pattern(rows), labels) if guess != label]
    assert wrong == ["programmer B", "doctor A"]
    (found,) = contradictions(rows, labels)
    assert [names[i] for i in found.numbers] == ["doctor A", "programmer C"]
    assert set(found.labels) == {-1, 1}
    kept = [i for i in range(6) if i != found.numbers[0]]
    assert not contradictions([rows[i] for i in kept], [labels[i] for i in kept])
    with pytest.raises(ValueError, match="6 rows and 5 labels"):
        contradictions(rows, labels[:5])
    space = VersionSpace(Conjunctions((BOOLEAN,) * 4))
    for row, label in zip(rows, labels):
        space.observe(row, label)
    assert not space.separable
    with pytest.raises(ValueError, match="not separable"):
        space.choose(lambda h: 0)


@pytest.mark.mission("CON-06", "CON-08", "CON-28")
def test_the_version_space_is_what_brute_force_leaves():
    rng = np.random.default_rng(2)
    everything = list(Conjunctions((BOOLEAN,) * 4))
    for _ in range(20):
        target = everything[rng.integers(1, len(everything))]
        rows = [tuple(rng.choice(BOOLEAN, 4)) for _ in range(8)]
        labels = target(rows)
        space = VersionSpace(everything)
        for row, label in zip(rows, labels):
            space.observe(row, int(label))
        assert space.sizes == [
            sum(np.array_equal(h(rows[:k]), labels[:k]) for h in everything) if k else 82 for k in range(9)
        ]
        assert len(space) == space.sizes[-1]
        assert repr(space) == f"VersionSpace({len(space)} of 82 hypotheses after 8 rows)"
        assert target in space.hypotheses
        assert space.hypotheses == [h for h in everything if np.array_equal(h(rows), labels)]
        assert space.hypotheses == [h for h in everything if consistent(h, rows, labels)]


@pytest.mark.mission("CON-07")
def test_separability_agrees_with_enumeration_and_with_the_linear_programme():
    rng = np.random.default_rng(3)
    lines = [
        lambda X, w=w, b=b: np.where(X @ w + b > 0, 1, -1)
        for w, b in zip(rng.normal(size=(60, 2)), rng.normal(size=60))
    ]
    seen = set()
    for _ in range(40):
        X, y = rng.normal(size=(4, 2)), rng.choice([-1, 1], 4)
        space = VersionSpace(lines)
        for row, label in zip(X, y):
            space.observe(row, int(label))
        assert space.separable == any(np.array_equal(h(X), y) for h in lines)
        assert HalfSpaces(2).realizes(X, y) == separate(X, y).separable
        assert separate(X, y).separable or not space.separable
        seen.add((space.separable, separate(X, y).separable))
    assert len(seen) == 3


@pytest.mark.mission("CON-09")
def test_disagreement_is_a_pseudo_metric_with_an_interval():
    rng = np.random.default_rng(4)
    law = FiniteDistribution(np.arange(8), np.ones(8, dtype=int), rng.dirichlet(np.ones(8)))
    hypotheses = [lambda x, c=c: c[x] for c in rng.choice([-1, 1], (5, 8))]
    for a, b, c in itertools.product(hypotheses, repeat=3):
        assert law.disagreement(a, a) == 0
        assert law.disagreement(a, b) == law.disagreement(b, a)
        assert law.disagreement(a, c) <= law.disagreement(a, b) + law.disagreement(b, c) + 1e-12
    outside = 0
    for _ in range(400):
        x, _ = law.sample(60, rng)
        estimate = disagreement(hypotheses[0], hypotheses[1], x, 0.2)
        outside += not estimate.lower <= law.disagreement(hypotheses[0], hypotheses[1]) <= estimate.upper
    assert outside <= 120
    apart = np.mean([hypotheses[0](v) != hypotheses[1](v) for v in x])
    half = math.sqrt(math.log(2 / 0.2) / 120)
    assert estimate == pytest.approx((apart, max(0.0, apart - half), min(1.0, apart + half)), rel=1e-9)
    exact = sum(p for v, p in zip(law.X, law.probability) if hypotheses[0](v) != hypotheses[1](v))
    assert law.disagreement(hypotheses[0], hypotheses[1]) == pytest.approx(exact)


@pytest.mark.mission("CON-12", "CON-13")
def test_rules_written_by_hand_and_rules_learnt():
    def by_hand(wheels, doors):
        if wheels == 4:
            return "car" if doors >= 3 else "tractor"
        return "truck" if wheels > 4 else "other"

    book = RuleBook(
        (
            (lambda row: row[0] == 4 and row[1] >= 3, "car"),
            (lambda row: row[0] == 4, "tractor"),
            (lambda row: row[0] > 4, "truck"),
        ),
        default="other",
    )
    rows = list(itertools.product(range(2, 9), range(6)))
    assert book.predict(rows) == [by_hand(*row) for row in rows]
    # learnt instead: vehicles with four wheels are cars, from examples only
    table = [(("4", doors), 1) for doors in "2345"] + [((wheels, doors), -1) for wheels in "68" for doors in "23"]
    space = VersionSpace(Conjunctions((("4", "6", "8"), tuple("2345"))))
    for row, label in table:
        space.observe(row, label)
    learnt = space.choose(lambda pattern: sum(v is not None for v in pattern.values or ()))
    assert str(learnt) == "(4, ?)"
    assert learnt([row for row, _ in table]).tolist() == [label for _, label in table]


@pytest.mark.mission("CON-12", "CON-13")
def test_vehicles_are_learnt_from_examples_alone():
    X, kind = vehicles(300, seed=2)
    book = RuleBook(((lambda row: row[1] == 0, "trailer"), (lambda row: row[0] == 4, "car")), default="truck")
    assert book.predict(X) == kind.tolist()
    for learner in (DecisionTreeClassifier(), KNeighborsClassifier(1), RandomForestClassifier(10, random_state=0)):
        assert np.array_equal(learner.fit(X, kind).predict(X), kind)


@pytest.mark.mission("CON-45")
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 8, 31, 100])
def test_queries_find_a_threshold_by_bisection(n):
    points = list(range(n))
    asked = []
    for truth in range(n + 1):
        cuts = [lambda rows, t=t: np.where(np.asarray(rows) >= t, 1, -1) for t in range(n + 1)]
        space, queries = VersionSpace(cuts), 0
        while (i := space.query(points)) is not None:
            space.observe(points[i], 1 if points[i] >= truth else -1)
            queries += 1
        assert len(space) == 1
        assert space.hypotheses[0](points).tolist() == [1 if p >= truth else -1 for p in points]
        asked.append(queries)
    assert max(asked) == math.ceil(math.log2(n + 1))
    assert VersionSpace([lambda rows: np.ones(len(rows))]).query(points) is None


@pytest.mark.mission("CON-14")
def test_a_lookup_table_knows_its_rows_and_nothing_else():
    rng = np.random.default_rng(5)
    rows = [tuple(row) for row in {tuple(rng.integers(0, 5, 3)) for _ in range(60)}]
    labels = [int(sum(row) % 2) for row in rows]
    table = LookupTable(default=0).fit(rows[:30], labels[:30])
    assert table.predict(rows[:30]) == labels[:30]
    unseen = table.predict(rows[30:])
    assert np.mean(np.array(unseen) != labels[30:]) == np.mean(np.array(labels[30:]) != 0)
    with pytest.raises(ValueError, match="was never seen"):
        LookupTable().fit(rows[:30], labels[:30]).predict(rows[30:])
    assert LookupTable().fit([(1,), (1,), (1,)], ["a", "b", "b"]).predict([(1,)]) == ["b"]
    assert LookupTable().fit([(1,), (1,)], ["b", "a"]).predict([(1,)]) == ["b"]  # the first seen of equals
    assert LookupTable().fit([(1,)] * 5, ["a", "b", "a", "b", "b"]).predict([(1,)]) == ["b"]


@pytest.mark.mission("CON-16")
def test_two_preferences_choose_two_hypotheses():
    space = VersionSpace(Conjunctions((BOOLEAN,) * 2)).observe(("yes", "no"), 1).observe(("no", "no"), -1)
    short = space.choose(lambda p: sum(v is not None for v in p.values or ()))
    cautious = space.choose(lambda p: -sum(v is not None for v in p.values or ()))
    assert (str(short), str(cautious)) == ("(yes, ?)", "(yes, no)")
    for chosen in (short, cautious):
        assert consistent(chosen, [("yes", "no"), ("no", "no")], [1, -1])
    assert [str(h) for h in space] == ["(yes, ?)", "(yes, no)"]
    assert (space.sizes, len(Conjunctions((BOOLEAN,) * 2))) == ([10, 4, 2], 10)
    assert len(Conjunctions((BOOLEAN, ("a", "b", "c")))) == 3 * 4 + 1


@pytest.mark.mission("LTH-17")
def test_a_proper_learner_answers_with_a_concept():
    concepts = tuple(polygons())
    proper = Problem(concepts, concepts)
    wider = Problem(concepts, (*concepts, Concept("round", lambda v: v > 50)))
    assert proper.proper
    assert not wider.proper
    rows, labels = [3, 4, 5, 60], [-1, -1, -1, 1]
    assert proper.erm(rows, labels) in concepts
    assert wider.erm(rows, labels).name == "round"
    for concept, corners in zip(concepts, (3, 4, 5)):
        assert proper.erm([3, 4, 5, 6], [1 if v == corners else -1 for v in (3, 4, 5, 6)]) == concept
    assert proper.erm([4, 4, 5], [1, 1, 1]) == concepts[1]  # one error; the others make more
    assert {label for concept in concepts for label in concept([3, 4, 5])} == {-1, 1}
