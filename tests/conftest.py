"""Options and markers. `--quick` runs a few cases of each test that stays in this process; `--long` adds simulations
and attacks at release size; `--long-part DAY` runs these alone, a third of them by the day of the year. `mission`
markers must name known rows."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from zlib import crc32

import hypothesis
import pytest

from tests.mission import row_names, rows_of

LONG_PARTS = 3
_SERVERS = {"studio", "scale", "serve", "cli"}  # folders of tests that start processes, browsers or clusters

hypothesis.settings.register_profile(  # neither luck nor a busy machine decides
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run simulations and attacks at release size")
    parser.addoption("--quick", action="store_true", help="run three cases of each test, and none that starts servers")
    parser.addoption(
        "--long-part", type=int, metavar="DAY",
        help=f"run long tests alone, one in {LONG_PARTS} of them: those whose turn it is on this day of the year",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Give the workers of `-n`, which have a processor each, one thread of BLAS: more would wait for each other."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_report_header(config: pytest.Config) -> str | None:
    asked = config.getoption("--long") or config.getoption("--long-part") is not None
    return None if asked else "tests at release size are left out: run them with --long"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = row_names()
    unknown = {row for item in items for row in rows_of(item)} - known.keys()
    if unknown:
        raise pytest.UsageError(f"mission markers name unknown rows: {', '.join(sorted(unknown))}")
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled and crc32(item.nodeid.encode()) // LONG_PARTS % sampled.args[0]:
            item.add_marker(pytest.mark.long)
    day = config.getoption("--long-part")
    if day is None and not config.getoption("--long"):
        _keep(config, items, {item for item in items if not item.get_closest_marker("long")})
    if day is not None:
        _keep(config, items, {item for item in items if in_part(item, day)})
    if config.getoption("--quick"):
        _keep(config, items, _quick(items))


def in_part(item: pytest.Item, day: int) -> bool:
    """Return whether it is the turn of a test at release size; one that is run by hand has none."""
    marker = item.get_closest_marker("long")
    if marker is None and "long" not in getattr(item, "fixturenames", ()):
        return False
    by_hand = marker is not None and "by_hand" in marker.kwargs
    return not by_hand and crc32(item.nodeid.encode()) % LONG_PARTS == day % LONG_PARTS


def _keep(config: pytest.Config, items: list[pytest.Item], kept: set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _quick(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the first, the middle and the last case of each test that runs in this process."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        folders = {*item.path.relative_to(item.config.rootpath).parts}
        if not (_SERVERS & folders or item.get_closest_marker("long")):
            cases[item.nodeid.split("[")[0]].append(item)
    return {some[place] for some in cases.values() for place in (0, len(some) // 2, -1)}


@pytest.fixture(scope="session")
def long(pytestconfig: pytest.Config) -> bool:
    """Whether a test that can do more does all of it."""
    return pytestconfig.getoption("--long") or pytestconfig.getoption("--long-part") is not None


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
