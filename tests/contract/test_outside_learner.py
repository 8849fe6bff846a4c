"""The exercise of a stranger: a learner of a family that exists, brought from outside, can do what every other can."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys, warnings
import numpy as np
import assay
import matplotlib
matplotlib.use("Agg")
from assay import plot, registry
from assay.ensemble import VotingClassifier
from assay.linear_model import LogisticRegression
from assay.warmup import steps
from scipy.stats import geom
from tests.contract.outside_learner import GeometricNB

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 60)
X = random.geometric(np.array([[0.2, 0.6], [0.6, 0.2], [0.4, 0.1]])[y]).astype(float) - 1
model = GeometricNB().fit(X, y)
found = {}
q = (model.feature_count_ + 1) / (model.feature_count_ + 1 + model.class_count_[:, None] + 1)
joint = np.stack([geom.logpmf(X + 1, 1 - row).sum(axis=1) for row in q], axis=1)
found["right"] = bool(np.array_equal(joint.argmax(axis=1), model.predict(X)))
certificate = model.certify(X, y)
found["certified"] = sorted(claim.kind for claim in certificate.claims)
assay.save(model, sys.argv[1], certificate)
again, told = assay.load(sys.argv[1])
found["verified"] = assay.verify(told, again, X, y).holds
again.feature_count_ = again.feature_count_ + 1
found["forged"] = assay.verify(told, again, X, y).holds
vote = VotingClassifier([("a", model), ("b", LogisticRegression())], voting="soft").fit(X, y)
found["votes"] = assay.verify(vote.certify(X, y), vote, X, y).holds
found["listed"] = GeometricNB in assay.learners("classify")
found["kinds"] = sorted(registry.kinds(GeometricNB))
found["drawn"] = len(getattr(plot, model.figure)(model).axes) > 0
levels = np.array(["none", "one", "some"])[np.minimum(X, 2).astype(int)]  # ones and zeros to the learner
table = {"x": levels[:, 0].tolist(), "z": levels[:, 1].tolist(), "y": np.array(["no", "maybe", "yes"])[y].tolist()}
for workers in (0, 1):
    study = assay.learn(table, "y", learners=["GeometricNB"], trials=1, workers=workers)
    found[f"learnt {workers}"] = [type(study.model.learner).__name__, study.certificate is not None]
found["compiled"] = "GeometricNB" in [name for name, _ in steps()]
print(json.dumps(found))
"""


def test_a_learner_from_outside(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "model.assay")], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert {"counts.mle", "data.identity", "train.errors"} <= set(found.pop("certified"))
    assert found == {
        "right": True,
        "verified": True,
        "forged": False,
        "votes": True,
        "listed": True,
        "kinds": ["discriminative", "online", "supervised"],
        "drawn": True,
        "learnt 0": ["GeometricNB", True],
        "learnt 1": ["GeometricNB", True],
        "compiled": True,
    }
