"""Sources of tables with known truth, for `python -m bench validity`.

A world is a function that draws independent rows, with its options as a decorator. A study is given a table of it; the
truth is found on new rows of the same function.
"""

from bench.table_worlds import classes, columns, decisions, hostile, nominal, numbers, rows
from bench.table_worlds._world import TARGET, WORLDS, World

__all__ = ["TARGET", "WORLDS", "World", "classes", "columns", "decisions", "hostile", "nominal", "numbers", "rows"]
