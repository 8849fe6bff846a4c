"""Mutated model files, certificates and tables: `python -m tests.fuzz --minutes N [--seed S]`.

Every input is made from its number and the seed alone, and run in a worker process: a crash ends the worker and not the
fuzzer, and an input that keeps the worker busy for more than 2 s of its processor's time counts as a hang. Model files
are loaded, verified, and asked for predictions; what verifies must say what was certified (or, if the certificate was
sealed again for the forged model, what the checker's own predictor says). Inputs that did what they must not are saved.
"""

import argparse
import copy
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import assay
from assay.claims.document import DocumentError, from_json
from assay.data import Encoding, read
from assay.persist import ModelFileError
from tests.certificate.forged_files import Parts, certificate_forgeries, forgeries, forgeries_of_the_record, npy
from tests.certificate.test_forged_files import Certified, certified, contradiction, holds, said, same
from tests.certificate.test_forged_tables import (
    TASKS,
    CertifiedTable,
    certified_table,
    table_contradiction,
    table_holds,
)

LIMIT = 2.0  # seconds of processor time for one input
REPORT = 300.0  # seconds between reports of a long run
MEMORY = 6 * 2**30  # bytes of addresses that a worker may have
FEW = (
    "Ridge", "LogisticRegression", "SVC", "DecisionTreeClassifier", "HistGradientBoostingClassifier",
    "KNeighborsClassifier", "KMeans", "GaussianMixture", "MLPRegressor", "VotedPerceptron",
)  # fmt: skip


class Outcome(NamedTuple):
    """What became of one input: "refused", "accepted", "wrong" or "unexpected"; where and what, if it is bad."""

    kind: str
    place: str = ""
    detail: str = ""


class Seeds(NamedTuple):
    """Sound inputs, from which the others are made."""

    models: list[tuple[Certified, Parts, list[Any], list[Any]]]
    tables: list[tuple[CertifiedTable, Parts, list[Any], list[Any]]]
    csv: bytes
    parquet: bytes
    encoding: list[Any]


def seeds(names: tuple[str, ...] | None, folder: Path) -> Seeds:
    """Fit and certify the learners of these names (None: all), and write a table."""
    models = []
    for learner in assay.learners():
        if names is None or learner.__name__ in names:
            subject = certified(learner, folder)
            parts = Parts.of(subject.content)
            models.append((subject, parts, list(forgeries(parts)), list(certificate_forgeries(parts))))
    tables = []
    for task in TASKS:
        table = certified_table(task, folder)
        parts = Parts.of(table.content)
        tables.append((table, parts, list(forgeries_of_the_record(parts)), list(certificate_forgeries(parts))))
    import pyarrow as pa
    import pyarrow.parquet

    columns = {"a": [1.5, None, 3.0, 4.0] * 5, "b": ["x", "y", None, "z"] * 5, "c": [1, 2, 3, 4] * 5}
    pyarrow.parquet.write_table(pa.table(columns), folder / "table.parquet")
    csv = "a,b,c\n" + "".join(f'{i / 2},"level {i % 3}",{i}\n' for i in range(20))
    encoding = Encoding.fit(read(columns)).plain()
    return Seeds(models, tables, csv.encode(), (folder / "table.parquet").read_bytes(), encoding)


# Mutations ----------------------------------------------------------------------------------------------------


class Draw:
    """Random choices of one input."""

    def __init__(self, seed: int, number: int):
        self.rng = np.random.default_rng([seed, number])

    def below(self, high: int) -> int:
        return int(self.rng.integers(high))

    def of(self, options: Any) -> Any:
        return options[self.below(len(options))]


STRANGE = (
    b"\0", b"\xff" * 8, b"\n", b'"', b"{", b"[" * 40, b"1e999", b"-1", b"NaN", b"\xf0\x9f\x92\xa9", b"\x1b[2J", b",",
)  # fmt: skip


def mutated_bytes(data: bytes, draw: Draw) -> bytes:
    """Return bytes with a few flips, cuts, copies or strange insertions."""
    found = bytearray(data)
    for _ in range(1 + draw.below(4)):
        at, length = draw.below(len(found) + 1), 1 + draw.below(64)
        what = draw.below(7)
        if what == 0 and at < len(found):
            found[at] ^= 1 << draw.below(8)
        elif what == 1:
            del found[at : at + length]
        elif what == 2:
            found[at:at] = draw.of(STRANGE)
        elif what == 3:
            source = draw.below(len(found) + 1)
            found[at:at] = found[source : source + length]
        elif what == 4:
            found[at : at + length] = draw.rng.bytes(min(length, 16))
        elif what == 5:
            del found[at:]
        else:
            found[at : at + 4] = draw.of([0, 1, 2**31 - 1, 2**32 - 1, 255, 65535]).to_bytes(4, "little")
    return bytes(found)


