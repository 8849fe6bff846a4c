"""What a verdict imports: the core of the checker and the families that the model names, and nothing else."""

import ast
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.checker.audit import families_of, loaded
from assay.claims.claim import NotApplicable
from assay.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from assay.linear_model import LogisticRegression
from assay.naive_bayes import GaussianNB
from assay.svm import SVC

CHECKER = Path(__file__).parents[2] / "src" / "assay" / "checker"
FAMILIES = {file.stem for file in (CHECKER / "families").glob("*.py")} - {"__init__"}
PROGRAM = """
import pickle, sys
certificate, stored, X, y = pickle.load(sys.stdin.buffer)
from assay.claims.document import from_json
from assay.checker.verify import verify
report = verify(from_json(certificate), stored, X, y)
read = ("assay.checker", "assay.claims", "assay.data.blocks")
print(report.holds, *sorted(name for name in sys.modules if name.startswith(read)))
"""


def fitted(model):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3))
    y = X[:, 0] + 0.3 * random.normal(size=120) > 0
    model.fit(X, y)
    return model.certify(X, y), model.stored(), X, y


def imported(certificate, stored, X, y):
    """Return the verdict of a fresh process, and the modules that it loaded."""
    from assay.claims.document import to_json

    given = pickle.dumps((to_json(certificate), stored, X, y))
    out = subprocess.run([sys.executable, "-c", PROGRAM], input=given, capture_output=True, check=True).stdout.decode()
    verdict, *modules = out.split()
    return verdict == "True", modules


def families_in(modules):
    return {name.rpartition(".")[2] for name in modules if name.startswith("assay.checker.families.")}


MODELS = [
    (LogisticRegression(), {"linear"}),
    (SVC(), {"kernel"}),
    (RandomForestClassifier(5, random_state=0), {"trees"}),
    (VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())]), {"linear", "discriminant", "votes"}),
    (StackingClassifier([("a", GaussianNB())], LogisticRegression()), {"linear", "stacking"}),
]


@pytest.mark.parametrize(("model", "at_most"), MODELS, ids=lambda one: type(one).__name__)
def test_verifying_loads_the_named_families_and_what_the_audit_lists(model, at_most):
    certificate, stored, X, y = fitted(model)
    holds, modules = imported(certificate, stored, X, y)
    assert holds
    named = {name.partition(".")[0] for name in families_of(stored)}
    assert families_in(modules) == named
    assert at_most & named
    listed = loaded(certificate, families_of(stored))
    files = {name.removeprefix("assay.").replace(".", "/") for name in modules}
    assert {file.removesuffix("/__init__.py").removesuffix(".py") for file in listed} == files


def test_a_claim_that_no_family_has_loads_no_further_family():
    certificate, stored, X, y = fitted(LogisticRegression())
    for forged in (
        replace(certificate, claims=(*certificate.claims, replace(certificate.claims[0], name="D99/1"))),
        replace(certificate, not_applicable=(NotApplicable("Every claim", "No reason."),)),
        replace(certificate, unreported=(("D99", "0.001"),)),
    ):
        holds, modules = imported(forged, stored, X, y)
        assert not holds
        assert families_in(modules) <= {"linear"}


def test_families_share_rules_and_never_import_each_other():
    for file in CHECKER.rglob("*.py"):
        named = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
        assert not [node.module for node in named if (node.module or "").startswith("assay.checker.families")], file


def test_the_core_knows_no_family_by_name():
    names = FAMILIES - {"folds"}  # which is also a field of the record of a study
    for file in [*CHECKER.glob("*.py"), *(CHECKER / "bounds").glob("*.py")]:
        tree = ast.parse(file.read_text())
        found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert not {text.partition(".")[0] for text in found if isinstance(text, str)} & names, file


def test_codes_of_claims_stand_in_the_definitions_alone():
    """Everywhere else a claim is called by its name: a string that is a code is the key of a definition."""
    from assay.claims.directory import codes

    root, known = CHECKER.parents[0], set(codes())
    assert "D04/1" in known
    form = re.compile(r"[A-Z]\d\d/\d")
    assert all(form.match(code) for code in known)
    for file in root.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if not form.search(text):
            continue  # parsing every file takes seconds
        tree = ast.parse(text)
        keys = {
            id(key)
            for node in ast.walk(tree)
            if isinstance(node, ast.Dict) and CHECKER in file.parents
            for key in node.keys
        }
        strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        assert not [node.lineno for node in strings if node.value in known and id(node) not in keys], file
