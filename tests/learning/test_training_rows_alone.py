"""What turns a row into numbers comes from training rows; hold-out rows are read as `predict` reads new ones."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.checker.record import Rejected
from assay.checker.tables import _compare
from assay.claims.model import StoredModel
from assay.data import Encoding, raw_table
from assay.guarantees.fingerprint import HOLDOUT, fold_of_rows, permutation

N = 200


def cells(seed=0):
    """Columns of every kind as the text of a CSV file."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    words = ["red", "blue", "green", "house", "car", "boat", "tree", "sea"]
    return {
        "number": [f"{value:.3f}" for value in x],
        "money": [f"${1000 + 100 * value:,.2f}" for value in rng.normal(size=N)],
        "code": [f"c{i}" for i in rng.integers(0, 60, N)],
        "gaps": ["" if i % 7 == 0 else f"{value:.2f}" for i, value in enumerate(rng.normal(size=N))],
        "day": [f"{d:02d}.{m:02d}.2021" for d, m in zip(rng.integers(1, 29, N), rng.integers(1, 13, N), strict=True)],
        "text": [" ".join(rng.choice(words, 5)) for _ in range(N)],
        "y": np.where(x + 0.5 * rng.normal(size=N) > 0, "yes", "no").tolist(),
    }


def csv(columns, path):
    lines = [",".join(f'"{cell}"' for cell in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]), "utf-8")
    return path


def learnt(source, learner="LogisticRegression", **more):
    given = {"learners": [learner], "trials": 1, "workers": 0, **more}
    return assay.learn(source, "y", **given)


FOREIGN = {
    "number": ["lots", "1e400", "", "0007", "99999999999999999999"],
    "money": ["€5", "many", "-", "1.234,5", "12 %"],
    "code": ["never seen", "", "c0 ", "123", "c1"],
    "gaps": ["", "word", "7", "inf", "2021-01-01"],
    "day": ["2021-01-31", "31.02.2021", "", "12/31/2021", "yesterday"],
    "text": ["other words altogether in here", "", "7", "red", "sea sea sea sea sea"],
}


@pytest.mark.parametrize("learner", ["LogisticRegression", "DecisionTreeClassifier", "MixedNB"])
def test_no_cell_of_a_hold_out_row_has_a_part_in_the_model(learner, tmp_path):
    columns = cells()
    plain = learnt(csv(columns, tmp_path / "plain.csv"), learner)
    held = plain.judged[1]
    assert held.tolist() == np.sort(permutation(N, 0, HOLDOUT)[: len(held)]).tolist()
    for name, strange in FOREIGN.items():
        for row, cell in zip(held, strange, strict=False):
            columns[name][row] = cell
    columns["y"][held[7]], columns["y"][held[8]] = "perhaps", "never"
    path = csv(columns, tmp_path / "strange.csv")
    study = learnt(path, learner)
    assert study.judged[1].tolist() == held.tolist()
    assert study.model.encoding == plain.model.encoding
    assert study.model.learner.stored().digest() == plain.model.learner.stored().digest()
    told = study.model.predict(path)[held]  # as new rows are
    wrong = int(np.sum(told != np.array(columns["y"])[held]))
    assert study.certificate["holdout.binomial"].params["errors"] == wrong
    assert study.chosen.holdout_error == wrong / len(held)
    report = assay.verify(study.certificate, study.model, path)
    assert report.holds, report.reason


@pytest.mark.parametrize("learner", ["LogisticRegression", "DecisionTreeClassifier"])
def test_no_cell_of_a_fold_has_a_part_in_its_model(learner, tmp_path):
    columns = cells(1)
    plain = learnt(csv(columns, tmp_path / "plain.csv"), learner, certify="folds")
    mine = np.flatnonzero(fold_of_rows(N, 3, 0) == 0)
    for name, strange in FOREIGN.items():
        for row, cell in zip(mine, strange, strict=False):
            columns[name][row] = cell
    path = csv(columns, tmp_path / "strange.csv")
    study = learnt(path, learner, certify="folds")
    first, other = study.folds[0].model, plain.folds[0].model
    assert first.encoding == other.encoding
    assert first.learner.stored().digest() == other.learner.stored().digest()
    assert study.folds[1].model.encoding != plain.folds[1].model.encoding
    report = assay.verify(study.certificate, study.model, path)
    assert report.holds, report.reason
    assay.save(study.model, tmp_path / "m.assay", study.certificate)
    again = assay.load(tmp_path / "m.assay")
    assert again.model.predict(path).tolist() == study.model.predict(path).tolist()
    assert assay.verify(again.certificate, again.model, path).holds


