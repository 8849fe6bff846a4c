"""Honest certificates about trees, made by hand: trees drawn at random, own formulas; no learner and no producer."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from tests.certificate import count_cases, forge


def trees(rng: np.random.Generator, count: int, d: int, classes: int, depth: int = 2, *, soft: bool = False) -> Any:
    """Draw complete trees with thresholds on a coarse grid and random leaves: one class each, or shares of classes."""
    size = 2 ** (depth + 1) - 1
    inner = np.arange(size) < 2**depth - 1
    parts: dict[str, list] = {"column": [], "threshold": [], "child": [], "value": []}
    for t in range(count):
        parts["column"].append(np.where(inner, rng.integers(0, d, size), -1))
        parts["threshold"].append(np.where(inner, rng.integers(-4, 5, size) / 4, 0.0))
        parts["child"].append(np.where(inner, 2 * np.arange(size) + 1 + t * size, -1))
        value = rng.dirichlet(np.ones(classes), size) if soft else np.eye(classes)[rng.integers(0, classes, size)]
        parts["value"].append(value)
    whole = {name: np.concatenate(values) for name, values in parts.items()}
    return forge.Forged(
        family="trees.vote" if count > 1 else "trees.classifier",
        n_features_in_=d,
        tree_root_=np.arange(count) * size,
        node_column_=whole["column"],
        node_threshold_=whole["threshold"],
        node_table_=np.full(count * size, -1),
        node_child_=whole["child"],
        node_value_=whole["value"],
        branch_tables_=np.empty((0, 0), dtype=int),
        **unread(count * size),
        classes_=np.arange(classes),
    )


def unread(nodes: int) -> dict:
    """Return the arrays that the scores of complete rows do not need."""
    return {
        "node_missing_": np.full(nodes, -1),
        "node_weight_": np.ones(nodes),
        "node_impurity_": np.zeros(nodes),
        "column_types_": np.empty(0, dtype=str),
    }


def leaf(model: Any, root: int, x: np.ndarray) -> int:
    at = int(root)
    while model.node_child_[at] >= 0:
        at = int(model.node_child_[at]) + int(x[int(model.node_column_[at])] > model.node_threshold_[at])
    return at


def values(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the values of the leaf that each row reaches in each tree, (rows, trees, outputs)."""
    return np.array([[model.node_value_[leaf(model, root, x)] for root in model.tree_root_] for x in X])


# Votes on out-of-bag rows -------------------------------------------------------------------------------------


def split_mix(seed: int, i: int) -> int:
    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    return mix((mix(seed) + i * 0x9E3779B97F4A7C15) % 2**64)


def bag(seed: int, n: int, size: int, replacing: bool) -> set[int]:
    if replacing:
        return {((split_mix(seed, i) >> 32) * n) >> 32 for i in range(1, size + 1)}
    return set(sorted(range(n), key=lambda row: split_mix(seed, row + 1))[:size])


def out_of_bag(params: dict, seeds: Any, n: int) -> np.ndarray:
    """Return (members, rows): which rows are in no bag of the member."""
    common = bag(params["shared_seed"], n, params["shared"], False)
    inside = [bag(int(seed), n, params["bag"], params["replace"]) | common for seed in seeds]
    return np.array([[row not in part for row in range(n)] for part in inside])


def vote_loss(form: str, losses: np.ndarray, out: np.ndarray, w: float) -> tuple[float, float, float]:
    """Return mean loss, harmonic mean of the rows, factor; losses and out (members, rows)."""
    T = len(losses)
    groups = [(j, j) for j in range(T)] if form == "first" else [(i, j) for i in range(T) for j in range(T)]
    means, rows = [], []
    for i, j in groups:
        both = out[i] & out[j]
        a, b = losses[i][both], losses[j][both]
        loss = {"first": a, "tandem": a * b, "disagreement": a + b - 2 * a * b / (1 + w)}[form]
        rows.append(int(both.sum()))
        means.append(math.fsum(loss) / max(rows[-1], 1))
    if min(rows) < 1:
        return 1.0, 1.0, math.inf
    factor = {"first": 1 / w, "tandem": 1 / w**2, "disagreement": (1 + 1 / w) / 2}[form]
    return math.fsum(means) / len(means), len(rows) / math.fsum(1 / r for r in rows), factor


