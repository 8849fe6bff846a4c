"""An elephant from four complex parameters: enough parameters fit anything
========================================================================

    x(t) = sum_k A_k^x cos kt + B_k^x sin kt,    y(t) likewise,    k = 1..5

The parameters p1..p4 = 50-30i, 18+8i, 12-10i, -14-60i carry the eight real numbers that are not zero; a
fifth, 40+20i, gives the eye (Mayer, Khairy and Howard, American Journal of Physics 78, 648, 2010).

Run `python examples/elephant.py elephant.png` to draw it (needs matplotlib).
"""

import sys

import numpy as np

from assay.feature_extraction import FourierContour, curve

PARAMETERS = (50 - 30j, 18 + 8j, 12 - 10j, -14 - 60j)
EYE = 40 + 20j


def coefficients(parameters: tuple[complex, ...] = PARAMETERS) -> tuple[np.ndarray, np.ndarray]:
    """Return the Fourier coefficients A_k + i B_k of x and of y for k = 0..5."""
    p1, p2, p3, p4 = parameters
    x, y = np.zeros(6, complex), np.zeros(6, complex)
    x[1], x[2], x[3], x[5] = p1.real * 1j, p2.real * 1j, p3.real, p4.real
    y[1], y[2], y[3] = p4.imag + p1.imag * 1j, p2.imag * 1j, p3.imag * 1j
    return x, y


def outline(points: int = 1000, parameters: tuple[complex, ...] = PARAMETERS) -> tuple[np.ndarray, np.ndarray]:
    """Return the closed outline, trunk to the right."""
    t = np.linspace(0.0, 2.0 * np.pi, points)
    x, y = coefficients(parameters)
    return curve(y, t), -curve(x, t)


def recovered(points: int = 64) -> tuple[complex, ...]:
    """Return the parameters as the Fourier descriptor reads them off points of the outline."""
    t = 2.0 * np.pi * np.arange(points) / points
    x, y = (curve(c, t) for c in coefficients())
    (found,) = FourierContour(5).fit(np.stack([x, y], axis=1)[None]).coefficients(np.stack([x, y], axis=1)[None])
    x, y = found
    return (
        complex(x[1].imag, y[1].imag),
        complex(x[2].imag, y[2].imag),
        complex(x[3].real, y[3].imag),
        complex(x[5].real, y[1].real),
    )


def main(path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    x, y = outline()
    figure, axes = plt.subplots()
    axes.plot(x, y)
    axes.plot([EYE.imag], [EYE.imag], "o")
    axes.set_aspect("equal")
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "elephant.png")
