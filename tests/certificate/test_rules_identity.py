"""What the claims stand on: fingerprints, labels, splits, arguments, the records themselves and the
ledger."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from assay.checker import bounds, facts
from assay.checker.family import find
from assay.checker.rule import Rule
from assay.checker.verify import verify
from assay.claims.claim import NotApplicable
from assay.claims.directory import codes, definition, places
from assay.claims.document import DocumentError, from_json, to_json
from assay.data.blocks import Block
from tests.certificate import count_cases, forge, optimum_cases
from tests.certificate.cases import CASES


def test_every_claim_has_a_rule_and_belongs_to_a_family_or_to_all():
    families = [import_module(place).FAMILY for place in places() if ".families." in place]
    for family in families:
        for kind, variant in family.variants.items():
            assert find(".".join(filter(None, (family.name, kind)))) == (family, variant)
    defined = [facts.CLAIMS, bounds.CLAIMS, *(family.claims for family in families)]
    ours = {code for code in codes() if code[0] in "DP"}  # tests may have registered families of their own
    assert {code for claims in defined for code in claims} == ours
    for code, entry in ((code, entry) for claims in defined for code, entry in claims.items()):
        assert issubclass(entry.rule, Rule)
        assert entry.rule is not Rule
        assert definition(code).name == entry.name
        assert definition(entry.name).name == entry.name
    assert len(set(codes().values())) == len(codes())
    assert definition("D99/1") is definition("data.nothing") is None


@pytest.mark.parametrize("name", CASES)
def test_honest_certificates_hold(name):
    for seed in range(12):
        report = CASES[name](seed).verify()
        assert report.holds, report.reason
        assert report.reason == ""
        status = "PROVED" if definition(name.split()[0]).fact else "PROVED-GIVEN"
        assert all(verdict.status == status for verdict in report.verdicts)


def labelled(n: int, d: int, seed: int = 0, names=("a", "b")) -> forge.Case:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), np.array(names)[rng.integers(0, len(names), n)]
    fitted = forge.model(rng.standard_normal((1, d)), 0.0, names)
    return forge.Case((forge.claim("data.identity", float(n), "lower", params={"set": "train"}),), fitted, X, y).seal()


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_fingerprints_do_not_depend_on_the_blocks(n, d):
    """The forge hashes chunk by chunk; the checker reads blocks of 256 to 65,536 rows, or any others it is
    given."""
    case = labelled(n, d)
    assert case.verify().holds, case.verify().reason
    cuts = sorted({0, *np.random.default_rng(n).integers(0, n, 5).tolist(), n})
    pieces = [Block(case.X[i:j], case.y[i:j], None, i) for i, j in pairwise(cuts)]
    stored = SimpleNamespace(blocks=lambda: iter(pieces))
    assert verify(case.sealed, case.model, stored).holds


def test_any_changed_bit_is_noticed():
    case = labelled(5000, 3)
    rng = np.random.default_rng(1)
    for _ in range(40):
        X, y = case.X.copy(), case.y.copy()
        i = int(rng.integers(5000))
        if rng.random() < 0.5:
            X[i, rng.integers(3)] *= 1 + 2.0**-52
        else:
            y[i] = "b" if y[i] == "a" else "a"
        report = replace(case, X=X, y=y).verify()
        assert not report.holds
        assert "fingerprint" in report.reason
    for other in (case.X[1:], case.X[::-1], np.vstack([case.X, case.X[:1]])):
        y = case.y[1:] if len(other) < 5000 else case.y[::-1] if len(other) == 5000 else np.append(case.y, case.y[0])
        assert not replace(case, X=other, y=y).verify().holds
    swapped = forge.model(case.model.coef_, case.model.intercept_, ["b", "a"])
    assert "not the model" in replace(case, model=swapped).verify().reason


def test_the_same_numbers_in_another_type_are_the_same_rows():
    case = labelled(50, 2)
    X = np.round(case.X * 4) / 4
    X[0, 0] = -0.0
    case = replace(case, X=X, sealed=None).seal()
    plain = X + 0.0
    for same in (plain, X.astype(np.float32), np.asfortranarray(X), X.tolist(), X[:, ::-1][:, ::-1]):
        assert replace(case, X=same).verify().holds
    whole = replace(case, X=np.arange(100.0).reshape(50, 2), sealed=None).seal()
    assert replace(whole, X=np.arange(100).reshape(50, 2)).verify().holds
    beyond = np.arange(100).reshape(50, 2) + 2**53
    assert "2^53" in replace(whole, X=beyond).verify().reason


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        (np.nan, "REJECTED"),
        (np.inf, "REJECTED"),
        (-np.inf, "REJECTED"),
        (1e-151, "REFUSED"),
        (5e-324, "REFUSED"),
        (-1e151, "REFUSED"),
    ],
)
def test_numbers_the_arithmetic_cannot_carry(entry, status):
    case = labelled(50, 2)
    X = case.X.copy()
    X[7, 1] = entry
    report = replace(case, X=X, sealed=None).verify()
    assert [verdict.status for verdict in report.verdicts] == [status]
    numeric = optimum_cases.ridge_case(1)
    y = numeric.y.copy()
    y[3] = entry
    assert not replace(numeric, y=y, sealed=None).verify().holds


@pytest.mark.parametrize("kind", ["int", "float", "bool", "str", "object", "bytes"])
def test_labels_of_every_kind(kind):
    rng = np.random.default_rng(2)
    values = {
        "int": np.array([3, 10]),
        "float": np.array([0.5, 2.0]),
        "bool": np.array([False, True]),
        "str": np.array(["no", "ja é"]),
        "object": np.array(["x", "yy"], dtype=object),
        "bytes": np.array([1, 200], dtype=np.uint8),
    }[kind]
    y = values[rng.integers(0, 2, 60)]
    X = rng.standard_normal((60, 2))
    fitted = forge.model(rng.standard_normal((1, 2)), 0.0, values)
    wrong = int(np.sum(values[(X @ fitted.coef_[0] > 0).astype(int)] != y))
    params = {"set": "train", "rows": 60, "loss": "zero-one", "low": wrong}
    case = forge.Case((forge.claim("train.errors", float(wrong), params=params),), fitted, X, y).seal()
    assert case.verify().holds, case.verify().reason


def test_a_label_the_model_does_not_know():
    case = labelled(30, 2)
    y = case.y.copy()
    y[4] = "c"
    assert "'c'" in replace(case, y=y).verify().reason
    named = replace(case.sealed, data={"train": forge.data_reference(case.X, y, None, ["a", "b", "c"])})
    assert "all of them classes of the model" in verify(named, case.model, case.X, y).reason


def test_missing_and_misplaced_arguments():
    case = count_cases.holdout_case(0)
    certificate = case.sealed
    report = verify(certificate, case.model)
    assert "not given" in report.reason
    assert all(verdict.status == "REFUSED" for verdict in report.verdicts)
    assert "pass holdout=" in verify(certificate, case.model, case.X, case.y).reason
    assert (
        "fingerprint"
        in verify(certificate, case.model, case.X, case.y, holdout=(case.holdout[0], case.holdout[1][::-1])).reason
    )
    assert (
        "rows"
        in verify(certificate, case.model, case.X, case.y, holdout=(case.holdout[0][1:], case.holdout[1][1:])).reason
    )
    assert "y has" in verify(certificate, case.model, case.X, case.y[1:], holdout=case.holdout).reason
    assert "y is missing" in verify(certificate, case.model, case.X, None, holdout=(case.holdout[0], None)).reason
    assert (
        "columns"
        in verify(certificate, case.model, case.X, case.y, holdout=(case.holdout[0][:, :2], case.holdout[1])).reason
    )
    assert "object" in verify(certificate, case.model, case.X.astype(object), case.y, holdout=case.holdout).reason
    assert "two-dimensional" in verify(certificate, case.model, case.X[0], case.y, holdout=case.holdout).reason
    assert "no stored form" in verify(certificate, SimpleNamespace(), case.X, case.y, holdout=case.holdout).reason
    bare = forge.Forged(family="linear.classifier")
    sealed = replace(certificate, model=forge.model_reference(bare))
    assert "look at 'classes_'" in verify(sealed, bare, case.X, case.y, holdout=case.holdout).reason
    assert not verify("certificate", case.model, case.X, case.y).holds
    split = count_cases.holdout_case(1)
    assert "no holdout" in verify(split.sealed, split.model, split.X, split.y, holdout=case.holdout).reason
    assert "not given" in verify(split.sealed, split.model).reason


def test_weights_are_part_of_the_rows():
    case = optimum_cases.ridge_case(0)
    assert case.weight is not None
    assert case.verify().holds
    assert not replace(case, weight=None).verify().holds
    other = case.weight.copy()
    other[0] += 1e-9
    assert not replace(case, weight=other).verify().holds
    assert "negative" in replace(case, weight=-case.weight - 1, sealed=None).verify().reason


def test_split_rules():
    case = count_cases.holdout_case(1)
    train, holdout = (case.split[name] for name in ("train", "holdout"))
    assert replace(case, split={"train": train[::-1], "holdout": holdout}, sealed=None).verify().holds  # order is free
    for bad, word in (
        ({"train": np.append(train[1:], holdout[0]), "holdout": holdout}, "twice"),
        ({"train": np.append(train[1:], train[2]), "holdout": holdout}, "twice"),
        ({"train": train - 1000, "holdout": holdout}, "negative"),
        ({"train": train.astype(float), "holdout": holdout}, "integers"),
        ({"train": train[1:], "holdout": holdout}, "shape"),
        ({"train": train, "test": holdout}, "names the rows"),
        ({"train": np.append(train[1:], 1000), "holdout": holdout}, "rows"),
    ):
        assert word in verify(replace(case.sealed, split=bad), case.model, case.X, case.y).reason


def test_the_hold_out_set_is_not_the_training_set():
    case = count_cases.holdout_case(0)
    same = replace(case, X=case.holdout[0], y=case.holdout[1], sealed=None)
    assert "training rows" in same.verify().reason


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"format": "assay-certificate/1"}, "format"),
        ({"delta_total": "0.03"}, "ledger"),
        ({"delta_total": "0"}, "delta_total"),
        ({"delta_total": "1"}, "delta_total"),
        ({"delta_total": "0.05 "}, "decimal"),
        ({"delta_total": 0.05}, "decimal"),
        ({"delta_total": "1" * 10**6}, "decimal"),
        ({"delta_total": "nan"}, "decimal"),
        ({"delta_total": "5e-2x"}, "decimal"),
        ({"delta_total": "٠.5"}, "decimal"),
        ({"unreported": (("vc", "0.02"),)}, "ledger"),
        ({"unreported": (("P99", "0.001"),)}, "unknown claim"),
        ({"unreported": (("vc", "-0.02"),)}, "decimal"),
        ({"not_applicable": (NotApplicable("vc", "two\nlines"),)}, "one line"),
        ({"not_applicable": (NotApplicable("vc", "x" * 1001),)}, "one line"),
        ({"not_applicable": (NotApplicable("every claim", "because"),)}, "unknown claim"),
        ({"claims": ("data.identity",)}, "unknown claim"),
        ({"data": {"other": None}}, "about training rows"),
    ],
)
def test_broken_certificates(fields, word):
    case = count_cases.holdout_case(0)
    report = verify(replace(case.sealed, **fields), case.model, case.X, case.y, holdout=case.holdout)
    assert not report.holds
    assert word in report.reason


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"name": "P01/2"}, "unknown claim"),
        ({"name": "P99/1"}, "unknown claim"),
        ({"value": float("nan")}, "finite"),
        ({"value": float("inf")}, "finite"),
        ({"value": "0.5"}, "number"),
        ({"value": True}, "number"),
        ({"value": 10**400}, "finite"),
        ({"value": -0.1}, "at least"),
        ({"direction": "both"}, "direction"),
        ({"direction": None}, "direction"),
        ({"delta": "0"}, "between 0 and 1"),
        ({"delta": "1"}, "between 0 and 1"),
        ({"delta": "-0.01"}, "decimal"),
        ({"delta": "0.04junk"}, "decimal"),
        ({"delta": "0x1p-5"}, "decimal"),
        ({"delta": "0." + "0" * 70 + "1"}, "decimal"),
        ({"assumptions": ("A-IID(holdout)", "A-DELTA")}, "assumptions"),
        ({"assumptions": (*definition("holdout.binomial").assumptions, "A-ORDER")}, "assumptions"),
        ({"assumptions": (*definition("holdout.binomial").assumptions, "A-DELTA")}, "assumptions"),
        ({"data": ("test",)}, "data sets"),
        ({"data": ()}, "data sets"),
        ({"data": ("train",)}, "holdout rows"),
        ({"params": {"errors": 3}}, "'rows' is missing"),
        ({"params": {"errors": 3.0, "rows": 30}}, "integer"),
        ({"params": {"errors": 10**1000, "rows": 30}}, "integer"),
        ({"params": {"errors": True, "rows": 30}}, "integer"),
        ({"params": None}, "mappings"),
    ],
)
def test_broken_claims(fields, word):
    case = count_cases.holdout_case(0)
    report = case.with_claim(**fields).verify()
    assert not report.holds
    assert word in report.reason
    facts = labelled(20, 2)
    assert "fact" in facts.with_claim(delta="0.01").verify().reason


def test_one_bad_claim_does_not_hide_the_others():
    good = optimum_cases.logistic_case(0)
    bad = replace(good.claim, value=0.0)
    report = replace(good, claims=(good.claim, bad), sealed=None).verify()
    assert [verdict.status for verdict in report.verdicts] == ["PROVED", "REJECTED"]
    assert "logistic.gap: fails: claimed <= 0, measured" in str(report)
    assert "holds" in report._repr_html_()
    assert str(report).startswith("The certificate does not hold.")


def test_a_certificate_without_claims_does_not_hold():
    case = labelled(10, 1)
    assert (
        verify(replace(case.sealed, claims=()), case.model, case.X, case.y).reason == "the certificate makes no claim"
    )


def test_the_checker_imports_no_solver_and_no_learner():
    """In a fresh interpreter, importing the checker loads neither scikit-learn nor Numba nor the rest of the
    library."""
    script = "import assay.checker.verify, sys; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert "assay.checker.verify" in loaded
    assert not loaded & {
        "assay.theory",
        "assay.linear_model",
        "assay.optim",
        "assay.base",
        "sklearn",
        "numba",
    }
    assert not any(name.startswith(("assay.scan", "assay.data.")) and name != "assay.data.blocks" for name in loaded)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_file_is_refused_with_what_to_do(version):
    """Claims of these numbers meant something else before: such a file must not be read as if they meant this."""
    text = to_json(count_cases.holdout_case(0).sealed)
    record = json.loads(text)
    assert record["format"] == "assay-certificate/4"
    record["format"] = f"assay-certificate/{version}"
    with pytest.raises(DocumentError, match="certify the model again"):
        from_json(json.dumps(record))
    del record["looks"], record["unreported"]  # fields that older files may lack do not hide the reason
    with pytest.raises(DocumentError, match="certify the model again"):
        from_json(json.dumps(record))
