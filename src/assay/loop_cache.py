"""Compiled loops on disk: where they are kept, who compiles one that is not there, and for how long that took.

They lie in the user's cache folder (`NUMBA_CACHE_DIR` names another one), in a folder for each source file and each
content of it and of the files that its loops and constants come from. So all installations of the same sources share
them: reinstalling a version, or running its tests in a fresh copy, compiles nothing. Of several processes that need a
loop which is not there, one compiles it; the others wait and read it.
"""

import hashlib
import logging
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.misc.appdirs import AppDirs


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


class _ByContent:
    """Where the loops of a function lie: a folder named after its module and the digest of what they are made of."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._line = file, function.__code__.co_firstlineno
        self._digest = _digest(Path(file))
        self._folder = _base() / f"{function.__module__}-{self._digest[:16]}"

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_ByContent | None":
        if not os.path.exists(file):  # the loop was typed in
            return None
        place = cls(function, file)
        try:
            _make_folder(place._folder)
        except OSError:
            return None
        return place


def _base() -> Path:
    return Path(getattr(config, "CACHE_DIR", "") or AppDirs(appname="assay", appauthor=False).user_cache_dir) / "loops"


_KEPT_VERSIONS = 16  # contents of one source file whose loops are kept; of more, those compiled last


@cache
def _make_folder(folder: Path) -> None:
    """Make a folder that this process can write to, and drop the loops of contents that are long gone."""
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        module = folder.name.rpartition("-")[0]
        others = sorted(folder.parent.glob(f"{module}-{'?' * 16}"), key=lambda other: -other.stat().st_mtime)
        for other in others[_KEPT_VERSIONS:]:
            shutil.rmtree(other, ignore_errors=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written to")


class _LoopFiles(CompileResultCacheImpl):
    _locator_classes = [_ByContent]


class _SharedCache(FunctionCache):
    """The loops of one function on disk. Who finds one lacking has its turn to compile it, once nobody else has."""

    _impl_class = _LoopFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        result = super().load_overload(sig, target_context)
        if result is None:
            self._wait()
            result = super().load_overload(sig, target_context)  # if another process had the turn
            if result is not None:
                self.end_turn()
        return result

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
        folder = Path(self.cache_path)
        return str(folder.parent), zlib.crc32(f"{folder.name} {self._impl.filename_base}".encode())


_PACKAGE = Path(__file__).parent
_IMPORTED = re.compile(r"^(?:from|import) assay\.([\w.]+)", re.MULTILINE)


@cache
def _digest(file: Path) -> str:
    """Return a digest of the files of the package that compiled loops of a file are made of, itself included."""
    known: set[Path] = set()
    _collect(file, known)
    whole = hashlib.sha256()
    for part in sorted(known):
        whole.update(hashlib.sha256(part.read_bytes()).digest())
    return whole.hexdigest()


def _collect(file: Path, known: set[Path]) -> None:
    known.add(file)
    for other in _imported(file):
        if other not in known:
            _collect(other, known)


@cache
def _imported(file: Path) -> frozenset[Path]:
    """Return the files of the package that a file imports from when it is loaded itself."""
    names = _IMPORTED.findall(file.read_text(encoding="utf-8"))
    results = [_PACKAGE.joinpath(*name.split(".")) for name in names]
    return frozenset(path for result in results if (path := result.with_suffix(".py")).exists())


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
    for place in (os.path.dirname(folder), folder):
        if not _is_private(place):
            loop._cache = NullCache()
            _tell_once(f"{place!r} can be written to by others, whose code would be run")
            return


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
