"""Certificates of fitted learners: they hold on whatever data, bound the true excess, bear no alteration."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import assay
from assay.guarantees.seal import RepeatedUseWarning
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from tests.linear_model import rational

# Random problems --------------------------------------------------------------------------------------------

KINDS = [
    "normal", "integers", "scaled", "offset", "duplicates", "constant", "tiny", "large", "one-hot", "heavy",
    "cancelling",
]  # fmt: skip


def table(rng, kind):
    n, d = int(rng.choice([1, 2, 3, 5, 8, 20, 60, 200])), int(rng.choice([1, 2, 3, 6, 15]))
    X = rng.normal(size=(n, d))
    if kind == "integers":
        X = rng.integers(-3, 4, size=(n, d)).astype(float)
    elif kind == "scaled":
        X *= 10.0 ** rng.uniform(-4, 4, d)
    elif kind == "offset":
        X += 10.0 ** rng.uniform(0, 8, d)
    elif kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "constant":
        X[:, 0] = rng.normal() * 10.0 ** rng.integers(-3, 4)
    elif kind == "tiny":
        X *= 1e-100
    elif kind == "large":
        X *= 1e12
    elif kind == "one-hot":
        X = np.eye(d)[rng.integers(0, d, n)]
    elif kind == "heavy":
        X = 10 * rng.standard_cauchy((n, d))
    elif kind == "cancelling" and d > 1:
        X[:, 1] = -X[:, 0] * (1 + 2.0**-52 * rng.integers(0, 3, n))
    return X


def score(rng, X):
    values = (X - X.mean(axis=0)) @ rng.normal(size=X.shape[1])
    return values / (np.std(values) or 1.0) if np.ptp(values) > 1e-9 * np.abs(X).max() else np.zeros(len(X))


def regression(rng, kind):
    X = table(rng, kind)
    y = score(rng, X) + rng.choice([0.0, 1e-6, 1.0]) * rng.normal(size=len(X))
    y = 10.0 ** rng.choice([-3, 0, 3]) * y + rng.choice([0.0, 1.0, 1e5])
    if rng.random() < 0.25:
        y = np.column_stack([y, rng.normal(size=len(X))])
    intercept = bool(rng.integers(2))
    if rng.random() < 0.5:
        return X, y, LinearRegression(fit_intercept=intercept)
    return X, y, Ridge(alpha=10.0 ** rng.uniform(-4, 6), fit_intercept=intercept)


def classification(rng, kind):
    X = table(rng, kind)
    classes = int(rng.choice([2, 2, 3, 5]))
    noise = rng.choice([0.0, 0.3, 2.0]) * rng.normal(size=len(X))
    y = np.digitize(score(rng, X) + noise, np.linspace(-1, 1, classes - 1))
    y = np.array(list("abcde"))[y] if rng.random() < 0.3 else y
    intercept = bool(rng.integers(2))
    if rng.random() < 0.4:
        options = {
            "shuffle": bool(rng.integers(2)),
            "eta0": float(rng.choice([0.25, 1.0])),
            "random_state": 0,
        }
        return X, y, Perceptron(fit_intercept=intercept, max_iter=int(rng.choice([1, 3, 100])), **options)
    model = LogisticRegression(
        C=np.inf if rng.random() < 0.15 else 10.0 ** rng.uniform(-6, 6),
        solver=str(rng.choice(["newton", "lbfgs"])),
        class_weight="balanced" if rng.random() < 0.2 else None,
        max_iter=int(rng.choice([1, 2, 5, 200])),
        fit_intercept=intercept,
    )
    return X, y, model


def weights(rng, model, n):
    if isinstance(model, Perceptron) or rng.random() < 0.5:
        return None
    weight = rng.uniform(0.0, 3.0, n) ** rng.choice([1, 6])
    weight[rng.random(n) < 0.2 * rng.integers(2)] = 0.0
    return weight


def certified(rng, X, y, model):
    """Fit, certify in a random way, verify; return the certificate and the report, or None if fit refuses."""
    weight, how = weights(rng, model, len(X)), rng.choice(["none", "pair", "numbers"])
    held = np.sort(rng.choice(len(X), len(X) // 3, replace=False)) if how == "numbers" and len(X) > 4 else None
    kept = np.arange(len(X)) if held is None else np.setdiff1d(np.arange(len(X)), held)
    options = {} if weight is None else {"sample_weight": weight[kept]}
    if held is not None and not isinstance(model, (LinearRegression, Ridge)) and set(y[kept]) != set(y):
        return None
    try:
        model.fit(X[kept], y[kept], **options)
    except ValueError as error:
        assert any(word in str(error) for word in ("2 classes", "positive weight", "non-zero"))  # noqa: PT017
        return None
    seen = {"holdout": (1.01 * X[::-1], y[::-1])} if how == "pair" else {}
    given = seen if held is None else {"holdout": held}
    if given and isinstance(model, (LinearRegression, Ridge)):
        given = {**given, "clip": float(rng.choice([0.1, 1.0, 5.0]))}
    elif given and rng.random() < 0.4:
        rows, truth = (1.01 * X[::-1], y[::-1]) if held is None else (X[held], y[held])
        own = model.predict(rows)
        given = {**given, "compared": [truth, own, own[::-1]]}
    all_weights = {} if weight is None else {"sample_weight": weight}
    certificate = model.certify(X, y, delta=float(rng.choice([0.05, 0.2, 1e-6])), **given, **all_weights)
    return certificate, assay.verify(certificate, model, X, y, **seen, **all_weights)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", [regression, classification])
def test_certificates_hold_on_whatever_data(kind, draw):
    claims = 0
    for seed in range(40):
        rng = np.random.default_rng([KINDS.index(kind), seed])
        X, y, model = draw(rng, kind)
        found = certified(rng, X, y, model)
        if found is None:
            continue
        certificate, report = found
        assert report.holds, (seed, model, X.shape, report.reason)
        claims += len(certificate.claims)
        assert {gap.name for gap in certificate.not_applicable} or certificate.claims
    assert claims > 60


# The true excess --------------------------------------------------------------------------------------------


def exact_excess(X, y, model, alpha, weight):
    """Return P(model) - min P in rationals, summed over targets."""
    total = Fraction(0)
    offsets = np.broadcast_to(model.intercept_, y.reshape(len(X), -1).shape[1])
    for target, coef, b in zip(y.reshape(len(X), -1).T, np.atleast_2d(model.coef_), offsets):
        best = rational.least_squares(X, target, intercept=model.fit_intercept, weight=weight, alpha=alpha)
        least, w = (best[0], best[1:]) if model.fit_intercept else (0.0, best)
        total += rational.objective(X, target, coef, b, weight=weight, alpha=alpha)
        total -= rational.objective(X, target, w, least, weight=weight, alpha=alpha)
    return total


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(40))
def test_squared_loss_bounds_are_not_below_the_exact_excess(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3)) * 10.0 ** rng.uniform(-4, 4, 3) + rng.choice([0.0, 3.0])
    y = rng.normal(size=(25, int(rng.choice([1, 2]))))
    weight = rng.uniform(0.1, 2.0, 25) if seed % 2 else None
    alpha = float(rng.choice([0.0, 1e-3, 1.0, 1e4]))
    model = Ridge(alpha=alpha, fit_intercept=bool(rng.integers(2))).fit(X, y, sample_weight=weight)
    for bend in (0.0, 1e-9, 1e-3, 1.0):  # the bound is about the model as it is, however it was found
        model.coef_ = model.coef_ * (1 + bend * rng.normal(size=model.coef_.shape))
        certificate = model.certify(X, y, sample_weight=weight)
        claim = next(c for c in certificate.claims if c.name in ("suboptimality", "duality-gap"))
        excess = exact_excess(X, y, model, alpha, weight)
        if claim.params.get("form") != "b":
            assert claim.value >= excess - Fraction(1, 10**20)  # the optimum itself is rounded
            if bend == 0.0:
                scale = float(np.sum((y - y.mean(axis=0)) ** 2)) + 1.0
                assert claim.value <= 1e-9 * scale
        report = assay.verify(certificate, model, X, y, sample_weight=weight)
        assert report.holds, report.reason
        if alpha > 0:
            assert certificate.find("solution.enclosure").value >= np.sqrt(2 * float(max(excess, 0)) / alpha) * (
                1 - 1e-6
            )


def extended_objective(X, y, x, C, classes, intercept, weight):
    """Return P and its gradient at x = (W, b) row by row, in extended precision."""
    W = x.reshape(-1, X.shape[1] + intercept)
    scores = X @ W[:, : X.shape[1]].T + (W[:, -1] if intercept else 0)
    if classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    top = scores.max(axis=1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(axis=1, keepdims=True)
    c = C * weight
    loss = np.sum(c * (np.log(total)[:, 0] + top[:, 0] - scores[np.arange(len(y)), y]))
    pull = p / total
    pull[np.arange(len(y)), y] -= 1
    pull = (pull * c[:, None])[:, 1 if classes == 2 else 0 :]
    penalised = W.copy()
    if intercept:
        penalised[:, -1] = 0
    rows = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    return loss + np.sum(penalised**2) / 2, (pull.T @ rows + penalised).ravel()


def best_in_extended_precision(X, y, start, C, classes, intercept, weight, steps=60):
    """Return the least objective found by gradient steps preconditioned with the Hessian at the start."""
    from assay import scan
    from assay.linear_model._logistic_problem import Problem

    rows = scan.rows(X, y.astype(np.int64), weight.astype(float))
    problem = Problem(rows, C, np.ones(classes), bool(intercept), classes)
    wide = [np.asarray(part, dtype=np.longdouble) for part in (X, start, weight)]
    x, best = wide[1], extended_objective(wide[0], y, wide[1], C, classes, intercept, wide[2])
    solve = problem.curvature(start)
    for _ in range(steps):
        there = x - solve(best[1].astype(float))
        value = extended_objective(wide[0], y, there, C, classes, intercept, wide[2])
        if value[0] >= best[0]:
            break
        x, best = there, value
    return best[0]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_gaps_are_not_below_the_excess(seed, classes):
    rng = np.random.default_rng([seed, classes])
    X = rng.normal(size=(40, 3)) * 10.0 ** rng.uniform(-1, 1, 3)
    y = np.append(np.arange(classes), rng.integers(0, classes, 40 - classes))
    weight = rng.uniform(0.1, 2.0, 40)
    C, intercept = 10.0 ** rng.uniform(-3, 2), bool(rng.integers(2))
    solver = "newton" if seed % 2 else "lbfgs"
    tight = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-15).fit(X, y, sample_weight=weight)
    start = np.hstack([tight.coef_, tight.intercept_[:, None]])[:, : 3 + intercept].ravel()
    least = best_in_extended_precision(X, y, start, C, classes, intercept, weight)
    values = []
    for steps in (1, 2, 3, 200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=C, fit_intercept=intercept, solver=solver, max_iter=steps, tol=1e-14)
            model.fit(X, y, sample_weight=weight)
        certificate = model.certify(X, y, sample_weight=weight)
        claim = next(c for c in certificate.claims if c.name in ("duality-gap", "multinomial.gap"))
        table = np.hstack([model.coef_, model.intercept_[:, None]])[:, : 3 + intercept]
        wide = [np.asarray(part, dtype=np.longdouble) for part in (X, table.ravel(), weight)]
        excess = extended_objective(wide[0], y, wide[1], C, classes, intercept, wide[2])[0] - least
        assert claim.value >= excess
        assert assay.verify(certificate, model, X, y, sample_weight=weight).holds
        values.append(claim.value)
    assert values[-1] <= 1e-9 * C * weight.sum() + 1e-9
    assert values[-1] <= values[0]


# Forgeries --------------------------------------------------------------------------------------------------


def honest(name):
    rng = np.random.default_rng(7)
    X, Xh = rng.normal(size=(150, 3)), rng.normal(size=(80, 3))
    signal = lambda rows: rows @ [1.5, -1.0, 0.5]  # noqa: E731
    target = {"X": X, "Xh": Xh, "y": signal(X) + rng.normal(size=150), "yh": signal(Xh) + rng.normal(size=80)}
    if name in ("binary", "perceptron", "selected"):
        noise = 0.0 if name == "perceptron" else 0.7
        target["y"] = (signal(X) + noise * rng.normal(size=150) > 0).astype(int)
        target["yh"] = (signal(Xh) + noise * rng.normal(size=80) > 0).astype(int)
    elif name == "multinomial":
        target["y"], target["yh"] = (np.digitize(target[key], [-1, 1]) for key in ("y", "yh"))
    others = {"least squares": LinearRegression(), "ridge": Ridge(alpha=2.0)}
    others["perceptron"] = Perceptron(random_state=0)
    model = others.get(name, LogisticRegression(C=0.5))
    model.fit(target["X"], target["y"])
    options = {"clip": 4.0} if name in ("least squares", "ridge") else {}
    if name == "selected":
        options["compared"] = [model.predict(Xh), 1 - model.predict(Xh), np.ones(80, dtype=int)]
    holdout = (target["Xh"], target["yh"])
    return model, target, model.certify(target["X"], target["y"], holdout=holdout, **options)


NAMES = ["least squares", "ridge", "binary", "multinomial", "perceptron", "selected"]


def judged(certificate, model, data):
    return assay.verify(certificate, model, data["X"], data["y"], holdout=(data["Xh"], data["yh"]))


@pytest.mark.parametrize("name", NAMES)
def test_the_honest_certificate_holds(name):
    model, data, certificate = honest(name)
    report = judged(certificate, model, data)
    assert report.holds, report.reason


@pytest.mark.parametrize("name", NAMES)
def test_altered_data_are_refused(name):
    model, data, certificate = honest(name)
    for key, beside in (("X", "y"), ("y", "X"), ("Xh", "yh"), ("yh", "Xh")):
        other = np.flatnonzero(data[key].reshape(len(data[key]), -1)[:, 0] != data[key].ravel()[0])[0]
        swapped = data[key].copy()
        swapped[[0, other]] = swapped[[other, 0]]
        assert not judged(certificate, model, {**data, key: swapped}).holds
        assert not judged(certificate, model, {**data, key: data[key][:-1], beside: data[beside][:-1]}).holds
        assert not judged(certificate, model, {**data, key: data[key][:-1]}).holds
    X = data["X"].copy()
    X[77, 1] = np.nextafter(X[77, 1], np.inf)
    assert not judged(certificate, model, {**data, "X": X}).holds


@pytest.mark.parametrize("name", NAMES)
def test_altered_models_are_refused(name):
    _, data, certificate = honest(name)
    for attribute, change in (
        ("coef_", lambda v: v * (1 + 1e-15)),
        ("coef_", lambda v: -v),
        ("intercept_", lambda v: v + 1e-9),
        ("classes_", lambda v: v[::-1]),
    ):
        model = honest(name)[0]
        if hasattr(model, attribute):
            setattr(model, attribute, change(getattr(model, attribute)))
            report = judged(certificate, model, data)
            assert not report.holds
            assert "not the model" in report.reason


def reissued(certificate, position, **changes):
    claims = list(certificate.claims)
    claims[position] = replace(claims[position], **changes)
    return replace(certificate, claims=tuple(claims))


@pytest.mark.parametrize("name", NAMES)
def test_sharpened_claims_are_refused(name):
    model, data, certificate = honest(name)
    verdicts = judged(certificate, model, data).verdicts
    for position, (claim, verdict) in enumerate(zip(certificate.claims, verdicts)):
        counts = claim.name in ("data.identity", "inseparability") or claim.params.get("loss") == "zero-one"
        by = 1 if counts else 1e-4 * verdict.measured
        sharper = verdict.measured - by if claim.direction == "upper" else verdict.measured + by
        report = judged(reissued(certificate, position, value=max(sharper, 0.0)), model, data)
        assert not report.holds or sharper < 0, (claim.name, claim.value, sharper)
        for other, one in enumerate(report.verdicts):  # and nothing else is dragged down
            assert one.holds or other == position or certificate.claims[other].name == "solution.enclosure"


@pytest.mark.parametrize("name", NAMES)
def test_altered_parameters_are_refused(name):
    model, data, certificate = honest(name)
    one_less, one_more, twice = (lambda v: v - 1), (lambda v: v + 1), (lambda v: 2 * v)
    changes = dict.fromkeys(["errors", "compared", "K", "updates"], one_less)
    changes |= dict.fromkeys(["rows", "M"], one_more)
    changes |= dict.fromkeys(["alpha", "C", "mu", "rate", "strength", "clip"], twice)
    changes["intercept"] = lambda v: not v
    tried = 0
    for position, claim in enumerate(certificate.claims):
        for key in set(changes) & set(claim.params):
            if claim.name == "train.error-floor" or (
                key == "intercept" and claim.name in ("margin.kernel", "compression.perceptron", "pac-bayes.linear")
            ):
                continue  # a model without offset is one of both spaces
            params = {**claim.params, key: changes[key](claim.params[key])}
            forged = reissued(certificate, position, params=params)
            report = judged(forged, model, data)
            assert not report.holds, (claim.name, key)
            tried += 1
    assert tried >= 4


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_is_kept(name):
    model, data, certificate = honest(name)
    for position, claim in enumerate(certificate.claims):
        if claim.delta != "0":
            cheaper = f"{float(claim.delta) / 1000:.12f}"
            assert not judged(reissued(certificate, position, delta=cheaper), model, data).holds
            assert not judged(reissued(certificate, position, delta="0.9"), model, data).holds
            assert not judged(reissued(certificate, position, assumptions=()), model, data).holds
    spent = sum(Fraction(claim.delta) for claim in certificate.claims)
    spent += sum(Fraction(delta) for _, delta in certificate.unreported)
    assert 0 < spent <= Fraction(certificate.delta_total)
    assert not judged(replace(certificate, delta_total=str(float(spent) / 2)), model, data).holds


def test_holdout_rows_by_number_and_in_frames():
    import pandas as pd
    import polars as pl

    model, data, _ = honest("binary")
    X, y = np.vstack([data["X"], data["Xh"]]), np.append(data["y"], data["yh"])
    held = np.arange(150, 230)
    plain = model.certify(X, y, holdout=held)
    assert (
        plain.find("holdout.binomial").value
        == model.certify(data["X"], data["y"], holdout=(data["Xh"], data["yh"])).find("holdout.binomial").value
    )
    assert assay.verify(plain, model, X, y).holds
    for shape in (held.tolist(), tuple(held.tolist()), held[::-1], held.astype(np.uint8)):
        assert model.certify(X, y, holdout=shape).find("holdout.binomial").value == plain.find("holdout.binomial").value
    two = model.certify(X, y, holdout=(3, 7))  # two numbers are not a pair of arrays
    assert two.data["holdout"].rows == 2
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        named = LogisticRegression(C=0.5).fit(frame[:150], y[:150])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", RepeatedUseWarning)
            certificate = named.certify(frame, y, holdout=held)
        assert certificate.data["train"].digest == plain.data["train"].digest
        assert certificate.data["holdout"].digest == plain.data["holdout"].digest
        assert assay.verify(certificate, named, frame, y).holds
    overlap = replace(plain, split={"train": np.arange(151), "holdout": held})
    assert not assay.verify(overlap, model, X, y).holds


def test_numbers_out_of_range_are_said_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = Ridge(alpha=1e-200).fit(X, y)
    certificate = model.certify(X, y)
    assert any("outside [1e-150, 1e150]" in gap.reason for gap in certificate.not_applicable)
    assert assay.verify(certificate, model, X, y).holds
    with pytest.raises(ValueError, match=r"beyond 2\^53"):
        LogisticRegression().fit(X, y > 0).certify((X * 1e17).astype(np.int64), y > 0)
