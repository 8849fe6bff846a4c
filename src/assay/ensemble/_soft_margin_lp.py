"""The linear programme of the soft margin for a list of stumps, by an interior-point method.

    minimise over u, beta    beta    with   <u, s_j> <= beta  for every column s_j,   sum u = 1,   0 <= u_i <= c_i

The multipliers a of the first constraints are the weights of the stumps. Interior points lie in the middle of the
almost optimal u, not in a corner: the stump that is best for such u helps many corners at once, so that column
generation needs few rounds (Gondzio, Gonzalez-Brevis and Munari, EJOR 224, 2013). A step is one Cholesky factor of
size T, O(n T^2) time. Mehrotra, SIAM J. Optimization 2, 1992.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

_STEPS = 60
_SHORT = 0.995  # share of the way to the border


class Programme(NamedTuple):
    """Weights a of the stumps (sum 1), weights u of the rows (sum 1), slack of each stump's edge."""

    a: np.ndarray
    u: np.ndarray
    slack: np.ndarray


class _Point(NamedTuple):
    """A point, or a direction. Pairs (u, z), (t, w), (s, a) are positive and their products go to 0; t = c - u."""

    u: np.ndarray
    t: np.ndarray
    s: np.ndarray
    beta: float
    z: np.ndarray
    w: np.ndarray
    a: np.ndarray
    rho: float

    def products(self) -> float:
        return float(self.u @ self.z + self.t @ self.w + self.s @ self.a)

    def moved(self, d: "_Point", primal: float, dual: float) -> "_Point":
        steps: Any = zip(self, d, (primal,) * 4 + (dual,) * 4, strict=True)
        return _Point(*(x + k * dx for x, dx, k in steps))

    def room(self, d: "_Point") -> tuple[float, float]:
        """Return how far u, t, s and z, w, a may go along d before one of them is 0, at most 1."""
        return tuple(  # type: ignore[return-value]
            min(_distance(getattr(self, k), getattr(d, k)) for k in names) for names in ("uts", "zwa")
        )


def solve_soft_margin(signed: np.ndarray, caps: np.ndarray, tol: float) -> Programme:
    """Solve the programme of columns `signed` (n, T) to a sum of products of `tol`; every cap must be positive."""
    n, T = signed.shape
    at = _start(signed, caps)
    for _ in range(_STEPS):
        left = _left_over(signed, caps, at)
        if at.products() < tol and max(np.abs(r).max() for r in left) < tol:
            break
        try:
            newton = _Newton(signed, at, left)
        except LinAlgError:  # rounding has the last word; the point is as good as it gets
            break
        d = newton.direction(0.0, 0.0, 0.0)
        mu = at.products() / (2 * n + T)
        aim = (at.moved(d, *at.room(d)).products() / at.products()) ** 3 * mu
        d = newton.direction(aim - d.u * d.z, aim - d.t * d.w, aim - d.s * d.a)
        primal, dual = at.room(d)
        at = at.moved(d, _SHORT * primal, _SHORT * dual)
    u = np.clip(at.u, 0.0, caps)
    return Programme(at.a / at.a.sum(), u / u.sum(), at.s)


def _start(signed: np.ndarray, caps: np.ndarray) -> _Point:
    T = signed.shape[1]
    u = caps / caps.sum()
    edge, a = signed.T @ u, np.full(T, 1.0 / T)
    margin = signed @ a
    beta, rho = float(edge.max()) + 0.1, float(np.quantile(margin, 0.3))
    z, w = np.maximum(margin - rho, 0.0) + 0.1, np.maximum(rho - margin, 0.0) + 0.1
    return _Point(u, np.maximum(caps - u, 1e-3 * caps), beta - edge, beta, z, w, a, rho)


def _left_over(signed: np.ndarray, caps: np.ndarray, p: _Point) -> tuple[Any, ...]:
    """Return by how much each of the five equations is missed: of the rows, of a, of the stumps, of u, of t."""
    return (
        p.rho + p.z - p.w - signed @ p.a,
        1.0 - p.a.sum(),
        p.beta - p.s - signed.T @ p.u,
        1.0 - p.u.sum(),
        caps - p.u - p.t,
    )


class _Newton:
    """Newton's equations at a point, reduced to the weights of the stumps and factored once."""

    def __init__(self, signed: np.ndarray, at: _Point, left: tuple[Any, ...]):
        self.signed, self.at, self.left = signed, at, left
        self.soft = 1.0 / (at.z / at.u + at.w / at.t)
        scaled = signed * np.sqrt(self.soft)[:, None]
        matrix = scaled.T @ scaled
        matrix[np.diag_indices(len(matrix))] += at.s / at.a
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self.weighted_sums = signed.T @ self.soft
        self.by_rho = cho_solve(self.factor, self.weighted_sums)
        self.by_beta = cho_solve(self.factor, np.ones(len(matrix)))

    def direction(self, uz: Any, tw: Any, sa: Any) -> _Point:
        """Return the direction along which the products become `uz`, `tw` and `sa`, and the equations hold."""
        p, (rows, of_a, stumps, of_u, of_t) = self.at, self.left
        q = rows + (uz / p.u - p.z) - (tw / p.t - p.w) + p.w / p.t * of_t
        alone = cho_solve(self.factor, self.signed.T @ (self.soft * q) - stumps + (sa / p.a - p.s))
        equations = np.array(
            [
                [self.by_rho.sum(), -self.by_beta.sum()],
                [self.soft.sum() - self.weighted_sums @ self.by_rho, self.weighted_sums @ self.by_beta],
            ]
        )
        rho, beta = np.linalg.solve(equations, [of_a - alone.sum(), of_u - self.soft @ q + self.weighted_sums @ alone])
        a = alone + rho * self.by_rho - beta * self.by_beta
        u = self.soft * (q - self.signed @ a + rho)
        t = of_t - u
        return _Point(
            u, t, sa / p.a - p.s - p.s / p.a * a, beta,
            uz / p.u - p.z - p.z / p.u * u, tw / p.t - p.w - p.w / p.t * t, a, rho,
        )  # fmt: skip


def _distance(x: np.ndarray, dx: np.ndarray) -> float:
    falling = dx < 0
    return min(1.0, float((x[falling] / -dx[falling]).min())) if falling.any() else 1.0


def soft_margin(margins: np.ndarray, caps: np.ndarray) -> float:
    """Return max over rho of  rho - sum_i c_i max(0, rho - m_i); one of the margins attains it.

    >>> soft_margin(np.array([0.1, 0.5, 0.7]), np.ones(3)), soft_margin(np.array([-1.0, 0.5]), np.full(2, 0.25))
    (0.1, 0.125)
    """
    order = np.argsort(margins, kind="stable")
    m, c = margins[order], caps[order]
    weight, mass = np.append(0.0, np.cumsum(c)[:-1]), np.append(0.0, np.cumsum(c * m)[:-1])
    return float((m - (weight * m - mass)).max())
