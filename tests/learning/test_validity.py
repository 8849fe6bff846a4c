"""`python -m bench validity` in small: the whole main job, from a CSV file to the printed sentence, where the truth is
known; and that the benchmark sees a limit that does not hold, and names what it does not judge."""

import re
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from bench import truth, validity
from bench.fresh import Estimate, Fresh, share, write
from bench.table_worlds import TARGET, WORLDS, World
from bench.truth import Limit

QUICK = (
    "sorted-by-target", "folds-classes", "tiny-60", "metric-f1", "groups-numbers", "slider", "many-codes-telling-gaps",
    "own-labels", "numbers-sorted",
)  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", QUICK)
def test_limits_hold_in_a_few_studies(name):
    records = [validity.study(name, number, fresh=4000) for number in range(5)]
    assert not any(one.get("verified") or "failed" in one or "refused" in one for one in records), records
    lines = validity.lines_of(records)
    assert {line.name for line in lines} >= {"claims, any", "sentences, any"}
    assert [line for line in lines if line.p < validity.FLAG] == []


@pytest.mark.long(by_hand="thousands of studies")
@pytest.mark.parametrize("name", WORLDS)
def test_release_size(name):
    records = [validity.study(name, number) for number in range(200)]
    assert not any(one.get("verified") for one in records)
    assert [line for line in validity.lines_of(records) if line.p < validity.FLAG / len(WORLDS)] == []


def test_there_are_two_dozen_worlds_and_each_says_what_it_is():
    assert len(WORLDS) >= 24
    for world in WORLDS.values():
        assert re.fullmatch(r"[A-Z0-9].*\.", world.says), world.name


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_draw_rows_of_one_source(name):
    """The same columns whatever the number of rows, nothing that depends on it, and the table's order alone differs."""
    world = WORLDS[name]
    table, few = world.table(np.random.default_rng(0)), world.draw(np.random.default_rng(1), 20)
    assert list(table) == list(few)
    assert TARGET in table
    again = world.table(np.random.default_rng(0))
    assert all(np.array_equal(table[column], again[column]) for column in table)
    if world.sort is not None:
        assert (np.sort(table[world.sort]) == table[world.sort]).all()


# The truth, by oracles that are not ours


def _model(said, proba=None, classes=("no", "yes")):
    return SimpleNamespace(
        predict=lambda path: said, predict_proba=lambda path: proba, classes_=np.array(classes), task="classify"
    )


@pytest.fixture
def fresh(tmp_path):
    world = WORLDS["metric-f1"]
    return Fresh(world, np.random.default_rng(3), 500, tmp_path / "fresh.csv")


def test_metrics_are_those_of_scikit_learn(fresh):
    rng = np.random.default_rng(0)
    score = rng.integers(0, 20, 500) / 20 + 0.2 * (fresh.y == "yes")
    model = _model(np.where(score > 0.6, "yes", "no"), np.stack([-score, score], axis=1))
    said = model.predict(None)
    assert truth.f1(fresh, model, "yes").value == pytest.approx(f1_score(fresh.y, said, pos_label="yes"))
    assert truth.balanced(fresh, model).value == pytest.approx(1 - balanced_accuracy_score(fresh.y, said))
    area = truth.auc(score, fresh.y == "yes")
    assert area.value == pytest.approx(roc_auc_score(fresh.y == "yes", score))


def test_error_of_the_area_is_that_of_repeated_draws():
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(300):
        positive = rng.random(400) < 0.3
        drawn.append(truth.auc(rng.normal(size=400) + positive, positive))
    values, errors = np.array(drawn).T
    assert errors.mean() == pytest.approx(values.std(), rel=0.15)


def test_unknown_labels_are_errors(fresh):
    model = _model(np.where(fresh.y == "yes", "never", fresh.y))
    assert fresh.wrong(model).sum() == (fresh.y == "yes").sum()


# Counting


def test_the_chance_of_counts_is_exact():
    deltas = [0.1, 0.3, 0.5, 0.05]
    whole = [Fraction(d).limit_denominator(100) for d in deltas]
    for least in range(5):
        exact = sum(
            np.prod([d if event else 1 - d for d, event in zip(whole, events, strict=True)])
            for events in product([0, 1], repeat=4)
            if sum(events) >= least
        )
        assert validity.chance_of(least, deltas) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize(
    ("direction", "value", "expected"),
    [("upper", 0.31, "holds"), ("upper", 0.29, "close"), ("upper", 0.25, "violated"),
     ("lower", 0.29, "holds"), ("lower", 0.31, "close"), ("lower", 0.35, "violated")],
)  # fmt: skip
def test_a_limit_is_violated_beyond_four_standard_errors(direction, value, expected):
    limit = Limit("a", 0.05, direction, value, lambda _: Estimate(0.3, 0.01))
    assert validity._state(limit, Estimate(0.3, 0.01)) == expected


