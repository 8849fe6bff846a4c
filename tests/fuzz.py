"""Mutated model files, certificates and tables: `python -m tests.fuzz --minutes N [--seed S] [--claims]`.

Every input is made from its number and the seed alone, and run in a worker process: a crash ends the worker and not the
fuzzer, and an input that keeps the worker busy for more than 2 s of its processor's time counts as a hang. Model files
are loaded, verified, and asked for predictions; what verifies must say what was certified (or, if the certificate was
sealed again for the forged model, what the checker's own predictor says), and claims of errors are counted again by
`predict`. Inputs that did what they must not are saved. With `--claims` honest claims of every rule that has an oracle
of its own are forged and sealed again, so that only the mathematics can notice: `tests.fuzz_claims`.
"""

import argparse
import json
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import assay
from assay.claims.document import DocumentError, from_json
from assay.data import Encoding, read
from assay.persist import ModelFileError
from tests import fuzz_claims
from tests.certificate.test_forged_files import Certified, contradiction, holds, said, same, untrue
from tests.certificate.test_forged_tables import table_contradiction, table_holds
from tests.fuzz_inputs import Input, Seeds, kind_of, make, seeds
from tests.watched import Outcome, watch

LIMIT = 2.0  # seconds of processor time for one input
REPORT = 300.0  # seconds between reports of a long run
MEMORY = 6 * 2**30  # bytes of addresses that a worker may have


def run(one: Input, sound: Seeds, path: Path) -> Outcome:
    """Return what becomes of an input."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _RUN[one.kind](one, sound, path)
    except (ModelFileError, DocumentError, FileNotFoundError):
        return Outcome("refused")
    except Exception as error:
        ours, place = _place(error)
        if isinstance(error, ValueError) and ours:
            return Outcome("refused")
        return Outcome("unexpected", place, f"{type(error).__name__}: {str(error)[:200]}")


def _place(error: BaseException) -> tuple[bool, str]:
    """Return whether an error was raised by Assay's own code, and the last line of it that was reached."""
    home = str(Path(assay.__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(home)]
    last = own[-1] if own else frames[-1]
    return bool(own) and frames[-1] is last, f"{Path(last.filename).name}:{last.lineno}"


def _model(one: Input, sound: Seeds, path: Path) -> Outcome:
    subject = sound.models[one.source][0]
    path.write_bytes(one.content)
    saved = assay.load(path)
    if saved.model.n_features_in_ != subject.rows.shape[1]:
        verified = saved.certificate is not None and holds(saved.certificate, saved.model, subject)
        return Outcome("wrong", "verify", "it reads another number of columns") if verified else Outcome("refused")
    told = said(saved.model, subject.rows)
    if saved.certificate is None:
        return Outcome("accepted")
    str(saved.certificate)
    if not holds(saved.certificate, saved.model, subject):
        return Outcome("refused")
    wrong = "" if one.sealed == "digest" else "" if same(told, subject.said) else "other predictions"
    wrong = wrong or contradiction(saved.model, subject.rows) or untrue(saved.certificate, saved.model, subject)
    return Outcome("wrong", "verify", f"{type(saved.model).__name__}: {wrong}") if wrong else Outcome("accepted")


def _table_model(one: Input, sound: Seeds, path: Path) -> Outcome:
    subject = sound.tables[one.source][0]
    path.write_bytes(one.content)
    saved = assay.load(path)
    if saved.certificate is None or not table_holds(saved, subject.table):
        return Outcome("refused")
    told = saved.model.predict(subject.table)
    wrong = "" if one.sealed == "digest" or np.array_equal(told, subject.said) else "other predictions"
    wrong = wrong or table_contradiction(saved.model, subject.table)
    return Outcome("wrong", "verify", f"table: {wrong}") if wrong else Outcome("accepted")


def _certificate(one: Input, sound: Seeds, path: Path) -> Outcome:
    subject = sound.models[one.source][0]
    certificate = from_json(one.content)
    text = str(certificate)
    if not all(line.isprintable() for line in text.split("\n")):
        return Outcome("wrong", "str(certificate)", "what is printed has characters that cannot be seen")
    model = _loaded(one.source, subject, path)
    if not holds(certificate, model, subject):
        return Outcome("refused")
    wrong = untrue(certificate, model, subject)
    return Outcome("wrong", "verify", wrong) if wrong else Outcome("accepted")


_kept: dict[int, Any] = {}


def _loaded(source: int, subject: Certified, path: Path) -> Any:
    if source not in _kept:
        path.write_bytes(subject.content)
        _kept[source] = assay.load(path).model
    return _kept[source]


def _table(one: Input, sound: Seeds, path: Path) -> Outcome:
    place = path.with_suffix(f".{one.kind}")
    place.write_bytes(one.content)
    table = read(place)
    Encoding.fit(table).apply(table)
    table.summary()
    return Outcome("accepted")


def _encoding(one: Input, sound: Seeds, path: Path) -> Outcome:
    encoding = Encoding.from_plain(json.loads(one.content))
    rows = np.column_stack([np.arange(4.0), np.arange(4.0) % 2, np.full(4, np.nan), np.zeros(4)])
    encoding.apply_raw(rows[:, np.arange(len(encoding.parts)) % 4])
    encoding.feature_names()
    if Encoding.from_plain(encoding.plain()) != encoding:
        return Outcome("wrong", "encoding.plain", "an encoding does not survive being stored")
    return Outcome("accepted")


_RUN: dict[str, Callable[[Input, Seeds, Path], Outcome]] = {
    "model": _model,
    "table": _table_model,
    "certificate": _certificate,
    "csv": _table,
    "parquet": _table,
    "encoding": _encoding,
}


# Tally ---------------------------------------------------------------------------------------------------------

_ENDINGS = {"model": "assay", "table": "assay", "certificate": "json", "encoding": "json"}


class Tally:
    """What became of the inputs so far."""

    def __init__(self, seed: int, sound: Seeds, folder: Path):
        self.seed, self.sound, self.folder = seed, sound, folder
        self.counts: Counter[str] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.bad: dict[tuple[str, str, str], int] = {}

    def add(self, number: int, outcome: Outcome) -> None:
        self.counts[outcome.kind] += 1
        self.by_kind[kind_of(number, self.seed)] += 1
        if outcome.kind in ("refused", "accepted"):
            return
        one = make(number, self.seed, self.sound)
        key = (outcome.kind, f"{one.kind} at {outcome.place}", outcome.detail[:120])
        if self.bad.setdefault(key, 0) == 0:
            ending = _ENDINGS.get(one.kind, one.kind)
            (self.folder / f"{outcome.kind}-{self.seed}-{number}.{ending}").write_bytes(one.content)
        self.bad[key] += 1

    @property
    def tried(self) -> int:
        return sum(self.counts.values())

    def text(self, seconds: float) -> str:
        named = ("refused", "accepted", "unexpected", "wrong", "crash", "hang")
        parts = [f"{self.counts[kind]:,} {kind}" for kind in named]
        speed = f"{seconds:.0f} s ({60 * self.tried / seconds:,.0f} per minute)"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.by_kind.items()))
        lines = [f"{self.tried:,} inputs in {speed}: {', '.join(parts)}.", f"  Of them {kinds}."]
        for (kind, place, detail), times in sorted(self.bad.items(), key=lambda item: -item[1]):
            lines.append(f"  {times} x {kind}: {place}: {detail}".encode("unicode_escape").decode())
        lines += [f"  Inputs are saved in {self.folder}"] if self.bad else []
        return "\n".join(lines)


