"""`assay plan`, as a user types it."""

import json
import math
import subprocess
import sys

import pytest
from scipy.stats import beta
from typer.testing import CliRunner

from assay.cli.app import app
from assay.cli.planning import NEEDS
from assay.registry import learners


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")


def run(text: str, code: int = 0):
    result = CliRunner().invoke(app, ["plan", *text.split()])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def answer(text: str) -> dict:
    return json.loads(run(f"{text} --json").output)


def values(part: dict, unit: str) -> dict:
    return {one["theorem"]: one[unit] for one in part["theorems"]}


@pytest.mark.parametrize(
    ("words", "blumer", "growth", "ghost"),
    [("--error 0.1 --vc 3", 1686, 680, 250), ("--error 0.05 --vc 11", 14120, 5057, 1904)],
)
def test_rows_for_an_error_are_the_published_values(words, blumer, growth, ghost):
    shown = run(words).output
    for rows in (blumer, growth, ghost):
        assert f" {rows:,} " in shown
    found = values(answer(f"{words} --confidence 0.95")["rows_needed"], "rows")
    assert list(found.values()) == [blumer, growth, ghost]
    starred = [line for line in shown.splitlines() if " * " in line]
    assert "exact ghost sample" in starred[0]
    assert "no training error" in shown
    assert "independent rows" in shown


def test_a_finite_class_by_its_textbook_formulas():
    size, error = 3**10, 0.1
    found = values(answer(f"--error {error} --size {size}")["rows_needed"], "rows")
    assert found["finite class, consistent"] == math.ceil(math.log(size / 0.05) / -math.log1p(-error))
    found = values(answer(f"--error {error} --size {size} --training-error 0.2")["rows_needed"], "rows")
    agnostic = math.ceil(math.log(size / 0.05) / (2 * error**2))
    assert found["finite class, any training error"] == agnostic


@pytest.mark.parametrize("extra", ["", " --training-error 0.1"])
@pytest.mark.parametrize("space", ["--vc 11", "--size 1000", "--learner LogisticRegression --features 20 --classes 3"])
def test_rows_to_error_undoes_error_to_rows(space, extra):
    needed = answer(f"--error 0.05 {space}{extra}")
    p = needed["training_error"]
    for theorem, rows in values(needed["rows_needed"], "rows").items():
        guaranteed = values(answer(f"--rows {rows} {space}{extra}")["error_guaranteed"], "error")
        assert min(guaranteed.values()) <= p + 0.05
        if theorem in guaranteed:
            assert guaranteed[theorem] <= math.ceil(p * rows) / rows + 0.05
            fewer = values(answer(f"--rows {rows - 20} {space}{extra}")["error_guaranteed"], "error")
            assert fewer[theorem] > p + 0.05


def test_a_linear_learner_is_the_class_of_half_spaces():
    by_learner = answer("--error 0.1 --learner Perceptron --features 10")
    assert by_learner["class"]["vc_dimension"] == 11
    by_dimension = answer("--error 0.1 --vc 11")
    textbook = "VC dimension, consistent (Blumer et al.)"
    assert values(by_learner["rows_needed"], "rows")[textbook] == values(by_dimension["rows_needed"], "rows")[textbook]


def test_every_classifier_has_an_answer_or_a_reason():
    for kind in learners("classify"):
        words = f"--error 0.1 --learner {kind.__name__} --features 2"
        if math.isfinite(kind.card.model.at(2, 2).vc_dimension):
            assert answer(words)["rows_needed"]["theorems"]
        elif "kernel" in str(kind.card.model.at(2, 2)):
            assert {one["claim"] for one in answer(words)["rows_needed"]["theorems"]} == {
                "margin",
                "compression",
            }
        else:
            assert "--holdout-width" in run(words, code=2).stderr


