"""Second moments of a block of rows: the one product that least squares, ridge, Newton steps and LDA all need.

    M = sum_i s_i (a_i a_i^T),   a_i = (x_i - c, 1, y_i)

A panel of rows is transposed into a buffer that stays in cache, and M is built in 4 x 4 tiles: sixteen sums that run
along the panel in vector registers, two loads for every four multiply-adds. On matrices this thin BLAS takes longer.

`scatter` is that of a block of rows about a point: sum_i a_i a_i', a_i = (x_i - c, 1). A panel of shifted rows is built
in cache; tiles of the upper triangle, 4 x 3 vectors, are summed in registers while the rows pass by. On rows this
narrow that takes about half the time of a matrix product.
"""

import numpy as np

from assay.jit import add_products, compiled

PANEL = 512  # rows per panel
_TILE = 4  # M is computed in square tiles of this size, upper triangle only
_WIDEST = 128  # beyond this width BLAS is the faster way
_FEWEST = 1024  # for fewer rows compiling takes longer than any number of passes
_PANEL = 128  # rows


def by_tiles(X: np.ndarray) -> bool:
    """Tell whether the tiles here are the faster way to the second moments of these rows."""
    return X.shape[1] <= _WIDEST and len(X) >= _FEWEST


def moments(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, center: np.ndarray) -> np.ndarray:
    """Return the (d + 1 + k, d + 1 + k) symmetric matrix M of one block; X (n, d), y (n, k), center (d,)."""
    if by_tiles(X):
        width = X.shape[1] + 1 + y.shape[1]
        return moments_block(X, y, np.empty(0) if weight is None else weight, center)[:width, :width]
    A = np.hstack([X - center, np.ones((len(X), 1)), y])
    if weight is not None:
        A *= np.sqrt(weight)[:, None]
    return A.T @ A


