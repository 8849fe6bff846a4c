"""Certificates: claims about a fitted model that anyone can re-check.

`claim` holds the plain data, `templates` what each kind of claim says, `seal` makes a certificate, `verify` checks one.
The checker (`verify`, `rules`) shares no mathematics with what it checks. `SPEC.md` is the format.
"""

from assay.claims.claim import Certificate, Claim, NotApplicable

__all__ = ["Certificate", "Claim", "NotApplicable"]
