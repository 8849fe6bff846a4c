"""Learning by summing: the only room that spreads work over threads, files and machines.

`rows(...)` makes a `Rows` of arrays, Parquet files or Dask collections; `rows.sum(statistic, *parameters)` adds a
function of one block of rows over all blocks, in a fixed order; `thread_map` runs anything else on threads. What
spreads the work is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from assay.data.blocks import Block, rows_per_block

if TYPE_CHECKING:
    from assay.scan.memory import one_blas_thread, thread_map
    from assay.scan.source import Rows, rows

_IN_MEMORY = ("one_blas_thread", "thread_map")

__all__ = ["Block", "Rows", "one_blas_thread", "rows", "rows_per_block", "thread_map"]


def __getattr__(name: str) -> Any:
    if name not in ("rows", "Rows", *_IN_MEMORY):
        raise AttributeError(f"module 'assay.scan' has no attribute {name!r}")
    from assay.scan import memory, source

    return getattr(memory if name in _IN_MEMORY else source, name)
