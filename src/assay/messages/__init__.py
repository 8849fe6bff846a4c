"""Messages as data: a code with values, which becomes a sentence where it is shown.

A `Message` is a string, the English sentence as the library says it, that keeps its code and its values. It is raised,
warned of, printed and compared like any other string; whoever shows it in another place renders it again. Nothing has
to find out from a finished sentence what it says.

Sentences are format strings, in one table for each language (`assay.messages.en`, `assay.messages.zh`):

    {rows:,}             a value, formatted; of a list the format is what stands between its items
    {--clip}             a parameter: `clip` in the library, `--clip` in the terminal
    {name:--nominal}     a parameter with a value: `nominal='zip'` in the library, `--nominal zip` in the terminal
    "code@page": "..."   the sentence on pages (report, studio), which have no parameters

Values are numbers, strings, messages and lists of these.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from string import Formatter
from typing import Any

LANGUAGES = ("en", "zh")
_LONGEST = 2_000
_DEEPEST = 4


class Message(str):
    """A sentence that keeps its code and its values.

    >>> note = Message("clip.classes")
    >>> print(note)
    clip is for regression: the error rate of a classifier lies between 0 and 1.
    >>> print(note.render("en", "terminal"))
    --clip is for regression: the error rate of a classifier lies between 0 and 1.
    """

    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> "Message":
        self = super().__new__(cls, _render(code, values, "en", "library"))
        self.code, self.values = code, values
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.code, self.values)

    def render(self, language: str = "en", place: str = "library") -> str:
        """Return the sentence in a language, for the "library", the "terminal" or a "page"."""
        return _render(self.code, self.values, language, place)


def render(text: str, language: str = "en", place: str = "library") -> str:
    """Return a message in a language and for a place; other text as it is."""
    return text.render(language, place) if isinstance(text, Message) else text


def sentences(parts: Sequence[str]) -> str:
    """Return sentences as one message; one of them alone as it is, and "" of none."""
    kept = [part for part in dict.fromkeys(parts) if part]
    if len(kept) < 2:
        return kept[0] if kept else ""
    return Message("sentences", parts=kept)


def named(owner: object, code: str, **values: Any) -> Message:
    """Return a message that begins with the name of the class it is about."""
    return Message("named", who=type(owner).__name__, what=Message(code, **values))


def of_error(error: BaseException | Warning) -> str:
    """Return what an exception or a warning says, as a message if it was raised with one."""
    text = error.args[0] if len(error.args) == 1 else None
    return text if isinstance(text, Message) else str(error)


def changed(text: str, change: Callable[[str], str]) -> str:
    """Return a text changed; of a message, each string among its values.

    >>> changed(Message("no-learner", name="secret/SVC"), lambda name: name.removeprefix("secret/"))
    "there is no learner 'SVC'."
    """
    if isinstance(text, Message):
        return Message(text.code, **{name: _changed(value, change) for name, value in text.values.items()})
    return change(text)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_changed(item, change) for item in value]
    return changed(value, change) if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """Return a value with each message in it as a record that JSON can hold; `from_plain` reads it."""
    if isinstance(value, Message):
        return {"code": value.code, "values": plain(value.values)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    value = value.tolist() if hasattr(value, "tolist") else value
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(value: Any) -> str:
    """Return the message of such a record, which may come from a file; whatever is no such record as text.

    >>> from_plain({"code": "no-such", "values": {}})
    'no-such'
    """
    result = _read(value, 0)
    return result if isinstance(result, str) else str(result)[:_LONGEST]


def _read(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        code, values = value.get("code"), value.get("values")
        if not isinstance(code, str) or not isinstance(values, dict) or depth > _DEEPEST:
            return str(value)[:_LONGEST]
        try:
            return Message(code, **{str(name): _read(item, depth + 1) for name, item in values.items()})
        except (LookupError, ValueError, TypeError, AttributeError):
            return code[:_LONGEST]
    if isinstance(value, list):
        return [_read(item, depth) for item in value]
    return value


def method(name: str, english: str, language: str) -> str:
    """Return the name of a method in a language: that of the class `name`, or the English one."""
    return _methods().get(name, english) if language == "zh" else english


def _again(code: str, values: dict[str, Any]) -> Message:
    return Message(code, **values)


def _render(code: str, values: Mapping[str, Any], language: str, place: str, inside: bool = False) -> str:
    table = catalogue(language)
    template = table.get(f"{code}@page", "") if place == "page" else ""
    template = template or table[code]
    if place == "page" and not inside:  # in a terminal and in an exception a name comes first
        template = template[:1].upper() + template[1:]
    return _Words(language, place, inside=code != "sentences").vformat(template, (), values)


@cache
def catalogue(language: str) -> dict[str, str]:
    """Return the sentences of a language by their codes."""
    return import_module(f"assay.messages.{language}").MESSAGES


@cache
def _methods() -> dict[str, str]:
    from assay.messages.methods_zh import METHODS

    return METHODS


class _Words(Formatter):
    """Fills in a sentence; messages among the values are rendered for the same language and place."""

    def __init__(self, language: str, place: str, inside: bool) -> None:
        self.language, self.place, self.inside = language, place, inside

    def get_value(self, key: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(key, str) and key.startswith("--"):
            return self._parameter(key)
        return kwargs[key]

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (list, tuple)):
            return format_spec.join(self.format_field(item, "") for item in value)
        if format_spec.startswith("--"):
            name = self._parameter(format_spec)
            return f"{name} {value}" if self.place == "terminal" else f"{name}={value!r}"
        if isinstance(value, Message):
            value = _render(value.code, value.values, self.language, self.place, self.inside)
        return super().format_field(value, "" if isinstance(value, str) else format_spec)

    def _parameter(self, option: str) -> str:
        return option if self.place == "terminal" else option[2:].replace("-", "_")
