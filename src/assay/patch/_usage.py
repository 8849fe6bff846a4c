"""What stand-ins did: fits by either library, their time, and why some fell back."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

log = logging.getLogger("assay.patch")


@dataclass
class Usage:
    """What one class, or function, was used for."""

    ours: int = 0
    theirs: int = 0
    seconds: float = 0.0
    their_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


_used: dict[str, Usage] = {}


@contextmanager
def used(name: str) -> Iterator[None]:
    """Count one call that Assay answers, and its time, unless it is refused."""
    began = time.perf_counter()
    yield
    usage = _used.setdefault(name, Usage())
    usage.ours += 1
    usage.seconds += time.perf_counter() - began


@contextmanager
def fallen_back(name: str, reason: str) -> Iterator[None]:
    """Count one call that scikit-learn answers, its time, and why; log it."""
    began = time.perf_counter()
    yield
    usage = _used.setdefault(name, Usage())
    usage.theirs += 1
    usage.their_seconds += time.perf_counter() - began
    usage.reasons[reason] += 1
    log.info("%s: scikit-learn's own, because %s", name, reason)


def forget() -> None:
    """Begin to count anew."""
    _used.clear()


@dataclass(frozen=True)
class Report:
    """Names that are patched, and what each was used for since `patch_sklearn`.

    Parameters
    ----------
    patched : tuple of str
        Names that are patched.
    used : dict
        What each class was used for.
    """

    patched: tuple[str, ...]
    used: dict[str, Usage]

    @property
    def fallen_back(self) -> dict[str, dict[str, int]]:
        """The reasons of each class that fell back, with how often."""
        return {name: dict(item.reasons) for name, item in self.used.items() if item.reasons}

    def __str__(self) -> str:
        lines = [f"{len(self.patched)} names of scikit-learn are Assay's: {', '.join(self.patched) or 'none'}."]
        if self.used:
            lines.append(f"{'':32s}{'Assay':>16s}{'scikit-learn':>20s}")
        for name, item in sorted(self.used.items()):
            theirs = f"{item.theirs:6d} in {item.their_seconds:7.3f} s" if item.theirs else ""
            lines.append(f"{name:32s}{item.ours:4d} in {item.seconds:7.3f} s  {theirs}".rstrip())
            lines += [f"    {count} x scikit-learn's own: {reason}" for reason, count in item.reasons.items()]
        return "\n".join(lines)


def report() -> Report:
    """Return what is patched, and what the classes were used for since the first `patch_sklearn`.

    Returns
    -------
    Report
        The names and their use.
    """
    from assay.patch._swap import patched_names

    return Report(tuple(patched_names()), dict(_used))
