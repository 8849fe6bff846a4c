"""Both languages have every sentence that the library says, with the same values, and no other."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import assay
from assay.learning.folded import FoldMean, FoldVote
from assay.messages import catalogue
from assay.messages.methods_zh import METHODS

SOURCE = Path(assay.__file__).parent
ENGLISH, CHINESE = catalogue("en"), catalogue("zh")


def fields(template: str) -> set[str]:
    """Return what a sentence shows: its values, parameters with their dashes."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def parameters(template: str) -> set[str]:
    parts = [(name or "", spec or "") for _, name, spec, _ in Formatter().parse(template)]
    return {part for both in parts for part in both if part.startswith("--")}


def on_page(code: str) -> str:
    return ENGLISH.get(f"{code}@page", ENGLISH[code])


def trees(pattern: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files of the package in which a pattern is found, parsed: parsing all takes seconds."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(pattern, text):
            yield path, ast.parse(text)


@cache
def calls() -> list[tuple[str, str, set[str] | None]]:
    """Return the place, code and values of each `Message("code", ...)` in the sources; None for values by `**`."""
    found = []
    for path, tree in trees(r"\b(Message|named)\b"):
        for node in ast.walk(tree):
            at = {"Message": 0, "named": 1}.get(getattr(node.func, "id", "")) if isinstance(node, ast.Call) else None
            if at is not None and len(node.args) > at:
                names = {one.arg for one in node.keywords}
                for code in codes(node.args[at]):
                    place = f"{path.relative_to(SOURCE)}:{node.lineno}"
                    found.append((place, code, None if None in names else {str(name) for name in names}))
    return found


def codes(node: ast.expr) -> list[str]:
    """Return the codes that an argument can be: a string, or a choice between strings."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    return codes(node.body) + codes(node.orelse) if isinstance(node, ast.IfExp) else []


def test_both_languages_have_the_same_codes() -> None:
    assert {code for code in ENGLISH if not code.endswith("@page")} == set(CHINESE)
    assert {code.removesuffix("@page") for code in ENGLISH} == set(CHINESE)


def test_values_and_parameters() -> None:
    """Chinese shows the values that the English page shows; pages name no parameters and show nothing new."""
    for code in CHINESE:
        assert fields(CHINESE[code]) == fields(on_page(code)), code
        assert not parameters(CHINESE[code]), code
        assert not parameters(on_page(code)), f"{code} names a parameter and needs a sentence for pages, '{code}@page'"
        assert fields(on_page(code)) <= fields(ENGLISH[code]), code


def test_every_code_is_used_and_every_used_code_is_known() -> None:
    """Codes are written out in the sources: as an argument of `Message`, or as a string in a table of codes."""
    used = {code for _, code, _ in calls()}
    assert used <= set(CHINESE), used - set(CHINESE)
    text = "\n".join(p.read_text(encoding="utf-8") for p in SOURCE.rglob("*.py") if p.parent.name != "messages")
    written = {code for code in CHINESE if f'"{code}"' in text}
    assert set(CHINESE) - used - written - {"sentences"} == set()


def test_every_message_has_the_values_of_its_sentence() -> None:
    for place, code, given in calls():
        wanted = {name for name in fields(ENGLISH[code]) if not name.startswith("--")}
        if given is not None:
            assert given == wanted, (place, code)


def test_no_reason_of_a_claim_that_is_not_made_is_a_finished_sentence() -> None:
    """The library's own reasons can be translated: they are messages, not strings."""
    written = []
    for path, tree in trees(r"\b(NotApplicable|Vacuous)\b"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("NotApplicable", "Vacuous"):
                reasons = [one for arg in node.args[1:2] for one in ast.walk(arg)]
                if any(isinstance(one, ast.JoinedStr) for one in reasons) or (
                    reasons and isinstance(reasons[0], ast.Constant)
                ):
                    written.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert written == []


def test_only_the_command_line_speaks_of_options() -> None:
    """Parameters are named as in Python; a catalogue writes {--clip}, which the terminal alone shows as an option."""
    option, found = re.compile(r"(?<![\w(-])--[a-z]"), []
    for path, tree in trees(option.pattern):
        place = path.relative_to(SOURCE)
        if (
            path.name == "__main__.py"
            or place.parts[0] in ("cli", "messages")
            or place.as_posix() == "studio/pages/run.py"
        ):
            continue  # the last writes command lines
        docstrings = {one.value for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        texts = [one for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        found += [f"{path.name}:{one.lineno}" for one in texts if one not in docstrings and option.search(one.value)]
    assert found == []
    library = [Formatter().parse(template) for template in (*ENGLISH.values(), *CHINESE.values())]
    assert not any(option.search(text) for parts in library for text, *_ in parts)


def test_every_method_has_a_chinese_name() -> None:
    learners = {kind.__name__ for kind in (*assay.learners(), FoldVote, FoldMean)}
    assert set(METHODS) == learners
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in name) for name in METHODS.values())
