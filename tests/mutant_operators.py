"""Mutants of Python functions: one small slip each, as a person makes them.

    sign        + for -, * for /, a minus lost              off by one   range(n - 1), len(x) - 1
    comparison  < turned into >=, == into !=                dropped      a + b, a * b, a and b without b
    constant    0 becomes 1, others are doubled             swapped      the first two arguments of a call

A mutant is told by the file, the function, the expression before and after and which of equal ones it is, so that a
list of them survives edits elsewhere in the file. Text, annotations, decorators, default values, tolerances of
rounding, what is raised and what decides whether it is are left alone: a row is about what is computed, not about what
is refused.
"""

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARISONS = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
SYMMETRIC = {
    "max", "min", "maximum", "minimum", "hypot", "gcd", "array_equal", "logaddexp", "zip", "isinstance", "issubclass",
    "getattr", "hasattr", "cast",
}  # fmt: skip
_LIMITS = ("low", "high", "why", "stacklevel")  # of arguments that are checked
_SKIPPED = (ast.Raise, ast.Assert, ast.arguments, ast.AnnAssign, ast.JoinedStr, ast.Import, ast.ImportFrom)


class Function(NamedTuple):
    """Where a function is: its file, its name within it, and its first line as code objects tell it."""

    file: str
    name: str
    line: int


class Mutant(NamedTuple):
    """One slip: the `site`-th expression of the function (in the order of the tree), what it became, and the how
    manieth slip of these words it is."""

    function: Function
    site: int
    kind: str
    line: int
    before: str
    after: str
    nth: int


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def mutants(function: Function, lines: Collection[int]) -> list[Mutant]:
    """Return the mutants of a function on the lines that were run."""
    node = _find(_tree(function.file), function)
    if node is None:
        return []
    found, seen = [], Counter[tuple[str, str]]()
    for site, expression in enumerate(_sites(node)):
        for kind, changed in _changes(expression):
            words = ast.unparse(expression), ast.unparse(changed)
            seen[words] += 1
            found.append(Mutant(function, site, kind, getattr(expression, "lineno", -1), *words, seen[words]))
    return [one for one in found if one.line in lines]


def mutated_code(mutant: Mutant) -> CodeType:
    """Return the code of the mutant's function, compiled with its file around it."""
    tree = copy.deepcopy(_tree(mutant.function.file))
    node = _find(tree, mutant.function)
    assert node is not None
    expression = next(one for site, one in enumerate(_sites(node)) if site == mutant.site)
    (changed,) = {
        ast.unparse(new): new
        for kind, new in _changes(expression)
        if (kind, ast.unparse(new)) == (mutant.kind, mutant.after)
    }.values()
    _Replace(expression, changed).visit(node)
    module = compile(ast.fix_missing_locations(tree), mutant.function.file, "exec")
    return next(code for code in _codes(module) if _same(code, mutant.function))


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else super().visit(node)


def _find(tree: ast.Module, function: Function) -> ast.AST | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and first_line(node) == function.line:
            return node
    return None


def first_line(node: ast.FunctionDef) -> int:
    """Return the line that the code object begins at: that of the first decorator, if there is one."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _same(code: CodeType, function: Function) -> bool:
    return code.co_firstlineno == function.line and code.co_qualname == function.name


def _sites(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions of a function's body in a fixed order, inner functions among them."""
    for statement in getattr(node, "body", []):
        yield from _inside(statement)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, _SKIPPED) or (isinstance(node, ast.keyword) and node.arg in _LIMITS):
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and any(map(_tolerance, (node.left, node.right))):
        return
    if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
        for statement in node.orelse:
            yield from _inside(statement)
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "returns", "annotation", "args") and isinstance(node, ast.FunctionDef):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the slips that can be made at one expression."""
    if isinstance(node, ast.BinOp) and not _text(node):
        if type(node.op) in SIGNS:
            yield "sign", ast.BinOp(node.left, SIGNS[type(node.op)](), node.right)
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            yield "dropped", node.left
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.AugAssign) and type(node.op) in SIGNS:
        yield "sign", ast.AugAssign(node.target, SIGNS[type(node.op)](), node.value)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield "comparison", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "dropped", node.values[0] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[:-1])
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and not _tolerance(node):
        yield "constant", ast.Constant(1 if node.value == 0 else 2 * node.value)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    plain = not any(isinstance(one, ast.Starred) for one in node.args)
    if name in ("range", "len") and plain and node.args:
        end = min(1, len(node.args) - 1)
        less = ast.BinOp(node.args[end], ast.Sub(), ast.Constant(1))
        shorter = ast.Call(node.func, [*node.args[:end], less, *node.args[end + 1 :]], node.keywords)
        yield "off by one", shorter if name == "range" else ast.BinOp(node, ast.Sub(), ast.Constant(1))
    elif plain and len(node.args) > 1 and name not in SYMMETRIC:
        first, second, *rest = node.args
        if ast.unparse(first) != ast.unparse(second):
            yield "swapped", ast.Call(node.func, [second, first, *rest], node.keywords)


def _tolerance(node: ast.AST) -> bool:
    """Tell whether a number allows for rounding: twice as much, or relative to something else, is no slip."""
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= 1e-6


def _text(node: ast.BinOp) -> bool:
    """Tell whether the operands are text or types, which + and | join."""
    sides = (node.left, node.right)
    return any(isinstance(one, ast.JoinedStr | ast.List | ast.Tuple) or _is_text(one) for one in sides)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
