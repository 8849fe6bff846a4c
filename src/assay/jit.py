"""One decorator for compiled loops.

A compiled loop is a top-level function on arrays that does one block of work: it releases the GIL, is cached on
disk, starts no thread and keeps IEEE arithmetic for NaN and infinity. `scan` spreads blocks over threads.

Modules that hold compiled loops are imported by a learner when it first fits, so that `import assay` needs no Numba.
A private function, `_name`, is called by other compiled loops alone.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from assay.loop_cache import keep

# Re-association and fused multiply-add let a reduction use vector registers; NaN and infinity keep their meaning.
_REDUCTION = {"reassoc", "contract"}


def compiled(function: Callable | None = None, *, reduction: bool = False, kept: bool = True) -> Any:
    """Compile a block function; `reduction=True` lets sums be re-ordered so that they vectorise. One that is given
    compiled functions has `kept=False`: it is compiled for those that call it, and lies on disk as a part of them."""

    def wrap(body: Callable) -> Any:
        inner = (
            body.__name__.startswith("_") or not kept
        )  # what Python never calls needs no door for it, which costs to compile
        doors: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
        loop = njit(nogil=True, error_model="numpy", fastmath=_REDUCTION if reduction else False, **doors)(body)
        if loop is not body and kept:  # with NUMBA_DISABLE_JIT it is the body
            keep(loop)
        return loop

    return wrap if function is None else wrap(function)


@intrinsic
def _prefetch(typing: Any, array: Any, byte: Any) -> Any:
    """Ask the processor to fetch the cache line `byte` bytes into `array`, for a loop that reads it later."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(builder.bitcast(start, ir.IntType(8).as_pointer()), [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [place.type], fnty=kind)
        builder.call(call, [place, number(0), number(3), number(1)])  # for reading, into every level, data
        return context.get_dummy_value()

    return types.void(array, byte), generate


prefetch: Any = _prefetch  # callable as prefetch(array, byte) from compiled code


@intrinsic
def _trailing_zeros(typing: Any, word: Any) -> Any:
    """Return the position of the lowest bit of a 64-bit word that is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))  # 1: nobody asks about a word of zeros

    return types.uint64(types.uint64), generate


trailing_zeros: Any = _trailing_zeros  # callable as trailing_zeros(word) from compiled code


@intrinsic
def _bit_count(typing: Any, word: Any) -> Any:
    """Return the number of set bits of a 64-bit word, by one instruction of the processor."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


bit_count: Any = _bit_count  # callable as bit_count(word) from compiled code


def _same_width(value: Any) -> Any:
    """Return the type of the same number of bits on the other side of float and integer."""
    return {
        types.float32: types.int32,
        types.float64: types.int64,
        types.int32: types.float32,
        types.int64: types.float64,
    }[value]


@intrinsic
def _reinterpret(typing: Any, value: Any) -> Any:
    """Return the bits of a float as an integer, or of an integer as a float, of the same width."""
    target = _same_width(value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(target))

    return target(value), generate


reinterpret: Any = _reinterpret  # callable as reinterpret(number) from compiled code


LANES = 16
"""Numbers that `four_rows_to_lanes` handles side by side."""
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


def _lane_distances(context: Any, builder: Any, signature: Any, arguments: Any) -> tuple[list[Any], list[Any]]:
    """Build the loop that sums, for four rows, squared distances to sixteen points; return the sums, and the arrays.

    Sixteen sums of each row stay in vector registers, and each point that is loaded serves four rows. That is several
    times faster than a matrix product of this shape, and exact for a row that is one of the points.
    """
    long, mask = ir.IntType(64), ir.VectorType(ir.IntType(32), LANES)
    held = [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]
    X, rows, at, points, group = held[:5]
    d = builder.extract_value(X.shape, 1)
    numbers = [builder.load(builder.gep(rows.data, [builder.add(at, long(r))])) for r in range(4)]
    starts = [builder.gep(X.data, [builder.mul(builder.sext(i, long), d)]) for i in numbers]
    first = builder.gep(points.data, [builder.mul(group, builder.mul(d, long(LANES)))])
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")
    before, loop, after = builder.block, builder.append_basic_block("columns"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    column, sums = builder.phi(long), [builder.phi(_VECTOR) for _ in range(4)]
    place = builder.gep(first, [builder.mul(column, long(LANES))])
    point = builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=4)
    undefined, added = ir.Constant(_VECTOR, ir.Undefined), []
    for start, total in zip(starts, sums, strict=True):
        one = builder.insert_element(undefined, builder.load(builder.gep(start, [column])), ir.IntType(32)(0))
        apart = builder.fsub(builder.shuffle_vector(one, undefined, ir.Constant(mask, [0] * LANES)), point)
        added.append(builder.call(multiply_add, [apart, apart, total]))
    following = builder.add(column, long(1))
    column.add_incoming(long(0), before)
    column.add_incoming(following, loop)
    for total, end in zip(sums, added, strict=True):
        total.add_incoming(ir.Constant(_VECTOR, [0.0] * LANES), before)
        total.add_incoming(end, loop)
    builder.cbranch(builder.icmp_signed("<", following, d), loop, after)
    builder.position_at_end(after)
    return added, held[5:]