def test_one_table_of_many_codes_and_gaps_is_certified_at_what_is_true(tmp_path):
    """Codes that hold-out rows alone have were encoded as zeros, and as gaps in use: 30 % was certified, 46 % true."""

    def draw(rng, n):
        code = rng.integers(0, 1500, n)
        gap = rng.random(n) < 0.15
        y = np.where(gap, rng.random(n) < 0.97, rng.random(n) < 0.25)
        names = [None if missing else f"code{i}" for i, missing in zip(code, gap, strict=True)]
        return {"code": names, "y": np.where(y, "yes", "no").tolist()}

    rng = np.random.default_rng(5)
    table, new = draw(rng, 1000), draw(rng, 20_000)
    study = learnt(table, trials=2, learners=["LogisticRegression", "MixedNB"])
    truth = np.mean(study.model.predict(new) != np.array(new["y"]))
    assert truth <= study.chosen.bound
    assert truth < 0.3  # a new level is no gap


def changed(study, change):
    """A model whose encoding was changed, and its certificate about it."""
    stored = study.model.stored()
    parameters = copy.deepcopy(stored.parameters)
    change(parameters)
    forged = StoredModel(stored.learner, stored.family, parameters, stored.arrays, stored.members)
    model = type(study.model).restore(forged, [study.model.learner], None)
    about = replace(study.certificate.model, digest=forged.digest())
    return model, replace(study.certificate, model=about)


def part(parameters, name):
    return next(one for one in parameters["encoding"] if one["name"] == name)


def one_level_more(parameters):
    """A level that no training row has, without a slot; what is remembered has a count for it."""
    code = part(parameters, "code")
    code["levels"], code["slots"] = [*code["levels"], "zz"], [*code["slots"][:-2], -1, *code["slots"][-2:]]
    parameters["memory"]["columns"][parameters["encoding"].index(code)]["counts"].append(0)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    columns = cells(2)
    path = csv(columns, tmp_path_factory.mktemp("numbers") / "t.csv")
    return learnt(path), path


