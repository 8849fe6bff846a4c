"""What commands share: files that they read and write, sentences that hold words of files and tables."""

import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from rich.console import Console

from assay.messages import render
from assay.text import shown


def keep_apart(read: Sequence[str | Path], written: Mapping[str, Path]) -> None:
    """Refuse to write to a file that is read, and to write two things to one file; `written` is by option."""
    for option, path in written.items():
        for other in read:
            if _same(path, Path(other)):
                raise ValueError(f"{option} {path} would overwrite {other}, which is read; give another name.")
    for (first, path), (second, other) in combinations(written.items(), 2):
        if _same(path, other):
            raise ValueError(f"{first} and {second} are one file, {path}; give them two names.")


def _same(a: Path, b: Path) -> bool:
    if a.exists() and b.exists():
        return os.path.samefile(a, b)
    return a.resolve() == b.resolve()


def say(console: Console, sentence: str, style: str | None = None) -> None:
    """Print a sentence as it is: neither markup nor terminal codes in it have an effect."""
    console.print(shown(render(sentence, place="terminal")), style=style, markup=False, highlight=False, emoji=False)
