"""Search without a server, in English and Chinese.

English words are stemmed. Chinese has no blanks between words: every two neighbouring characters are indexed, and a
query is cut in the same way, so that a term is found whether or not a dictionary knows it.
"""

import re

from sphinx.application import Sphinx
from sphinx.search import languages
from sphinx.search.en import SearchEnglish

_HAN = "\u3400-\u9fff"
_PIECES = re.compile(rf"[{_HAN}]+|[^\W{_HAN}]+")
_SPLIT = r"""
function splitQuery(query) {
  const pieces = query.match(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{Letter}\p{Number}_])+/gu) || [];
  return pieces.flatMap((piece) =>
    /[\u3400-\u9fff]/.test(piece) && piece.length > 1
      ? Array.from({ length: piece.length - 1 }, (_, at) => piece.slice(at, at + 2))
      : [piece]);
}
"""


class Search(SearchEnglish):
    """English words and pairs of Chinese characters."""

    js_splitter_code = _SPLIT

    def split(self, input: str) -> list[str]:
        """Return words, and each pair of neighbouring Chinese characters."""
        return [part for piece in _PIECES.findall(input) for part in _parts(piece)]


def _parts(piece: str) -> list[str]:
    if len(piece) == 1 or not re.match(f"[{_HAN}]", piece):
        return [piece]
    return [piece[at : at + 2] for at in range(len(piece) - 1)]


def setup(app: Sphinx) -> None:
    for language in ("en", "zh", "zh_CN"):
        languages[language] = Search
