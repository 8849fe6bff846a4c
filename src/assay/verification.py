"""`assay.verify`: one function for the library, the command line and the studio."""

from typing import Any

from assay.checker.verdict import Report
from assay.checker.verify import verify as verify_rows
from assay.claims.claim import Certificate


def verify(certificate: Certificate, model: Any, X: Any = None, y: Any = None, **given: Any) -> Report:
    """Re-check a certificate without trusting how the model was fitted.

    Parameters
    ----------
    certificate : Certificate
    model : a fitted learner, what `assay.load` returned, or the model that `assay.learn` found
    X, y : the training rows; the whole table if the certificate has a split. For a model of a table, X is the table
        (a file, a frame, a dict of columns) and y is left out
    sample_weight : weights of the training rows
    holdout : (X, y) of the hold-out rows, when the certificate has no split
    columns : values of columns that claims name beside those that the model reads, by name
    limit : seconds after which the claims that are not yet judged "cannot be checked"

    Returns
    -------
    Report
        `holds`, a verdict for each claim, and the reason in words. Of a model of a table also the encoding and what
        prediction sets, intervals and the test for drift use are compared with what the rows give.
    """
    of_table = getattr(model, "verify", None)
    if of_table is not None:
        if y is not None or set(given) - {"limit"}:
            raise TypeError("a model of a table is verified with the table alone: verify(certificate, model, table).")
        return of_table(certificate, X, **given)
    return verify_rows(certificate, model, X, y, **given)
