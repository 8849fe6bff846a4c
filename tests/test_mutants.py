"""The tool that mutates: what it makes of a function, and that it tells a test that notices from one that does not."""

import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import assay
from tests.mission import ROOT, row_names
from tests.mutant_operators import Function, mutants, mutated_code
from tests.mutant_places import places
from tests.mutants import Outcome, equivalents, summary

SOURCE = Path(assay.__file__).parent  # where the package is installed

TOY = '''
import warnings
from functools import cache
from numba import njit


def area(width, height):
    """Return width times height."""
    if width < 0:
        raise ValueError(f"width must be >= 0; got {width - 1}")
    return width * height


@cache
def steps(n):
    return [k for k in range(n) if k > 0]


@njit
def _total(n):
    total = 0
    for k in range(n):
        total += k
    return total


def total(n):
    return _total(n) - 1


def half(n):
    if n > 4:
        warnings.warn("large")
    return n / 2


def unused(a, b):
    return a - b
'''
TESTS = """
import pytest
from toy import area, half, steps, total


@pytest.mark.mission("TOY-01")
def test_area():
    assert area(2, 5) == 10


@pytest.mark.mission("TOY-02")
def test_area_is_positive():
    assert area(1, 3) > 0


@pytest.mark.mission("TOY-03")
def test_steps_and_total():
    assert steps(4) == [1, 2, 3]
    assert total(4) == 5


@pytest.mark.filterwarnings("error")
@pytest.mark.mission("TOY-05")
def test_a_warning_is_an_error():
    assert half(4) == 2


@pytest.mark.mission("TOY-04")
def test_broken():
    assert area(1, 1) == 2


@pytest.mark.mission("TOY-06")
def test_a_file(tmp_path):
    assert (tmp_path / "area").write_text(str(area(3, 4))) == 2


@pytest.mark.mission("TOY-07")
@pytest.mark.parametrize("height", [0, 1, 2])
def test_some_cases(height):
    assert area(2, height) == 2 * height
"""


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "test_toy.py").write_text(TESTS)
    return tmp_path


def test_the_slips_of_each_kind(tmp_path):
    file = tmp_path / "slips.py"
    file.write_text(
        "def f(a, b, x):\n"
        '    """Text: 1 + 2."""\n'
        "    y = -a + b / 3\n"
        "    y += len(x)\n"
        "    z = abs(y) < 1e-12 * (1.0 + y)\n"
        "    for i in range(1, 4, b):\n"
        "        y = g(a, b) if a <= b and i == 0 else max(a, b)\n"
        "    return 'a' + 'b' if y else x[0.5]\n"
    )
    found = {(one.kind, one.before, one.after) for one in mutants(Function(str(file), "f", 1), range(1, 10))}
    assert found == {
        ("sign", "-a + b / 3", "-a - b / 3"),
        ("dropped", "-a + b / 3", "-a"),
        ("sign", "-a", "a"),
        ("sign", "b / 3", "b * 3"),
        ("dropped", "b / 3", "b"),
        ("constant", "3", "6"),
        ("sign", "y += len(x)", "y -= len(x)"),
        ("off by one", "len(x)", "len(x) - 1"),
        ("off by one", "range(1, 4, b)", "range(1, 4 - 1, b)"),
        ("constant", "1", "2"),
        ("constant", "4", "8"),
        ("swapped", "g(a, b)", "g(b, a)"),
        ("comparison", "a <= b", "a > b"),
        ("dropped", "a <= b and i == 0", "a <= b"),
        ("comparison", "i == 0", "i != 0"),
        ("constant", "0", "1"),
        ("constant", "0.5", "1.0"),
        ("comparison", "abs(y) < 1e-12 * (1.0 + y)", "abs(y) >= 1e-12 * (1.0 + y)"),
    }


def test_a_mutant_differs_in_its_expression_alone(toy):
    file = str(toy / "toy.py")
    line = 1 + TOY.splitlines().index("def area(width, height):")
    function = Function(file, "area", line)
    found = mutants(function, range(1, 99))
    assert {one.line for one in found} == {line + 4}  # neither the text nor what decides about a refusal
    areas = {one.after: FunctionType(mutated_code(one), {})(6, 3) for one in found}
    assert areas == {"width / height": 2.0, "width": 6}
    assert not mutants(function, [line])