def mutated_plain(value: Any, draw: Draw) -> Any:
    """Return plain data with one to three of its parts replaced, copied, moved or removed."""
    value = copy.deepcopy(value)
    for _ in range(1 + draw.below(3)):
        holders = list(_holders(value))
        if not holders:
            return value
        holder = draw.of(holders)
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = draw.of(keys)
        what = draw.below(6)
        if what == 0:
            del holder[key]
        elif what == 1:
            other = draw.of(holders)
            inner = list(other.values()) if isinstance(other, dict) else other
            holder[key] = copy.deepcopy(draw.of(inner)) if inner else None
        elif what == 2 and isinstance(holder, list):
            holder.extend([copy.deepcopy(holder[key])] * (1 + draw.below(20)))
        elif what == 3 and isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * draw.of([-1, 0, 0.5, 2, 10, 1000, 2**40]) + draw.of([0, 1, -1, 1e-9])
        else:
            holder[key] = copy.deepcopy(draw.of(_PLAIN))  # the next change may be one of its own parts
    return value


_PLAIN = (
    None, True, False, 0, 1, -1, 2, 2**31, 2**53, 2**64, 10**30, 0.5, -0.5, 1e308, 1e-308, "", "0", "1e-300", "0.05",
    "train", "holdout", "x" * 5000, "\x1b[31m[red]\n", "\ud800", [], {}, [[]], [None], {"": None}, "P01/1", "D02/1",
    "P19/1", "squared", "zero-one", "inf", "nan", 3, 7, 100, 10**5, 10**9,
)  # fmt: skip


def _holders(value: Any) -> Any:
    if isinstance(value, (dict, list)) and value:
        yield value
        for inner in value.values() if isinstance(value, dict) else value[:50]:
            yield from _holders(inner)


def mutated_file(subject: Any, draw: Draw) -> tuple[bytes, str]:
    """Return a forged model file, and how it was sealed: "manifest", or "digest" if the certificate was too."""
    _, parts, changes, told = subject
    forged = parts.copy()
    for _ in range(1 + draw.below(2)):
        what = draw.below(8)
        try:
            if what < 3:
                draw.of(changes)[1](forged)
            elif what == 3 and told:
                draw.of(told)[1](forged)
            elif what == 4 and forged.arrays:
                place = draw.of(list(forged.arrays))
                forged.arrays[place] = mutated_bytes(npy(np.asarray(forged.arrays[place])), draw)
            elif what == 5:
                forged.record = mutated_plain(forged.record, draw)
            elif what == 6 and forged.arrays:
                place = draw.of(list(forged.arrays))
                forged.arrays[place] = _noisy(forged.arrays[place], draw)
            else:
                forged.more[draw.of(["arrays/500.npy", "../x", "model.json", "code.py", "arrays/a.npy"])] = b"{}"
        except Exception:
            continue  # the second change does not apply to what the first one left
    sealed = "manifest"
    if draw.below(2):
        try:
            forged.seal()
            sealed = "digest"
        except Exception:
            sealed = "manifest"  # there is no model that a certificate could be about
    try:
        content = forged.content()
    except Exception:  # what no file can hold
        content = parts.content()
    return (mutated_bytes(content, draw) if draw.below(12) == 0 else content), sealed


def _noisy(array: Any, draw: Draw) -> Any:
    """Return an array with some entries drawn anew, from its own or from afar."""
    array = np.array(array)
    if not array.size:
        return array
    flat = array.ravel()
    for _ in range(1 + draw.below(5)):
        at = draw.below(len(flat))
        if flat.dtype.kind == "f":
            flat[at] = draw.of([flat[draw.below(len(flat))], draw.rng.normal(), draw.rng.normal() * 1e6, 0.0])
        elif flat.dtype.kind in "iu":
            flat[at] = draw.of([flat[draw.below(len(flat))], draw.below(100), 0])
    return flat.reshape(array.shape)


# Inputs -------------------------------------------------------------------------------------------------------


class Input(NamedTuple):
    """One input: what it is for, its bytes, and which sound input it was made from."""

    kind: str
    content: bytes
    source: int = 0
    sealed: str = ""


KINDS = ("model", "model", "model", "model", "table", "certificate", "certificate", "csv", "parquet", "encoding")


def make(number: int, seed: int, sound: Seeds) -> Input:
    """Return the input of that number."""
    draw = Draw(seed, number)
    kind = draw.of(KINDS)
    if kind in ("model", "table"):
        sources = sound.models if kind == "model" else sound.tables
        source = draw.below(len(sources))
        content, sealed = mutated_file(sources[source], draw)
        return Input(kind, content, source, sealed)
    if kind == "certificate":
        source = draw.below(len(sound.models))
        told = sound.models[source][1].certificate
        text = json.dumps(mutated_plain(told, draw) if draw.below(4) else told).encode()
        return Input(kind, mutated_bytes(text, draw) if draw.below(3) == 0 else text, source)
    if kind == "encoding":
        return Input(kind, json.dumps(mutated_plain(sound.encoding, draw)).encode())
    return Input(kind, mutated_bytes(sound.csv if kind == "csv" else sound.parquet, draw))


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
    wrong = wrong or contradiction(saved.model, subject.rows)
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
    return Outcome("accepted" if holds(certificate, _loaded(one.source, subject, path), subject) else "refused")


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


