"""Log-losses of densities, whose true mean is known cell by cell."""

import numpy as np
from scipy.stats import norm

from assay.mixture import HistogramDensity
from bench.worlds._case import case

CLIP = (0.0, 6.0)  # of -ln p(x), fixed here


def true_loss(model: HistogramDensity) -> float:
    """Return the mean of the clipped log-loss for x ~ N(0, 1), cell by cell; rows outside count the upper end."""
    edges = model.edges_[0]
    shares = np.diff(norm.cdf(edges))
    losses = np.clip(-model.score_samples((edges[1:] + edges[:-1])[:, None] / 2), *CLIP)
    return float(shares @ losses + (1 - shares.sum()) * CLIP[1])


def judged(train: np.ndarray, holdout: np.ndarray, bins: int, delta: float) -> tuple[bool, bool]:
    """Tell whether one of the three bounds lies below the truth, and whether one says something."""
    model = HistogramDensity(bins=bins, n_jobs=1).fit(train)
    found = model.certify(train, holdout=(holdout, None), clip=CLIP, delta=delta)
    bounds = [CLIP[0] + claim.value for claim in found.claims if claim.quantity == "mean loss"]
    truth = true_loss(model)
    return any(bound < truth for bound in bounds), any(bound < 3.0 for bound in bounds)


@case("holdout.betting", "log-loss of a histogram, m = 100", times=0.2)
def histogram_log_loss(rng, delta):
    return judged(rng.normal(size=(60, 1)), rng.normal(size=(100, 1)), 8, delta)


@case("holdout.betting", "log-loss of a histogram on the rows that it was fitted to", control=True, times=0.05)
def histogram_on_its_own_rows(rng, delta):
    train = rng.normal(size=(60, 1))
    return judged(train, train, 40, delta)