def fuzz(minutes: float, seed: int = 0, learners: tuple[str, ...] | None = None, most: int | None = None) -> Tally:
    """Run inputs for so long, or until so many were run; the sound ones first, so that every compiled loop is in
    memory."""
    folder = Path(tempfile.mkdtemp(prefix="assay-fuzz-"))
    with warnings.catch_warnings(), threadpool_limits(1):  # a process whose threads hold locks cannot be forked
        warnings.simplefilter("ignore")
        sound = seeds(learners, folder)
        warm_up(sound, folder)
        tally = Tally(seed, sound, folder)

        def run_one(number: int) -> Outcome:
            return run(make(number, seed, sound), sound, folder / "input")

        began, number = time.monotonic(), 0
        end = began + 60 * minutes
        last = None if most is None else most - 1
        while time.monotonic() < end and (last is None or number <= last):
            until = min(end, time.monotonic() + REPORT)
            number = watch(run_one, tally.add, number, end=until, seconds=LIMIT, memory=MEMORY, last=last)
            if time.monotonic() < end:
                print(tally.text(time.monotonic() - began), flush=True)
    print(tally.text(time.monotonic() - began), flush=True)
    return tally


def warm_up(sound: Seeds, folder: Path) -> None:
    """Run every sound input once, so that workers find every compiled loop in memory."""
    for source, (subject, *_) in enumerate(sound.models):
        outcome = run(Input("model", subject.content, source, "manifest"), sound, folder / "input")
        assert outcome.kind == "accepted", outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learners", nargs="*", help="names of learners; all if left out")
    parser.add_argument("--claims", action="store_true", help="claims that are forged and sealed again")
    given = parser.parse_args()
    if given.claims:
        return 1 if fuzz_claims.fuzz(given.minutes, given.seed).bad else 0
    return 1 if fuzz(given.minutes, given.seed, tuple(given.learners) if given.learners else None).bad else 0


if __name__ == "__main__":
    sys.exit(main())
