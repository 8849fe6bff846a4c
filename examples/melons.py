"""Thirty melons in three clusters: EM step by step, as in a textbook, and what is proved at the end
=================================================================================================

Run `python examples/melons.py [figure.png]`; a name writes a figure of the components (needs matplotlib).
"""

import sys
import warnings

import numpy as np

from assay.mixture import GaussianMixture

DENSITY = [0.697, 0.774, 0.634, 0.608, 0.556, 0.403, 0.481, 0.437, 0.666, 0.243, 0.245, 0.343, 0.639, 0.657, 0.360]
DENSITY += [0.593, 0.719, 0.359, 0.339, 0.282, 0.748, 0.714, 0.483, 0.478, 0.525, 0.751, 0.532, 0.473, 0.725, 0.446]
SUGAR = [0.460, 0.376, 0.264, 0.318, 0.215, 0.237, 0.149, 0.211, 0.091, 0.267, 0.057, 0.099, 0.161, 0.198, 0.370]
SUGAR += [0.042, 0.103, 0.188, 0.241, 0.257, 0.232, 0.346, 0.312, 0.437, 0.369, 0.489, 0.472, 0.376, 0.445, 0.459]
MELONS = np.column_stack([DENSITY, SUGAR])


def fitted(steps: int) -> GaussianMixture:
    """Return the mixture after so many steps from the textbook's start: melons 6, 22 and 27, variances 0.1."""
    model = GaussianMixture(
        3,
        weights_init=np.full(3, 1 / 3),
        means_init=MELONS[[5, 21, 26]],
        precisions_init=np.tile(10 * np.eye(2), (3, 1, 1)),
        max_iter=steps,
        tol=0.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is cut short on purpose
        return model.fit(MELONS)


def main(figure: str | None = None) -> None:
    for steps in (0, 1, 5, 10, 20, 50):
        model = fitted(steps)
        shares = ", ".join(f"{weight:.3f}" for weight in model.weights_)
        print(f"{steps:3d} steps: {model.lower_bound_:+.4f} nats per melon, weights {shares}")
    for claim in model.certify(MELONS).claims:
        print(claim.statement)
    if figure is not None:
        from assay import plot

        plot.components(model, MELONS).savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
