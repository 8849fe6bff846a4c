"""Assay: classical machine learning in which every fitted model carries a certificate.

    model = assay.linear_model.LogisticRegression().fit(X, y)
    certificate = model.certify(X, y, holdout=(Xh, yh))     # what is true of this model, with the evidence
    assay.verify(certificate, model, X, y, holdout=(Xh, yh))  # the same, checked again without trusting `fit`
    assay.save(model, "credit.assay", certificate)

Everything is loaded when it is first used: `import assay` alone costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.certificate.claim import Certificate as Certificate
    from assay.certificate.claim import Claim as Claim
    from assay.certificate.verify import verify as verify
    from assay.learning.choice import learn as learn
    from assay.persist import ModelFileError as ModelFileError
    from assay.persist import load as load
    from assay.persist import save as save
    from assay.registry import learners as learners

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "assay.certificate.claim",
    "Claim": "assay.certificate.claim",
    "verify": "assay.certificate.verify",
    "learn": "assay.learning",
    "ModelFileError": "assay.persist",
    "save": "assay.persist",
    "load": "assay.persist",
    "learners": "assay.registry",
}

_ROOMS = (
    "certificate",
    "cluster",
    "data",
    "datasets",
    "decomposition",
    "discriminant_analysis",
    "ensemble",
    "kernel_model",
    "kernel_ridge",
    "kernels",
    "linear_model",
    "metrics",
    "mixture",
    "model_selection",
    "neighbors",
    "neural_network",
    "optim",
    "plot",
    "preprocessing",
    "report",
    "scan",
    "svm",
    "theory",
    "tree",
)

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"assay.{name}")
    raise AttributeError(f"module 'assay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
