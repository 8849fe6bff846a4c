"""Docstrings as Sphinx reads them: they are written for people and terminals, with |w| for a norm and coef_ for a name.

Formulas that stand indented become literal blocks, and what reStructuredText takes for markup is escaped.
"""

import inspect
import re

from shared_parameters import SHARED
from sphinx.application import Sphinx

_CODE = re.compile(r"(``.*?``|`[^`]*`)", re.DOTALL)
_ROLE = re.compile(r":\w+:`~?([^`<]*?)(?:\s*<[^>`]*>)?`")
_UNDERLINE = re.compile(r"-{3,}\s*$")


def readable(lines: list[str]) -> list[str]:
    """Return the lines of a docstring in reStructuredText; those of sections with parameters keep their form."""
    end = next((at for at, line in enumerate(lines) if at and _UNDERLINE.match(line)), len(lines) + 1) - 1
    return [*_prose(lines[:end]), *_escaped(lines[end:])]


def _prose(lines: list[str]) -> list[str]:
    """Return paragraphs with indented lines as literal blocks, lists and doctests as they are."""
    found: list[str] = []
    for block in "\n".join(lines).split("\n\n"):
        rows = block.strip("\n").split("\n")
        for at, row in enumerate(rows):
            literal = row.startswith((" ", "\t"))
            if at == 0 or literal != rows[at - 1].startswith((" ", "\t")):
                begin = at
            last = at + 1 == len(rows) or rows[at + 1].startswith((" ", "\t")) != literal
            if not last:
                continue
            part = rows[begin : at + 1]
            if literal and not part[0].lstrip().startswith((">>>", "- ", "* ")):
                found += ["::", "", *("    " + line for line in part), ""]
            else:
                found += [*_escaped(part), ""]
    return found


def _escaped(lines: list[str]) -> list[str]:
    """Return the lines with characters escaped that would be markup, outside code and doctests."""
    found: list[str] = []
    prose: list[str] = []
    inside = False
    for line in [*lines, None]:
        inside = line is not None and (line.lstrip().startswith((">>>", "...")) or (inside and bool(line.strip())))
        if line is not None and not inside and not _UNDERLINE.match(line):
            prose.append(line)
            continue
        if prose:
            pieces = _CODE.split("\n".join(prose))
            text = "".join(piece if at % 2 else _escape(piece, at > 0) for at, piece in enumerate(pieces))
            found += text.split("\n")
            prose = []
        if line is not None:
            found.append(line)
    return found


def _escape(text: str, after_code: bool = False) -> str:
    text = "\\ " + text if after_code and re.match(r"\w", text) else text
    text = re.sub(r"(?<!\\)([|`])", r"\\\1", text)
    text = re.sub(r"(?<![\w*\\])(\*{1,2})(?=\w)(?![^*]*\w\*)", lambda stars: stars[1].replace("*", r"\*"), text)
    text = re.sub(r"(?<![\w\\*])\*(?=[^\w\s*])", r"\\*", text)
    text = re.sub(r"(?<=\s)\*(?=\s)", r"\\*", text)
    return re.sub(r"(?<=[\w)])_(?=\W|$)", r"\\_", text, flags=re.MULTILINE)


def shared(obj: object, lines: list[str]) -> list[str]:
    """Return a section with the parameters that the docstring leaves to the list of shared ones."""
    try:
        asked = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        return []
    text = "\n".join(lines)
    if re.search(r"^(Other )?Parameters\n-{3,}", text, re.MULTILINE):
        names = set(re.findall(r"\w+", " ".join(re.findall(r"^(\S[^:\n]*) :", text, re.MULTILINE))))
        header = [] if "Other Parameters" in text else ["", "Other Parameters", "----------------"]
    else:
        names, header = set(), ["", "Parameters", "----------"]
    missing = [name for name in asked if name in SHARED and name not in names]
    entries = [line for name in missing for line in (f"{name} : {SHARED[name][0]}", f"    {SHARED[name][1]}")]
    return [*header, *entries] if entries and header else []


def _process(app, what, name, obj, options, lines: list[str]) -> None:
    if str(getattr(obj, "__module__", "")).startswith("sklearn"):  # references to scikit-learn's own pages
        lines[:] = [_ROLE.sub(r"\1", line) for line in lines]
    else:
        lines[:] = readable([*lines, *shared(obj, lines)] if what in ("class", "method") else lines)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _process, priority=400)  # before numpydoc's
