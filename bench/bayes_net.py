"""Bayesian networks beside their peers: structure by greedy search with BIC, and exact marginals.

    python -m bench bayes_net --only rows        50,000 x 20; without --only all cases but those that are slow
    python -m bench bayes_net --only columns     10,000 x 100
    python -m bench bayes_net --only marginals   alarm and 37 random nodes, from scratch and with new evidence
    python -m bench bayes_net --only memory      peak of a fit beside the size of its rows

The judge counts the rows again and computes BIC of the graph that each contestant returns; of marginals it compares the
numbers. pyAgrum and pgmpy are run if they are installed; pgmpy once, in a process of its own that is ended after
--limit seconds (its ratio is then a lower bound, and it has no score).
"""

import argparse
import importlib.util
import multiprocessing
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.harness import Contestant, compare, save, touch_memory


class Case(NamedTuple):
    """Rows and columns."""

    n: int
    d: int


CASES = {"rows": Case(50_000, 20), "columns": Case(10_000, 100)}
QUERIES = 100


def random_network(d: int, seed: int = 0, most: int = 3) -> Any:
    """Return a network whose nodes have 2 to 4 states and up to so many parents among the eight nodes before them."""
    from assay.bayes_net import Network

    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, d)
    tables = {}
    for node in range(d):
        near = np.arange(max(0, node - 8), node)
        parents = sorted(rng.choice(near, size=min(len(near), rng.integers(0, most + 1)), replace=False).tolist())
        table = rng.dirichlet(0.7 * np.ones(sizes[node]), size=tuple(sizes[one] for one in parents))
        tables[f"v{node}"] = ([f"v{one}" for one in parents], table)
    return Network.of({f"v{node}": [f"s{s}" for s in range(sizes[node])] for node in range(d)}, tables)


def bic(X: np.ndarray, edges: Any) -> float:
    """Return (ln n) / 2 |B| - LL of a graph, by counting."""
    n, sizes, total = len(X), X.max(axis=0) + 1, 0.0
    for child in range(X.shape[1]):
        above = [a for a, b in edges if b == child]
        shape = [int(sizes[one]) for one in (*above, child)]
        config = np.ravel_multi_index(tuple(X[:, one] for one in (*above, child)), shape)
        counts = np.bincount(config, minlength=int(np.prod(shape))).reshape(-1, shape[-1])
        rows = counts.sum(axis=1)
        ll = (counts * np.log(np.maximum(counts, 1))).sum() - (rows * np.log(np.maximum(rows, 1))).sum()
        total += np.log(n) / 2 * (shape[-1] - 1) * len(counts) - ll
    return float(total)


def structure(name: str, repeats: int, limit: float) -> list[dict[str, Any]]:
    """Time the search for a structure, from a table of numbers (Assay) or a frame made in advance (peers)."""
    from assay.bayes_net import BayesianNetwork

    case = CASES[name]
    drawn = random_network(case.d).sample(case.n, random_state=0).astype(np.int64)
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in drawn.T])

    def ours(**how: Any) -> list[tuple[int, int]]:
        return [tuple(edge) for edge in BayesianNetwork(nominal="all", **how).fit(X).edges_.tolist()]

    contestants = [
        Contestant("assay", ours, peer=False),
        Contestant("assay, tabu=0", lambda: ours(tabu=0)),
    ]
    contestants += _pyagrum(X, once=name == "columns")
    contestants += _pgmpy(X, limit)
    title = f"{name}: {case.n:,} x {case.d}, greedy search, BIC"

    def quality(edges: list[tuple[int, int]] | None) -> float:
        return np.nan if edges is None else bic(X, edges)

    return compare(title, contestants, quality, better="lower", repeats=repeats)