# Processes ----------------------------------------------------------------------------------------------------


def work(first: int, seed: int, sound: Seeds, folder: Path, at: Any, pipe: Any) -> None:
    """Run inputs from a number on, for as long as the process lives; `at` tells which one is under way."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    path, found, sent, number = folder / "input", [], time.monotonic(), first
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        while True:
            at.value = number
            one = make(number, seed, sound)
            try:
                outcome = run(one, sound, path)
            except BaseException as error:
                outcome = Outcome("unexpected", _place(error)[1], f"{type(error).__name__}: {str(error)[:200]}")
            found.append((number, one.kind, outcome))
            number += 1
            if time.monotonic() - sent > 0.2:
                pipe.send(found)
                found, sent = [], time.monotonic()
    except BaseException:  # of the fuzzer itself
        (folder / f"worker-{number}.txt").write_text(traceback.format_exc())
        raise


_ENDINGS = {"model": "assay", "table": "assay", "certificate": "json", "encoding": "json"}


class Tally:
    """What became of the inputs so far."""

    def __init__(self, seed: int, sound: Seeds, folder: Path):
        self.seed, self.sound, self.folder = seed, sound, folder
        self.counts: Counter[str] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.bad: dict[tuple[str, str, str], int] = {}

    def add(self, number: int, kind: str, outcome: Outcome) -> None:
        self.counts[outcome.kind] += 1
        self.by_kind[kind] += 1
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


def fuzz(minutes: float, seed: int = 0, learners: tuple[str, ...] | None = None) -> Tally:
    """Run inputs for so long, after the sound ones were made and every compiled loop was run once."""
    folder = Path(tempfile.mkdtemp(prefix="assay-fuzz-"))
    with warnings.catch_warnings(), threadpool_limits(1):  # a process whose threads hold locks cannot be forked
        warnings.simplefilter("ignore")
        sound = seeds(learners, folder)
        warm_up(sound, folder)
        tally = Tally(seed, sound, folder)
        context = multiprocessing.get_context("fork")
        began, number = time.monotonic(), 0
        end = began + 60 * minutes
        while time.monotonic() < end:
            number = _watch(context, number, tally, min(end, time.monotonic() + REPORT))
            if time.monotonic() < end:
                print(tally.text(time.monotonic() - began), flush=True)
    print(tally.text(time.monotonic() - began), flush=True)
    return tally


def warm_up(sound: Seeds, folder: Path) -> None:
    """Run every sound input once, so that workers find every compiled loop in memory."""
    for source, (subject, *_) in enumerate(sound.models):
        outcome = run(Input("model", subject.content, source, "manifest"), sound, folder / "input")
        assert outcome.kind == "accepted", outcome


def _watch(context: Any, first: int, tally: Tally, end: float) -> int:
    """Run one worker until it crashes, hangs or the time is over; return the next number."""
    at = context.Value("q", first, lock=False)
    mine, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=work, args=(first, tally.seed, tally.sound, tally.folder, at, theirs), daemon=True)
    worker.start()
    theirs.close()
    last, since, done = -1, (0.0, 0.0), first
    broken = ""
    while not broken and time.monotonic() < end:
        if mine.poll(0.05):
            try:
                for number, kind, outcome in mine.recv():
                    tally.add(number, kind, outcome)
                    done = number + 1
            except EOFError:
                broken = "crash"
        now = (time.monotonic(), _processor_seconds(worker.pid))
        if at.value != last:
            last, since = at.value, now
        elif now[1] - since[1] > LIMIT or now[0] - since[0] > 15 * LIMIT:
            broken = "hang"
    stuck = at.value
    worker.kill()
    worker.join()
    if broken:
        kind = make(stuck, tally.seed, tally.sound).kind
        code = f"exit code {worker.exitcode}" if broken == "crash" else ""
        tally.add(stuck, kind, Outcome(broken, f"input {stuck}", code))
        return stuck + 1
    return done


def _processor_seconds(pid: int | None) -> float:
    """Return the processor time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return time.monotonic()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learners", nargs="*", help="names of learners; all if left out")
    given = parser.parse_args()
    return 1 if fuzz(given.minutes, given.seed, tuple(given.learners) if given.learners else None).bad else 0


if __name__ == "__main__":
    sys.exit(main())
