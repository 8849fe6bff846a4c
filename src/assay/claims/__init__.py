"""The format of certificates: claims about a fitted model that anyone can check again.

`claim` has the records (Claim, Certificate), `definitions` what each code means and where definitions are found,
`model` a fitted model as plain data with its fingerprint (StoredModel), `document` certificates as JSON, `words`
certificates in plain words. Nothing here computes a claim (`assay.guarantees`) or judges one (`assay.checker`).
SPEC.md is the format.
"""

from assay.claims.claim import Certificate, Claim, NotApplicable

__all__ = ["Certificate", "Claim", "NotApplicable"]