def test_margins_and_kept_rows_plan_a_class_without_dimension():
    words = "--learner SVC --features 20 --margin 0.25 --kept 10"
    found = values(answer(f"--error 0.1 {words}")["rows_needed"], "rows")
    assert found["margin 0.25"] == math.ceil(((2 * 4 + math.sqrt(math.log(20) / 2)) / 0.1) ** 2)
    n = found["rebuilt from 10 rows"]

    def limit(n):
        level = 0.05 * 6 / (math.pi * 11) ** 2 / math.comb(n, 10)
        return 1 - level ** (1 / (n - 10))

    assert limit(n) <= 0.1 < limit(n - 1)
    back = values(answer(f"--rows {n} {words}")["error_guaranteed"], "error")
    assert back["rebuilt from 10 rows"] == pytest.approx(limit(n))
    assert back["margin 0.25"] == pytest.approx((8 + math.sqrt(math.log(20) / 2)) / math.sqrt(n))
    with_errors = values(answer(f"--rows {n} {words} --training-error 0.02")["error_guaranteed"], "error")
    assert with_errors["rebuilt from 10 rows"] == pytest.approx(
        beta.isf(
            0.05 * 6 / (math.pi * 11) ** 2 / math.comb(n, 10), math.ceil(0.02 * n) + 1, n - 10 - math.ceil(0.02 * n)
        )
    )


def test_leaves_make_a_tree_a_finite_class():
    found = answer("--error 0.1 --learner DecisionTreeClassifier --features 20 --leaves 6")
    assert found["class"]["leaves"] == 6
    assert values(found["rows_needed"], "rows")["exact ghost sample"] == 722
    assert "--leaves is for" in run("--error 0.1 --learner SVC --features 2 --leaves 3", code=2).stderr


def test_hopes_are_drawn(tmp_path):
    run(f"--learner SVC --features 20 --rows 100 --plot {tmp_path / 'curves.png'}")
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_hold_out_sizes_are_those_of_the_binomial_limit():
    found = answer("--holdout-width 0.02 --holdout-error 0.05")["holdout"]["rows"]
    assert (found["first"], found["kl"], found["hoeffding"]) == (471, 884, 3745)
    m, k = found["first"], math.ceil(0.05 * found["first"])
    assert beta.ppf(0.95, k + 1, m - k) - k / m <= 0.02
    zero = answer("--holdout-width 0.02 --candidates 10")["holdout"]["rows"]
    assert zero["first"] == math.ceil(math.log(0.005) / math.log(0.98))
    shown = run("--holdout-width 0.02 --holdout-error 0.05").output
    assert "471" in shown
    assert "3,745" in shown


def test_shown_errors_are_rounded_up_and_empty_ones_called_so():
    words = "--rows 2000 --vc 11"
    exact = values(answer(words)["error_guaranteed"], "error")["exact ghost sample"]
    line = next(line for line in run(words).output.splitlines() if line.startswith("exact ghost"))
    shown = float(line.split()[3])
    assert exact <= shown <= exact * 1.001
    assert "says nothing" in run("--rows 20 --vc 11").output


def test_confidence_is_read_as_a_decimal():
    found = answer("--rows 100 --size 1 --confidence 0.9")["error_guaranteed"]
    assert values(found, "error")["finite class"] == pytest.approx(1 - 0.1 ** (1 / 100), rel=1e-9)


def test_the_plot_is_written(tmp_path):
    out = tmp_path / "bounds.png"
    assert "Wrote" in run(f"--error 0.1 --vc 3 --plot {out}").output
    assert out.read_bytes().startswith(b"\x89PNG")
    alone = tmp_path / "alone.svg"
    run(f"--size 50 --plot {alone} --json")
    assert b"<svg" in alone.read_bytes()


