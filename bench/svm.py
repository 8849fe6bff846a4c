"""Support vector machines beside scikit-learn (LIBSVM) and scikit-learn-intelex (oneDAL).

    python -m bench svm --case adult            one case; without --case all of them
Real data are read from ../shared/data, or from the folder in ASSAY_BENCH_DATA; a case without its data is
skipped.
The quality of a fit is its dual objective, or the accuracy of ten classes on unseen images. LIBSVM is slow: it is run
once, and left out of the largest cases. Under each table: the fastest of the peers that are as good as Assay.
"""

import argparse
import gzip
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm as libsvm
from rich.console import Console
from sklearn.datasets import load_svmlight_file, make_classification

from assay.kernels import Gaussian
from assay.svm import SVC, SVR, LinearSVC
from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)
FOLDER = Path(os.environ.get("ASSAY_BENCH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CACHES = (200, 500, 1000, 2000)
_TOUCHED = 3.0  # gigabytes before each run: more than the largest cache
_KERNEL, _LINEAR = 1e-4, 1e-6  # share of the objective by which a peer may be worse


def adult(part: str = "trn") -> tuple[np.ndarray, np.ndarray]:
    X, y = load_svmlight_file(str(FOLDER / "libsvm" / f"adult.{part}.bz2"), n_features=123)
    return X.toarray(), y


def fashion(part: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    folder = FOLDER / "fashion-mnist"
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:rows]
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)[:rows]
    return images / 255.0, labels.astype(int)


def dual_objective(model: Any, X: np.ndarray, linear: Callable[[np.ndarray], float], gamma: float) -> float:
    """Return 1/2 beta'K beta - linear(beta) in double precision, block by block."""
    support, beta = model.support_, np.ravel(model.dual_coef_)
    Z = X[support]
    square = sum(beta[k : k + 1000] @ (Gaussian(gamma)(Z[k : k + 1000], Z) @ beta) for k in range(0, len(Z), 1000))
    full = np.zeros(len(X))
    full[support] = beta
    return float(0.5 * square - linear(full))


def contestants(ours: Any, theirs: str, X: np.ndarray, y: np.ndarray, slow: bool, **params: Any) -> list[Contestant]:
    """Return Assay, oneDAL at four cache sizes and, unless `slow`, LIBSVM."""
    found = [Contestant("assay", lambda: ours(**params).fit(X, y), peer=False)]
    try:
        import sklearnex.svm as onedal

        for cache in CACHES:
            machine = getattr(onedal, theirs)
            found.append(
                Contestant(f"intelex, cache {cache}", lambda m=machine, c=cache: m(cache_size=c, **params).fit(X, y))
            )
    except ImportError:
        console.print("scikit-learn-intelex is not installed: its rows are missing (pip install 'assay[bench]').")
    if not slow:
        peer = getattr(libsvm, theirs)
        found.append(Contestant("LIBSVM", lambda: peer(cache_size=1000, **params).fit(X, y), once=True))
    return found


def judged(rows: list[dict], better: str, allowed: float) -> list[dict]:
    """Print which peer is the fastest of those whose quality is ours up to the share `allowed`; return the rows."""
    sign = 1.0 if better == "lower" else -1.0
    ours = rows[0]["quality"]
    peers = [row for row in rows[1:] if sign * (row["quality"] - ours) <= allowed * abs(ours)]
    if peers:
        best = min(peers, key=lambda row: row["seconds"])
        console.print(f"fastest peer as good as Assay: {best['name']}, {best['ratio']:.2f} times Assay's time\n")
    return rows


def classify(title: str, X: np.ndarray, y: np.ndarray, C: float, gamma: float, repeats: int, slow: bool = True) -> list:
    signs = np.where(y == y.max(), 1.0, -1.0)
    runs = contestants(SVC, "SVC", X, y, slow, C=C, gamma=gamma)
    rows = compare(
        f"{title} {X.shape}, C={C:g}, gamma={gamma:.4g}",
        runs,
        lambda model: dual_objective(model, X, lambda beta: float(signs @ beta), gamma),
        better="lower",
        repeats=repeats,
        touched=_TOUCHED,
    )
    return judged(rows, "lower", _KERNEL)


def case_adult(repeats: int) -> list:
    return classify("adult", *adult(), 1.0, 0.05, repeats)


def case_adult_hard(repeats: int) -> list:
    return classify("adult", *adult(), 100.0, 0.5, 1)


def case_made(repeats: int) -> list:
    rows: list = []
    for informative in (2, 20):
        X, y = make_classification(20_000, 50, n_informative=informative, random_state=0)
        title, gamma = f"make_classification, {informative} columns tell", 1.0 / (X.shape[1] * X.var())
        for C in (1.0, 10.0):
            rows += classify(title, X, y, C, gamma, repeats, slow=False)
    return rows


def case_narrow(repeats: int) -> list:
    X, y = make_classification(20_000, 50, n_informative=20, random_state=0)
    return classify("make_classification, narrow kernel", X, y, 10.0, 0.02, repeats, slow=False)


def case_few(repeats: int) -> list:
    random = np.random.default_rng(0)
    X = random.normal(size=(50_000, 22))
    y = (np.abs(X[:, 0]) + X[:, 1] > 1.2).astype(int)
    return classify("few support vectors", X, y, 10.0, 0.05, repeats, slow=False)


def case_fashion(repeats: int) -> list:
    X, y = fashion("train", 20_000)
    Xt, yt = fashion("t10k", 2_000)
    runs = contestants(SVC, "SVC", X, y, True, C=10.0, gamma="scale")
    score = lambda model: model.score(Xt, yt)  # noqa: E731
    return compare("Fashion-MNIST, 10 classes, C=10", runs[:2], score, better="higher", repeats=1)


def case_predict(repeats: int) -> list:
    X, y = adult()
    Xt, yt = adult("tst")
    fitted = {one.name: one.run() for one in contestants(SVC, "SVC", X, y, True, C=1.0, gamma=0.05)[:2]}
    runs = [Contestant(name, lambda m=model: m.predict(Xt), peer=name != "assay") for name, model in fitted.items()]
    return compare("predict, adult's test rows", runs, lambda p: np.mean(p == yt), better="higher", repeats=repeats)


def case_regress(repeats: int) -> list:
    random = np.random.default_rng(0)
    X = random.normal(size=(10_000, 10))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * random.normal(size=10_000)
    linear = lambda beta: float(y @ beta - 0.1 * np.abs(beta).sum())  # noqa: E731
    runs = contestants(SVR, "SVR", X, y, False, C=1.0, gamma=0.1, epsilon=0.1)
    judge = lambda model: dual_objective(model, X, linear, 0.1)  # noqa: E731
    return judged(compare(f"SVR {X.shape}", runs, judge, better="lower", repeats=repeats), "lower", _KERNEL)


def linear_objective(model: Any, X: Any, y: np.ndarray, loss: str) -> float:
    """Return 1/2 (|w|^2 + b^2) + sum of losses, C = 1 and a constant column of 1."""
    w, b = model.coef_[0], model.intercept_[0]
    beyond = np.maximum(1 - (2 * y - 1) * (X @ w + b), 0.0)
    return float(0.5 * (w @ w + b * b) + (beyond if loss == "hinge" else beyond**2).sum())


def linear(title: str, X: Any, y: np.ndarray, loss: str, peers: list[tuple[bool, float, int]], repeats: int) -> list:
    """Compare LinearSVC with LIBLINEAR at (dual, tol, max_iter); an objective that is not ours does not count."""
    runs = [Contestant("assay", lambda: LinearSVC(loss=loss).fit(X, y), peer=False)]
    for dual, tol, most in peers:
        params = {"loss": loss, "dual": dual, "tol": tol, "max_iter": most, "random_state": 0}
        run = lambda params=params: libsvm.LinearSVC(**params).fit(X, y)  # noqa: E731
        runs.append(Contestant(f"LIBLINEAR, dual={dual}, tol={tol:g}", run))
    judge = lambda model: linear_objective(model, X, y, loss)  # noqa: E731
    rows = compare(f"LinearSVC, {title} {X.shape}, {loss}", runs, judge, better="lower", repeats=repeats)
    return judged(rows, "lower", _LINEAR)


def text(n: int = 50_000, d: int = 50_000, words: int = 50) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return documents of words drawn with Zipf's frequencies, as unit rows of tf-idf, and labels of a noisy plane."""
    random = np.random.default_rng(0)
    frequency = 1.0 / np.arange(3, d + 3)
    drawn = random.choice(d, size=n * words, p=frequency / frequency.sum())
    X = sp.csr_matrix((np.ones(n * words), (np.repeat(np.arange(n), words), drawn)), shape=(n, d))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=d)
    X.data = (1 + np.log(X.data)) * (1 + np.log((n + 1) / (documents + 1)))[X.indices]
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1)).A1) @ X)
    score = X @ (random.normal(size=d) * (random.random(d) < 0.2))
    return X, (score + 0.5 * score.std() * random.normal(size=n) > 0).astype(int)


