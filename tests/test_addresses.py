"""The bits of a compiled loop do not depend on where its arrays lie.

A loop whose sums may be reordered and that writes is compiled twice: for arrays that lie apart, and for arrays of which
one might be written where another is read. Arrays are put back to back here in all orders, at every offset within a
cache line, and with gaps; a loop that took the other way for some of them would add up in another order.
"""

from itertools import permutations

import numpy as np
import pytest

from assay.decomposition._topics_collapsed_loops import collapsed
from assay.decomposition._topics_loops import _shares as topic_shares
from assay.decomposition._topics_loops import infer
from assay.hmm._loops import forward
from assay.jit import compiled
from assay.loops.glm import loss_block
from assay.mixture._loops import _shares as row_shares
from assay.neural_network._loops import ADAM, SGD, SQUARED, TANH, _adam, _descend, loss_gradient, train

LINE = 64


@compiled
def rows_door(joint, weight, start, size, hard, largest, total):
    return row_shares(joint, weight, start, size, hard, largest, total)


@compiled
def topics_door(rows, counts, t, n, shares):
    topic_shares(rows, counts, t, n, shares)


@compiled
def adam_door(theta, gradient, first, second, share, decay, h, rate):
    return _adam(theta, gradient, first, second, share, decay, h, rate)


@compiled
def descend_door(theta, gradient, first, pace, share, decay, h, rate, nesterov):
    return _descend(theta, gradient, first, pace, share, decay, h, rate, nesterov)


def put(arguments, order, shift, gap):
    """Return the arguments, their arrays one after the other in one buffer: the first `shift` bytes after the beginning
    of a cache line, each `gap` bytes after the end of the one before."""
    sizes = [arguments[i].nbytes + gap + 8 for i in order]
    buffer = np.zeros(sum(sizes) + 2 * LINE, dtype=np.uint8)
    at, placed = -buffer.ctypes.data % LINE + shift, list(arguments)
    for i in order:
        one = arguments[i]
        at += -(buffer.ctypes.data + at) % one.itemsize
        placed[i] = buffer[at : at + one.nbytes].view(one.dtype).reshape(one.shape)
        placed[i][...] = one
        at += one.nbytes + gap
    return placed


def places(count):
    """Yield orders, offsets and gaps: all offsets in two orders, and many orders."""
    plain = tuple(range(count))
    for order in (plain, plain[::-1]):
        yield from ((order, shift, gap) for shift in range(0, LINE, 4) for gap in (0, 8))
    drawn = (np.random.default_rng(seed).permutation(count) for seed in range(40))
    orders = permutations(plain) if count < 5 else drawn
    yield from ((tuple(order), 8, gap) for order in orders for gap in (0, 4, LINE, 4096))


def bits(results, placed):
    """Return all that a loop returned and wrote, as bytes."""
    returned = results if isinstance(results, tuple) else (results,)
    parts = [np.asarray(one, dtype=np.float64).tobytes() for one in returned if one is not None]
    return b"".join(parts + [one.tobytes() for one in placed if isinstance(one, np.ndarray)])


def of_glm(n, family, link, weighted):
    rng = np.random.default_rng(n)
    X, w = rng.normal(size=(n, 3)), rng.normal(size=3)
    y = rng.integers(0, 2, n) if family == 3 else rng.gamma(2.0, size=n)
    weight = rng.gamma(1.0, size=n if weighted else 0)
    return loss_block, [X, y.astype(np.float64), weight, family, link, w, 0.3]


def of_mixture(n, weighted, hard):
    rng = np.random.default_rng(n)
    joint = rng.normal(size=(3, n)) - 2.0
    weight = rng.gamma(1.0, size=n if weighted else 0)
    return rows_door, [joint, weight, 0, n, hard, np.empty(n), np.empty(n)]


def of_network(n, kind, single):
    rng = np.random.default_rng(n)
    number = np.float32 if single else np.float64
    theta, gradient, first = rng.normal(size=(3, n)).astype(number)
    other = rng.gamma(1.0, size=n).astype(number)
    h = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.9, 0.99, 1e-8, 1e-12, 0.0, 1.0], dtype=number)
    if kind == "adam":
        return adam_door, [theta, gradient, first, other, number(0.3), number(0.01), h, number(0.1)]
    pace = other if kind == "pace" else other[:0]
    return descend_door, [theta, gradient, first, pace, number(0.3), number(0.01), h, number(0.1), kind == "nesterov"]