FORGED = {
    "fill where no gap is": lambda p: part(p, "number").update(fill=1e9),
    "fill in the eleventh digit": lambda p: part(p, "number").update(fill=part(p, "number")["fill"] + 1e-11),
    "fill where gaps are": lambda p: part(p, "gaps").update(fill=part(p, "gaps")["fill"] + 1e-3),
    "mean": lambda p: part(p, "money")["scaling"].__setitem__(0, 0.0),
    "scale": lambda p: part(p, "number")["scaling"].__setitem__(1, 2.0),
    "scale of gaps": lambda p: part(p, "gaps")["gap"].__setitem__(1, 5.0),
    "two slots exchanged": lambda p: part(p, "code")["slots"].__setitem__(slice(0, 2), [1, 0]),
    "a level more": lambda p: one_level_more(p),
    "a date's fill": lambda p: part(p, "day")["parts"][0].update(fill=1990.0),
    "another word": lambda p: part(p, "text")["words"].__setitem__(0, "zebra"),
    "another form": lambda p: part(p, "number").update(written=[",", ".", "", ""]),
    "a size that was remembered": lambda p: p["memory"]["sizes"].__setitem__(slice(None), [0.0] * 50),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_changed_encoding_or_memory_is_rejected_by_library_and_command_alike(numbers, what, tmp_path):
    from typer.testing import CliRunner

    from assay.cli.app import app

    study, path = numbers
    assert assay.verify(study.certificate, study.model, path).holds
    model, certificate = changed(study, FORGED[what])
    report = assay.verify(certificate, model, path)
    assert not report.holds
    assert report.reason
    assay.save(model, tmp_path / "m.assay", certificate)
    said = CliRunner().invoke(app, ["verify", str(tmp_path / "m.assay"), str(path)])
    assert said.exit_code == 1


AWKWARD = {
    "constant": lambda x: np.full(len(x), 0.1),
    "nearly constant": lambda x: 1e9 / 3 * (1 + 2.0**-50 * (x > 0)),
    "far from zero": lambda x: x + 1e15,
    "cancelling": lambda x: np.where(x > 0, 1e15, -1e15) + x,
    "one outlier": lambda x: np.append(x[1:], 1e140),
    "tiny": lambda x: x * 1e-140,
    "mostly gaps": lambda x: np.where(np.arange(len(x)) > 1, np.nan, x),
}


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("rows", [3, 40, 5000])
def test_awkward_columns_give_the_checker_the_same_numbers(kind, rows):
    column = AWKWARD[kind](np.random.default_rng(rows).normal(size=rows))
    source = raw_table({"x": column.tolist()})
    (record,) = Encoding.fit(source.typed()).plain()
    _compare([record], {"x": source.cells("x", "numeric")})
    for name, place in (("fill", None), ("scaling", 0), ("scaling", 1)):
        forged = copy.deepcopy(record)
        held, at = (forged, name) if place is None else (forged[name], place)
        held[at] += 1e-9 * (np.nanmean(np.abs(column)) + abs(held[at]))
        with pytest.raises(Rejected, match="is not what its training rows give"):
            _compare([forged], {"x": source.cells("x", "numeric")})


def test_hold_out_rows_that_the_seed_does_not_draw_are_rejected(numbers):
    study, path = numbers
    for seed in (1, 2):
        split = {**study.certificate.split, "seed": np.array([seed])}
        report = assay.verify(replace(study.certificate, split=split), study.model, path)
        assert "not those that the seed draws" in report.reason


def test_a_gap_a_rare_and_a_new_level_are_three_things():
    """Of 150 levels 98 have slots of their own; gaps have one, rare levels share one, and new levels share it too."""
    names = [f"c{i:03d}" for i in range(150) for _ in range(1 + (i < 98))]
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(names) + 8) < 0.5, "a", "b")
    study = learnt({"code": [*names, *[None] * 8], "x": rng.normal(size=len(y)), "y": y}, holdout=0.01)
    rows = {"code": ["c000", "c140", "brand new", None], "x": [0.0] * 4}
    own, rare, new, gap = (row.nonzero()[0].tolist() for row in study.model.encode(rows)[0][:, 1:])
    assert rare == new != gap
    assert own not in (rare, gap)
    few = learnt({"code": ["u", "v"] * 100, "x": rng.normal(size=200), "y": ["a", "b"] * 100})
    assert few.model.encode({"code": ["w", None], "x": [0.0, 0.0]})[0][:, 1:].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_digits_that_begin_with_zero_and_long_numbers_stay_apart(tmp_path):
    rng = np.random.default_rng(0)
    zips = np.array(["00123", "0123", "123"])[np.arange(N) % 3]
    long = [str(2**53 + int(i)) for i in rng.integers(0, 20, N)]
    y = np.where(zips == "0123", "yes", "no")
    path = csv({"zip": zips, "id": long, "y": y}, tmp_path / "t.csv")
    study = learnt(path)
    kinds = {one.name: one for one in study.model.columns}
    assert kinds["zip"].levels == ("00123", "0123", "123")
    assert len(kinds["id"].levels) == len({*np.array(long)[np.setdiff1d(np.arange(N), study.judged[1])]})
    assert study.chosen.holdout_error == 0
    frame = {"id": np.array([2**53 + int(i) for i in rng.integers(0, 20, N)]), "x": rng.normal(size=N), "y": y}
    assert {one.kind for one in learnt(frame).model.columns} == {"nominal", "numeric"}


def test_a_table_is_typed_by_the_rows_that_are_asked():
    rows = raw_table({"a": ["1", "2", "x"] * 30, "b": ["u", "v", "w"] * 30})
    some = rows.take(np.flatnonzero(np.arange(90) % 3 < 2)).typed()
    assert some.column("b").type.levels == ("u", "v")
    later = rows.read_as(some.schema)
    assert later.column("b").new.tolist() == [False, False, True] * 30
    assert later.unknown["b"] == ["w"]


@pytest.mark.parametrize("values", [(0, 1), (3, 7)])
def test_classes_that_are_numbers_are_the_same_for_library_and_checker(values):
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    y = np.where(x > 0, *values).astype(float)
    held = np.sort(permutation(N, 0, HOLDOUT)[:50])
    y[held[:3]] = [2.25, 99.0, -1.0]
    study = learnt({"x": x, "y": y}, task="classify")
    assert study.model.classes_.tolist() == sorted(values)
    assert assay.verify(study.certificate, study.model, {"x": x, "y": y}).holds
    wrong = np.sum(study.model.predict({"x": x[held]}) != y[held])
    assert study.certificate["holdout.binomial"].params["errors"] == wrong >= 3
