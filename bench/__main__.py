"""python -m bench NAME [options]"""

import sys
from importlib import import_module

NAMES = (
    "claims",
    "cluster",
    "combine",
    "dropin",
    "linear",
    "linear_full",
    "parquet",
    "patch",
    "scale",
    "validity",
    "svm",
    "svm_limits",
    "trees",
    "tightness",
    "neural",
    "networks",
    "mixture",
    "bayes_net",
    "neighbors",
    "bayes",
    "hmm",
    "topics",
    "features",
    "learn",
    "studio",
)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m bench {{{','.join(NAMES)}}} [--help]")
    import_module(f"bench.{sys.argv[1]}").main(sys.argv[2:])


if __name__ == "__main__":  # worker processes import this file too
    main()
