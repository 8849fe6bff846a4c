"""Arrays in memory: the sum is right, whatever the threads; errors and interrupts end it."""

import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.data.blocks import blocks
from assay.scan import Block, rows, rows_per_block, thread_map
from assay.scan.memory import one_blas_thread, spread
from assay.scan.source import Total


class Moments(NamedTuple):
    n: int
    gram: np.ndarray
    cross: np.ndarray


def moments(block: Block, scale: float = 1.0) -> Moments:
    return Moments(len(block.X), scale * block.X.T @ block.X, block.X.T @ (block.y * block.weight))


def draw(seed, n=20_000, d=28):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng.random(n)


def test_oracle_whole_matrix_products():
    X, y, weight = draw(0)
    total = rows(X, y, weight).sum(moments, 3.0)
    assert type(total) is Moments
    assert total.n == 20_000
    np.testing.assert_allclose(total.gram, 3 * X.T @ X, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(total.cross, X.T @ (y * weight), rtol=1e-12, atol=1e-9)


@settings(max_examples=20)
@given(seed=st.integers(0, 99), n=st.integers(1, 30_000), n_jobs=st.sampled_from([2, 3, 8, None, -1]))
def test_threads_change_no_bit(seed, n, n_jobs):
    X, y, weight = draw(seed, n)
    one, many = (rows(X, y, weight, n_jobs=k).sum(moments) for k in (1, n_jobs))
    assert one.n == many.n == n
    assert np.array_equal(one.gram, many.gram)
    assert np.array_equal(one.cross, many.cross)


@given(st.integers(0, 100_000))
def test_block_size_is_a_power_of_two_near_one_mebibyte(n_features):
    size = rows_per_block(n_features)
    assert size & (size - 1) == 0
    assert 256 <= size <= 65_536
    if 2 <= n_features <= 512:
        assert 2**19 < 8 * n_features * size <= 2**20


@settings(max_examples=30)
@given(n=st.integers(0, 3000), order=st.sampled_from("CF"), dtype=st.sampled_from(["f8", "f4", "i8", "?"]))
def test_blocks_are_the_rows_in_order(n, order, dtype):
    X = np.asarray(np.arange(300 * n).reshape(n, 300) % 7, dtype=dtype, order=order)
    cut = list(blocks(X, np.arange(n), np.ones(n)))
    assert all(b.X.flags.c_contiguous and b.X.dtype == np.float64 for b in cut)
    assert [b.start for b in cut] == list(range(0, n, 256))
    if n:
        assert np.array_equal(np.concatenate([b.X for b in cut]), X)
        assert np.array_equal(np.concatenate([b.y for b in cut]), np.arange(n))


def test_layout_changes_no_bit():
    X, y, weight = draw(5)
    expected = rows(X, y, weight).sum(moments)
    shifted = []
    for array in (X, y, weight):  # as a network message may hold them: not on a multiple of eight bytes
        buffer = np.empty(array.nbytes + 1, np.uint8)
        shifted.append(np.frombuffer(buffer, np.uint8, offset=1).view(array.dtype).reshape(array.shape))
        shifted[-1][...] = array
        assert not shifted[-1].flags.aligned
    side_by_side = np.column_stack([X, y, weight])
    strided = side_by_side[:, :-2], side_by_side[:, -2], side_by_side[:, -1]
    for arrays in (shifted, strided, (np.asfortranarray(X), y, weight)):
        total = rows(*arrays).sum(moments)
        assert np.array_equal(total.gram, expected.gram)
        assert np.array_equal(total.cross, expected.cross)


def test_doubles_in_c_order_are_not_copied():
    X = np.zeros((9000, 28))
    assert all(np.shares_memory(b.X, X) for b in blocks(X))


@given(st.permutations(range(13)))
def test_a_total_does_not_depend_on_the_order_of_arrival(order):
    values = np.random.default_rng(0).normal(size=13) * 10.0 ** np.arange(13)
    total = Total()
    for number in order:
        total.add(number, values[number])
    pair = lambda a: a if len(a) == 1 else a[::2] + a[1::2]  # noqa: E731
    eight = pair(pair(pair(values[:8])))[0]
    four = pair(pair(values[8:12]))[0]
    assert total.value() == eight + (four + values[12])


@given(st.integers(1, 40), st.data())
def test_totals_of_stretches_merge_to_the_bit(n, data):
    values = [np.array([v, -v]) for v in np.random.default_rng(n).standard_cauchy(n)]
    kept = [v.copy() for v in values]
    cuts = sorted(data.draw(st.sets(st.integers(0, n))) | {0, n})
    whole, merged = Total(), Total()
    for number, value in enumerate(values):
        whole.add(number, value)
    for first, last in pairwise(cuts):
        part = Total()
        for number in range(first, last):
            part.add(number, values[number])
        before = {node: v.copy() for node, v in part.nodes().items()}
        merged.merge(part.nodes())
        assert all(np.array_equal(v, before[node]) for node, v in part.nodes().items())
    assert np.array_equal(whole.value(), merged.value())
    assert all(np.array_equal(a, b) for a, b in zip(values, kept))


def test_map_keeps_block_order():
    X, y, _ = draw(1)
    starts = rows(X, y, n_jobs=3).map(lambda block, k: block.start * k, 2)
    assert starts == [2 * start for start in range(0, 20_000, 4096)]


def test_classes_in_another_order():
    y = np.array(["a", "b", "b", "c"])
    encoded = rows(np.zeros((4, 2)), y).encoded(np.array(["c", "a", "b"]))
    assert encoded.map(lambda block: block.y.tolist()) == [[1, 2, 2, 0]]


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes", "maybe"],
        [3, 1, 7],
        [0, 1, 2],
        [-5, 0, 1],
        [0, 1, 2**60],
        [0.5, -1.0, 2.0],
        [False, True],
    ],
)
def test_labels_and_codes_agree_with_numpy(labels):
    y = np.random.default_rng(2).choice(labels, size=9000)
    table = rows(np.zeros((9000, 28)), y, n_jobs=2)
    expected, codes = np.unique(y, return_inverse=True)
    assert np.array_equal(table.labels(), expected)
    encoded = np.concatenate(table.encoded(expected).map(lambda block: block.y))
    assert encoded.dtype == np.int64
    assert np.array_equal(encoded, codes)


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 1, -1], [0, 1, 2**60]])
def test_unknown_integers_are_refused(y):
    with pytest.raises(ValueError, match=f"the label {y[2]} in row 2 is not among the classes 0, 1;"):
        rows(np.zeros((3, 2)), y).encoded(np.array([0, 1]))


