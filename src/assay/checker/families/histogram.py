"""Histograms: a density that is constant in each cell of a grid.

Arrays: `edges_` (d, bins + 1) increasing, `cells_` (m, d) places of the cells that hold rows, in order, `counts_` (m,),
`alpha_` (1,).
"""

from collections.abc import Mapping
from typing import Any

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.rules import densities, mixtures
from assay.checker.rules.mixtures import log_likelihood
from assay.claims.definitions import Definition


def _counts(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The cells of the histogram hold exactly the stored numbers of the {params['rows']} training rows, of which "
        f"{int(value)} lie outside the grid."
    )


CLAIMS = {
    "D23/1": Definition("density.log-likelihood", mixtures.LogLikelihood, log_likelihood),
    "D28/2": Definition("histogram.counts", mixtures.HistogramCounts, _counts),
}
FAMILY = Family(
    "histogram",
    {
        "": Variant(
            {"edges_": NUMBERS, "cells_": WHOLE, "counts_": NUMBERS, "alpha_": NUMBERS},
            densities.read_histogram,
            target=False,
        )
    },
    CLAIMS,
)
