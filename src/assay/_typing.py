"""Names of types that several rooms share."""

from os import PathLike
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What JSON text holds."""

FileName: TypeAlias = str | PathLike[str]
"""Where a file is."""

Samples: TypeAlias = object
"""Samples by features as users pass them: an array, a sparse matrix, a frame, a Parquet file, a Dask collection."""

Targets: TypeAlias = object
"""A value for each sample as users pass them (target, weight, group): an array, a list, a column, a Dask array."""
