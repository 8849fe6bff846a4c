"""Words of the pages, in each language one table with the same keys."""

from collections.abc import Callable

from assay.report.words_en import WORDS as ENGLISH
from assay.report.words_zh import WORDS as CHINESE

LANGUAGES = {"en": ("English", ENGLISH), "zh": ("中文", CHINESE)}


def translator(language: str) -> Callable[..., str]:
    """Return what gives the words of a key; values in braces are filled in.

    >>> translator("en")("rows", n="1,000")
    '1,000 rows'
    """
    table = LANGUAGES.get(language, LANGUAGES["en"])[1]

    def words(key: str, **values: object) -> str:
        return table[key].format(**values) if values else table[key]

    return words


def language_of(cookie: str | None, accepted: str) -> str:
    """Return the language that a reader chose, or that the browser asks for first among those there are.

    >>> language_of(None, "fr, zh-CN;q=0.8, en;q=0.5")
    'zh'
    """
    if cookie in LANGUAGES:
        return cookie
    asked = (part.split(";")[0].strip()[:2].lower() for part in accepted.split(","))
    return next((one for one in asked if one in LANGUAGES), "en")
