"""How many forgeries are tried."""

import pytest

FEW, SOME = 8, 60


@pytest.fixture
def most(long: bool, pytestconfig: pytest.Config) -> int | None:
    """The most forgeries of a model, and of a certificate: few in the short run, some in a part of the long tests, no
    limit with `--long`."""
    return None if pytestconfig.getoption("--long") else SOME if long else FEW
