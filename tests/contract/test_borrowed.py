"""Rooms that share a name with scikit-learn's modules hand out its names where they have none of their own."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
import sklearn

import assay

ROOMS = sorted(
    {one.name for one in pkgutil.iter_modules(assay.__path__)}
    & {one.name for one in pkgutil.iter_modules(sklearn.__path__)} - {"utils"}
)
INNER = ["feature_extraction.text", "feature_extraction.image", "metrics.pairwise"]


@pytest.mark.parametrize("room", [*ROOMS, *INNER])
def test_every_name_of_scikit_learns_module_is_there(room):
    theirs, ours = (import_module(f"{library}.{room}") for library in ("sklearn", "assay"))
    names = getattr(theirs, "__all__", None) or [
        name for name, thing in vars(theirs).items() if getattr(thing, "__module__", "") == theirs.__name__
    ]
    names = [name for name in names if not name.startswith("Halving")]  # which must be enabled first
    missing = [name for name in names if name[0] != "_" and (name not in dir(ours) or not hasattr(ours, name))]
    assert missing == []
    lent = [name for name in names if name[0] != "_" and name not in vars(ours)]
    assert all(getattr(ours, name) is getattr(theirs, name) for name in lent)
    assert {name for name in getattr(ours, "__all__", ()) if name not in dir(ours)} == set()


def test_what_nobody_has_is_no_attribute():
    with pytest.raises(AttributeError, match=r"module 'assay.tree' has no attribute 'nothing'"):
        import_module("assay.tree").nothing  # noqa: B018
    with pytest.raises(ImportError):
        exec("from assay.tree import _private")


def test_imports_that_scripts_have():
    exec(
        "from assay.feature_extraction.text import TfidfVectorizer\n"
        "from assay.metrics.pairwise import rbf_kernel\n"
        "from assay.model_selection import GridSearchCV, StratifiedKFold, train_test_split\n"
        "from assay.preprocessing import OneHotEncoder, StandardScaler\n"
        "from assay.tree import DecisionTreeClassifier, export_text, plot_tree\n"
        "from assay.datasets import load_iris, make_blobs\n"
        "from assay.base import clone\n"
        "from assay.metrics import accuracy_score, cluster\n"
    )


def test_a_room_loads_scikit_learns_only_when_asked():
    code = """
import sys
from assay import datasets
from assay.metrics import distance
assert "sklearn.datasets" not in sys.modules
assert datasets.load_iris and "sklearn.datasets" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
