"""Honest claims on margins, on rows that no hyperplane separates, and on the mistakes of a perceptron."""

import numpy as np
from scipy.optimize import minimize

from tests.certificate.forge import Case, claim, model, publish


def margin_case(seed: int, direction: str = "lower") -> Case:
    """Two clusters on either side of a hyperplane; the witness is a direction or a point of each hull."""
    rng = np.random.default_rng([seed, 8])
    X = rng.standard_normal((20, 3))
    normal = rng.standard_normal(3)
    side = np.where(np.arange(20) % 2, 1.0, -1.0)
    intercept = [True, False, "augmented"][seed % 3]
    X += np.outer(side * 3 - (X @ normal) / (normal @ normal), normal / np.linalg.norm(normal)) + (
        0.5 if intercept else 0
    )
    Z = np.hstack([X, np.ones((20, 1))]) if intercept == "augmented" else X
    w, lam = hard_margin(Z, side, intercept is True)
    radius = float(np.linalg.norm(Z, axis=1).max()) * (1 + 1e-9)
    params = {"intercept": intercept, "radius": radius}
    fitted = model(w[None, :3], w[3] if intercept == "augmented" else 0.0, [0, 1])
    if direction == "lower":
        scores = Z @ w
        least = scores[side > 0].min(), -scores[side < 0].max()
        value = (sum(least) / 2 if intercept is True else min(least)) / np.linalg.norm(w) * (1 - 1e-9)
        stated = claim("margin.bounds", float(value), "lower", params=params, witness={"w": w})
    else:
        value, witness = hull_distance(Z, side, lam, intercept is True)
        stated = claim("margin.bounds", publish(value), "upper", params=params, witness=witness)
    return Case((stated,), fitted, X, (side > 0).astype(int)).seal()


def hard_margin(Z, side, free):
    """Return the direction of the largest margin and the dual weights, by the dual problem."""
    A = side[:, None] * Z
    G = A @ A.T
    constraints = [{"type": "eq", "fun": lambda a: a @ side, "jac": lambda a: side}] if free else []
    found = minimize(
        lambda a: (0.5 * a @ G @ a - a.sum(), G @ a - 1),
        np.full(len(Z), 1e-3),
        jac=True,
        bounds=[(0, None)] * len(Z),
        constraints=constraints,
        method="SLSQP" if free else "L-BFGS-B",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    lam = np.maximum(found.x, 0.0)
    return A.T @ lam, lam


def hull_distance(Z, side, lam, free):
    if not free:
        witness = {"rows": np.arange(len(Z)), "weight": lam}
        return float(np.linalg.norm((lam * side) @ Z / lam.sum())), witness
    up, down = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    gap = lam[up] @ Z[up] / lam[up].sum() - lam[down] @ Z[down] / lam[down].sum()
    witness = {"positive": up, "positive_weight": lam[up], "negative": down, "negative_weight": lam[down]}
    return float(np.linalg.norm(gap)) / 2, witness


def inseparable_case(seed: int, classes: int = 2) -> Case:
    """Segments of opposite classes that cross, in the plane: Radon sets of four points; one class of three against
    the rest if there are three."""
    rng = np.random.default_rng([seed, 9])
    sets = 1 + seed % 3
    X, y, rows, names = [], [], [], []
    for k in range(sets):
        a, b = rng.integers(-8, 9, size=2), rng.integers(1, 5, size=2)
        corners = list(a + np.array([[-b[0], 0], [b[0], 0], [0, -b[1]], [0, b[1]]]))
        rows += [len(X) + i for i in range(4)]
        names += [k] * 4
        X += corners
        y += [0, 0, 1, 1]
    X += list(rng.standard_normal((6, 2)))
    y += list(rng.integers(0, 2, size=6))
    witness = {"rows": np.array(rows), "set": np.array(names)}
    params = {"form": "ii" if sets == 1 else "iii", "intercept": True}
    fitted, labels = model(rng.standard_normal((1, 2)), 0.3, [0, 1]), np.array(y)
    if classes == 3:
        params["class"] = seed % 3
        others = rng.choice([k for k in range(3) if k != seed % 3], size=len(y))
        fitted, labels = model(rng.standard_normal((3, 2)), np.zeros(3), [0, 1, 2]), np.where(labels, seed % 3, others)
    stated = claim("inseparability", float(sets), "lower", params=params, witness=witness)
    return Case((stated,), fitted, np.array(X, dtype=float), labels).seal()


def perceptron_case(seed: int) -> Case:
    rng = np.random.default_rng([seed, 10])
    intercept, rate = bool(seed % 2), [1.0, 0.3][seed // 2 % 2]
    X = rng.standard_normal((15, 2)) * 2
    side = np.where(X @ [1.0, -0.7] + 0.4 * intercept > 0, 1.0, -1.0)
    X += np.outer(side, [0.4, -0.3])
    Z = np.hstack([X, np.ones((15, 1))]) if intercept else X
    w, sequence = np.zeros(Z.shape[1]), []
    for _ in range(200):
        for i in rng.permutation(15):
            if side[i] * (Z[i] @ w) <= 0:
                w = w + (rate * side[i]) * Z[i]
                sequence.append(i)
    separator, _ = hard_margin(Z, side, False)
    margin = float(np.min(side * (Z @ separator)) / np.linalg.norm(separator)) * (1 - 1e-9)
    radius = float(np.linalg.norm(Z, axis=1).max()) * (1 + 1e-9)
    params = {
        "updates": len(sequence),
        "margin": margin,
        "radius": radius,
        "intercept": intercept,
        "rate": rate,
    }
    witness = {"sequence": np.array(sequence, dtype=np.int64), "separator": separator}
    stated = claim("perceptron.mistakes", (radius / margin) ** 2 * (1 + 1e-9), params=params, witness=witness)
    return Case((stated,), model(w[None, :2], w[2] if intercept else 0.0, [0, 1]), X, (side > 0).astype(int)).seal()
