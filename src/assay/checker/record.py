"""Reading what a certificate says: plain values, arrays, decimal strings, and the record with its ledger."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from assay.checker.numerics import LARGEST, SMALLEST
from assay.claims.claim import FORMAT, Certificate, Claim
from assay.claims.definitions import Definition

_PRODUCER = re.compile(r"[a-z0-9_.+-]{1,40}/[a-z0-9_.+-]{1,40}")
MALFORMED_INPUT_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What malformed input makes NumPy and Python raise; each is a verdict, never a traceback."""
_DECIMAL = re.compile(r"[0-9]{1,40}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?", re.ASCII)


_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}(\.[a-z0-9-]{1,40})?|[A-Z][0-9]{2}/[0-9]{1,3}")
"""Names of claims, and codes of those whose family is not loaded."""


class Rejected(Exception):
    """The claim, or what it stands on, is shown to be wrong."""


class Refused(Exception):
    """The checker cannot decide soundly."""


def number(value: Any, name: str, *, zero: bool = False) -> float:
    """Return a positive finite float (or zero, with zero=True)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise Rejected(f"{name} must be a number; it is {str(value)[:40]!r}")
    if not -LARGEST <= value <= LARGEST or float(value) != value:  # also when it is NaN
        raise Rejected(f"{name} must be a finite binary64 number; it is {str(value)[:40]}")
    if value < SMALLEST and not (zero and value == 0):
        raise Rejected(f"{name} must be {'at least' if zero else 'above'} 0 and not tiny; it is {float(value)!r}")
    return float(value)


def signed(value: Any, name: str) -> float:
    """Return a finite float of any sign."""
    if isinstance(value, (int, float, np.floating)) and not isinstance(value, bool) and value < 0:
        return -number(-value, name)
    return number(value, name, zero=True)


def count(value: Any, name: str, low: int = 0) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Rejected(f"{name} must be an integer; it is {str(value)[:40]!r}")
    if not low <= value <= 2**53:
        raise Rejected(f"{name} must be an integer from {low} to 2^53")
    return int(value)


def array(value: Any, name: str, shape: tuple[int | None, ...], *, integer: bool = False) -> np.ndarray:
    """Return a plain array of that shape (None: any length), finite and in range."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in ("iu" if integer else "iuf"):
        raise Rejected(f"{name} must be an array of {'integers' if integer else 'numbers'}")
    if value.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, value.shape)):
        raise Rejected(f"{name} has shape {value.shape}, expected {shape}")
    if value.dtype.kind in "iu":
        if value.size and max(int(value.max()), -int(value.min())) > 2**53:
            raise Rejected(f"{name} has integers beyond 2^53")
        return value.astype(np.int64 if integer else np.float64)
    magnitude = np.abs(value.astype(np.float64))
    if not np.isfinite(magnitude).all():
        raise Rejected(f"{name} has NaN or infinite entries")
    if np.any((magnitude != 0) & ((magnitude < SMALLEST) | (magnitude > LARGEST))):
        raise Refused(f"{name} has nonzero entries outside [1e-150, 1e150]")
    return value.astype(np.float64)


def exact_decimal(text: Any, name: str) -> Fraction:
    """Return a decimal string as an exact rational."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise Rejected(f"{name} must be a decimal string; it is {str(text)[:60]!r}")
    return Fraction(text)


def check_record(certificate: Certificate, allowed: Mapping[str, Definition]) -> None:
    """Check everything that needs neither model nor data: format, records, ledger; claims are those of `allowed`."""
    if not isinstance(certificate, Certificate) or certificate.format != FORMAT:
        raise Rejected(f"unknown format {str(getattr(certificate, 'format', type(certificate).__name__))[:40]!r}")
    if not {"train"} <= set(certificate.data) <= {"train", "holdout"}:
        raise Rejected("a certificate is about training rows, and hold-out rows if there are any")
    for name, reference in certificate.data.items():
        count(reference.rows, f"rows of {name}", 1)
        if reference.labels is not None and not all(isinstance(label, str) for label in reference.labels):
            raise Rejected(f"labels of {name} must be strings")
    total = exact_decimal(certificate.delta_total, "delta_total")
    if not 0 < total < 1:
        raise Rejected(f"delta_total must lie between 0 and 1; it is {certificate.delta_total}")
    spent = sum((_check_claim(claim, certificate, allowed) for claim in certificate.claims), Fraction(0))
    spent += sum((exact_decimal(delta, "an unreported delta") for _, delta in certificate.unreported), Fraction(0))
    if spent > total:
        raise Rejected(f"the ledger spends {float(spent):.6g}, more than delta_total = {certificate.delta_total}")
    named = [name for name, _ in certificate.unreported] + [gap.name for gap in certificate.not_applicable]
    for name in named:  # claims of other families too, which are not loaded for what is not claimed
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Rejected(f"unknown claim {str(name)[:40]!r}")
    for gap in certificate.not_applicable:
        if not isinstance(gap.reason, str) or len(gap.reason) > 1000 or not gap.reason.isprintable():
            raise Rejected("a reason why a claim is not made must be one line of text")


def _check_claim(claim: Claim, certificate: Certificate, allowed: Mapping[str, Definition]) -> Fraction:
    """Check the fixed part of one claim; return its delta."""
    if not isinstance(claim, Claim) or claim.name not in allowed:
        called = str(getattr(claim, "name", claim))[:40]
        raise Rejected(f"unknown claim {called!r}: models of the family {certificate.model.family!r} have none such")
    definition = allowed[claim.name]
    name, delta = definition.name, exact_decimal(claim.delta, f"delta of {definition.name}")
    number(claim.value, f"value of {name}", zero=True)
    if claim.direction not in definition.directions:
        raise Rejected(f"{name} cannot have the direction {str(claim.direction)[:20]!r}")
    if not isinstance(claim.producer, str) or not _PRODUCER.fullmatch(claim.producer):
        raise Rejected(f"{name}: the producer must be a name and a version, such as assay/0.1.0")
    if sorted(map(str, claim.assumptions)) != sorted(definition.assumptions):
        raise Rejected(f"{name} must carry exactly the assumptions {list(definition.assumptions)}")
    if definition.fact and delta:
        raise Rejected(f"{name} is a fact; its delta must be 0, it is {claim.delta}")
    if not definition.fact and not 0 < delta < 1:
        raise Rejected(f"{name}: delta must lie between 0 and 1; it is {claim.delta}")
    if not isinstance(claim.params, Mapping) or not isinstance(claim.witness, Mapping):
        raise Rejected(f"{name}: params and witness must be mappings")
    if not claim.data or not set(claim.data) <= set(certificate.data):
        raise Rejected(f"{name} speaks of data sets {tuple(claim.data)} that the certificate does not describe")
    return delta
