"""Is the last sentence of a study true as often as it says? The whole main job, where the truth is known.

    python -m bench validity [--worlds a,b] [--studies 200] [--seed 0] [--jobs 2] [--keep file] [--fresh 20000]

A study: a table of a world (`bench.table_worlds`) is written as CSV, `assay.learn` reads it, the model is saved, and
`assay verify` judges it. Then the model predicts new rows of the same world, and every limit that is printed or
certified is compared with what they say. A limit counts as violated if the truth is beyond it by more than four
standard errors of the new rows; where it is beyond by less, five times as many are drawn.

A limit may fail in a share delta of the studies. p is the chance that as many or more fail if each did with exactly
that probability (binomial; of unequal deltas, Poisson-binomial). With `--keep` each study is added to a file of JSON
lines, from which the same command goes on; files of several runs may be joined.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from bench.beside import more
from bench.fresh import Estimate, Fresh, write
from bench.table_worlds import TARGET, WORLDS, World
from bench.truth import Limit, of_certificate, of_finalists, of_sentences

FRESH = 20_000
MORE = 5
BEYOND = 4
FLAG = 1e-3
_TOGETHER = ("claim", "sentence", "finalist")

Record = dict[str, Any]


def study(name: str, number: int, seed: int = 0, fresh: int = FRESH) -> Record:
    """Return what came of one study of a world; the same for the same numbers."""
    os.environ["ASSAY_LOOKS"] = "off"  # tables of a world are new ones each time
    world, start = WORLDS[name], time.process_time()
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    record: Record = {"world": name, "study": number, "seed": seed}
    with tempfile.TemporaryDirectory(prefix="assay-validity-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = Path(folder) / "table.csv"
        columns = world.table(rng)
        write(columns, table)
        try:
            found = assay.learn(world.given(table), TARGET, workers=0, **{"seed": number, **world.options})
        except ValueError as error:
            return record | {"failed": str(error), "seconds": time.process_time() - start}
        record |= {"chosen": found.chosen.name, "verified": _verified(found, table)}
        try:
            record |= _judged(world, found, columns[TARGET], table, rng, fresh)
        except ValueError as error:  # a file of new rows that `predict` does not read
            record |= {"refused": str(error)}
    return record | {"seconds": round(time.process_time() - start, 3)}


def _verified(found: Any, table: Path) -> str:
    """Return what `assay verify` says of the saved model: "" if it holds."""
    file = table.with_name("model.assay")
    found.save(file)
    result = CliRunner().invoke(app, ["verify", str(file), str(table)])
    return "" if result.exit_code == 0 else " ".join(result.output.split())[:300]


def _judged(world: World, found: Any, y: np.ndarray, table: Path, rng: np.random.Generator, fresh: int) -> Record:
    """Return for each name of limits: delta, whether one is violated, and limit and truth where it is tightest."""
    parts = [of_certificate(found, y), of_sentences(found, y), of_finalists(found, y), more(world, found, table, rng)]
    limits = [limit for own, _ in parts for limit in own]
    unknown = [name for _, missed in parts for name in missed]
    rows = Fresh(world, rng, fresh, table.with_name("fresh.csv"))
    truths = [limit.truth(rows) for limit in limits]
    close = [i for i, limit in enumerate(limits) if _state(limit, truths[i]) == "close"]
    if close:
        rows = Fresh(world, rng, MORE * fresh, table.with_name("fresh.csv"))
        for i in close:
            truths[i] = limits[i].truth(rows)
    judged: dict[str, list[Any]] = {}
    for limit, truth in zip(limits, truths, strict=True):
        violated, margin = _state(limit, truth) == "violated", _beyond(limit, truth)
        known = judged.get(limit.name)
        if known is None or (violated, margin) > (known[1], _margin(known)):
            judged[limit.name] = [limit.delta, violated, limit.value, truth.value, limit.direction]
    for kind in _TOGETHER:
        own = [line for name, line in judged.items() if name.startswith(f"{kind} ")]
        if own:
            total = 1 - float(found.confidence) if kind == "sentence" else float(found.certificate.delta_total)
            judged[f"{kind}s, any"] = [total, any(line[1] for line in own), None, None, ""]
    return {"limits": judged, "not judged": sorted(set(unknown))}


def _beyond(limit: Limit, truth: Estimate) -> float:
    """Return by how much the truth is on the wrong side of a limit; negative if it is on the right one."""
    return truth.value - limit.value if limit.direction == "upper" else limit.value - truth.value


def _margin(line: list[Any]) -> float:
    return line[3] - line[2] if line[4] == "upper" else line[2] - line[3]


def _state(limit: Limit, truth: Estimate) -> str:
    beyond = _beyond(limit, truth) - 1e-9
    return "holds" if beyond <= 0 else "violated" if beyond > BEYOND * truth.error else "close"


# Many studies


class Line(NamedTuple):
    """What happened to the limits of one name in one world."""

    world: str
    name: str
    deltas: list[float]
    violations: int
    limit: float
    truth: float

    @property
    def p(self) -> float:
        return chance_of(self.violations, self.deltas)


def chance_of(violations: int, deltas: Iterable[float]) -> float:
    """Return the chance that so many or more of independent events happen.

    >>> round(chance_of(2, [0.5, 0.5, 0.5]), 3)
    0.5
    """
    exactly = np.ones(1)
    for delta in deltas:
        exactly = np.convolve(exactly, [1 - delta, delta])
    return float(min(1.0, exactly[violations:].sum()))


def lines_of(records: Iterable[Record]) -> list[Line]:
    """Return one line for each world and name of limits."""
    found: dict[tuple[str, str], list[list[Any]]] = defaultdict(list)
    for record in records:
        for name, judged in record.get("limits", {}).items():
            found[record["world"], name].append(judged)
    return [_line(world, name, lines) for (world, name), lines in found.items()]


def _line(world: str, name: str, lines: list[list[Any]]) -> Line:
    there = [line for line in lines if line[2] is not None]
    limit, truth = (float(np.mean([line[i] for line in there])) if there else float("nan") for i in (2, 3))
    return Line(world, name, [line[0] for line in lines], sum(line[1] for line in lines), limit, truth)


def pooled(lines: list[Line]) -> list[Line]:
    """Return the limits of each name over all worlds."""
    names: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        names[line.name].append(line)
    return [_together(name, own) for name, own in sorted(names.items())]


def _together(name: str, own: list[Line]) -> Line:
    deltas, nan = [delta for one in own for delta in one.deltas], float("nan")
    return Line(f"{len(own)} worlds", name, deltas, sum(one.violations for one in own), nan, nan)


def show(lines: list[Line], title: str) -> Table:
    table = Table("world", "limit", "delta", "judged", "violated", "mean limit", "mean truth", "p", "", title=title)
    for one in lines:
        deltas = sorted(set(one.deltas))
        delta = f"{deltas[-1]:.3g}" if len(deltas) == 1 else f"to {deltas[-1]:.3g}"
        means = ["" if value != value else f"{value:.4g}" for value in (one.limit, one.truth)]
        flag = "[bold red]FAILS[/]" if one.p < FLAG else ""
        seen = f"{one.violations} ({one.violations / len(one.deltas):.1%})"
        table.add_row(one.world, escape(one.name), delta, str(len(one.deltas)), seen, *means, f"{one.p:.2g}", flag)
    return table


def report(records: list[Record], console: Console) -> bool:
    """Print what was found; return whether every limit fails as rarely as it says, and every model is verified."""
    lines = lines_of(records)
    console.print(show(lines, "Every limit"))
    console.print(show(pooled(lines), "Over all worlds"))
    refused = [one for one in records if one.get("verified")]
    failed = [one for one in records if "failed" in one]
    unread = [one for one in records if "refused" in one]
    counted = (("not verified", refused, "verified"), ("without a model", failed, "failed"),
               ("new rows refused", unread, "refused"))  # fmt: skip
    for what, own, key in counted:
        for (name, why), count in Counter((one["world"], one[key]) for one in own).most_common(20):
            console.print(f"{what}: {count} of {name}: {escape(why)}", highlight=False)
    for name, count in Counter(name for one in records for name in one.get("not judged", ())).most_common():
        console.print(f"not judged: {escape(name)} ({count} studies)", highlight=False)
    least = min((one.p for one in lines), default=1.0)
    together = [one for one in pooled(lines) if one.name.endswith(", any")]
    flagged = [one for one in lines if one.p < FLAG]
    console.print(
        f"{len(records)} studies of {len({one['world'] for one in records})} worlds in "
        f"{sum(one['seconds'] for one in records):.0f} s; {len(lines)} limits judged, {len(flagged)} with p < {FLAG:g} "
        f"({', '.join(sorted({one.world for one in flagged})) or 'none'}); least p {least:.2g}, of all "
        f"{min(1.0, least * max(1, len(lines))):.2g}; not verified {len(refused)}, without a model {len(failed)}, "
        f"new rows refused {len(unread)}.",
        highlight=False,
    )
    holds = least * len(lines) >= FLAG and all(one.p >= FLAG for one in together)
    return holds and not refused


def kept(path: Path | None) -> list[Record]:
    """Return the studies in a file, each once."""
    if path is None or not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return list({_key(record): record for record in records}.values())


def _key(record: Record) -> tuple[str, int, int]:
    return record["world"], record["study"], record["seed"]


def run(asked: list[tuple[str, int, int, int]], jobs: int) -> Iterator[Record]:
    """Yield the studies as they are done."""
    if jobs <= 1:
        yield from (study(*one) for one in asked)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(study, *zip(*asked, strict=True), chunksize=4)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench validity", description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", default="", help="names with commas; all if left out")
    parser.add_argument("--studies", type=int, default=200, help="studies of each world")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--fresh", type=int, default=FRESH, help="new rows that tell the truth")
    parser.add_argument("--keep", type=Path, help="a file of JSON lines: studies in it are not done again")
    parser.add_argument("--list", action="store_true", help="print the worlds and stop")
    options = parser.parse_args(arguments)
    names = [name for name in options.worlds.split(",") if name] or list(WORLDS)
    strange = [name for name in names if name not in WORLDS]
    if strange:
        sys.exit(f"there is no world {strange[0]!r}; choose from {', '.join(WORLDS)}")
    if options.list:
        for name in names:
            print(f"{name}: {WORLDS[name].says}")
        return
    records = [record for record in kept(options.keep) if record["world"] in names]
    done = {_key(record) for record in records}
    asked = [(name, number, options.seed, options.fresh) for name in names for number in range(options.studies)]
    asked = [one for one in asked if one[:3] not in done]
    for count, record in enumerate(run(asked, options.jobs) if asked else ()):
        records.append(record)
        if options.keep is not None:
            with options.keep.open("a", encoding="utf-8") as file:
                print(json.dumps(record), file=file)
        if (count + 1) % 50 == 0:
            print(f"{count + 1} of {len(asked)} studies", file=sys.stderr)
    sys.exit(0 if report(records, Console(width=160)) else 1)
