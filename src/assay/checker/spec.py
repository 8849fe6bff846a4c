"""The tables of SPEC.md that follow from the families: arrays of models, claims with their rules and assumptions.

`python -m assay.checker.spec` writes them anew, between the marks that the page has for them. What arrays mean, how a
model predicts and what a rule computes is prose, in the tables after these.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from assay.checker.family import NUMBERS, SINGLE, TEXT, WHOLE, Family, Variant
from assay.claims import directory
from assay.claims.definitions import Definition

PAGE = Path(directory.__file__).with_name("SPEC.md")
_TYPES = {NUMBERS: "R", SINGLE: "S", WHOLE: "Z", TEXT: "T"}
_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its tables written anew."""
    tables = {"families": families_table, "claims": claims_table}
    return _MARKED.sub(lambda match: match[1] + "\n".join(tables[match[2]]()) + "\n" + match[3], text)


def families_table() -> Iterator[str]:
    """Yield the lines of the table of families: a row for each kind of model."""
    yield "| family | arrays | also | has |"
    yield "|---|---|---|---|"
    for family in _families():
        for name, variant in family.variants.items():
            arrays = ", ".join(f"`{array}` {_TYPES[types]}" for array, types in variant.arrays.items())
            also = ", ".join(f"`{array}`" for array in variant.more)
            called = f"{family.name}.{name}" if name else family.name
            yield f"| `{called}` | {arrays or 'none'} | {also} | {', '.join(_parts(variant))} |"


def _parts(variant: Variant) -> Iterator[str]:
    """Yield what a kind of model has beside its arrays."""
    named = {"classes": variant.classes, "a target": variant.target, "members": variant.members}
    yield from (part for part, there in (named | {"parameters that are read": variant.parameters}).items() if there)
    yield from (f"probabilities ({link})" for link in variant.probabilities)


def claims_table() -> Iterator[str]:
    """Yield the lines of the table of claims: a row for each code."""
    yield "| code | name | models | direction | rule | assumptions |"
    yield "|---|---|---|---|---|---|"
    for code, (definition, models) in sorted(definitions().items()):
        names = ", ".join(dict.fromkeys([*definition.by_loss.values(), definition.name]))
        rule = f"{definition.rule.__module__.removeprefix('assay.checker.')}.{definition.rule.__name__}"
        about = ", ".join(f"`{name}`" for name in models) or "all"
        ways, assumed = " or ".join(definition.directions), ", ".join(definition.assumptions)
        yield f"| {code} | {names} | {about} | {ways} | `{rule}` | {assumed or 'none: a fact'} |"


def definitions() -> dict[str, tuple[Definition, list[str]]]:
    """Return each definition by its code, with the families that have it; the core's are those of all."""
    results: dict[str, tuple[Definition, list[str]]] = {}
    for place in directory.places():
        module = import_module(place)
        for code, definition in getattr(module, "CLAIMS", {}).items():
            results.setdefault(code, (definition, []))[1].extend(family.name for family in _families(place))
    return results


def _families(*places: str) -> Iterator[Family]:
    """Yield the family of each of these modules; the core's have none."""
    result = (getattr(import_module(place), "FAMILY", None) for place in places or directory.places())
    yield from (family for family in result if family is not None)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
