"""Histograms: a density that is constant in each cell of a grid.

Arrays: `edges_` (d, bins + 1) increasing, `cells_` (m, d) places of the cells that hold rows, in order, `counts_` (m,),
`alpha_` (1,).
"""

from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.rules import densities, mixtures
from assay.checker.rules.mixtures import LOG_LIKELIHOOD
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence

_COUNTS = Sentence.plain(
    "The cells of the histogram hold exactly the stored numbers of the {rows} training rows, of which {value:count} "
    "lie outside the grid."
)


CLAIMS = {
    "D23/1": Definition("density.log-likelihood", mixtures.LogLikelihood, LOG_LIKELIHOOD),
    "D28/2": Definition("histogram.counts", mixtures.HistogramCounts, _COUNTS),
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