def test_no_error_among_few_rows_leaves_room():
    assert share(np.zeros(10)).error > 0.05


def _found(why, claims=(), model=None):
    certificate = SimpleNamespace(claims=claims, unreported=(), delta_total="0.05", split=None)
    return SimpleNamespace(
        why=why, confidence="0.95", certificate=certificate, model=model, folds=(), clip=2.0, candidates=[],
        task="classify",
    )  # fmt: skip


def test_every_printed_limit_is_read_or_named(fresh):
    model = _model(np.full(500, "no"))
    why = (
        "On new data like these it errs in at most 12.5 % of cases, its F1 of yes is at least 0.4, with 95 % "
        "confidence; it is proved to beat always predicting no, by at least 1.5 %. Its weight is at most 3."
    )
    limits, unknown = truth.of_sentences(_found(why, model=model), fresh.y)
    assert {(one.name, one.direction, one.value) for one in limits} == {
        ("sentence errs in at most", "upper", 0.125),
        ("sentence F1", "lower", 0.4),
        ("sentence beats the baseline", "lower", 0.015),
    }
    assert unknown == ["sentence by at least 1.5 %. Its weight is at most 3"] or "weight is at most 3" in unknown[0]
    rate = next(one for one in limits if one.name == "sentence errs in at most")
    assert rate.truth(fresh).value == pytest.approx(np.mean(fresh.y == "yes"))


def test_a_claim_of_unknown_kind_is_named(fresh):
    claim = SimpleNamespace(
        name="holdout.new", kind="holdout.new", quantity="", params={}, direction="upper", value=0.1, delta="0.05",
        is_fact=False,
    )  # fmt: skip
    limits, unknown = truth.of_certificate(_found("", [claim], _model(fresh.y)), fresh.y)
    assert (limits, unknown) == ([], ["claim holdout.new"])


def test_a_limit_that_is_too_small_is_seen(monkeypatch):
    """Studies whose certificates are about other rows than the new ones: the benchmark has to fail them."""
    source = WORLDS["sorted-by-target"]

    def draw(rng, n):  # tables have a class that a column tells, new rows do not
        columns = source.draw(rng, n)
        if n != source.rows:
            columns["y"] = rng.permutation(columns["y"])
        return columns

    monkeypatch.setitem(WORLDS, source.name, World(source.name, source.says, draw, source.rows, source.options))
    lines = validity.lines_of(validity.study(source.name, number, fresh=4000) for number in range(5))
    assert {line.name for line in lines if line.p < validity.FLAG} >= {"claims, any", "sentences, any"}


def test_a_run_goes_on_from_its_file(tmp_path, monkeypatch, capsys):
    done = []

    def study(name, number, seed, fresh):
        done.append((name, number))
        limits = {"claim a": [0.05, False, 0.2, 0.1, "upper"]}
        return {"world": name, "study": number, "seed": seed, "limits": limits, "not judged": ["b"], "seconds": 0.1}

    monkeypatch.setattr(validity, "study", study)
    file = tmp_path / "kept.jsonl"
    for studies in ("2", "3"):
        with pytest.raises(SystemExit) as stopped:
            validity.main(["--worlds", "tiny-30,tiny-60", "--studies", studies, "--keep", str(file)])
        assert stopped.value.code == 0
    assert done == [(world, i) for world in ("tiny-30", "tiny-60") for i in (0, 1)] + [("tiny-30", 2), ("tiny-60", 2)]
    assert len(validity.kept(file)) == 6
    said = capsys.readouterr().out
    assert "not judged: b (6 studies)" in said
    assert "6 studies of 2 worlds" in said


def test_empty_cells_are_written_empty(tmp_path):
    path = tmp_path / "table.csv"
    write({"code": np.array(["007", None], dtype=object), "x": [1.5, 2.0]}, path)
    assert path.read_text().splitlines()[1:] == ["007,1.5", ",2"]


def test_finalists_that_were_not_chosen_are_judged_too():
    """A bound that is shown beside a learner of the leaderboard is about that learner's model."""
    record = validity.study("pure-noise", 2, fresh=2000)
    ranks = {line.split()[1] for line in record["limits"] if line.startswith("finalist ")}
    assert ranks >= {"1", "2"}
    assert "leaderboard bounds" in record["limits"]
    assert not any("finalist" in one for one in record["not judged"])
