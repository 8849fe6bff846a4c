"""Two intertwined curves: what no line separates, a Gaussian kernel does, in five ways
====================================================================================

Run `python examples/two_curves.py`, or `python examples/two_curves.py FOLDER` to write the figures there too. Every
model's certificate is checked again.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import assay
from assay import plot
from assay.decomposition import KernelPCA
from assay.discriminant_analysis import KernelDiscriminantAnalysis
from assay.kernel_model import KernelLogisticRegression, KernelPerceptron
from assay.kernels import Gaussian
from assay.svm import SVC
from assay.textbook.svm import intertwined_curves


def spirals(n: int = 100, turns: float = 1.5, noise: float = 0.02, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return n points on each of two spirals that wind around each other, labels 0 and 1."""
    angle = 2 * np.pi * turns * np.sqrt(np.linspace(0.02, 1.0, n))
    arm = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)]) / (2 * np.pi * turns)
    X = np.vstack([arm, -arm]) + np.random.default_rng(seed).normal(scale=noise, size=(2 * n, 2))
    return X, np.repeat([0, 1], n)


def machines(gamma: float) -> dict[str, Any]:
    """Return five kernel machines with the same kernel, and the straight line for comparison."""
    return {
        "straight line": SVC(kernel="linear", C=10.0),
        "support vector machine": SVC(gamma=gamma, C=100.0),
        "kernel logistic regression": KernelLogisticRegression(C=100.0, gamma=gamma),
        "kernel perceptron": KernelPerceptron(gamma=gamma, random_state=0),
        "kernel discriminant analysis": KernelDiscriminantAnalysis(gamma=gamma),
    }


def errors(X: np.ndarray, y: np.ndarray, gamma: float = 50.0) -> dict[str, int]:
    """Return the training errors of each machine, after checking its certificate."""
    counted = {}
    for name, model in machines(gamma).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        report = assay.verify(model.certify(X, y), model, X, y)
        if not report.holds:
            raise AssertionError(f"the certificate of {name} failed: {report.reason}")
        counted[name] = int(np.sum(model.predict(X) != y))
    return counted


def figures(folder: Path) -> list[Path]:
    """Write the figures of the spirals and of the curves' kernel matrix; return their paths."""
    X, y = spirals()
    machine = SVC(gamma=50.0, C=100.0).fit(X, y)
    logistic = KernelLogisticRegression(C=100.0, gamma=50.0).fit(X, y)
    curves, side = intertwined_curves(turns=15.0)
    drawn = {
        "boundary": plot.support_vectors(machine, X, y),
        "alphas": plot.alphas(machine),
        "gap": plot.dual_gap({"support vector machine": machine, "kernel logistic regression": logistic}),
        "kernel_matrix": plot.kernel_matrix(Gaussian.of_width(0.3), curves, side),
    }
    paths = []
    for name, figure in drawn.items():
        paths.append(folder / f"two_curves_{name}.png")
        figure.savefig(paths[-1], dpi=120)
    return paths


def main(folder: str | None = None) -> None:
    X, y = spirals()
    for name, count in errors(X, y).items():
        print(f"{name}: {count} errors on {len(X)} rows, certificate checked")
    share = KernelPCA(kernel="rbf", gamma=50.0).fit(X).explained_variance_ratio_
    print(f"kernel PCA: {np.searchsorted(np.cumsum(share), 0.9) + 1} directions hold 90 % of the variance")
    curves, side = intertwined_curves()
    across = plot.frames.kernel_matrix(Gaussian.of_width(0.3), curves, side)["across"]
    print(f"curves 3 apart, kernel 0.3 wide: largest kernel value between them {across[0, 1]:.1e}")
    if folder is not None:
        for path in figures(Path(folder)):
            print(path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
