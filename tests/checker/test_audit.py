"""What a verdict rests on can be read: the lines are few, and they are the ones that run."""

import sys

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import assay
from assay.checker.audit import audit, sizes
from assay.ensemble import RandomForestClassifier
from assay.linear_model import LogisticRegression
from assay.svm import SVC

X, X_HELD, Y, Y_HELD = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
MODELS = [LogisticRegression(), RandomForestClassifier(20, random_state=0), SVC()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_at_most_1500_lines_of_core_and_500_of_the_family(model):
    certificate = model.fit(X, Y).certify(X, Y, holdout=(X_HELD, Y_HELD))
    core, family = sizes(audit(certificate))
    assert 500 < core <= 1500
    assert 100 < family <= 500


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_function_of_ours_that_runs_is_listed(model):
    """The list is found by reading names; here the checker runs, and each of its functions must be in the list."""
    certificate = model.fit(X, Y).certify(X, Y, holdout=(X_HELD, Y_HELD))
    stored = model.stored()
    assert assay.verify(certificate, stored, X, Y, holdout=(X_HELD, Y_HELD)).holds  # loads every module
    parts = audit(certificate)
    ran = set()

    def watch(frame, event, _):
        name = frame.f_globals.get("__name__", "")
        ours = name.startswith(("assay.checker", "assay.claims", "assay.data"))
        if event == "call" and ours and frame.f_code.co_filename.endswith(".py"):  # dataclasses write functions too
            ran.add((name.removeprefix("assay.").replace(".", "/") + ".py", frame.f_lineno))

    sys.setprofile(watch)
    try:
        assert assay.verify(certificate, stored, X, Y, holdout=(X_HELD, Y_HELD)).holds
    finally:
        sys.setprofile(None)
    spans = [(part.file.replace("__init__.py", ".py").replace("/.py", ".py"), part.first, part.last) for part in parts]
    missing = [
        place
        for place in sorted(ran)
        if not any(file == place[0] and first <= place[1] <= last for file, first, last in spans)
    ]
    assert ran
    assert not missing
