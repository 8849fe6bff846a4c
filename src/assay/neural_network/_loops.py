"""Compiled loops of networks: forward and backward pass of a block of rows, and the updates of one run of batches.

A network of sizes k_0, ..., k_L keeps its parameters in one vector: the weights of every layer, (k_l, k_l+1) in C
order, then the intercepts of every layer. Wide products are BLAS's, called from the loop; for single rows and narrow
layers a plain loop is faster than the call.
"""

import math

import numpy as np

from assay.jit import compiled, reinterpret

IDENTITY, LOGISTIC, TANH, RELU = range(4)
SOFTMAX_LOG, LOGISTIC_LOG, SQUARED, POISSON, LOGISTIC_SQUARED = range(5)
SGD, ADAM = range(2)

# Places of the numbers of a run, kept in an array of the type of the weights so that all arithmetic has that type.
SHARE, ALPHA, DECAY, INTERCEPT_DECAY, RATE, MOMENTUM, BETA_1, BETA_2, EPSILON, LEAST, SPARE, ONE = range(12)

_BLAS_FROM, _BLAS_ROWS = 8192, 4  # multiplications, and rows, from which a call of BLAS pays
_LOG2E, _ROUND = 1.4426950408889634, 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))


@compiled(reduction=True)
def _exp_of_negative(x):
    """Return exp(x) for x <= 0 to an ulp or two, without a call: Taylor's series on |r| <= ln(2) / 2."""
    a, b, c, d, f, g, h, m, n, o, q, s = _TAYLOR
    x = max(x, -708.0)
    t = x * _LOG2E + _ROUND
    k = t - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = (((((a * r + b) * r + c) * r + d) * r + f) * r + g) * r + h
    p = (((((p * r + m) * r + n) * r + o) * r + q) * r + s) * (r * r) + r + 1.0
    return reinterpret(reinterpret(p) + (reinterpret(t) << 52))


@compiled(reduction=True)
def _activate(Z, intercept, unit):
    """Replace Z by f(Z + intercept)."""
    n, width = Z.shape
    zero = intercept[0] - intercept[0]
    for r in range(n):
        z = Z[r]
        if unit == RELU:
            for j in range(width):
                z[j] = max(z[j] + intercept[j], zero)
        elif unit == LOGISTIC:
            for j in range(width):
                t = np.float64(z[j] + intercept[j])
                e = _exp_of_negative(-abs(t))
                z[j] = (1.0 if t >= 0 else e) / (1.0 + e)
        elif unit == TANH:
            for j in range(width):
                t = np.float64(z[j] + intercept[j])
                e = _exp_of_negative(-2.0 * abs(t))
                z[j] = math.copysign((1.0 - e) / (1.0 + e), t)
        else:
            for j in range(width):
                z[j] += intercept[j]


@compiled(reduction=True)
def _times_slope(A, D, unit, one):
    """Multiply D by f'(z), written through the values A = f(z)."""
    n, width = A.shape
    zero = one - one
    for r in range(n):
        a, d = A[r], D[r]
        if unit == RELU:
            for j in range(width):
                d[j] = d[j] if a[j] > zero else zero
        elif unit == LOGISTIC:
            for j in range(width):
                d[j] *= a[j] * (one - a[j])
        elif unit == TANH:
            for j in range(width):
                d[j] *= one - a[j] * a[j]


@compiled(reduction=True)
def _times(A, W, out):
    """Set out = A W."""
    n, a = A.shape
    b = W.shape[1]
    if b == 1:
        for r in range(n):
            total = A[r, 0] * W[0, 0]
            for i in range(1, a):
                total += A[r, i] * W[i, 0]
            out[r, 0] = total
    elif n >= _BLAS_ROWS and n * a * b >= _BLAS_FROM:
        np.dot(A, W, out)
    else:
        for r in range(n):
            z = out[r]
            z[:] = 0
            for i in range(a):
                x, w = A[r, i], W[i]
                if x != 0:
                    for j in range(b):
                        z[j] += x * w[j]


@compiled(reduction=True)
def _transposed_times(A, D, out):
    """Set out = A' D."""
    n, a = A.shape
    b = D.shape[1]
    if b > 1 and n >= _BLAS_ROWS and n * a * b >= _BLAS_FROM:
        np.dot(A.T, D, out)
        return
    out[:] = 0
    for r in range(n):
        x, d = A[r], D[r]
        if b == 1:
            delta, column = d[0], out[:, 0]
            for i in range(a):
                column[i] += x[i] * delta
        else:
            for i in range(a):
                if x[i] != 0:
                    g = out[i]
                    for j in range(b):
                        g[j] += x[i] * d[j]