@intrinsic
def _four_rows_to_lanes(typing: Any, X: Any, rows: Any, at: Any, points: Any, group: Any, out: Any) -> Any:
    """Write squared distances of four rows of X (n, d) to sixteen points, points[group] (d, 16), to out (4, 16).

    The rows are rows[at], ..., rows[at + 3]; everything is float32, rows int32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, (out_,) = _lane_distances(context, builder, signature, arguments)
        for r, total in enumerate(sums):
            place = builder.gep(out_.data, [ir.IntType(64)(r * LANES)])
            builder.store(total, builder.bitcast(place, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(X, rows, types.int64, points, types.int64, out), generate


four_rows_to_lanes: Any = _four_rows_to_lanes  # callable as four_rows_to_lanes(X, rows, at, points, group, out)


def _least(builder: Any, vector: Any) -> Any:
    """Return the smallest of sixteen lanes, by halving."""
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        mask = ir.VectorType(ir.IntType(32), lanes)
        low, high = (
            builder.shuffle_vector(vector, vector, ir.Constant(mask, list(range(start, start + lanes))))
            for start in (0, lanes)
        )
        vector = builder.select(builder.fcmp_ordered("<", low, high), low, high)
    return builder.extract_element(vector, ir.IntType(32)(0))


@intrinsic
def _four_rows_nearest(
    typing: Any, X: Any, rows: Any, at: Any, points: Any, group: Any, nearest: Any, lanes: Any
) -> Any:
    """Write the two smallest of these distances of each row to nearest (4, 2), the lane of the smallest to lanes (4,).

    Of equal distances the lane is the first. What is not a number is no distance.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, (nearest_, lanes_) = _lane_distances(context, builder, signature, arguments)
        number, bits, long = ir.IntType(32), ir.IntType(LANES), ir.IntType(64)
        mask, undefined = ir.VectorType(number, LANES), ir.Constant(_VECTOR, ir.Undefined)
        order = ir.Constant(mask, list(range(LANES)))
        endless = ir.Constant(_VECTOR, [float("inf")] * LANES)
        for r, total in enumerate(sums):
            first = _least(builder, total)
            spread = builder.insert_element(undefined, first, number(0))
            spread = builder.shuffle_vector(spread, undefined, ir.Constant(mask, [0] * LANES))
            hits = builder.bitcast(builder.fcmp_ordered("==", total, spread), bits)
            lane = builder.and_(builder.zext(builder.cttz(hits, ir.IntType(1)(0)), number), number(LANES - 1))
            own = builder.insert_element(ir.Constant(mask, ir.Undefined), lane, number(0))
            own = builder.shuffle_vector(own, own, ir.Constant(mask, [0] * LANES))
            second = _least(builder, builder.select(builder.icmp_signed("==", own, order), endless, total))
            for column, value in enumerate((first, second)):
                builder.store(value, builder.gep(nearest_.data, [long(2 * r + column)]))
            builder.store(lane, builder.gep(lanes_.data, [long(r)]))
        return context.get_dummy_value()

    return types.void(X, rows, types.int64, points, types.int64, nearest, lanes), generate


four_rows_nearest: Any = _four_rows_nearest  # callable as four_rows_nearest(X, rows, at, points, group, nearest, lanes)