def test_a_test_that_notices_and_one_that_does_not(toy):
    command = [sys.executable, "-m", "tests.mutants", "--tests", str(toy), "--source", str(toy)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    said = done.stdout
    assert "TOY-01  2 mutants, 0 survived" in said, said + done.stderr
    assert "TOY-02  2 mutants, 2 survived" in said
    assert "toy.py:11 area  sign: width * height  ->  width / height" in said
    assert "toy.py:11 area  dropped: width * height  ->  width" in said
    # steps: range(n), k > 0, 0; total: the difference twice, 1; the compiled loop: 0, range(n), += as plain Python
    assert "TOY-03  9 mutants, 0 survived" in said
    assert "TOY-04  not judged: without a mutant " in said
    assert "test_broken: " in said
    assert "TOY-05  5 mutants, 1 survived" in said
    assert "half  constant: 4  ->  8" in said
    assert "unused" not in said
    assert "TOY-06  2 mutants, 0 survived" in said  # rows after one that fails
    assert "TOY-07  2 mutants, 0 survived" in said
    assert "TOY: 19 of 22 mutants killed (86%); below 85 %: TOY-02, TOY-05; nothing to judge: TOY-04" in said


def test_the_same_seed_draws_the_same_mutants(toy):
    command = [sys.executable, "-m", "tests.mutants", "--tests", str(toy), "--source", str(toy), "--sample", "5"]
    runs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False) for _ in "ab"]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.splitlines()[-1].startswith("TOY: ")


def test_a_function_answers_for_itself_and_a_class_for_its_room():
    (one, *_) = places("LTH-57", SOURCE)  # assay.textbook.concepts.weak_edge
    assert (one.path, one.function) == (str(SOURCE / "textbook" / "concepts.py"), "weak_edge")
    assert one.holds(compile("", one.path, "exec").replace(co_qualname="weak_edge"))
    assert one.holds(compile("", one.path, "exec").replace(co_qualname="_helper"))
    assert not one.holds(compile("", one.path, "exec").replace(co_qualname="polygons"))
    files = [place for place in places("LTH-27", SOURCE) if not place.function]  # spaces.HalfSpaces.growth
    code = compile("", str(SOURCE / "theory" / "_spaces.py"), "exec")
    assert any(place.holds(code.replace(co_qualname="Space.growth")) for place in files)
    code = compile("", str(SOURCE / "theory" / "_spaces.py"), "exec")
    assert any(place.holds(code.replace(co_qualname="HalfSpaces._growth")) for place in files)
    assert not any(place.holds(code.replace(co_qualname="Stumps._growth")) for place in files)
    (room,) = places("NNW-06", SOURCE)[:1]
    assert room.path.endswith("linear_model/")
    assert not room.holds(code)
    for row in row_names():
        assert all(place.path.startswith(str(SOURCE)) for place in places(row, SOURCE)), row


def test_the_list_of_equivalent_mutants_names_functions_that_exist():
    for room, function, before, after, nth in equivalents():
        found = [SOURCE / f"{room}.py", *(SOURCE / room).rglob("*.py")]
        lines = "\n".join(file.read_text(encoding="utf-8") for file in found if file.exists())
        assert f"def {function.rpartition('.')[2]}(" in lines, f"{room} has no {function}"
        assert before != after
        assert int(nth) >= 1


def test_a_family_is_summed_up():
    outcomes = [Outcome("LIN-01", 9, [], 1), Outcome("LIN-02", 0, [], 0, "nothing"), Outcome("OPT-01", 1, [None], 0)]
    assert summary(outcomes).splitlines() == [
        "LIN: 9 of 9 mutants killed (100%); nothing to judge: LIN-02",
        "OPT: 1 of 2 mutants killed (50%); below 85 %: OPT-01",
    ]
    assert list(outcomes[0].lines()) == ["LIN-01  9 mutants, 0 survived; 1 equivalent"]
