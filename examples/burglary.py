"""The alarm that a burglar or an earthquake sets off, and two neighbours who call
===============================================================================

    python examples/burglary.py [figure.png]

What do the calls say about a burglary? The answer by every method; what the graph alone says; and the network learnt
back from rows drawn from it, with its certificate.
"""

import sys

import numpy as np

import assay
from assay.bayes_net import BayesianNetwork, Network

YES = ["yes", "no"]
ALARM = Network.of(
    {"burglary": YES, "earthquake": YES, "alarm": YES, "john": YES, "mary": YES},
    {
        "burglary": [0.001, 0.999],
        "earthquake": [0.002, 0.998],
        "alarm": (["burglary", "earthquake"], [[[0.95, 0.05], [0.94, 0.06]], [[0.29, 0.71], [0.001, 0.999]]]),
        "john": (["alarm"], [[0.9, 0.1], [0.05, 0.95]]),
        "mary": (["alarm"], [[0.7, 0.3], [0.01, 0.99]]),
    },
)
CALLS = {"john": "yes", "mary": "yes"}


def answers() -> dict[str, float]:
    """Return P(burglary | both call) by each method."""
    methods = ("enumeration", "elimination", "junction", "gibbs", "weighting")
    return {one: ALARM.infer("burglary", CALLS, method=one, n_samples=200_000)["yes"] for one in methods}


def learnt(rows: int = 50_000) -> tuple[BayesianNetwork, np.ndarray]:
    """Return the network with the same edges and tables learnt from rows, and the rows."""
    X = ALARM.sample(rows, random_state=0)
    edges = [(ALARM.names.index(a), ALARM.names.index(b)) for a, b in ALARM.edges]
    return BayesianNetwork(edges, nominal="all").fit(X), X


def main(path: str | None = None) -> None:
    """Print answers, independences and the certificate; draw the network if a path is given."""
    for method, p in answers().items():
        print(f"P(burglary | john, mary call), by {method}: {p:.5f}")
    print("burglary and earthquake independent:", ALARM.d_separated("burglary", "earthquake"))
    print("... given that john calls:", ALARM.d_separated("burglary", "earthquake", "john"))
    model, X = learnt()
    certificate = model.certify(X)
    print(certificate)
    print("checked:", assay.verify(certificate, model, X).holds)
    if path is not None:
        from assay.plot import dependency_graph

        dependency_graph(ALARM).savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
