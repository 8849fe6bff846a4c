"""One decorator for compiled loops.

A compiled loop is a top-level function on arrays that does one block of work: it releases the GIL, is cached on
disk, starts no thread and keeps IEEE arithmetic for NaN and infinity. `scan` spreads blocks over threads.

Modules that hold compiled loops are imported by a learner when it first fits, so that `import assay` needs no Numba.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Re-association and fused multiply-add let a reduction use vector registers; NaN and infinity keep their meaning.
_REDUCTION = {"reassoc", "contract"}


def compiled(function: Callable | None = None, *, reduction: bool = False) -> Any:
    """Compile a block function; `reduction=True` lets sums be re-ordered so that they vectorise."""

    def wrap(body: Callable) -> Any:
        return njit(nogil=True, cache=True, error_model="numpy", fastmath=_REDUCTION if reduction else False)(body)

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