def vote_value(case: forge.Case) -> float:
    """Return the bound that the parameters and seeds of the last claim of a case give."""
    params, model, n = case.claim.params, case.model, len(case.X)
    out = out_of_bag(params, case.claim.witness["seeds"], n)
    codes = [model.classes_.tolist().index(label) for label in case.y.tolist()]
    leaves = model.node_value_[model.node_child_ < 0]
    hard = np.isin(leaves, (0.0, 1.0)).all() and np.all(leaves.sum(axis=1) == 1)
    if model.family == "trees.committee":
        losses, hard = committee_losses(model, case.X, codes), True
    else:
        losses = 1 - values(model, case.X)[np.arange(n), :, codes].T
    T = len(losses)
    p, rows, factor = vote_loss(params["form"], losses, out, (T + 1) // 2 / T if hard else 0.5)
    r, share = 2.0 ** params["rate"], 0.5 if params["form"] == "first" else 0.25
    paid = math.log(8 / (share * float(case.claim.delta))) / rows
    return factor * (1 - math.exp(-r * p - paid)) / (1 - math.exp(-r))


def committee_losses(model: Any, X: np.ndarray, codes: list[int]) -> np.ndarray:
    """Return (committees, rows): 0 where the first largest of the sums of the values is the true class, else 1."""
    said = values(model, X)
    losses = []
    for g in range(int(model.committee_.max()) + 1):
        mine = said[:, model.committee_ == g]
        exact = [[sum(map(Fraction, column)) for column in row.T.tolist()] for row in mine]
        losses.append([float(row.index(max(row)) != k) for row, k in zip(exact, codes)])
    return np.array(losses)


def committee_case(seed: int) -> forge.Case:
    """The trees of `vote_case` in three committees."""
    base = vote_case(seed)
    base.model.family, base.model.committee_ = (
        "trees.committee",
        np.array([0, 0, 1, 1, 2, 2, 2][: 5 + seed % 2]),
    )
    params = {**base.claim.params, "members": 3}
    case = base.with_claim(params=params, witness={"seeds": base.claim.witness["seeds"][:3]})
    return case.with_claim(value=min(1.0, vote_value(case) + 1e-9)).seal()


def vote_case(seed: int) -> forge.Case:
    """Five or six random trees whose labels mostly agree with their vote, bags with and without replacement."""
    rng = np.random.default_rng([seed, 40])
    T, n, classes = 5 + seed % 2, 80, 2 + seed % 3 // 2
    model = trees(rng, T, 2, classes, soft=seed % 4 == 3)
    X = rng.standard_normal((n, 2))
    y = values(model, X).sum(axis=1).argmax(axis=1)
    for t in range(T):  # members that resemble each other, so that the vote is good
        if rng.random() < 0.8:
            part = slice(t * 7, t * 7 + 7)
            for name in ("node_column_", "node_threshold_", "node_value_"):
                getattr(model, name)[part] = getattr(model, name)[:7]
    y = np.where(rng.random(n) < 0.9, values(model, X).sum(axis=1).argmax(axis=1), y)
    params = {
        "form": ("first", "tandem", "disagreement")[seed % 3],
        "rate": int(rng.integers(-2, 2)),
        "members": T,
        "rows": n,
        "bag": 20,
        "replace": bool(seed % 2),
        "shared": 5 * (seed % 3),
        "shared_seed": 7 * (seed % 3),
    }
    witness = {"seeds": rng.integers(0, 2**31, T)}
    stated = forge.claim("pac-bayes.vote", 1.0, delta="0.05", params=params, witness=witness)
    case = forge.Case((stated,), model, X, y)
    return case.with_claim(value=min(1.0, vote_value(case) + 1e-9)).seal()


def vote_truth(case: forge.Case) -> bool:
    params = case.claim.params
    members = (
        int(getattr(case.model, "committee_", case.model.tree_root_ * 0 + len(case.model.tree_root_) - 1).max()) + 1
    )
    known = params["rows"] == len(case.X) and params["members"] == members
    return known and case.claim.value >= min(1.0, vote_value(case)) - 1e-12


# Codes and growth functions ------------------------------------------------------------------------------------


def gamma_word(i: int) -> str:
    digits = format(i, "b")
    return "0" * (len(digits) - 1) + digits


def threshold_word(t: float, last: int) -> tuple[str, int]:
    """Return the codeword of a threshold, written out, and the exponent that the next one is relative to."""
    if t == 0:
        return "0", last
    ratio = Fraction(t)
    m, E = abs(ratio.numerator), 0
    while Fraction(2) ** (E + 1) <= abs(ratio):
        E += 1
    while Fraction(2) ** E > abs(ratio):
        E -= 1
    digits = format(m, "b").rstrip("0")
    shift = E - last
    place = [0, *(v for k in range(1, abs(shift) + 1) for v in (k, -k))].index(shift) + 1
    return f"1{int(t < 0)}" + gamma_word(place) + gamma_word(len(digits)) + digits[1:-1], E


def tree_nats(model: Any) -> float:
    """Return -ln of the prior of a tree."""
    last: dict[int, int] = {}
    nats, waiting = 0.0, [int(model.tree_root_[0])]
    while waiting:
        at = waiting.pop(0)
        nats += math.log(2)
        if model.node_child_[at] < 0:
            nats += math.log(len(model.classes_))
            continue
        j = int(model.node_column_[at])
        word, last[j] = threshold_word(float(model.node_threshold_[at]), last.get(j, 0))
        nats += math.log(model.n_features_in_) + len(word) * math.log(2)
        waiting += [int(model.node_child_[at]), int(model.node_child_[at]) + 1]
    return nats


def labelled(rng: np.random.Generator, model: Any, n: int, noise: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw rows whose labels are those of the model, some replaced; return how many it gets wrong too."""
    X = rng.standard_normal((n, model.n_features_in_))
    guess = votes_of(model, X)
    y = np.where(rng.random(n) < noise, rng.integers(0, len(model.classes_), n), guess)
    return X, y, int(np.sum(guess != y))


def votes_of(model: Any, X: np.ndarray) -> np.ndarray:
    won = values(model, X).argmax(axis=2)
    weight = getattr(model, "estimator_weights_", np.ones(len(model.tree_root_)))
    totals = np.stack([((won == k) * weight).sum(axis=1) for k in range(len(model.classes_))], axis=1)
    return totals.argmax(axis=1)


def wrong_rows(case: forge.Case) -> int:
    codes = np.array([case.model.classes_.tolist().index(label) for label in case.y.tolist()])
    return int(np.sum(votes_of(case.model, case.X) != codes))


def occam_value(case: forge.Case) -> float:
    n, k = len(case.X), wrong_rows(case)
    log_delta = math.log(float(case.claim.delta)) - tree_nats(case.model)
    return float(stats.beta.isf(math.exp(log_delta), k + 1, n - k)) if k < n else 1.0


def occam_case(seed: int) -> forge.Case:
    rng = np.random.default_rng([seed, 41])
    model = trees(rng, 1, 2, 2 + seed % 2, depth=1 + seed % 2)
    X, y, wrong = labelled(rng, model, 80, 0.1)
    params = {"code": "tree/1", "errors": wrong, "rows": 80}
    case = forge.Case((forge.claim("occam", 1.0, delta="0.05", params=params),), model, X, y)
    return case.with_claim(value=min(1.0, occam_value(case) + 1e-9)).seal()


def occam_truth(case: forge.Case) -> bool:
    params = case.claim.params
    known = params["rows"] == len(case.X) and wrong_rows(case) <= params["errors"]
    return known and case.claim.value >= min(1.0, occam_value(case)) - 1e-12


def class_ways(descriptor: dict, points: int) -> int:
    """Return the bound of the growth function, divided by the share of delta that the size has."""
    d = descriptor.get("d", 0)
    if descriptor["class"] == "stumps":
        return 2 + 2 * d * (points - 1)
    if descriptor["class"] == "trees":
        L = descriptor["leaves"]
        shapes = math.comb(2 * L - 2, L - 1) // L
        return shapes * (d * (points - 1) + 1) ** (L - 1) * descriptor.get("classes", 2) ** L * L * (L + 1)
    T = descriptor["T"]
    plane = sum(math.comb(points, i) for i in range(T + 1))
    return class_ways(descriptor["base"], points) ** T * plane * T * (T + 1)


def growth_case(seed: int) -> forge.Case:
    """A small tree (even seeds), or a vote of two stumps, and the bound through the growth function."""
    rng = np.random.default_rng([seed, 42])
    if seed % 2 == 0:
        model = trees(rng, 1, 2, 2 + seed % 4 // 2, depth=1)
        descriptor: dict = {"class": "trees", "d": 2, "leaves": 2 + seed % 3 // 2, "classes": len(model.classes_)}
    else:
        model = trees(rng, 2, 2, 2, depth=1)
        model.family, model.estimator_weights_ = "trees.weighted-vote", np.array([1.0, 0.4])
        descriptor = {"class": "votes", "base": {"class": "stumps", "d": 2}, "T": 2}
    n = 120
    X, y, wrong = labelled(rng, model, n, 0.05)
    K = count_cases.ghost_threshold(wrong, n, class_ways(descriptor, 5 * n), 0.05)
    value = float(stats.beta.ppf(0.5, K - wrong, 4 * n - (K - wrong) + 1)) + 1e-9
    params = {"class": descriptor, "form": "c", "errors": wrong, "rows": n, "M": 4 * n, "q": 0.5, "K": K}
    return forge.Case((forge.claim("vc", value, delta="0.05", params=params),), model, X, y).seal()


def growth_truth(case: forge.Case) -> bool:
    params, model, n = case.claim.params, case.model, len(case.X)
    descriptor = params["class"]
    base = descriptor if descriptor["class"] == "trees" else descriptor["base"]
    fits = base["d"] >= model.n_features_in_ and base.get("leaves", 2) >= 2
    fits &= descriptor.get("classes", 2) >= len(model.classes_) and descriptor.get("T", 1) >= len(model.tree_root_)
    k = wrong_rows(case)
    if not (fits and k <= params["errors"] and params["rows"] == n):
        return False
    K = count_cases.ghost_threshold(k, n, class_ways(descriptor, 5 * n), float(case.claim.delta))
    return case.claim.value >= stats.beta.ppf(0.5, K - k, 4 * n - (K - k) + 1) - 1e-9


# Margins of weighted votes -------------------------------------------------------------------------------------


def stump_vote(rng: np.random.Generator, rounds: int) -> Any:
    model = trees(rng, rounds, 2, 2, depth=1)
    model.family = "trees.weighted-vote"
    model.estimator_weights_ = rng.choice([0.5, 1.0, 0.25, -0.5, 0.3], rounds)
    return model


def exact_margins(case: forge.Case) -> list[Fraction]:
    """Return y f(x) / sum |alpha| of every row as rationals."""
    model = case.model
    alpha = [Fraction(a) for a in model.estimator_weights_.tolist()]
    won = values(model, case.X).argmax(axis=2)
    codes = [model.classes_.tolist().index(label) for label in case.y.tolist()]
    signed = [[1 if k == code else -1 for k in row] for row, code in zip(won, codes)]
    return [sum((a * s for a, s in zip(alpha, row)), Fraction(0)) / sum(map(abs, alpha)) for row in signed]


def margin_value(case: forge.Case) -> float:
    params, n = case.claim.params, len(case.X)
    rho = 2.0 ** params["exponent"]
    ramp = sum(min(1, max(0, 1 - m / Fraction(rho))) for m in exact_margins(case)) / n
    base = params["class"]
    ways = math.log(class_ways(base, n) / (base["leaves"] * (base["leaves"] + 1) if "leaves" in base else 1))
    paid = 11 * (base["leaves"] * (base["leaves"] + 1) if "leaves" in base else 1) / float(case.claim.delta)
    return float(ramp) + 2 / rho * math.sqrt(2 * ways / n) + math.sqrt(math.log(paid) / (2 * n))


def margin_case(seed: int) -> forge.Case:
    rng = np.random.default_rng([seed, 43])
    model = stump_vote(rng, 2 + seed % 3)
    n = 900
    X, y, _ = labelled(rng, model, n, 0.02)
    base = {"class": "stumps", "d": 2} if seed % 2 else {"class": "trees", "d": 2, "leaves": 2}
    params = {"class": base, "exponent": -(seed % 2), "rows": n}
    case = forge.Case((forge.claim("margin.boosting", 1.0, delta="0.05", params=params),), model, X, y)
    return case.with_claim(value=min(1.0, margin_value(case) + 1e-9)).seal()


def margin_truth(case: forge.Case) -> bool:
    params = case.claim.params
    known = params["rows"] == len(case.X) and params["class"]["d"] >= 2 and params["class"].get("leaves", 2) >= 2
    return known and case.claim.value >= min(1.0, margin_value(case)) - 1e-12


def largest_edge(X: np.ndarray, sides: list[int], weights: list[Fraction]) -> Fraction:
    """Return the largest edge of any stump by trying all of them."""
    found = [abs(sum((w * s for w, s in zip(weights, sides)), Fraction(0)))]
    for column in X.T:
        for t in np.unique(column):
            left = [s if v <= t else -s for v, s in zip(column, sides)]
            found.append(abs(sum((w * s for w, s in zip(weights, left)), Fraction(0))))
    return max(found)


def duality_case(seed: int, direction: str = "upper") -> forge.Case:
    rng = np.random.default_rng([seed, 44])
    model = stump_vote(rng, 3)
    model.estimator_weights_ = np.array([0.6, 0.3, 0.4])
    n = 14
    X, y, _ = labelled(rng, model, n, 0.0 if direction == "lower" else 0.2)
    cap = 1.0 if seed % 2 else 0.2
    params: dict = {"rows": n, "cap": cap}
    if direction == "lower":
        bare = forge.Case((forge.claim("boosting.margin-duality", 0.0, "lower", params=params),), model, X, y)
        params["rho"] = float(min(exact_margins(bare))) * (1 - 1e-12)
        return bare.with_claim(value=params["rho"] * (1 - 1e-9), params=params).seal()
    weights = rng.random(n)
    bare = forge.Case(
        (forge.claim("boosting.margin-duality", 0.0, params=params, witness={"weights": weights}),), model, X, y
    )
    return bare.with_claim(value=float(edge_bound(bare)) * (1 + 1e-9) + 1e-12).seal()


def edge_bound(case: forge.Case) -> Fraction:
    u = [Fraction(w) for w in np.asarray(case.claim.witness["weights"], dtype=float).tolist()]
    v = [w / sum(u) for w in u]
    sides = [2 * case.model.classes_.tolist().index(label) - 1 for label in case.y.tolist()]
    return largest_edge(case.X, sides, v) + 2 * max(Fraction(0), max(v) / Fraction(case.claim.params["cap"]) - 1)


def duality_truth(case: forge.Case) -> bool:
    params = case.claim.params
    if params["rows"] != len(case.X):
        return False
    if case.claim.direction == "lower":
        rho, cap = Fraction(params["rho"]), Fraction(params["cap"])
        reached = rho - cap * sum(max(Fraction(0), rho - m) for m in exact_margins(case))
        return Fraction(case.claim.value) <= reached
    u = np.asarray(case.claim.witness["weights"], dtype=float)
    return bool(np.all(u >= 0)) and Fraction(case.claim.value) >= edge_bound(case)


CASES = {
    "pac-bayes.vote": vote_case,
    "pac-bayes.vote committees": committee_case,
    "occam": occam_case,
    "vc": growth_case,
    "margin.boosting": margin_case,
    "boosting.margin-duality": duality_case,
    "boosting.margin-duality lower": lambda seed: duality_case(seed, "lower"),
}
TRUTHS = {
    "pac-bayes.vote": vote_truth,
    "occam": occam_truth,
    "vc": growth_truth,
    "margin.boosting": margin_truth,
    "boosting.margin-duality": duality_truth,
}
