"""Networks whose answers are known: published tables, and random ones."""

import numpy as np

from assay.bayes_net import Network

YES = ["yes", "no"]


def burglary():
    """Return the network of Pearl's alarm, with the tables of Russell and Norvig."""
    alarm = [[[0.95, 0.05], [0.94, 0.06]], [[0.29, 0.71], [0.001, 0.999]]]
    return Network.of(
        dict.fromkeys(("burglary", "earthquake", "alarm", "john", "mary"), YES),
        {
            "burglary": [0.001, 0.999],
            "earthquake": [0.002, 0.998],
            "alarm": (["burglary", "earthquake"], alarm),
            "john": (["alarm"], [[0.9, 0.1], [0.05, 0.95]]),
            "mary": (["alarm"], [[0.7, 0.3], [0.01, 0.99]]),
        },
    )


def sprinkler():
    """Return Murphy's network of cloud, sprinkler, rain and wet grass."""
    return Network.of(
        dict.fromkeys(("cloudy", "sprinkler", "rain", "wet"), YES),
        {
            "cloudy": [0.5, 0.5],
            "sprinkler": (["cloudy"], [[0.1, 0.9], [0.5, 0.5]]),
            "rain": (["cloudy"], [[0.8, 0.2], [0.2, 0.8]]),
            "wet": (["sprinkler", "rain"], [[[0.99, 0.01], [0.9, 0.1]], [[0.9, 0.1], [0.0, 1.0]]]),
        },
    )


def asia():
    """Return the network of Lauritzen and Spiegelhalter 1988."""
    either = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    return Network.of(
        dict.fromkeys(("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"), YES),
        {
            "asia": [0.01, 0.99],
            "tub": (["asia"], [[0.05, 0.95], [0.01, 0.99]]),
            "smoke": [0.5, 0.5],
            "lung": (["smoke"], [[0.1, 0.9], [0.01, 0.99]]),
            "bronc": (["smoke"], [[0.6, 0.4], [0.3, 0.7]]),
            "either": (["lung", "tub"], either),
            "xray": (["either"], [[0.98, 0.02], [0.05, 0.95]]),
            "dysp": (["bronc", "either"], [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]]),
        },
    )


def random_network(d, seed, most=3, zeros=False):
    """Return a network of d nodes with 2 or 3 states and at most so many parents each."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, d)
    tables = {}
    for node in range(d):
        parents = (
            sorted(rng.choice(node, size=min(node, rng.integers(0, most + 1)), replace=False).tolist()) if node else []
        )
        table = rng.dirichlet(np.ones(sizes[node]), size=tuple(sizes[one] for one in parents))
        if zeros:
            table = np.where(table < 0.1, 0.0, table)
            table /= table.sum(axis=-1, keepdims=True)
        tables[f"v{node}"] = ([f"v{one}" for one in parents], table)
    return Network.of({f"v{node}": [str(s) for s in range(sizes[node])] for node in range(d)}, tables)


def joint(net):
    """Return the whole joint table, by multiplying entries one by one."""
    table = np.zeros(net.sizes)
    for cell in np.ndindex(*net.sizes):
        p = 1.0
        for node, above in enumerate(net.parents):
            p *= net.tables[node][(*(cell[one] for one in above), cell[node])]
        table[cell] = p
    return table


def drawn(d, seed, n=400):
    """Return rows of a random network in which every state occurs."""
    X = random_network(d, seed).sample(n, random_state=seed).astype(int)
    return np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
