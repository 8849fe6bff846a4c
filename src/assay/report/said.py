"""Sentences of other rooms in the words of a page: in Chinese, and in English without the options of a command line.

Notes, refusals, reasons and the rarer claims come as finished English sentences. `SAID` lists their patterns, with
blanks, and what a page says instead; a sentence that is not listed is shown as it is, marked as English.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from assay.messages import Message, from_plain
from assay.report.words_said import PHRASES, SAID
from assay.text import shown

_BLANK = re.compile(r"\{(\w+)\}")
_END = re.compile(r"[.;](?=\s|$)")
_MOST = 2_000


def said(text: str | dict[str, Any], language: str) -> Markup:
    """Return a text in a language, as far as its sentences are known; the others are marked as English.

    >>> said("it has no value in any row.", "zh")
    Markup('它在每一行都没有值。')
    >>> said("Something <new>.", "zh")
    Markup('<span lang="en">Something &lt;new&gt;.</span>')
    """
    message = from_plain(text) if isinstance(text, dict) else text
    if isinstance(message, Message):
        return escape(shown(message.render(language, "page")[:_MOST]))
    parts: list[Markup] = []
    before = ""
    for words, known in _parts(message[:_MOST], language):
        piece = (
            escape(shown(words))
            if known or language == "en"
            else Markup('<span lang="en">{}</span>').format(shown(words))
        )
        if parts and not (language == "zh" and before[-1:] in "。；，："):
            parts.append(Markup(" "))
        parts.append(piece)
        before = words
    return Markup("").join(parts)


def is_known(text: str) -> bool:
    """Tell whether every sentence of a text has its Chinese words."""
    return all(known for _, known in _parts(text, "zh"))


def _parts(text: str, language: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a text in a language, and whether each is known."""
    at = len(text) - len(text.lstrip())
    while at < len(text):
        for pattern, words in _patterns(language):
            if found := pattern.match(text, at):
                blanks = {name: _phrase(value, language) for name, value in found.groupdict().items()}
                yield words.format(**blanks), True
                break
        else:
            found = _END.search(text, at)
            yield text[at : found.end() if found else len(text)], False
        at = found.end() if found else len(text)
        at += len(text[at:]) - len(text[at:].lstrip())


@cache
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns with the words of a language; in English, of those alone that are said in other words."""
    place = 2 if language == "zh" else 1
    return [(_compiled(line[0]), line[place]) for line in SAID if line[place]]


def _compiled(source: str) -> re.Pattern[str]:
    parts = _BLANK.split(source.removesuffix("$"))
    text = "".join(re.escape(part) if i % 2 == 0 else f"(?P<{part}>[^\n]{{1,300}}?)" for i, part in enumerate(parts))
    return re.compile(text + (r"\s*$" if source.endswith("$") else r"(?=\s|$)"))


def _phrase(value: str, language: str) -> str:
    """Return what a blank held: the parts of a list that are known phrases in the language."""
    if language != "zh":
        return value
    return "，".join(_known_phrase(part) for part in value.split(", ")) if _listed(value) else _known_phrase(value)


def _listed(value: str) -> bool:
    return any(_known_phrase(part) != part for part in value.split(", "))


def _known_phrase(text: str) -> str:
    for source, words in PHRASES.items():
        if found := re.fullmatch(_BLANK.sub(r"(?P<\1>.{1,80})", source), text):
            return words.format(**found.groupdict())
    return text
