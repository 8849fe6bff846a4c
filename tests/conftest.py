"""Options and markers: `--long` runs release-size simulations, `--quick` a few cases of each test; `mission` markers
must name known rows."""

import signal
from collections import defaultdict
from collections.abc import Iterator

import hypothesis
import pytest

from tests.mission import row_names, rows_of

hypothesis.settings.register_profile(  # neither luck nor a busy machine decides
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run simulations and attacks at release size")
    parser.addoption("--quick", action="store_true", help="run three cases of each test, and none that starts servers")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = row_names()
    unknown = {row for item in items for row in rows_of(item)} - known.keys()
    if unknown:
        raise pytest.UsageError(f"mission markers name unknown rows: {', '.join(sorted(unknown))}")
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="release size; run with --long")
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(skip)
    if config.getoption("--quick"):
        kept = _quick(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


_SERVERS = ("studio", "scale", "serve", "cli", "fuzz", "dropin")  # tests of these start processes, browsers or clusters


def _quick(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the first, the middle and the last case of each test that runs in this process."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not any(part in str(item.path.relative_to(item.config.rootpath)) for part in _SERVERS):
            cases[item.nodeid.split("[")[0]].append(item)
    return {some[place] for some in cases.values() for place in (0, len(some) // 2, -1)}


@pytest.fixture(scope="session", autouse=True)
def looks_are_not_counted() -> Iterator[None]:
    """Nothing is written to the user's ledger of looks; a test that is about it names a file of its own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ASSAY_LOOKS", "off")
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """Hear Ctrl-C as a person's shell does; jobs in the background are started with ears shut."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
