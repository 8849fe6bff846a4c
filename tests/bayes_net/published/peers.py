"""Marginals of published networks by pyAgrum 3.3.1, from files as pgmpy 1.1.2 reads them: writes marginals.json.

    python tests/bayes_net/published/peers.py        with pyagrum and pgmpy installed

The tables are those of asia (Lauritzen and Spiegelhalter 1988), child (Spiegelhalter and Cowell 1992), alarm (Beinlich
et al. 1989) and insurance (Binder et al. 1997), as the repository of bnlearn has them. Evidence is drawn among the
leaves by a fixed seed; the first case of each network has none. pyAgrum's own reader keeps single precision, so that
its tables are filled from pgmpy's.
"""

import json
from pathlib import Path

import numpy as np
import pyagrum
from pgmpy.readwrite import BIFReader

HERE = Path(__file__).parent


def load(name):
    model = BIFReader(str(HERE / f"{name}.bif")).get_model()
    states = {table.variable: list(map(str, table.state_names[table.variable])) for table in model.get_cpds()}
    net = pyagrum.BayesNet(name)
    for node, own in states.items():
        net.add(pyagrum.LabelizedVariable(node, node, [f"s{i}" for i in range(len(own))]))
    for parent, child in model.edges():
        net.addArc(parent, child)
    for table in model.get_cpds():
        mine = net.cpt(table.variable)
        axes = [list(table.variables).index(one) for one in reversed(mine.names)]
        values = table.values / table.values.sum(axis=0, keepdims=True)
        mine.fillWith([float(p) for p in values.transpose(axes).ravel()])
    return net, states


def cases(name):
    net, states = load(name)
    rng = np.random.default_rng(1)
    leaves = [node for node in sorted(states) if not net.children(node)]
    for many, place in ((0, 0), (2, 0), (5, 1)):
        engine, evidence = pyagrum.LazyPropagation(net), {}
        for node in rng.permutation(leaves)[:many].tolist():
            engine.setEvidence(evidence)
            p = engine.posterior(node).toarray()
            chosen = int(np.argsort(-p)[min(place, len(p) - 1)])
            evidence[node] = chosen if p[chosen] > 1e-4 else int(p.argmax())
        engine.setEvidence(evidence)
        engine.makeInference()
        free = [node for node in sorted(states) if node not in evidence]
        yield {
            "evidence": {node: states[node][i] for node, i in evidence.items()},
            "probability": float(engine.evidenceProbability()),
            "marginals": {node: dict(zip(states[node], engine.posterior(node).toarray().tolist())) for node in free},
        }


if __name__ == "__main__":
    found = {name: list(cases(name)) for name in ("asia", "child", "alarm", "insurance")}
    (HERE / "marginals.json").write_text(json.dumps(found, indent=1) + "\n")
