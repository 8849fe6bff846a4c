"""Writing files that are never half there; the folder of a user's data."""

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: whatever a killed process leaves behind stays there
    fcntl = None  # type: ignore[assignment]


def user_data_folder() -> Path:
    """Return the folder of what Assay keeps for a user, where the system has such folders."""
    home = Path.home()
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif os.name == "nt":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "assay"


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; move it into place when the block ends well.

    Until then, and after an error, whatever was at `path` stays as it was. The temporary file is locked as long as its
    process lives, so that a later save can tell what a killed one left behind, and removes it.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist; make it first.")
    _remove_left_behind(target)
    part, handle = _locked_part(target)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if fcntl is None:
            os.close(handle)  # Windows moves no open file
        part.replace(target)
    finally:
        with suppress(OSError):
            os.close(handle)
        part.unlink(missing_ok=True)


def _locked_part(target: Path) -> tuple[Path, int]:
    """Return a new file beside the target and its locked handle; the process's umask decides who may read it."""
    while True:
        part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if fcntl is None or (_lock(handle) and part.exists()):
            return part, handle
        os.close(handle)  # another save took it for left behind before it was locked


def _remove_left_behind(target: Path) -> None:
    """Remove temporary files of this target that no living process has locked."""
    if fcntl is None:
        return
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.part")
    for entry in os.scandir(target.parent):
        if not name.fullmatch(entry.name):
            continue
        with suppress(OSError):  # it is gone meanwhile, or belongs to somebody else
            handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if _lock(handle):
                    os.unlink(entry.path)
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file; tell whether nobody else had."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
