"""Tables and studies that the tests of folds share."""

import numpy as np

import assay

DELTA = 0.05


def columns(n: int, seed: int, noise: float = 0.2) -> dict[str, list]:
    """Two columns of numbers, one of levels with gaps; y is "b" where a > 0, turned over with a chance of `noise`."""
    rng = np.random.default_rng(seed)
    a, flip = rng.normal(size=n), rng.random(n) < noise
    level = np.where(rng.random(n) < 0.1, None, np.array(["u", "v", "w"], dtype=object)[rng.integers(0, 3, n)])
    y = np.array(["a", "b"], dtype=object)[((a > 0) ^ flip).astype(int)]
    return {"a": a.tolist(), "b": rng.normal(size=n).tolist(), "level": level.tolist(), "y": y.tolist()}


def numbers(n: int, seed: int) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return {"a": a.tolist(), "b": rng.normal(size=n).tolist(), "y": (a + 0.3 * rng.standard_t(3, n)).tolist()}


def learnt(table, **more):
    given = {"learners": ["LogisticRegression"], "trials": 1, "workers": 0, "certify": "folds", **more}
    return assay.learn(table, "y", **given)


def judged(study):
    return assay.verify(study.certificate, study.model, study.raw)
