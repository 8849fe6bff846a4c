"""What is known of a learner is on its class, its card and the variant of its family: no list elsewhere names it."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import assay

SRC = Path(assay.__file__).parent
KINDS = {kind.__name__: Path(inspect.getsourcefile(kind)) for kind in assay.learners()}
NAMES_ALONE = re.compile(rf"(([a-z_]+\.)*({'|'.join(KINDS)})[\s,]*)+")
SOME_NAME = re.compile(rf"""["'}}]([a-z_]+\.)*({"|".join(KINDS)})""")  # how such a string begins in a file
TRANSLATIONS = SRC / "messages" / "methods_zh.py"


def named_in(file):
    """Yield the strings of a file that are names of learners and nothing else; docstrings and exports are none."""
    text = file.read_text(encoding="utf-8")
    if not SOME_NAME.search(text):
        return  # parsing every file takes seconds
    tree = ast.parse(text)
    aside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            aside |= {id(part) for part in ast.walk(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in aside:
            found = NAMES_ALONE.fullmatch(node.value)
            if found and KINDS[found[3]] != file:
                yield node.value


def test_no_table_of_class_names():
    found = {str(file.relative_to(SRC)): list(named_in(file)) for file in SRC.rglob("*.py") if file != TRANSLATIONS}
    assert {file: names for file, names in found.items() if names} == {}


def test_the_search_finds_such_a_table(tmp_path):
    file = tmp_path / "table.py"
    table, prose = 'TABLE = {"Ridge": 1, "svm.SVC": 2}\nMORE = "C45 CART"\n', 'PROSE = "use Ridge"\n__all__ = ["PCA"]\n'
    file.write_text(f'"""Ridge"""\n{table}{prose}')
    assert sorted(named_in(file)) == ["C45 CART", "Ridge", "svm.SVC"]


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_the_first_list_of_a_study_has_one_learner_in_each_place(task):
    places = [kind.card.first for kind in assay.learners(task) if kind.card.first]
    assert sorted(places) == list(range(1, len(places) + 1))
    assert sum(kind.card.quick for kind in assay.learners(task)) == 1
    roles = [kind.card.role for kind in assay.learners(task)]
    assert {role: roles.count(role) for role in ("vote", "stack")} == {"vote": 1, "stack": 1}
    assert set(roles) <= {"alone", "named", "vote", "stack", "threshold", "cost", "target", "reduction", "sample"}
