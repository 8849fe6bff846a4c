"""Trees, forests and boosting beside their peers: times in one run, with the quality reached beside each time.

    python bench/trees.py boosting | predict | tree | forest | adaboost

Peers that are not installed are left out. Every contestant fits once on a small sample first, so that nobody pays for
compilation or for memory that was never touched; then each fits in turn, `REPEATS` times, and the median counts.
"""

import statistics
import sys
import time
import warnings

import numpy as np

REPEATS = 2


def table(n_train, n_test, d=28, seed=0):
    """Return training and test rows of a made-up two-class problem with interactions, ties and noise."""
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    X = rng.normal(size=(n, d))
    X[:, 5:10] = np.exp(0.7 * X[:, 5:10])
    X[:, 20:] = np.round(4 * X[:, 20:]) / 4
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * np.abs(X[:, 3]) * X[:, 4] + np.log1p(X[:, 5]) * X[:, 6]
    score += 0.7 * (X[:, 7] > 1.2) + 0.15 * X[:, 10:20].sum(axis=1) + 0.2 * X[:, 21] - 1.2
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def race(contestants, quality, unit):
    """Run each contestant `REPEATS` times in turn; print median time, ratio to the first, and the quality of its result."""
    for run in contestants.values():
        run(True)
    times = {name: [] for name in contestants}
    results = {}
    for _ in range(REPEATS):
        for name, run in contestants.items():
            begin = time.perf_counter()
            results[name] = run(False)
            times[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in times.items()}
    own = medians[next(iter(medians))]
    for name, seconds in medians.items():
        spread = max(times[name]) - min(times[name])
        print(f"  {name:28s} {seconds:8.3f} s (spread {spread:.2f})  {seconds / own:6.2f}x  {unit} {quality(results[name]):.5f}")


def fitter(make, X, y):
    """Return a function that fits a new model, to the first thousand rows or to all."""
    return lambda small: make().fit(X[:1000], y[:1000]) if small else make().fit(X, y)


def log_loss_on(X, y):
    def quality(model):
        p = np.clip(model.predict_proba(X)[:, 1], 1e-15, 1 - 1e-15)
        return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))

    return quality


def boosting_peers():
    from assay.ensemble import GradientBoostingClassifier

    makes = {"assay": lambda: GradientBoostingClassifier(random_state=0)}
    try:
        import lightgbm

        makes["lightgbm"] = lambda: lightgbm.LGBMClassifier(n_jobs=2, verbose=-1, max_bin=255)
    except ImportError:
        pass
    try:
        import xgboost

        makes["xgboost"] = lambda: xgboost.XGBClassifier(
            n_estimators=100, learning_rate=0.1, max_leaves=31, max_depth=0, grow_policy="lossguide", tree_method="hist",
            max_bin=255, n_jobs=2,
        )  # fmt: skip
    except ImportError:
        pass
    from sklearn.ensemble import HistGradientBoostingClassifier

    makes["scikit-learn (histogram)"] = lambda: HistGradientBoostingClassifier(early_stopping=False, max_iter=100)
    return makes


def boosting():
    """500,000 x 28, 100 trees of 31 leaves, 255 bins."""
    X, y, Xt, yt = table(500_000, 100_000)
    race({name: fitter(make, X, y) for name, make in boosting_peers().items()}, log_loss_on(Xt, yt), "test log loss")


def predict():
    """Probabilities of 500,000 rows by 100 trees of 31 leaves."""
    X, y, Xt, yt = table(50_000, 500_000)
    models = {name: make().fit(X, y) for name, make in boosting_peers().items()}
    runs = {
        name: (lambda small, model=model: model.predict_proba(Xt[:1000] if small else Xt)) for name, model in models.items()
    }
    race(runs, lambda p: float(-np.mean(np.log(np.clip(p[np.arange(len(yt)), yt], 1e-15, 1)))), "test log loss")


RACES = {"boosting": boosting, "predict": predict}

if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    touched = np.ones(2**29)
    del touched
    for name in sys.argv[1:] or RACES:
        print(f"{name}: {RACES[name].__doc__}")
        RACES[name]()