@pytest.mark.parametrize("n", [1, 63, 4096, 9000])
def test_largest_entries(n):
    X = np.random.default_rng(n).standard_cauchy(size=(n, 28))
    assert np.array_equal(rows(X).largest_entries, np.abs(X).max(axis=0))


def test_sample_has_rows_of_the_whole():
    X, y, weight = draw(3)
    part = rows(X, y, weight).sample(1000)
    at = {value: i for i, value in enumerate(y)}
    chosen = [at[value] for value in part.y]
    assert 1000 <= part.n_rows <= 1100
    assert np.array_equal(part.X, X[chosen])
    assert np.array_equal(part.weight, weight[chosen])
    assert max(np.diff(chosen)) == 20


def test_unknown_label_is_named():
    y = np.array(["a"] * 5000 + ["z"])
    with pytest.raises(ValueError, match=r"the label 'z' in row 5000 is not among the classes 'a', 'b'"):
        rows(np.zeros((5001, 28)), y).encoded(np.array(["a", "b"]))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_names_the_block_and_stops(n_jobs):
    calls, failed = [], threading.Event()

    def fails(block):
        calls.append(block.start)
        if block.start == 4096:
            failed.set()
            raise ZeroDivisionError("no")
        if block.start > 4096:
            failed.wait(60)
            time.sleep(0.01)
        return 0.0

    with pytest.raises(ZeroDivisionError) as caught:
        rows(np.zeros((400_000, 28)), n_jobs=n_jobs).sum(fails)
    assert caught.value.__notes__ == ["in the block of 4096 rows that starts at row 4096"]
    assert len(calls) < 49  # half of the blocks