@intrinsic
def _add_products(typing: Any, panel: Any, size: Any, i: Any, j: Any, M: Any) -> Any:
    """Add sum_r panel[r, i + a] panel[r, j + b] over the first `size` rows to M[i + a, j + b], a < 4, b < 3 vectors.

    panel (rows, width) and M (height, width) are of one type; a vector is 4 doubles or 8 floats. Twelve vector sums
    stay in registers while the rows pass by, which are read as they lie.
    """
    number = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}[panel.dtype]
    lanes = 8 if panel.dtype == types.float32 else 4

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, vector, mask = ir.IntType(64), ir.VectorType(number, lanes), ir.VectorType(ir.IntType(32), lanes)
        panel_, M_ = (context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 4))
        size_, i_, j_ = arguments[1:4]
        width, M_width = (builder.extract_value(array.shape, 1) for array in (panel_, M_))
        kind = ir.FunctionType(vector, [vector] * 3)
        name = f"llvm.fma.v{lanes}f{256 // lanes}"
        multiply_add = cgutils.get_or_insert_function(builder.module, kind, name)
        left, right = (builder.gep(panel_.data, [start]) for start in (i_, j_))
        before, loop, after = builder.block, builder.append_basic_block("rows"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        row, sums = builder.phi(long), [builder.phi(vector) for _ in range(12)]
        at = builder.mul(row, width)
        undefined = ir.Constant(vector, ir.Undefined)

        def load(start: Any, offset: int) -> Any:
            place = builder.gep(start, [builder.add(at, long(offset * lanes))])
            return builder.load(builder.bitcast(place, vector.as_pointer()), align=4)

        across, added = [load(right, b) for b in range(3)], []
        for a in range(4):
            one = builder.load(builder.gep(left, [builder.add(at, long(a))]))
            one = builder.insert_element(undefined, one, ir.IntType(32)(0))
            one = builder.shuffle_vector(one, undefined, ir.Constant(mask, [0] * lanes))
            added += [builder.call(multiply_add, [one, across[b], sums[3 * a + b]]) for b in range(3)]
        following = builder.add(row, long(1))
        for name_, end in ((row, following), *zip(sums, added, strict=True)):
            name_.add_incoming(long(0) if name_ is row else ir.Constant(vector, [0.0] * lanes), before)
            name_.add_incoming(end, loop)
        builder.cbranch(builder.icmp_signed("<", following, size_), loop, after)
        builder.position_at_end(after)
        for a in range(4):
            start = builder.gep(M_.data, [builder.add(builder.mul(builder.add(i_, long(a)), M_width), j_)])
            for b in range(3):
                place = builder.bitcast(builder.gep(start, [long(b * lanes)]), vector.as_pointer())
                builder.store(builder.fadd(builder.load(place, align=4), added[3 * a + b]), place, align=4)
        return context.get_dummy_value()

    return types.void(panel, types.int64, types.int64, types.int64, M), generate


add_products: Any = _add_products  # callable as add_products(panel, size, i, j, M), size >= 1


WAYS = 24
"""Rows that `add_squares` handles side by side."""


@intrinsic
def _add_squares(typing: Any, panel: Any, U: Any, count: Any, j: Any, r: Any, out: Any) -> Any:
    """Add (sum_i U[i, j] panel[i, c])^2 + (sum_i U[i, j + 1] panel[i, c])^2 over i < count to out[c], c = r .. r + 23.

    Doubles; panel (height, width), U (height, columns) and out (width,) in C order. Both sums of twenty-four columns
    stay in vector registers while i runs.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, vector, mask = ir.IntType(64), ir.VectorType(ir.DoubleType(), 4), ir.VectorType(ir.IntType(32), 4)
        held = [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 1, 5)]
        panel_, U_, out_ = held
        count_, j_, r_ = arguments[2:5]
        width, columns = (builder.extract_value(array.shape, 1) for array in (panel_, U_))
        kind = ir.FunctionType(vector, [vector] * 3)
        multiply_add = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v4f64")
        left, right = builder.gep(U_.data, [j_]), builder.gep(panel_.data, [r_])
        before, loop, after = builder.block, builder.append_basic_block("inputs"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        i, sums, undefined = (
            builder.phi(long),
            [builder.phi(vector) for _ in range(12)],
            ir.Constant(vector, ir.Undefined),
        )
        ones = []
        for offset in range(2):
            one = builder.load(builder.gep(left, [builder.add(builder.mul(i, columns), long(offset))]))
            one = builder.insert_element(undefined, one, ir.IntType(32)(0))
            ones.append(builder.shuffle_vector(one, undefined, ir.Constant(mask, [0] * 4)))
        added: list[Any] = []
        for v in range(WAYS // 4):
            place = builder.gep(right, [builder.add(builder.mul(i, width), long(4 * v))])
            inputs = builder.load(builder.bitcast(place, vector.as_pointer()), align=8)
            added += [builder.call(multiply_add, [ones[t], inputs, sums[2 * v + t]]) for t in range(2)]
        following = builder.add(i, long(1))
        for name, end in ((i, following), *zip(sums, added, strict=True)):
            name.add_incoming(long(0) if name is i else ir.Constant(vector, [0.0] * 4), before)
            name.add_incoming(end, loop)
        builder.cbranch(builder.icmp_signed("<", following, count_), loop, after)
        builder.position_at_end(after)
        for v in range(WAYS // 4):
            place = builder.bitcast(builder.gep(out_.data, [builder.add(r_, long(4 * v))]), vector.as_pointer())
            total = builder.load(place, align=8)
            for t in range(2):
                total = builder.call(multiply_add, [added[2 * v + t], added[2 * v + t], total])
            builder.store(total, place, align=8)
        return context.get_dummy_value()

    return types.void(panel, U, types.int64, types.int64, types.int64, out), generate


add_squares: Any = _add_squares  # callable as add_squares(panel, U, count, j, r, out), count >= 1


@intrinsic
def _four_products_near(typing: Any, Q: Any, at: Any, points: Any, group: Any, limits: Any, out: Any) -> Any:
    """Write products of rows at, ..., at + 3 of Q (n, d) with sixteen points, points[group] (d, 16), to out (4, 16).

    Returns 64 bits, bit 16 r + c set where out[r, c] <= limits[at + r]. Everything is float32. Sums stay in vector
    registers, and nothing but the bits need be looked at where no product is small.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, vector, mask = ir.IntType(64), ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)
        Q_, points_, limits_, out_ = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 2, 4, 5)
        )
        at_, group_ = arguments[1], arguments[3]
        d = builder.extract_value(Q_.shape, 1)
        starts = [builder.gep(Q_.data, [builder.mul(builder.add(at_, long(r)), d)]) for r in range(4)]
        first = builder.gep(points_.data, [builder.mul(group_, builder.mul(d, long(LANES)))])
        kind = ir.FunctionType(vector, [vector] * 3)
        multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")
        undefined, zero = ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0.0] * LANES)

        def spread(place: Any) -> Any:
            one = builder.insert_element(undefined, builder.load(place), ir.IntType(32)(0))
            return builder.shuffle_vector(one, undefined, ir.Constant(mask, [0] * LANES))

        before, loop, after = builder.block, builder.append_basic_block("columns"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        column, sums = builder.phi(long), [builder.phi(vector) for _ in range(4)]
        place = builder.gep(first, [builder.mul(column, long(LANES))])
        point = builder.load(builder.bitcast(place, vector.as_pointer()), align=4)
        added = [
            builder.call(multiply_add, [spread(builder.gep(start, [column])), point, total])
            for start, total in zip(starts, sums, strict=True)
        ]
        following = builder.add(column, long(1))
        for name, end in ((column, following), *zip(sums, added, strict=True)):
            name.add_incoming(long(0) if name is column else zero, before)
            name.add_incoming(end, loop)
        builder.cbranch(builder.icmp_signed("<", following, d), loop, after)
        builder.position_at_end(after)
        bits = long(0)
        for r, total in enumerate(added):
            place = builder.bitcast(builder.gep(out_.data, [long(r * LANES)]), vector.as_pointer())
            builder.store(total, place, align=4)
            near = builder.fcmp_ordered("<=", total, spread(builder.gep(limits_.data, [builder.add(at_, long(r))])))
            few = builder.zext(builder.bitcast(near, ir.IntType(LANES)), long)
            bits = builder.or_(bits, builder.shl(few, long(r * LANES)))
        return bits

    return types.uint64(Q, types.int64, points, types.int64, limits, out), generate


four_products_near: Any = _four_products_near  # callable as four_products_near(Q, at, points, group, limits, out)
