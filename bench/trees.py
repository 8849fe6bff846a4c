"""Trees, forests and boosting beside their peers: times in one run, with the quality reached beside each
time.

    python -m bench trees [boosting] [predict] [tree] [forest] [adaboost] [repeats]

Peers that are not installed are left out. Every contestant fits once on a small sample first, so that nobody
pays for
compilation or for memory that was never touched; then each fits in turn, `REPEATS` times, and the median
counts.
"""

import statistics
import sys
import time
import warnings

import numpy as np

REPEATS = 3


def table(n_train, n_test, d=28, seed=0):
    """Return training and test rows of a made-up two-class problem with interactions, ties and noise."""
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    X = rng.normal(size=(n, d))
    X[:, 5:10] = np.exp(0.7 * X[:, 5:10])
    X[:, 20:] = np.round(4 * X[:, 20:]) / 4
    score = (
        (X[:, 0] + 0.7) * (X[:, 1] + 0.7)
        + np.sin(2 * X[:, 2])
        + 0.5 * np.abs(X[:, 3]) * X[:, 4]
        + np.log1p(X[:, 5]) * X[:, 6]
    )
    score += 0.7 * (X[:, 7] > 1.2) + 0.15 * X[:, 10:20].sum(axis=1) + 0.2 * X[:, 21] - 1.2
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def race(contestants, quality, unit):
    """Run each contestant `REPEATS` times in turn; print median time, ratio to the first, and the quality of
    its result."""
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
        spread, reached = max(times[name]) - min(times[name]), quality(results[name])
        print(f"  {name:24s} {seconds:8.3f} s (spread {spread:.2f}) {seconds / own:6.2f}x  {unit} {reached:.5f}")


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
            n_estimators=100,
            learning_rate=0.1,
            max_leaves=31,
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            max_bin=255,
            n_jobs=2,
        )
    except ImportError:
        pass
    from sklearn.ensemble import HistGradientBoostingClassifier

    makes["scikit-learn (histogram)"] = lambda: HistGradientBoostingClassifier(early_stopping=False, max_iter=100)
    return makes


def boosting():
    """500,000 x 28, 100 trees of 31 leaves, 255 bins."""
    X, y, Xt, yt = table(500_000, 100_000)
    race(
        {name: fitter(make, X, y) for name, make in boosting_peers().items()},
        log_loss_on(Xt, yt),
        "test log loss",
    )


def predict():
    """Probabilities of 500,000 rows by 100 trees of 31 leaves."""
    X, y, Xt, yt = table(50_000, 500_000)
    models = {name: make().fit(X, y) for name, make in boosting_peers().items()}
    runs = {
        name: (lambda small, model=model: model.predict_proba(Xt[:1000] if small else Xt))
        for name, model in models.items()
    }
    race(runs, lambda p: float(-np.mean(np.log(np.clip(p[np.arange(len(yt)), yt], 1e-15, 1)))), "test log loss")


def accuracy_on(X, y):
    return lambda model: float(np.mean(model.predict(X) == y))


def tree():
    """A single exact tree, 100,000 x 28."""
    from sklearn.tree import DecisionTreeClassifier as Peer

    from assay.tree import DecisionTreeClassifier

    X, y, Xt, yt = table(100_000, 50_000)
    makes = {"assay": DecisionTreeClassifier, "scikit-learn": lambda: Peer(random_state=0)}
    race({name: fitter(make, X, y) for name, make in makes.items()}, accuracy_on(Xt, yt), "test accuracy")


def forest():
    """100 trees, 50,000 x 28."""
    from sklearn.ensemble import RandomForestClassifier as Peer

    from assay.ensemble import RandomForestClassifier

    X, y, Xt, yt = table(50_000, 50_000)
    makes = {
        "assay": lambda: RandomForestClassifier(random_state=0),
        "scikit-learn": lambda: Peer(n_jobs=2, random_state=0),
    }
    try:
        from sklearnex.ensemble import RandomForestClassifier as Intel

        makes["scikit-learn-intelex"] = lambda: Intel(n_jobs=2, random_state=0)
    except ImportError:
        pass
    race({name: fitter(make, X, y) for name, make in makes.items()}, accuracy_on(Xt, yt), "test accuracy")


def adaboost():
    """100 stumps, 50,000 x 28."""
    from sklearn.ensemble import AdaBoostClassifier as Peer

    from assay.ensemble import AdaBoostClassifier

    X, y, Xt, yt = table(50_000, 50_000)
    makes = {
        "assay": lambda: AdaBoostClassifier(n_estimators=100),
        "scikit-learn": lambda: Peer(n_estimators=100, random_state=0),
    }
    race({name: fitter(make, X, y) for name, make in makes.items()}, accuracy_on(Xt, yt), "test accuracy")


RACES = {"boosting": boosting, "predict": predict, "tree": tree, "forest": forest, "adaboost": adaboost}


def main(arguments):
    """Run the named races, or all; a number sets how often each contestant runs."""
    global REPEATS
    for word in arguments:
        if word.isdigit():
            REPEATS = int(word)
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    touched = np.ones(2**29)
    del touched
    for name in [word for word in arguments if word in RACES] or RACES:
        print(f"{name}: {RACES[name].__doc__}", flush=True)
        RACES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
