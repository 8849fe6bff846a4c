"""Assay: classical machine learning in which every fitted model carries a certificate.

    model = assay.linear_model.LogisticRegression().fit(X, y)
    certificate = model.certify(X, y, holdout=(Xh, yh))     # what is true of this model, with the evidence
    assay.verify(certificate, model, X, y, holdout=(Xh, yh))  # the same, checked again without trusting `fit`
    assay.save(model, "credit.assay", certificate)

Everything is loaded when it is first used: `import assay` alone costs next to nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.claims.claim import Certificate as Certificate
    from assay.claims.claim import Claim as Claim
    from assay.learning.study import learn as learn
    from assay.patch import patch_sklearn as patch_sklearn
    from assay.patch import unpatch_sklearn as unpatch_sklearn
    from assay.persist import ModelFileError as ModelFileError
    from assay.persist import load as load
    from assay.persist import save as save
    from assay.registry import learners as learners
    from assay.verification import verify as verify

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "assay.claims.claim",
    "Claim": "assay.claims.claim",
    "verify": "assay.verification",
    "learn": "assay.learning",
    "ModelFileError": "assay.persist",
    "save": "assay.persist",
    "load": "assay.persist",
    "learners": "assay.registry",
    "patch_sklearn": "assay.patch",
    "unpatch_sklearn": "assay.patch",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if not name.startswith("_") and find_spec(f"assay.{name}"):
        return import_module(f"assay.{name}")
    raise AttributeError(f"module 'assay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(room.name for room in iter_modules(__path__) if room.ispkg)])
