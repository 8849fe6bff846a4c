"""Is this melon ripe? Naive Bayes by hand, as in a textbook, and what other assumptions say
=========================================================================================

Seventeen melons with six words and two numbers each (Zhou, Machine Learning, 2016, table 4.3). Run
`python examples/melon_by_hand.py [figure.png]`; a name writes a figure of the tables (needs matplotlib).
"""

import sys
import warnings

import numpy as np
import pandas as pd

from assay.naive_bayes import AODE, TAN, MixedNB, ZeroProbabilityWarning

NAMES = ["colour", "root", "sound", "texture", "navel", "touch", "density", "sugar"]
ROWS = """green curled dull clear sunken hard 0.697 0.460 yes
black curled deep clear sunken hard 0.774 0.376 yes
black curled dull clear sunken hard 0.634 0.264 yes
green curled deep clear sunken hard 0.608 0.318 yes
white curled dull clear sunken hard 0.556 0.215 yes
green bent dull clear hollow soft 0.403 0.237 yes
black bent dull blurred hollow soft 0.481 0.149 yes
black bent dull clear hollow hard 0.437 0.211 yes
black bent deep blurred hollow hard 0.666 0.091 no
green stiff crisp clear flat soft 0.243 0.267 no
white stiff crisp vague flat hard 0.245 0.057 no
white curled dull vague flat soft 0.343 0.099 no
green bent dull blurred sunken hard 0.639 0.161 no
white bent deep blurred sunken hard 0.657 0.198 no
black bent dull clear hollow soft 0.360 0.370 no
white curled dull vague flat hard 0.593 0.042 no
green curled deep blurred hollow hard 0.719 0.103 no"""


def melons() -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table, and which melons are ripe."""
    rows = [line.split() for line in ROWS.split("\n")]
    table = pd.DataFrame([row[:8] for row in rows], columns=NAMES)
    return table.astype({"density": float, "sugar": float}), np.array([row[8] for row in rows])


def by_hand(table: pd.DataFrame, ripe: np.ndarray, melon: int) -> dict[str, float]:
    """Return P(c) prod P(x_i | c) of one melon: shares for words, normal densities (divisor n - 1) for numbers."""
    found = {}
    for label in ("no", "yes"):
        own, p = table[ripe == label], float(np.mean(ripe == label))
        for name in NAMES[:6]:
            p *= float(np.mean(own[name] == table[name].iloc[melon]))
        for name in NAMES[6:]:
            mean, deviation = own[name].mean(), own[name].std()
            p *= np.exp(-0.5 * ((table[name].iloc[melon] - mean) / deviation) ** 2) / (np.sqrt(2 * np.pi) * deviation)
        found[label] = float(p)
    return found


def main(figure: str | None = None) -> None:
    table, ripe = melons()
    print("by hand:", {label: f"{p:.3g}" for label, p in by_hand(table, ripe, 0).items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroProbabilityWarning)  # plain counting, as by hand
        plain = MixedNB(alpha=0.0, ddof=1, var_smoothing=0.0).fit(table, ripe)
    joint = np.exp(plain.predict_joint_log_proba(table.iloc[:1]))[0]
    print("MixedNB:", {str(label): f"{p:.3g}" for label, p in zip(plain.classes_, joint, strict=True)})
    for model in (MixedNB(), AODE(n_bins=3), TAN(n_bins=3)):
        model.fit(table, ripe)
        share = model.predict_proba(table.iloc[:1])[0, 1]
        print(f"{type(model).__name__:8s} with Laplace's rule: ripe with probability {share:.3f}")
    if figure is not None:
        plain.plot().savefig(figure)
        print(f"wrote {figure}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