@pytest.fixture
def interruptible():
    """Python's own answer to Ctrl-C, whatever another test or the runner of the tests made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_ends_a_sum():
    running = []

    def slow(block):
        running.append(block.start)
        if block.start == 5 * 4096:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        rows(np.zeros((4_000_000, 28)), n_jobs=2).sum(slow)
    at_the_end = len(running)
    time.sleep(0.1)
    assert len(running) == at_the_end < 488  # half of the blocks; nobody goes on in the background


def test_an_interrupt_is_not_hidden_by_an_error_of_smaller_number():
    other_began, second_begun = threading.Event(), threading.Event()

    def work(_):
        if threading.current_thread() is not threading.main_thread():
            other_began.set()
            second_begun.wait(60)
            raise ValueError("a smaller number than that of the interrupt")
        if other_began.is_set():
            second_begun.set()
            raise KeyboardInterrupt
        other_began.wait(60)

    with pytest.raises(KeyboardInterrupt):
        spread(work, 9, 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_in_a_compiled_loop_is_one(threads):
    """Numba turns Ctrl-C that is heard while it makes a result a Python object into a SystemError."""

    def work(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as heard:
            raise SystemError("returned a result with an exception set") from heard

    with pytest.raises(KeyboardInterrupt):
        spread(work, 3, threads)


def test_thread_map_is_ordered_and_nests():
    def outer(k):
        return sum(thread_map(lambda j: j * k, range(5), n_jobs=4))

    assert thread_map(outer, range(50), n_jobs=4) == [10 * k for k in range(50)]
    assert thread_map(outer, [], n_jobs=4) == []


def test_spread_uses_the_threads_asked_for():
    seen = set()
    meet = threading.Barrier(3, timeout=60)

    def work(_):
        seen.add(threading.get_ident())
        meet.wait()

    spread(work, 3, 3)
    assert len(seen) == 3
    assert threading.get_ident() in seen


def blas_threads(*_):
    from threadpoolctl import ThreadpoolController

    return max(library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info())


@pytest.fixture
def two_blas_threads():
    """BLAS with two threads, whatever the runner of the tests has given it."""
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.num_threads for library in libraries]
    for library in libraries:
        library.set_num_threads(2)
    if blas_threads() == 1:
        pytest.skip("this BLAS has one thread only")
    yield
    for library, number in zip(libraries, before):
        library.set_num_threads(number)


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_held_to_one_thread_and_released():
    before = blas_threads()
    assert set(rows(np.zeros((9000, 28)), n_jobs=2).map(blas_threads)) == {1}
    with one_blas_thread(), one_blas_thread():
        assert blas_threads() == 1
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_held_whoever_begins_and_whoever_ends():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    entered.wait(60)
    with one_blas_thread():
        leave.set()
        other.join()
        assert blas_threads() == 1
    assert blas_threads() == before
    for thread in [threading.Thread(target=rows(np.zeros((9000, 28))).map, args=(blas_threads,)) for _ in range(8)]:
        thread.start()
        thread.join()
        assert blas_threads() == before
    assert set(rows(np.zeros((9000, 28)), n_jobs=2).map(blas_threads)) == {1}


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_held_although_another_thread_has_set_it():
    from threadpoolctl import ThreadpoolController

    before = blas_threads()
    was_set, end = threading.Event(), threading.Event()

    def set_and_stay():
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(before)
        was_set.set()
        end.wait(60)

    other = threading.Thread(target=set_and_stay)
    other.start()
    was_set.wait(60)
    with one_blas_thread():
        assert blas_threads() == 1
    end.set()
    other.join()
    assert blas_threads() == before


FIRST_AT_ONCE = """
import threading
from assay.scan.memory import _blas

met, found = threading.Barrier(8), []

def first():
    met.wait()
    found.append(_blas())

threads = [threading.Thread(target=first) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len({id(blas) for blas in found}))
"""


def test_threads_that_begin_at_once_share_the_hold_on_blas():
    done = subprocess.run([sys.executable, "-c", FIRST_AT_ONCE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3),), "two dimensions"),
        ((np.array([["a"]]),), "table of numbers"),
        ((np.zeros((3, 2)), [1, 2]), r"y must have one value for each of the 3 rows; got shape \(2,\)"),
        ((np.zeros((3, 2)), None, [1, 2, 3, 4]), r"sample_weight must have one value for each of the 3 rows"),
        ((rows(np.zeros((3, 2))), [1, 2, 3]), "X already holds its y"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        rows(*arguments)


def test_refusals_of_a_sum():
    with pytest.raises(ValueError, match="no rows to sum over"):
        rows(np.zeros((0, 2))).sum(lambda block: 1.0)
    with pytest.raises(ValueError, match="the same shape for each block"):
        rows(np.zeros((5000, 28))).sum(lambda block: np.zeros(len(block.X)))
    with pytest.raises(ValueError, match="n_jobs must be a number of threads >= 1"):
        rows(np.zeros((5, 2)), n_jobs=0).sum(lambda block: 1.0)
    with pytest.raises(ValueError, match="these rows have none"):
        rows(np.zeros((5, 2))).labels()


def test_importing_blocks_starts_nothing():
    heavy = "{'pyarrow', 'dask', 'numba', 'assay.scan.memory'}"
    code = f"import sys, assay.data.blocks; print(*{heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
