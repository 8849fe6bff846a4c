"""Compiled loops on disk: where they are kept, who compiles one that is not there, and for how long that took.

Of several processes that need a loop which is not there, one compiles it; the others wait and read it. A loop is
compiled anew when its file has changed, or a file that its loops and constants come from: their code is part of it.
"""

import logging
import os
import re
import stat
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache


class _Clock(event.Listener):
    """Adds up the seconds in which loops are compiled, or waited for while another process compiles them; those read
    from the disk cost next to nothing. `tell` is called with whether it is so, when that changes."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds = 0, 0.0, 0.0
        self.tell: Callable[[bool], None] = lambda compiling: None

    def start(self) -> None:
        self.depth += 1
        if self.depth == 1:
            self.began = time.perf_counter()
            self.tell(True)

    def stop(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            self.tell(False)

    def on_start(self, event: Any) -> None:
        self.start()

    def on_end(self, event: Any) -> None:
        self.stop()
        failed = (getattr(event, "_exc_details", None) or (None,))[0] is not None
        if failed and isinstance(event.data["dispatcher"]._cache, _SharedCache):
            event.data["dispatcher"]._cache.end_turn()


_clock = _Clock()
event.register("numba:compile", _clock)


def seconds_compiling() -> float:
    """Return for how long this process has compiled loops so far."""
    return _clock.seconds


def tell_compiling(tell: Callable[[bool], None]) -> None:
    """Have `tell` called with True whenever this process begins to compile, and with False when it goes on."""
    _clock.tell = tell


_LONGEST_WAIT = 60.0  # seconds; then a loop is compiled here too


class _SharedCache(FunctionCache):
    """The loops of one function on disk. Who finds one lacking has its turn to compile it, once nobody else has."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _stamps(Path(function.__code__.co_filename))
        base = self._impl.filename_base
        self._cache_file = IndexDataCacheFile(cache_path=self.cache_path, filename_base=base, source_stamp=stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None:
            self._wait()
            found = super().load_overload(sig, target_context)  # if another process had the turn
            if found is not None:
                self.end_turn()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        finally:
            self.end_turn()

    def _wait(self) -> None:
        """Take the turn."""
        if _take(self._turn):
            return
        began = time.perf_counter()
        _clock.start()
        try:
            while not _take(self._turn) and time.perf_counter() - began < _LONGEST_WAIT:
                time.sleep(0.01)
        finally:
            _clock.stop()

    def end_turn(self) -> None:
        """Let the next process compile, or read."""
        _take(self._turn, end=True)

    @property
    def _turn(self) -> tuple[str, int]:
        """A file, and the place in it whose lock says whose turn it is."""
        return self.cache_path, zlib.crc32(self._impl.filename_base.encode())


_PACKAGE = Path(__file__).parent
_IMPORTED = re.compile(r"^(?:from|import) assay\.([\w.]+)", re.MULTILINE)


@cache
def _stamps(file: Path) -> tuple[tuple[int, int], ...]:
    """Return time and size of the files of the package that compiled loops of a file are made of, itself included."""
    known: set[Path] = set()
    if file.exists():  # not if the loop was typed in
        _collect(file, known)
    return tuple((status.st_mtime_ns, status.st_size) for status in map(os.stat, sorted(known)))


def _collect(file: Path, known: set[Path]) -> None:
    known.add(file)
    for other in _imported(file):
        if other not in known:
            _collect(other, known)


@cache
def _imported(file: Path) -> frozenset[Path]:
    """Return the files of the package that a file imports from when it is loaded itself."""
    names = _IMPORTED.findall(file.read_text(encoding="utf-8"))
    found = [_PACKAGE.joinpath(*name.split(".")) for name in names]
    return frozenset(path for one in found if (path := one.with_suffix(".py")).exists())


@cache
def _turns(folder: str) -> int:
    """Return the number of the open file of turns in a folder; a lock of it ends with its process."""
    return os.open(os.path.join(folder, "turns"), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


def _take(turn: tuple[str, int], end: bool = False) -> bool:
    """Take a turn, or end it; tell whether it could be had. Where files have no locks everybody has it."""
    try:
        import fcntl

        kind = fcntl.LOCK_UN if end else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(_turns(turn[0]), kind, 1, turn[1])
    except (BlockingIOError, PermissionError):
        return False
    except (ImportError, OSError):
        return True
    return True


def keep(loop: Any) -> None:
    """Keep what is compiled on disk, unless there is no place for it, or others could put their code there."""
    try:
        loop._cache = _SharedCache(loop.py_func)
    except RuntimeError:
        _tell_once("there is no folder that this process may write to")
        return
    folder = loop.stats.cache_path
    if not _is_private(folder):
        loop._cache = NullCache()
        _tell_once(f"{folder!r} can be written to by others, whose code would be run")


_told: list[str] = []


def _tell_once(reason: str) -> None:
    if not _told:
        _told.append(reason)
        logging.getLogger("assay").warning(
            "assay: compiled loops are not cached, so that each process compiles them anew: %s. "
            "Set NUMBA_CACHE_DIR to a folder that only you can write to.",
            reason,
        )


@cache
def _is_private(folder: str) -> bool:
    """Tell whether a folder belongs to this user, and nobody else can write to it."""
    if not hasattr(os, "geteuid"):  # Windows: folders below the user's own are private
        return True
    status = os.stat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
        return False
    return not status.st_mode & stat.S_IWGRP or _is_own_group(status.st_gid)


def _is_own_group(number: int) -> bool:
    """Tell whether a group is the user's private one: of the user's name, with no other member."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user and {*group.gr_mem} <= {user}
