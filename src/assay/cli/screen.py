"""Printing sentences that hold words of files and tables."""

from rich.console import Console

from assay.messages import render
from assay.text import shown


def say(console: Console, sentence: str, style: str | None = None) -> None:
    """Print a sentence as it is: neither markup nor terminal codes in it have an effect."""
    console.print(shown(render(sentence, place="terminal")), style=style, markup=False, highlight=False, emoji=False)
