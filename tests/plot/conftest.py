"""What every test of a figure needs."""

import sys

import pytest


@pytest.fixture
def nothing_shown():
    """Pyplot, which opens windows, holds no more figures after the test than before it (examples load it)."""
    before = _open_figures()
    yield
    assert _open_figures() == before


def _open_figures() -> list[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else pyplot.get_fignums()
