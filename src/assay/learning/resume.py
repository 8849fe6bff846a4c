"""What a study writes down so that a second run of it goes on from there: scores, as lines of JSON.

A line holds what cross-validation found of one candidate, under a digest of all that it depends on: the rows, the
split, the folds, the metric, the learner with its settings and seed, the version. Lines that are no such thing are
passed over; nothing in the file is run, and a certificate never rests on it.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import assay
from assay.messages import from_plain, plain


def fingerprint(*more: Any) -> str:
    """Return a digest of what is given."""
    result = hashlib.blake2b(digest_size=20)
    result.update(json.dumps([assay.__version__, *more], default=_plain).encode())
    return result.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=20).hexdigest()
    return vars(value) if hasattr(value, "__dict__") else str(value)


class Scores:
    """The scores of a study: those of earlier runs, and a file to which new ones are added; without one, none."""

    def __init__(self, path: Path | None, about: str) -> None:
        self.path, self.about = path, about
        self._known: dict[str, dict[str, Any]] = {}
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path and path.exists() else []
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        try:
            record = json.loads(line)
            losses, seconds = ([float(item) for item in record[name]] for name in ("losses", "seconds"))
            results: dict[str, Any] = {"losses": losses, "seconds": seconds, "per_row": float(record["per_row"])}
            key, note = str(record["key"]), from_plain(record["note"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        numbers = [*losses, *seconds, results["per_row"]]
        if losses and len(losses) == len(seconds) and all(math.isfinite(number) for number in numbers):
            self._known[key] = {"result": results, "note": note}

    def key(self, *what: Any) -> str:
        """Return the digest under which a score is kept."""
        text = json.dumps([self.about, *what], default=_plain)
        return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()

    def find(self, key: str, pairs: int) -> dict[str, Any] | None:
        """Return `result` and `note` of an earlier run on so many pairs."""
        result = self._known.get(key)
        return result if result is not None and len(result["result"]["losses"]) == pairs else None

    def add(self, key: str, result: dict[str, Any], note: str) -> None:
        """Write down what was found."""
        self._write(
            {"key": key, **{name: result[name] for name in ("losses", "seconds", "per_row")}, "note": plain(note)}
        )

    def _write(self, record: dict[str, Any]) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