@compiled(reduction=True)
def _times_transposed(D, W, out):
    """Set out = D W'."""
    n, b = D.shape
    a = W.shape[0]
    if b > 1 and n >= _BLAS_ROWS and n * a * b >= _BLAS_FROM:
        np.dot(D, W.T, out)
        return
    for r in range(n):
        d, p = D[r], out[r]
        if b == 1:
            for i in range(a):
                p[i] = d[0] * W[i, 0]
        else:
            for i in range(a):
                w, total = W[i], d[0] * W[i, 0]
                for j in range(1, b):
                    total += d[j] * w[j]
                p[i] = total


@compiled
def _outputs(Z, Y, weight, output, least, D):
    """Turn Z into the outputs, write the derivatives of the losses by Z to D, and return the sum of the losses.

    Probabilities are kept `least` away from 0 and 1 in the loss. `weight` may be empty: ones.
    """
    n, width = Z.shape
    total = 0.0
    for r in range(n):
        z, y, d, loss = Z[r], Y[r], D[r], 0.0
        if output == SOFTMAX_LOG:
            top, mass = np.float64(z[0]), 0.0
            for j in range(1, width):
                top = max(top, np.float64(z[j]))
            for j in range(width):
                z[j] = math.exp(np.float64(z[j]) - top)
                mass += z[j]
            for j in range(width):
                z[j] /= mass
                if y[j] != 0:
                    loss -= y[j] * math.log(min(max(np.float64(z[j]), least), 1.0 - least))
                d[j] = z[j] - y[j]
        elif output == SQUARED:
            for j in range(width):
                d[j] = z[j] - y[j]
                loss += 0.5 * np.float64(d[j]) ** 2
        elif output == POISSON:
            for j in range(width):
                mean = math.exp(np.float64(z[j]))
                loss += mean - y[j]
                if y[j] != 0:
                    loss += y[j] * math.log(y[j] / mean)
                z[j] = mean
                d[j] = z[j] - y[j]
        else:
            for j in range(width):
                t = np.float64(z[j])
                e = math.exp(-abs(t))
                p = (1.0 if t >= 0 else e) / (1.0 + e)
                z[j] = p
                if output == LOGISTIC_LOG:
                    kept = min(max(p, least), 1.0 - least)
                    loss -= y[j] * math.log(kept) + (1.0 - y[j]) * math.log(1.0 - kept)
                    d[j] = p - y[j]
                else:
                    loss += 0.5 * (p - y[j]) ** 2
                    d[j] = (p - y[j]) * p * (1.0 - p)
        if weight.size:
            loss *= weight[r]
            for j in range(width):
                d[j] *= weight[r]
        total += loss
    return total


@compiled(reduction=True)
def loss_gradient(X, Y, weight, sizes, unit, output, least, theta, gradient, values, deltas):
    """Write the gradient of sum_i s_i loss_i by theta to `gradient`; return the sum.

    `values` has room for rows x (k_1 + ... + k_L) numbers and `deltas` for 2 x rows x max k; after the call `values`
    holds what every unit says.
    """
    n, layers = X.shape[0], len(sizes) - 1
    wide = len(deltas) // 2
    at, bias, place = 0, 0, 0
    for k in range(layers):
        bias += sizes[k] * sizes[k + 1]
    A = X
    for k in range(layers):
        a, b = sizes[k], sizes[k + 1]
        Z = values[place : place + n * b].reshape(n, b)
        _times(A, theta[at : at + a * b].reshape(a, b), Z)
        _activate(Z, theta[bias : bias + b], unit if k < layers - 1 else IDENTITY)
        A = Z
        at, bias, place = at + a * b, bias + b, place + n * b
    D = deltas[: n * sizes[layers]].reshape(n, sizes[layers])
    loss = _outputs(A, Y, weight, output, least, D)
    one = theta[0] - theta[0] + 1
    for k in range(layers - 1, -1, -1):
        a, b = sizes[k], sizes[k + 1]
        at, bias, place = at - a * b, bias - b, place - n * b
        B = values[place - n * a : place].reshape(n, a) if k > 0 else X
        _transposed_times(B, D, gradient[at : at + a * b].reshape(a, b))
        slope = gradient[bias : bias + b]
        slope[:] = 0
        for r in range(n):
            d = D[r]
            for j in range(b):
                slope[j] += d[j]
        if k > 0:
            first = wide * ((layers - k) % 2)
            P = deltas[first : first + n * a].reshape(n, a)
            _times_transposed(D, theta[at : at + a * b].reshape(a, b), P)
            _times_slope(B, P, unit, theta.dtype.type(one))
            D = P
    return loss


