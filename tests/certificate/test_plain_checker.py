"""The checker in plain Python proves what Assay certifies, rejects what is forged, and imports neither library."""

import ast
import json
import sys
import zipfile
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import assay
from assay.linear_model import LogisticRegression

FILE = Path(__file__).parents[2] / "examples" / "plain_checker.py"
spec = spec_from_file_location("plain_checker", FILE)
plain = module_from_spec(spec)
spec.loader.exec_module(plain)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """Return a model file and its two sets as the plain checker reads them."""
    X, held, y, truth = train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.2, random_state=0)
    X, held = X[:150, :6], held[:60, :6]
    y, truth = y[:150], truth[:60]
    model = LogisticRegression().fit(X, y)
    file = tmp_path_factory.mktemp("plain") / "model.assay"
    assay.save(model, file, model.certify(X, y, holdout=(held, truth)))
    return file, *(plain.Rows(rows.tolist(), [str(one) for one in labels]) for rows, labels in ((X, y), (held, truth)))


def changed(file: Path, to: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """Return a copy of a model file in which one file is changed, and the manifest with it."""
    with zipfile.ZipFile(file) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    files[name] = change(files[name])
    manifest = json.loads(files["manifest.json"])
    digest = plain.hashlib.sha256(files[name]).hexdigest()
    manifest["members"][name] = {"bytes": len(files[name]), "sha256": digest}
    with zipfile.ZipFile(to, "w") as archive:
        for one, content in (files | {"manifest.json": json.dumps(manifest).encode()}).items():
            archive.writestr(one, content)
    return to


def with_claims(change: Callable[[dict], None]) -> Callable[[bytes], bytes]:
    """Return a change of a certificate that changes each of its claims."""

    def changed(content: bytes) -> bytes:
        certificate = json.loads(content)
        for claim in certificate["claims"]:
            change(claim)
        return json.dumps(certificate).encode()

    return changed


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    names = [node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in tree.body
             if isinstance(node, ast.Import | ast.ImportFrom)]  # fmt: skip
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_it_proves_what_is_true(made: tuple) -> None:
    found = list(plain.check(*made))
    assert [code for code, verdict in found if verdict == "proved"] == ["D02/1", "D02/1", "D04/1", "P01/1"]
    assert "REJECTED" not in dict(found).values()


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("D02/1", lambda claim: claim.update(value=claim["value"] - 1, params=claim["params"] | {"low": 0})),
        ("D04/1", lambda claim: claim.update(value=claim["value"] * 1e-3)),
        ("D04/1", lambda claim: claim.update(params=claim["params"] | {"C": 0.5})),
        ("P01/1", lambda claim: claim.update(value=claim["value"] * 0.999)),
        ("P01/1", lambda claim: claim.update(params=claim["params"] | {"errors": claim["params"]["errors"] - 1})),
        ("P01/1", lambda claim: claim.update(delta="0.001")),
    ],
)
def test_it_rejects_a_claim_that_says_more(made: tuple, tmp_path: Path, code: str, change: Callable) -> None:
    file, train, holdout = made
    only = with_claims(lambda claim: change(claim) if claim["template"] == code else None)
    forged = changed(file, tmp_path / "forged.assay", "certificate.json", only)
    assert dict(plain.check(str(forged), train, holdout))[code] == "REJECTED"


def test_it_rejects_another_model_other_rows_and_too_much_delta(made: tuple, tmp_path: Path) -> None:
    file, train, holdout = made
    other = changed(file, tmp_path / "other.assay", "arrays/1.npy", lambda content: content[:-1] + b"\x00")
    with pytest.raises(plain.Rejected, match="another model"):
        list(plain.check(str(other), train, holdout))
    with pytest.raises(plain.Rejected, match="set holdout"):
        list(plain.check(str(file), train, plain.Rows(holdout.X, train.y[: len(holdout.y)])))
    spent = changed(
        file, tmp_path / "spent.assay", "certificate.json", with_claims(lambda one: one.update(delta="0.04"))
    )
    with pytest.raises(plain.Rejected, match="more than delta"):
        list(plain.check(str(spent), train, holdout))