def case_linear(repeats: int) -> list:
    random = np.random.default_rng(0)
    X = random.normal(size=(200_000, 28))
    y = (X @ random.normal(size=28) / 28**0.5 + 0.7 * random.normal(size=200_000) > 0.2).astype(int)
    smooth = linear("dense", X, y, "squared_hinge", [(False, 1e-2, 1000), (False, 1e-4, 1000)], repeats)
    return smooth + linear("dense", X, y, "hinge", [(True, 1e-4, 200)], 1)


def case_linear_sparse(repeats: int) -> list:
    X, y = text()
    peers = [(True, 1e-2, 1000), (True, 1e-4, 1000), (False, 1e-2, 1000), (False, 1e-4, 1000)]
    smooth = linear("text", X, y, "squared_hinge", peers, repeats)
    return smooth + linear("text", X, y, "hinge", [(True, tol, 10_000) for tol in (1e-4, 1e-5, 1e-6)], repeats)


CASES = {name.removeprefix("case_"): run for name, run in list(globals().items()) if name.startswith("case_")}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench svm", description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES), help="one case; all of them without it")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(4.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.case in (None, name):
            try:
                rows += run(options.repeats)
            except FileNotFoundError as error:
                console.print(f"{name}: skipped, no data: {error}")
    console.print(f"written to {save('svm' if options.case is None else f'svm-{options.case}', rows)}")
