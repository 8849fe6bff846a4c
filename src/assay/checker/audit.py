"""Which lines a verdict rests on: the definitions of the checker that one certificate can reach.

Beginning at `verify`, at the reader of the model's family and at the rules of the certificate's claims, every top-level
function, class and constant that a reached definition names is reached too, wherever the checker, the format of claims
and the cutting of rows into blocks define it. How a certificate is printed is no part of it. NumPy, SciPy and Python's
own library are trusted.
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from assay.checker import bounds, facts
from assay.checker.family import find
from assay.claims.claim import Certificate
from assay.claims.definitions import by_name
from assay.claims.model import StoredModel

_READ = ("assay.checker", "assay.claims", "assay.data.blocks")
_FAMILY = ("assay.checker.families", "assay.checker.rules")
_PRINTED = ("assay.claims.words", "assay.claims.sentences", "assay.claims.directory", "assay.checker.printed")
_TABLES = ("CLAIMS", "FAMILY")  # lists of every claim there is: only those of the certificate are followed
_ROOTS = (("assay.checker.verify", "verify"), ("assay.claims.document", "from_json"))
_TABLE_ROOT = ("assay.checker.tables", "verify_table")  # where a model of a table is judged

Name = tuple[str, str]


class Part(NamedTuple):
    """Lines of one file: what they define, whether a family brings them, and how many of them are code."""

    file: str
    name: str
    first: int
    last: int
    of_family: bool
    code: int


def audit(certificate: Certificate, families: Iterable[str] = ()) -> list[Part]:
    """Return the definitions that the verdict on a certificate rests on, file by file."""
    waiting = [*_roots(certificate), *_of_certificate(certificate, [certificate.model.family, *families])]
    reached: set[Name] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached and name[0] not in _PRINTED and name[1] not in _TABLES:
            reached.add(name)
            waiting += _named_by(name)
    parts = [_part(name) for name in reached if name[1] in _definitions(name[0])]
    return sorted(parts, key=lambda part: (part.of_family, part.file, part.first))


def families_of(model: StoredModel) -> list[str]:
    """Return the families of a model and of all that it consists of."""
    return list(dict.fromkeys([model.family, *(name for member in model.members for name in families_of(member))]))


def loaded(certificate: Certificate, families: Iterable[str] = ()) -> dict[str, int]:
    """Return the files that are imported for the verdict, each with its lines of code, reached or not."""
    waiting = [module for module, _ in _roots(certificate)]
    waiting += [f"{_FAMILY[0]}.{name.partition('.')[0]}" for name in (certificate.model.family, *families)]
    results: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in results and module.startswith(_READ) and find_spec(module) is not None:
            results.add(module)
            waiting += [module.rpartition(".")[0], *_imported(module)]
    return {_place_of(module): len(_code_lines(_source(module)[1], module)) for module in sorted(results)}


def _roots(certificate: Certificate) -> list[Name]:
    return [*_ROOTS, *([_TABLE_ROOT] if find(certificate.model.family)[1].encodes else [])]


def _of_certificate(certificate: Certificate, families: Iterable[str]) -> Iterator[Name]:
    """Yield the reader of the model's arrays and the rules of its claims."""
    allowed = by_name([*facts.CLAIMS.values(), *bounds.CLAIMS.values()])
    for family in families:
        result, variant = find(family)
        allowed |= by_name(result.claims.values())
        yield from _place(variant.read)
        for check in variant.more.values():
            yield from _place(check)
    for claim in certificate.claims:
        if claim.name in allowed:
            yield from _place(allowed[claim.name].rule)


def _place(thing: Any) -> Iterator[Name]:
    thing = thing.func if isinstance(thing, partial) else thing
    yield thing.__module__, thing.__qualname__.partition(".")[0]


@cache
def _source(module: str) -> tuple[str, str]:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin, Path(spec.origin).read_text()


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """Return the statements of a module that define its names."""
    results: dict[str, ast.stmt] = {}
    for node in ast.parse(_source(module)[1]).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            results[node.name] = node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets if isinstance(node, (ast.Assign, ast.AnnAssign)) else []:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            results |= {name.id: node for name in names if isinstance(name, ast.Name)}
    return results


@cache
def _imports(module: str) -> dict[str, Name]:
    """Return where the names that a module imports are defined; ("", module) for a module."""
    results = {}
    for node in ast.walk(ast.parse(_source(module)[1])):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_READ):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                is_module = name.name not in _definitions(node.module) and find_spec(inner) is not None
                results[name.asname or name.name] = ("", inner) if is_module else (node.module, name.name)
    return results


def _imported(module: str) -> Iterator[str]:
    """Yield the modules that a module imports when it is loaded, and names in them that may be modules too."""
    for node in ast.parse(_source(module)[1]).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_READ):
            yield node.module
            known = _definitions(node.module)
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name not in known)


def _named_by(name: Name) -> Iterator[Name]:
    """Yield what the definition names: other definitions of its module, and imported ones."""
    module, own = name
    if own not in _definitions(module):
        if own in _imports(module) and _imports(module)[own][0]:
            yield _imports(module)[own]
        return
    for node in ast.walk(_definitions(module)[own]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home, inner = _imports(module).get(node.value.id, ("-", ""))
            if not home:
                yield inner, node.attr
        elif isinstance(node, ast.Name) and node.id in _definitions(module):
            yield module, node.id
        elif isinstance(node, ast.Name) and _imports(module).get(node.id, ("", ""))[0]:
            yield _imports(module)[node.id]


def _part(name: Name) -> Part:
    module, own = name
    text = _source(module)[1]
    node = _definitions(module)[own]
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
    last = node.end_lineno or first
    code = len(_code_lines(text, module) & set(range(first, last + 1)))
    return Part(_place_of(module), own, first, last, module.startswith(_FAMILY), code)


def _place_of(module: str) -> str:
    """Return the file of a module, seen from the package."""
    file, root = Path(_source(module)[0]), Path(import_module("assay").__file__ or "").parent
    return str(file.relative_to(root) if file.is_relative_to(root) else file.name)


@cache
def _code_lines(text: str, module: str) -> set[int]:
    """Return the numbers of the lines with code: no comments, no docstrings, no blank lines."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def sizes(parts: Iterable[Part]) -> tuple[int, int]:
    """Return how many lines of code are the core's and how many the family's."""
    listed = list(parts)
    return (
        sum(part.code for part in listed if not part.of_family),
        sum(part.code for part in listed if part.of_family),
    )
