"""One hidden layer is enough, and how much of it: the sine on an interval, approximated with more and more units
==============================================================================================================

On a compact set a layer of units that are not polynomials, with a linear output, comes as close to a continuous
function as one likes (Cybenko 1989; Hornik 1991). Nothing says how many units it takes, or that training finds them:
here both are tried. Run `python examples/approximation.py [curves.png]`; with a file name the functions are drawn
(needs matplotlib).
"""

import sys
from collections.abc import Sequence

import numpy as np

from assay.neural_network import MLPRegressor, RBFRegressor


def largest_errors(units: Sequence[int] = (1, 2, 4, 8), starts: int = 3) -> dict[int, tuple[float, np.ndarray]]:
    """Return for each number of units the largest error between the training points, and the function at 600 points."""
    x = np.linspace(-np.pi, np.pi, 200)[:, None]
    dense = np.linspace(-np.pi, np.pi, 600)[:, None]
    found = {}
    for q in units:
        model = MLPRegressor(
            hidden_layer_sizes=q, activation="tanh", solver="lbfgs", alpha=0.0, tol=1e-9, max_iter=5000,
            n_restarts=starts, random_state=0,
        )  # fmt: skip
        said = model.fit(x, np.sin(x[:, 0])).predict(dense)
        found[q] = float(np.abs(said - np.sin(dense[:, 0])).max()), said
    return found


def bell_errors(centers: Sequence[int] = (2, 4, 8, 16)) -> dict[int, float]:
    """Return for each number of bells of a radial basis function network its largest error between the rows."""
    x = np.linspace(-np.pi, np.pi, 200)[:, None]
    dense = np.linspace(-np.pi, np.pi, 600)[:, None]
    models = {q: RBFRegressor(q, random_state=0).fit(x, np.sin(x[:, 0])) for q in centers}
    return {q: float(np.abs(model.predict(dense) - np.sin(dense[:, 0])).max()) for q, model in models.items()}


def main(picture: str | None = None) -> None:
    found = largest_errors()
    for q, (error, _) in found.items():
        print(f"{q:2d} hidden units: largest error {error:.5f}")
    for q, error in bell_errors().items():
        print(f"{q:2d} bells: largest error {error:.5f}")
    if picture is None:
        return
    import matplotlib.pyplot as plt

    x = np.linspace(-np.pi, np.pi, 600)
    figure, axes = plt.subplots()
    axes.plot(x, np.sin(x), color="black", linewidth=3, alpha=0.3, label="sine")
    for q, (_, said) in found.items():
        axes.plot(x, said, label=f"{q} units")
    axes.legend()
    figure.savefig(picture)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # one unit does not converge, which is the point
    main(*sys.argv[1:2])