def _frame(X: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(X.astype(str), columns=[f"v{j}" for j in range(X.shape[1])])


def _pyagrum(X: np.ndarray, once: bool) -> list[Contestant]:
    if importlib.util.find_spec("pyagrum") is None:
        return []
    import pyagrum as gum

    frame = _frame(X)

    def run(method: str) -> list[tuple[int, int]]:
        learner = gum.BNLearner(frame)
        learner.useScoreBIC()
        learner.useNoPrior()
        getattr(learner, method)()
        dag = learner.learnDAG()
        return [(int(learner.nameFromId(a)[1:]), int(learner.nameFromId(b)[1:])) for a, b in dag.arcs()]

    return [
        Contestant("pyAgrum, hill climbing", lambda: run("useGreedyHillClimbing"), once=once),
        Contestant("pyAgrum, tabu list", lambda: run("useLocalSearchWithTabuList"), once=once),
    ]


def _pgmpy(X: np.ndarray, limit: float) -> list[Contestant]:
    if importlib.util.find_spec("pgmpy") is None:
        return []

    def run() -> list[tuple[int, int]] | None:
        fresh = multiprocessing.get_context("spawn")
        ours, theirs = fresh.Pipe(duplex=False)
        child = fresh.Process(target=_climb, args=(X, theirs))
        child.start()
        found = ours.recv() if ours.poll(limit) else None
        if found is None:
            print(f"pgmpy: more than {limit:.0f} s")
            child.terminate()
        child.join()
        return found

    return [Contestant("pgmpy", run, once=True)]


def _climb(X: np.ndarray, answer: Any) -> None:
    """Search with pgmpy, and send the edges found."""
    from pgmpy.estimators import HillClimbSearch

    found = HillClimbSearch(_frame(X)).estimate(scoring_method="bic-d", show_progress=False)
    answer.send([(int(a[1:]), int(b[1:])) for a, b in found.edges()])


def alarm() -> Any:
    """Return the network of Beinlich et al. 1989, of 37 nodes."""
    from assay.bayes_net import read_bif

    return read_bif(Path(__file__).parents[1] / "tests" / "bayes_net" / "published" / "alarm.bif")


def marginals(repeats: int) -> list[dict[str, Any]]:
    """Time all marginals of two networks of 37 nodes: from their tables, and 100 times with new evidence."""
    drawn, known = random_network(37, seed=5), alarm()
    rows = _marginals("37 random nodes", drawn, ("v30", "v3", "v17"), repeats)
    return rows + _marginals("alarm, 37 nodes", known, ("HRBP", "CVP", "PRESS"), repeats)


def _marginals(title: str, net: Any, nodes: tuple[str, ...], repeats: int) -> list[dict[str, Any]]:
    states = [net.states[net.names.index(name)] for name in nodes]
    known = [{name: own[(k >> i) % 2] for i, (name, own) in enumerate(zip(nodes, states))} for k in range(QUERIES)]

    def fresh() -> Any:
        vars(net).pop("_made", None)  # the junction tree, if there is one
        return net

    def answers(queries: Any, one: Any) -> float:
        return sum(sum(next(iter(t.values())) for t in one.marginals(evidence).values()) for evidence in queries)

    cold_ones = [Contestant("assay", lambda: answers([{}], fresh()), peer=False)]
    warm_ones = [Contestant("assay", lambda: answers(known, net), peer=False)]
    if importlib.util.find_spec("pyagrum") is not None:
        cold, again = _lazy(net)
        cold_ones.append(Contestant("pyAgrum, lazy propagation", cold))
        warm_ones.append(Contestant("pyAgrum, lazy propagation", lambda: again(known)))
    rows = compare(f"{title}, cold: all marginals", cold_ones, float, better="lower", repeats=5 * repeats)
    name = f"{title}, warm: {QUERIES} times all marginals, with new evidence"
    rows += compare(name, warm_ones, float, better="lower", repeats=repeats)
    return rows + _single(title, net, known, repeats)


def _single(title: str, net: Any, known: list[dict[str, str]], repeats: int) -> list[dict[str, Any]]:
    """Time queries about one node each, by what a user would call first."""
    free = [name for name in net.names if name not in known[0]]
    queries = [(free[k % len(free)], evidence) for k, evidence in enumerate(known)]
    contestants = [
        Contestant("assay", lambda: sum(float(net.infer(*one).table[0]) for one in queries), peer=False),
        Contestant(
            "assay, elimination",
            lambda: sum(float(net.infer(*one, method="elimination").table[0]) for one in queries),
            peer=False,
        ),
    ]
    if importlib.util.find_spec("pyagrum") is not None:
        import pyagrum as gum

        other = _other(net)
        contestants.append(
            Contestant(
                "pyAgrum, getPosterior",
                lambda: sum(float(gum.getPosterior(other, target=q, evs=e).toarray()[0]) for q, e in queries),
            )
        )
    name = f"{title}: {QUERIES} queries about one node each"
    return compare(name, contestants, float, better="lower", repeats=repeats)


def _other(net: Any) -> Any:
    """Return the network as pyAgrum's."""
    import pyagrum as gum

    with tempfile.TemporaryDirectory() as folder:
        net.to_bif(Path(folder) / "net.bif")
        return gum.loadBN(str(Path(folder) / "net.bif"))


def _lazy(net: Any) -> tuple[Any, Any]:
    import pyagrum as gum

    other = _other(net)
    names = list(net.names)

    def total(engine: Any) -> float:
        return sum(float(engine.posterior(name).toarray()[0]) for name in names)

    def cold() -> float:
        engine = gum.LazyPropagation(other)
        engine.makeInference()
        return total(engine)

    engine = gum.LazyPropagation(other)
    engine.makeInference()

    def again(queries: Any) -> float:
        found = 0.0
        for evidence in queries:
            engine.setEvidence(evidence)
            engine.makeInference()
            found += total(engine)
        return found

    return cold, again


def memory() -> None:
    """Print the peak of what a fit holds beside the size of its rows."""
    from assay.bayes_net import BayesianNetwork

    for case in CASES.values():
        X = random_network(case.d).sample(case.n, random_state=0).astype(np.int64)
        BayesianNetwork(nominal="all", max_iter=1).fit(X)
        tracemalloc.start()
        BayesianNetwork(nominal="all").fit(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        held = f"the fit holds {peak / 2**20:.1f} MiB beside them"
        print(f"{case.n:,} x {case.d}: rows {X.nbytes / 2**20:.1f} MiB, {held}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench bayes_net", description=__doc__)
    parser.add_argument("--only", choices=[*CASES, "marginals", "memory"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that pgmpy may take")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(1)
    rows: list[dict[str, Any]] = []
    for name in [*CASES, "marginals", "memory"] if options.only is None else [options.only]:
        if name == "memory":
            memory()
        else:
            structures = (name, options.repeats, options.limit)
            rows += marginals(options.repeats) if name == "marginals" else structure(*structures)
    if options.only is None:
        save("bayes_net", rows)
