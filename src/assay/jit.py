"""One decorator for compiled loops.

A compiled loop is a top-level function on arrays that does one block of work: it releases the GIL, is cached on
disk, starts no thread and keeps IEEE arithmetic for NaN and infinity. `scan` spreads blocks over threads.

Modules that hold compiled loops are imported by a learner when it first fits, so that `import assay` needs no Numba.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

# Re-association and fused multiply-add let a reduction use vector registers; NaN and infinity keep their meaning.
_REDUCTION = {"reassoc", "contract"}


def compiled(function: Callable | None = None, *, reduction: bool = False) -> Any:
    """Compile a block function; `reduction=True` lets sums be re-ordered so that they vectorise."""

    def wrap(body: Callable) -> Any:
        return njit(nogil=True, cache=True, error_model="numpy", fastmath=_REDUCTION if reduction else False)(body)

    return wrap if function is None else wrap(function)