def of_training(rule, single):
    rng = np.random.default_rng(0)
    number = np.float32 if single else np.float64
    n, sizes, batch = 37, np.array([5, 9, 2]), 11
    X, Y = rng.normal(size=(n, 5)).astype(number), rng.normal(size=(n, 2)).astype(number)
    parts = 5 * 9 + 9 * 2 + 9 + 2
    theta = (0.3 * rng.normal(size=parts)).astype(number)
    h = np.array([1.0, 0.01, 0.0, 0.0, 0.05, 0.9, 0.9, 0.99, 1e-8, 1e-12, 0.0, 1.0], dtype=number)
    work = [np.zeros(parts, number) for _ in range(3)] + [np.ones(parts, number)]
    work += [np.empty((batch, 5), number), np.empty((batch, 2), number), np.empty(batch, number)]
    work += [np.empty(batch * 11, number), np.empty(2 * batch * 9, number)]

    def run(X, Y, weight, order, theta, h, *work):
        return train(X, Y, weight, order, batch, sizes, TANH, SQUARED, rule, True, h, 0, theta, work)

    return run, [X, Y, np.empty(0, number), rng.permutation(n), theta, h, *work]


def of_gradient(n, single):
    """Blocks of rows of which the products are BLAS's."""
    rng = np.random.default_rng(n)
    number = np.float32 if single else np.float64
    sizes = np.array([28, 10, 1])
    X, Y = rng.normal(size=(n, 28)).astype(number), rng.normal(size=(n, 1)).astype(number)
    theta = (0.3 * rng.normal(size=28 * 10 + 10 + 10 + 1)).astype(number)
    more = [theta, np.zeros_like(theta), np.empty(n * 11, number), np.empty(2 * n * 10, number)]
    return loss_gradient, [X, Y, np.empty(0, number), sizes, TANH, SQUARED, 1e-12, *more]


def of_chain(k, length):
    rng = np.random.default_rng(k)
    table, trans = rng.gamma(1.0, size=(length, k)), rng.dirichlet(np.ones(k), size=k)
    offsets = np.array([0, length // 3, length])
    start = rng.dirichlet(np.ones(k))
    return forward, [table, np.arange(length), start, trans, offsets, 0, 2, np.zeros((length, k)), np.zeros(2), False]


def of_topics(k, kind):
    rng = np.random.default_rng(k)
    documents, vocabulary, each = 4, 15, 9
    words = np.concatenate([rng.choice(vocabulary, each, replace=False) for _ in range(documents)])
    counts = rng.integers(1, 4, len(words))
    offsets = each * np.arange(documents + 1)
    if kind == "shares":
        rows, t = rng.gamma(1.0, size=(each, k)), rng.gamma(1.0, size=k)
        return topics_door, [rows, counts[:each] * 1.0, t, each, np.empty(each)]
    if kind == "infer":
        numbers = [rng.gamma(1.0, size=(vocabulary, k)), np.full(k, 0.1)]
        gamma, factors = rng.gamma(9.0, size=(documents, k)), np.zeros((documents, k))
        left = np.full(documents, 7)
        ratios = np.zeros(len(words))
        return infer, [words, counts * 1.0, offsets, *numbers, 0, documents, gamma, factors, ratios, left, 7, 1e-9]
    owners = np.repeat(np.arange(documents), each)
    shares = rng.dirichlet(np.ones(k), size=len(words)).astype(np.float32)
    tables = [np.zeros((m, k), np.float32) for m in (documents, vocabulary)]
    np.add.at(tables[0], owners, counts[:, None] * shares)
    np.add.at(tables[1], words, counts[:, None] * shares)
    more = [tables[0].sum(axis=0), np.full(k, 0.1, np.float32)]
    number = np.float32
    return collapsed, [words, owners, counts.astype(number), shares, *tables, *more, 0.01, 0, len(words)]


SIZES = (3, 8, 15, 16, 33, 64, 100, 257)
CASES = {
    **{f"glm {n} {family} {link} {weighted}": (of_glm, n, family, link, weighted)
       for n in SIZES for family, link in ((1, 1), (3, 2), (0, 0)) for weighted in (False, True)},
    **{f"mixture {n} {weighted} {hard}": (of_mixture, n, weighted, hard)
       for n in SIZES for weighted in (False, True) for hard in (False, True)},
    **{f"network {kind} {n} {single}": (of_network, n, kind, single)
       for n in SIZES for kind in ("adam", "sgd", "nesterov", "pace") for single in (False, True)},
    **{f"training {rule} {single}": (of_training, rule, single) for rule in (SGD, ADAM) for single in (False, True)},
    **{f"gradient {n} {single}": (of_gradient, n, single) for n in (7, 29, 30, 500) for single in (False, True)},
    **{f"chain {k}": (of_chain, k, 12) for k in SIZES[:-1]},
    **{f"topics {kind} {k}": (of_topics, k, kind) for k in SIZES for kind in ("shares", "infer", "collapsed")},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_bits_of_a_loop_do_not_depend_on_where_its_arrays_lie(case):
    make, *settings = CASES[case]
    run, arguments = make(*settings)
    arrays = [i for i, one in enumerate(arguments) if isinstance(one, np.ndarray)]
    results = {}
    for order, shift, gap in places(len(arrays)):
        placed = put(arguments, [arrays[i] for i in order], shift, gap)
        results.setdefault(bits(run(*placed), placed), (order, shift, gap))
    assert len(results) == 1, list(results.values())
