"""Combined learners: what members cost, output codes beside one against one, SMOTE beside moved thresholds, and what
visual words and rows without labels are worth (`bench features`). `--only table` prints all but the times of members.

Members: 20 logistic regressions on 100,000 x 28, one after another, as a committee on one thread and on two, beside
what two threads are worth on this machine. Codes: the letters of LetterRecognition with a linear learner. Imbalance:
real tables with a rare class, judged by balanced error and by calibration (Brier score of the rare class, and the
distance of the mean probability from its share). Real data are read from ../shared/data, or from the folder in
ASSAY_BENCH_DATA; a part without its data is left out.
"""

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from assay.ensemble import VotingClassifier
from assay.imbalance import CostClassifier, EasyEnsembleClassifier, OverSampler, ThresholdClassifier, UnderSampler
from assay.linear_model import LogisticRegression
from assay.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from assay.scan import thread_map
from bench import features
from bench.data import classification
from bench.harness import save

TABLES = Path(os.environ.get("ASSAY_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "tables"
MEMBERS, ROWS, COLUMNS = 20, 100_000, 28
PARTS = ("members", "codes", "pictures", "labels", "resampling")


def seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def members(repeats: int) -> dict[str, Any]:
    """Time the members alone and together, in turn."""
    X, y = classification(ROWS, COLUMNS)
    named = [(f"C{k}", LogisticRegression(C=0.05 * 1.3**k)) for k in range(MEMBERS)]

    def alone() -> None:
        for _, one in named:
            clone(one).set_params(n_jobs=1).fit(X, y)

    runs = {
        "alone, one thread": alone,
        "committee, one thread": lambda: VotingClassifier(named, n_jobs=1).fit(X, y),
        "committee, two threads": lambda: VotingClassifier(named, n_jobs=2).fit(X, y),
        "sorting, one thread": lambda: thread_map(np.sort, [X.ravel()[:2_000_000]] * 8, n_jobs=1),
        "sorting, two threads": lambda: thread_map(np.sort, [X.ravel()[:2_000_000]] * 8, n_jobs=2),
    }
    LogisticRegression(n_jobs=1).fit(X[:1000], y[:1000])
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(seconds(run))
    found = {name: float(np.median(each)) for name, each in times.items()}
    first = found["alone, one thread"]
    print(f"{MEMBERS} logistic regressions on {ROWS:,} x {COLUMNS}")
    for name, each in list(found.items())[:3]:
        print(f"  {name:24s} {each:7.2f} s   {each / first:.2f} of the sum of single fits")
    faster = found["committee, one thread"] / found["committee, two threads"]
    at_best = found["sorting, one thread"] / found["sorting, two threads"]
    print(
        f"  two threads are {faster:.2f} times as fast as one; for sorting, which shares nothing, {at_best:.2f} times\n"
    )
    return found


def letters() -> tuple[np.ndarray, np.ndarray] | None:
    path = TABLES / "LetterRecognition.csv"
    if not path.exists():
        return None
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    head, body = rows[0], rows[1:]
    target = next(j for j, name in enumerate(head) if body[0][j].isalpha())
    X = np.array([[float(v) for j, v in enumerate(row) if j != target] for row in body])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.array([row[target] for row in body])


def codes(rows: int) -> list[dict[str, Any]]:
    """Compare ways to tell 26 letters apart with one linear learner."""
    table = letters()
    if table is None:
        print("LetterRecognition.csv is not there; codes are left out.\n")
        return []
    X, y = (part[:rows] for part in table)
    split = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    base = LogisticRegression(C=10.0)
    listed = {
        "one against one": OneVsOneClassifier(base),
        "one against rest": OneVsRestClassifier(base),
        "bch, hamming": OutputCodeClassifier(base, code="bch", code_size=5),
        "bch, loss": OutputCodeClassifier(base, code="bch", code_size=5, decoding="loss"),
        "random, loss": OutputCodeClassifier(base, code_size=20, decoding="loss", random_state=0),
        "ternary, hamming": OutputCodeClassifier(base, code="ternary", code_size=20, random_state=0),
        "ternary, loss": OutputCodeClassifier(base, code="ternary", code_size=20, decoding="loss", random_state=0),
        "pairs, loss": OutputCodeClassifier(base, code="pairs", decoding="loss"),
    }
    found = []
    print(f"Letters, {len(split[0]):,} rows learnt, {len(split[1]):,} tested, logistic regression for two classes")
    for name, model in listed.items():
        took = seconds(lambda model=model: model.fit(split[0], split[2]))
        right = model.score(split[1], split[3])
        distance = getattr(model, "distance_", None)
        more = "" if distance is None else f"   distance {distance}, corrects {model.corrected_}"
        print(
            f"  {name:18s} accuracy {right:.4f}   {len(model.estimators_):4d} members   {took:6.1f} s{more}", flush=True
        )
        found.append({"name": name, "accuracy": right, "members": len(model.estimators_), "seconds": took})
    print()
    return found


def imbalanced(rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield tables with a rare class: one letter against the others, and a simulation with known probabilities."""
    table = letters()
    if table is not None:
        X, y = table
        for letter in "HZ":
            yield f"letter {letter}", X[:rows], (y[:rows] == letter).astype(int)
    rng = np.random.default_rng(0)
    y = (rng.random(rows) < 0.03).astype(int)
    yield "two Gaussians, 3 %", rng.normal(size=(rows, 5)) + 0.6 * y[:, None], y


def resampling(rows: int) -> list[dict[str, Any]]:
    """Compare resampling with moved thresholds by balanced error and calibration."""
    found = []
    for name, X, y in imbalanced(rows):
        A, B, a, b = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
        base = LogisticRegression()
        share = a.mean()
        print(f"{name}: {len(a):,} rows learnt, {share:.1%} of the rare class")
        for way, p, said in _ways(base, A, a, B, share):
            error, brier = 1 - balanced_accuracy_score(b, said), float(np.mean((p - b) ** 2))
            off = abs(float(p.mean()) - float(b.mean()))
            print(
                f"  {way:34s} balanced error {error:.4f}   Brier {brier:.4f}   mean probability off by {off:.4f}",
                flush=True,
            )
            found.append({"table": name, "way": way, "balanced error": error, "Brier": brier, "off": off})
        print()
    return found


def _ways(base: Any, A: Any, a: Any, B: Any, share: float) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield a name, the probability of the rare class on new rows, and what is decided."""
    plain = clone(base).fit(A, a).predict_proba(B)[:, 1]
    yield "as it is", plain, (plain > 0.5).astype(int)
    moved = ThresholdClassifier(base).fit(A, a)
    yield "threshold moved, p as it is", plain, moved.predict(B)
    cost = CostClassifier(base, [[0, share], [1 - share, 0]], choose="holdout", random_state=0).fit(A, a)
    yield "threshold chosen on rows kept out", cost.predict_proba(B)[:, 1], cost.predict(B)
    samplers = {"under-sampled": UnderSampler, "repeated": OverSampler}
    listed = {name: kind(random_state=0, warn=False) for name, kind in samplers.items()}
    listed["SMOTE"] = OverSampler("interpolate", random_state=0, warn=False)
    for name, sampler in listed.items():
        p = clone(base).fit(*sampler.fit_resample(A, a)).predict_proba(B)
        yield name, p[:, 1], (p[:, 1] > 0.5).astype(int)
        yield f"{name}, prior corrected", sampler.correct(p)[:, 1], (p[:, 1] > 0.5).astype(int)
    easy = EasyEnsembleClassifier(base, random_state=0).fit(A, a)
    yield "EasyEnsemble, prior corrected", easy.corrected_proba(B)[:, 1], easy.predict(B)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench combine", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the tables")
    parser.add_argument("--only", choices=("members", "table", "codes", "pictures", "labels", "resampling"))
    options = parser.parse_args(arguments)
    wanted = {None: PARTS, "table": PARTS[1:]}.get(options.only, (options.only,))
    results: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "members" in wanted:
            results.append(members(options.repeats))
        if "codes" in wanted:
            results += codes(options.rows)
        for part in (one for one in ("pictures", "labels") if one in wanted):
            features.main(["--only", part])
        if "resampling" in wanted:
            results += resampling(options.rows)
    save(f"combine-{options.only or 'all'}", results)
