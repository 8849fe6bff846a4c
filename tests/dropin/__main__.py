"""python -m tests.dropin [file ...] [--failures]: how many of scikit-learn's own tests pass with Assay's classes.

A test counts if it passes with scikit-learn alone, uses a class that both libraries have, and reads no private name;
one that passes without using ours counts neither way. Files are named as they stand in scikit-learn,
"svm/tests/test_svm.py"; without any, all of them run, the longest first, one on each processor. `--day 40` runs what CI
does on day 40 of the year: files that always run and a third of some others. What scikit-learn alone does is kept in
`.dropin_cache` for the next time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import sklearn

ROOT = Path(sklearn.__file__).parent
FILES = (
    "linear_model/tests/test_base.py",
    "linear_model/_glm/tests/test_glm.py",
    "linear_model/tests/test_coordinate_descent.py",
    "linear_model/tests/test_sparse_coordinate_descent.py",
    "linear_model/tests/test_logistic.py",
    "linear_model/tests/test_perceptron.py",
    "linear_model/tests/test_ridge.py",
    "linear_model/tests/test_sag.py",
    "linear_model/tests/test_sgd.py",
    "linear_model/tests/test_common.py",
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "svm/tests/test_bounds.py",
    "tests/test_discriminant_analysis.py",
    "tests/test_kernel_ridge.py",
    "tests/test_naive_bayes.py",
    "tree/tests/test_tree.py",
    "tree/tests/test_export.py",
    "tree/tests/test_monotonic_tree.py",
    "ensemble/tests/test_forest.py",
    "ensemble/tests/test_gradient_boosting.py",
    "ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py",
    "ensemble/_hist_gradient_boosting/tests/test_monotonic_constraints.py",
    "ensemble/tests/test_weight_boosting.py",
    "ensemble/tests/test_bagging.py",
    "ensemble/tests/test_common.py",
    "neighbors/tests/test_neighbors.py",
    "neighbors/tests/test_neighbors_pipeline.py",
    "neural_network/tests/test_mlp.py",
    "cluster/tests/test_k_means.py",
    "decomposition/tests/test_pca.py",
    "decomposition/tests/test_truncated_svd.py",
    "decomposition/tests/test_kernel_pca.py",
    "mixture/tests/test_gaussian_mixture.py",
    "mixture/tests/test_mixture.py",
    "metrics/cluster/tests/test_unsupervised.py",
    "neural_network/tests/test_rbm.py",
    "decomposition/tests/test_online_lda.py",
    "semi_supervised/tests/test_self_training.py",
    "semi_supervised/tests/test_label_propagation.py",
    "tests/test_multiclass.py",
    "tests/test_calibration.py",
    "ensemble/tests/test_base.py",
    "ensemble/tests/test_voting.py",
    "ensemble/tests/test_stacking.py",
)
ALWAYS = (
    "linear_model/tests/test_base.py",
    "linear_model/tests/test_sparse_coordinate_descent.py",
    "tests/test_naive_bayes.py",
    "tests/test_discriminant_analysis.py",
    "tests/test_kernel_ridge.py",
    "tests/test_multiclass.py",
    "tree/tests/test_export.py",
    "ensemble/tests/test_common.py",
    "ensemble/tests/test_stacking.py",
    "neighbors/tests/test_neighbors_pipeline.py",
    "semi_supervised/tests/test_label_propagation.py",
    "semi_supervised/tests/test_self_training.py",
    "decomposition/tests/test_truncated_svd.py",
)
IN_TURN = (  # each passes to 0.95 and takes seconds
    "ensemble/tests/test_base.py",
    "linear_model/tests/test_common.py",
    "linear_model/tests/test_perceptron.py",
    "mixture/tests/test_mixture.py",
    "neural_network/tests/test_rbm.py",
    "svm/tests/test_bounds.py",
)
CACHE = Path(__file__).parents[2] / ".dropin_cache"


def of_day(day: int) -> tuple[str, ...]:
    """Return the files that CI runs on a day of the year."""
    return (*ALWAYS, *IN_TURN[day % 3 :: 3])


def run(file: str, mode: str, folder: Path) -> dict[str, dict]:
    """Return what each test of a file did, by its name."""
    log = folder / f"{mode}-{file.replace('/', '.')}.jsonl"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    settings = {"ASSAY_DROPIN": mode, "ASSAY_DROPIN_LOG": str(log), "MPLBACKEND": "agg", **threads}
    settings["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-c", str(folder / "pytest.ini"), "--rootdir", str(ROOT)]
    command += ["-p", "tests.dropin.plugin", str(ROOT / file)]
    done = subprocess.run(command, env=os.environ | settings, cwd=folder, capture_output=True, text=True, check=False)
    if not log.exists():
        print(f"{file} did not run ({mode}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}", file=sys.stderr)
        return {}
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return {row["test"]: row for row in rows}


def alone(file: str, folder: Path) -> dict[str, dict]:
    """Return what each test does with scikit-learn alone, from the last time if neither test nor tool has changed."""
    parts = [(ROOT / file).read_bytes(), Path(__file__).with_name("plugin.py").read_bytes(), sys.version.encode()]
    parts += [f"{name} {version(name)}".encode() for name in ("scikit-learn", "numpy", "scipy")]
    kept = CACHE / f"{file.replace('/', '.')}-{sha256(b' '.join(parts)).hexdigest()[:16]}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    rows = run(file, "off", folder)
    CACHE.mkdir(exist_ok=True)
    kept.write_text(json.dumps(rows))
    return rows


def judge(file: str, folder: Path) -> tuple[Counter[str], list[dict]]:
    """Return how many tests of a file count and pass, and those that fail."""
    before, with_ours = alone(file, folder), run(file, "on", folder)
    counts: Counter[str] = Counter()
    failed = []
    for name, row in before.items():
        ours = with_ours.get(name, {"outcome": "failed", "made": [], "why": "not reached"})
        if row["outcome"] != "passed" or row["private"]:
            continue
        passed = ours["outcome"] == "passed"
        if ours["made"] or (row["made"] and not passed):  # a failure before ours was made is ours too
            counts["counted"] += 1
            counts["passed"] += passed
            failed += [] if passed else [ours | {"test": name}]
    return counts, failed


def judge_all(files: tuple[str, ...], jobs: int) -> Iterator[tuple[str, Counter[str], list[dict]]]:
    """Yield the judgement of each file in the order given; long files start first."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider --disable-warnings --tb=no\n")
        longest = sorted(files, key=lambda file: -(ROOT / file).stat().st_size)
        begun = {file: pool.submit(judge, file, folder) for file in longest}
        for file in files:
            yield file, *begun[file].result()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dropin", description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--day", type=int, help="the files of CI on this day of the year")
    parser.add_argument("--failures", action="store_true", help="name the tests that fail, and why")
    parser.add_argument("--least", type=float, default=0.0, help="exit code 1 if a smaller share of all passes")
    parser.add_argument("--each", type=float, default=0.0, help="exit code 1 if a smaller share of some file passes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="files at a time (default: processors)")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    low = []
    files = tuple(given.files) if given.day is None else of_day(given.day)
    for file, counts, failed in judge_all(files, given.jobs):
        total.update(counts)
        low += [file] if counts["passed"] < given.each * counts["counted"] else []
        print(_line(file, counts), flush=True)
        for row in failed if given.failures else []:
            print(f"    {row['test'].partition('::')[2]}  {' '.join(row['why'].split())[:160]}")
    print(_line("all", total))
    for file in low:
        print(f"below {given.each:.0%}: {file}")
    return int(bool(low) or total["passed"] < given.least * total["counted"])


def _line(name: str, counts: Counter[str]) -> str:
    share = f"{100 * counts['passed'] / counts['counted']:.1f} %" if counts["counted"] else "-"
    return f"{name:55s} {counts['passed']:5d} of {counts['counted']:5d}  {share}"


if __name__ == "__main__":
    sys.exit(main())