@compiled(reduction=True)
def moments_block(X: np.ndarray, y: np.ndarray, weight: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Return `moments` of one block, padded with zeros to whole tiles; `weight` is empty for ones. Writes no input."""
    n, d = X.shape
    k = y.shape[1]
    M, panel = empty_sums(d + 1 + k)
    root = np.ones(PANEL)
    for start in range(0, n, PANEL):
        size = min(PANEL, n - start)
        if weight.size:
            for r in range(size):
                root[r] = np.sqrt(weight[start + r])
        add_panel(M, panel, X, y, root, center, start, size)
    mirror(M)
    return M


@compiled
def empty_sums(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return M, padded to whole tiles, and a buffer for the columns of a panel of rows."""
    padded = (width + _TILE - 1) // _TILE * _TILE
    return np.zeros((padded, padded)), np.zeros((padded, PANEL + 8))  # + 8: powers of two would share cache sets


@compiled
def add_panel(
    M: np.ndarray,
    panel: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    root: np.ndarray,
    center: np.ndarray,
    start: int,
    size: int,
) -> None:
    """Add the products of the rows from `start` on, each times the square of its root, to the upper triangle of M."""
    _fill(panel, X, y, root, center, start, size)
    for i in range(0, M.shape[0], _TILE):
        for j in range(i, M.shape[0], _TILE):
            _add_tile(M, panel, i, j, size)


@compiled
def mirror(M: np.ndarray) -> None:
    """Copy the upper triangle of M to the lower one."""
    for i in range(M.shape[0]):
        for j in range(i):
            M[i, j] = M[j, i]


@compiled
def _fill(
    panel: np.ndarray, X: np.ndarray, y: np.ndarray, root: np.ndarray, center: np.ndarray, start: int, size: int
) -> None:
    """Write root_r * (x_r - center, 1, y_r) of the rows from `start` on into the columns of `panel`."""
    d, k = X.shape[1], y.shape[1]
    whole = size // 4 * 4
    for r in range(0, whole, 4):
        x0, x1, x2, x3 = X[start + r], X[start + r + 1], X[start + r + 2], X[start + r + 3]
        s0, s1, s2, s3 = root[r], root[r + 1], root[r + 2], root[r + 3]
        for j in range(d):
            shift = center[j]
            panel[j, r] = s0 * (x0[j] - shift)
            panel[j, r + 1] = s1 * (x1[j] - shift)
            panel[j, r + 2] = s2 * (x2[j] - shift)
            panel[j, r + 3] = s3 * (x3[j] - shift)
    for r in range(whole, size):
        for j in range(d):
            panel[j, r] = root[r] * (X[start + r, j] - center[j])
    for r in range(size):
        panel[d, r] = root[r]
        for t in range(k):
            panel[d + 1 + t, r] = root[r] * y[start + r, t]


@compiled(reduction=True)
def _add_tile(M: np.ndarray, panel: np.ndarray, i: int, j: int, size: int) -> None:
    """Add the products of panel rows i..i+3 with rows j..j+3 to the tile of M at (i, j)."""
    a, b, c, d = panel[i], panel[i + 1], panel[i + 2], panel[i + 3]
    e, f, g, h = panel[j], panel[j + 1], panel[j + 2], panel[j + 3]
    ae = af = ag = ah = be = bf = bg = bh = 0.0
    ce = cf = cg = ch = de = df = dg = dh = 0.0
    for r in range(size):
        ae += a[r] * e[r]
        af += a[r] * f[r]
        ag += a[r] * g[r]
        ah += a[r] * h[r]
        be += b[r] * e[r]
        bf += b[r] * f[r]
        bg += b[r] * g[r]
        bh += b[r] * h[r]
        ce += c[r] * e[r]
        cf += c[r] * f[r]
        cg += c[r] * g[r]
        ch += c[r] * h[r]
        de += d[r] * e[r]
        df += d[r] * f[r]
        dg += d[r] * g[r]
        dh += d[r] * h[r]
    M[i, j] += ae
    M[i, j + 1] += af
    M[i, j + 2] += ag
    M[i, j + 3] += ah
    M[i + 1, j] += be
    M[i + 1, j + 1] += bf
    M[i + 1, j + 2] += bg
    M[i + 1, j + 3] += bh
    M[i + 2, j] += ce
    M[i + 2, j + 1] += cf
    M[i + 2, j + 2] += cg
    M[i + 2, j + 3] += ch
    M[i + 3, j] += de
    M[i + 3, j + 1] += df
    M[i + 3, j + 2] += dg
    M[i + 3, j + 3] += dh


@compiled
def scatter_block(X: np.ndarray, center: np.ndarray, panel: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the (d + 1, d + 1) sum of a a' over the block, double precision.

    panel (any, wide) and M (wide, wide) are room to work in, zeros of float64 or float32: the products are computed in
    their type. wide is a multiple of 3 vectors, at least d + 1. Writes no other input.
    """
    n, d = X.shape
    most, wide = panel.shape
    vectors = 12 * 8 // panel.itemsize
    for start in range(0, n, most):
        size = min(most, n - start)
        for r in range(size):
            _shift(X[start + r], center, panel[r])
        for i in range(0, d + 1, 4):
            for j in range(i // vectors * vectors, wide, vectors):
                add_products(panel, size, i, j, M)
    S = np.empty((d + 1, d + 1))
    for i in range(d + 1):
        for j in range(i, d + 1):
            S[i, j] = S[j, i] = M[i, j]
    return S


@compiled
def _shift(x: np.ndarray, center: np.ndarray, out: np.ndarray) -> None:
    d = len(x)
    whole = d // 4 * 4
    for j in range(0, whole, 4):  # by fours, since what is left over of a vectorised loop would cost more than the loop
        a, b, c, e = x[j] - center[j], x[j + 1] - center[j + 1], x[j + 2] - center[j + 2], x[j + 3] - center[j + 3]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, e
    for j in range(whole, d):
        out[j] = x[j] - center[j]
    out[d] = 1.0


def scatter(X: np.ndarray, center: np.ndarray, precision: type = np.float64) -> np.ndarray:
    """Return the (d + 1, d + 1) sum of a a' over a block; products in `precision`, float64 or float32."""
    each = np.dtype(precision).itemsize
    wide = -(-(X.shape[1] + 1) * each // 96) * 96 // each
    return scatter_block(X, center, np.zeros((_PANEL, wide), precision), np.zeros((wide, wide), precision))
