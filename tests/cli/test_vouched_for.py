"""What only the maker of a model can vouch for is printed by `assay verify` beside the verdict, and told to scripts.

The sentences stand here a second time: whoever takes one away, or a claim's assumption, must do so in both places.
"""

import json
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.data import raw_table
from assay.guarantees.ledger import CertifyOptions

DRAWS = "the {} rows are independent draws from one distribution, from which new data come too [A-IID({})]"
KEPT = (
    "nothing about the model (preprocessing, features, hyper-parameters, stopping) was chosen by looking at the "
    "hold-out rows, nor were these, or the seed that drew them, chosen by looking [A-SPLIT(holdout)]"
)
DECLARED = (
    "the hold-out rows were drawn at random, or are the newest: the certificate names no seed and no column of times "
    "by which that could be checked [A-SPLIT(holdout)]"
)
BAGS = (
    "each member depends on the training rows of its own bag alone, and bags were drawn without looking at the rows; "
    "the number of members was fixed in advance [A-BAGS]"
)
FOLDS = (
    "the number and the seed of the folds were not chosen by looking at the rows, and each fold's model was fitted "
    "without that fold [A-FOLDS]"
)
FIXED = "the confidence and the choice of claims were fixed in advance, or are paid for in the ledger [A-DELTA]"
BITS = (
    "pseudo-random bits, those of SHA-256 among them, behave like independent fair bits, "
    "independent of the data [A-RNG]"
)
CLASS = (
    "the class of hypotheses (features, encodings, kernel) was fixed without looking at the labelled sample [A-CLASS]"
)
PRIOR = "the prior, code or grid was fixed without looking at the sample [A-PRIOR]"
HELD, TRAINED = DRAWS.format("hold-out", "holdout"), DRAWS.format("training", "train")


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, z, noise = rng.normal(size=(3, 240))
    return pd.DataFrame({"x": x, "z": z, "y": np.where(x + 0.3 * noise > 0, "a", "b")})


def study(learner: str, target: str = "y", **options):
    found = assay.learn(table(), target, learners=[learner], trials=1, workers=0, **options)
    return found.model, found.certificate


def of_bags(learner: str):
    """A vote of members, certified on rows outside of their bags too; nothing says who held out the others."""
    model, certificate = study(learner)
    held = certificate.split["holdout"]
    return model, model.certify(raw_table(table()), held, delta=Decimal("0.05"), asked=CertifyOptions())


def undeclared():
    model, certificate = study("DecisionTreeClassifier")
    return model, replace(certificate, split={k: v for k, v in certificate.split.items() if k != "seed"})


def numbers_in_folds():
    return study("DecisionTreeRegressor", "z", certify="folds")


CASES = {
    "split": (lambda: study("DecisionTreeClassifier"), {HELD, KEPT, FIXED, BITS}),
    "split of unknown origin": (undeclared, {HELD, KEPT, DECLARED, FIXED, BITS}),
    "forest": (
        lambda: of_bags("RandomForestClassifier"),
        {TRAINED, HELD, KEPT, DECLARED, BAGS, BITS, CLASS, PRIOR, FIXED},
    ),
    "bagging": (lambda: of_bags("BaggingClassifier"), {TRAINED, HELD, KEPT, DECLARED, BAGS, BITS, CLASS, PRIOR, FIXED}),
    "folds": (lambda: study("DecisionTreeClassifier", certify="folds"), {TRAINED, FOLDS, FIXED, BITS}),
    "folds of numbers": (numbers_in_folds, {TRAINED, FOLDS, FIXED, BITS}),
    "folds of bags": (lambda: study("RandomForestClassifier", certify="folds"), {TRAINED, FOLDS, FIXED, BITS}),
}


@pytest.mark.parametrize("case", CASES)
def test_verify_prints_every_assumption_that_no_checker_can_see(case, tmp_path):
    make, wanted = CASES[case]
    model, certificate = make()
    if "bag" in case or case == "forest":
        assert case == "folds of bags" or certificate.find("pac-bayes.vote")
    assay.save(model, tmp_path / "m.assay", certificate)
    table().to_csv(tmp_path / "t.csv", index=False)
    command = ["verify", str(tmp_path / "m.assay"), str(tmp_path / "t.csv")]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "1000"})
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    _, _, after = words.partition("if all of this is so, which no checker can see:")
    lines, _, about = after.partition(" The claims are about ")
    assert about
    assert set(re.findall(r"- (.*? \[A-[^]]*\])", lines)) == wanted
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert told["holds"]
    assert set(told["if"]) == wanted