@compiled(reduction=True)
def _adam(theta, gradient, first, second, share, decay, h, rate):
    """Move theta by Adam's rule; return |theta|^2 before the move and |g|^2."""
    b1, b2, eps = h[BETA_1], h[BETA_2], h[EPSILON]
    c1, c2 = h[ONE] - b1, h[ONE] - b2
    size, steep = h[ONE] - h[ONE], h[ONE] - h[ONE]
    for i in range(len(theta)):  # by itself: see `loops.logistic.loss_stretch`
        g = share * gradient[i] + decay * theta[i]
        size += theta[i] * theta[i]
        steep += g * g
    for i in range(len(theta)):
        w = theta[i]
        g = share * gradient[i] + decay * w
        m = b1 * first[i] + c1 * g
        v = b2 * second[i] + c2 * (g * g)
        first[i], second[i] = m, v
        theta[i] = w - rate * m / (math.sqrt(v) + eps)
    return size, steep


@compiled(reduction=True)
def _descend(theta, gradient, first, pace, share, decay, h, rate, nesterov):
    """Move theta by gradient descent with momentum, at `rate` times `pace` of each parameter (empty: ones); return
    |theta|^2 before the move and |g|^2."""
    inertia = h[MOMENTUM]
    size, steep = h[ONE] - h[ONE], h[ONE] - h[ONE]
    for i in range(len(theta)):  # by itself: see `loops.logistic.loss_stretch`
        g = share * gradient[i] + decay * theta[i]
        size += theta[i] * theta[i]
        steep += g * g
    for i in range(len(theta)):
        w = theta[i]
        g = share * gradient[i] + decay * w
        step = rate * pace[i] * g if pace.size else rate * g
        v = inertia * first[i] - step
        first[i] = v
        theta[i] = w + (inertia * v - step if nesterov else v)
    return size, steep


@compiled(reduction=True)
def train(X, Y, weight, order, batch, sizes, unit, output, rule, nesterov, h, t, theta, work):
    """Visit the rows of `order`, `batch` at a time, and move theta after each batch; t updates were made before.

    `h` holds the numbers of the run (see the names above), `work` the arrays gradient, first and second moment, pace,
    rows, targets and weights of a batch, values and deltas. Returns the sum over batches of rows x objective, |g| of
    the last batch, and the number of updates.
    """
    gradient, first, second, pace, rows, targets, weights, values, deltas = work
    n, d, outputs, layers = len(order), X.shape[1], Y.shape[1], len(sizes) - 1
    inner, total, steep = 0, 0.0, 0.0
    for k in range(layers):
        inner += sizes[k] * sizes[k + 1]
    mean = 1.0 / outputs if output == SQUARED else 1.0
    for start in range(0, n, batch):
        m = min(batch, n - start)
        for r in range(m):
            i = order[start + r]
            x, row = X[i], rows[r]
            for j in range(d):  # an explicit loop: assigning slices is half as fast
                row[j] = x[j]
            for j in range(outputs):
                targets[r, j] = Y[i, j]
            if weight.size:
                weights[r] = weight[i]
        mass = weights[:m].sum() if weight.size else float(m)
        if mass <= 0:
            continue
        used = weights[: m if weight.size else 0]
        least = np.float64(h[LEAST])
        loss = loss_gradient(rows[:m], targets[:m], used, sizes, unit, output, least, theta, gradient, values, deltas)
        h[SPARE] = mass
        share, decay = h[SHARE] / h[SPARE], h[ALPHA] / h[SPARE] + h[DECAY]
        t += 1
        h[SPARE] = h[RATE]
        if rule == ADAM:
            h[SPARE] = h[RATE] * math.sqrt(1.0 - np.float64(h[BETA_2]) ** t) / (1.0 - np.float64(h[BETA_1]) ** t)
        rate, free = h[SPARE], h[INTERCEPT_DECAY]
        if rule == ADAM:
            size, slope = _adam(theta[:inner], gradient[:inner], first[:inner], second[:inner], share, decay, h, rate)
            bias, tilt = _adam(theta[inner:], gradient[inner:], first[inner:], second[inner:], share, free, h, rate)
        else:
            own, rest = pace[:inner], pace[inner:]
            size, slope = _descend(theta[:inner], gradient[:inner], first[:inner], own, share, decay, h, rate, nesterov)
            bias, tilt = _descend(theta[inner:], gradient[inner:], first[inner:], rest, share, free, h, rate, nesterov)
        total += m * (share * loss * mean + 0.5 * decay * size + 0.5 * free * bias)
        steep = slope + tilt
    return total, math.sqrt(steep), t