def test_excess_is_counted_from_the_best_of_the_class():
    found = values(answer("--error 0.1 --size 100 --excess")["rows_needed"], "rows")
    assert found["finite class, minimiser of the empirical risk"] == math.ceil(2 * math.log(2 * 100 / 0.05) / 0.1**2)
    part = answer("--error 0.1 --vc 3 --excess")["rows_needed"]
    ((theorem, rows),) = values(part, "rows").items()
    assert part["excess"]
    assert theorem == "VC dimension, minimiser of the empirical risk"

    def deviation(n):
        return math.sqrt((8 * 3 * math.log(2 * math.e * n / 3) + 8 * math.log(4 / 0.05)) / n)

    assert deviation(rows) <= 0.05 < deviation(rows - 1)
    text = run("--error 0.1 --vc 3 --excess").output
    assert "within 0.1 of the best possible" in text
    assert "training error of" not in text


def test_every_theorem_has_its_assumptions():
    for extra in ("", " --training-error 0.1"):
        found = answer(f"--error 0.1 --rows 1000 --size 10{extra}")
        for part in ("rows_needed", "error_guaranteed"):
            assert all(one["assumes"] == NEEDS[one["theorem"]] for one in found[part]["theorems"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "what is wanted"),
        ("--vc 3", "what is wanted"),
        ("--error 0.1", "which class"),
        ("--plot a.png", "which class"),
        ("--error 0.1 --vc 3 --size 4", "give the class once"),
        ("--error 0 --vc 3", "--error must lie"),
        ("--error nan --vc 3", "--error must lie"),
        ("--error 1.5 --vc 3", "--error must lie"),
        ("--error 0.1 --vc 0", "--vc must be at least 1"),
        ("--error 0.1 --size -4", "--size must be at least 1"),
        ("--error 0.1 --vc 3 --confidence 1", "--confidence must be"),
        ("--error 0.1 --vc 3 --confidence sure", "--confidence must be"),
        ("--error 0.1 --vc 3 --confidence nan", "--confidence must be"),
        ("--error 0.1 --vc 3 --training-error 0.95", "needs no rows"),
        ("--error 0.1 --vc 3 --training-error -1", "--training-error must lie"),
        ("--error 0.1 --vc 3 --excess --rows 9", "--excess asks for rows"),
        ("--error 0.1 --vc 3 --excess --training-error 0.1", "--excess asks for rows"),
        ("--rows 0 --vc 3", "--rows must be at least 1"),
        ("--rows 9999999999999 --vc 3", "at most 2^40"),
        ("--error 1e-12 --vc 3", "2^40"),
        ("--error 0.1 --learner LogisticRegression", "needs --features"),
        ("--error 0.1 --vc 3 --features 2", "--features goes with --learner"),
        ("--error 0.1 --learner Oracle --features 2", "no such classifier; there are"),
        ("--error 0.1 --learner Ridge --features 2", "no such classifier"),
        ("--error 0.1 --learner Perceptron --features 2 --classes 1", "--classes must be at least 2"),
        ("--error 0.1 --learner RandomForestClassifier --features 2", "without finite capacity"),
        ("--error 0.1 --margin 1.5", "--margin must lie in"),
        ("--error 0.1 --margin nan", "--margin must lie in"),
        ("--error 0.1 --kept 0", "--kept must be at least 1"),
        ("--error 0.1 --leaves 4", "--leaves goes with --learner"),
        ("--holdout-width 0", "--holdout-width must lie"),
        ("--holdout-width 0.1 --holdout-error 0.95", "needs no rows"),
        ("--holdout-width 0.1 --holdout-error 1e-9", "--holdout-error must be 0 or"),
        ("--holdout-width 0.1 --candidates 0", "--candidates must be at least 1"),
        ("--error 0.1 --vc 3 --plot a.txt", "must end in"),
        ("--error 0.1 --vc 3 --plot no/folder/a.png", "does not exist"),
        ("--error much --vc 3", "Invalid value"),
    ],
)
def test_bad_input_gives_a_message_and_exit_code_2(words, says):
    result = run(words, code=2)
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_planning_compiles_nothing():
    code = (
        "import sys; from assay.cli.app import app; app(['plan', '--error', '0.1', '--vc', '3'], "
        "standalone_mode=False); sys.exit(any(m in sys.modules for m in ('numba', 'pandas', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
