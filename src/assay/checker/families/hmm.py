"""Hidden Markov models.

Arrays: `startprob_` (k,), `transmat_` (k, k), and `emissionprob_` (k, symbols) or (columns, k, symbols) and `symbols_`,
their names if they are text; or `lambdas_` (k, columns), rates of counts; or `means_` (k, d) and `precisions_cholesky_`
((k, d, d) full, (d, d) tied, (k, d) diag, (k,) spherical), upper triangular with a positive diagonal; or, with n
components in each state, `weights_` (k, n), `means_` (k, n, d) and `precisions_cholesky_` ((k, n, d, d), (k, d, d),
(k, n, d), (k, n)). A row may lack entries (NaN), which are left out.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from assay.checker.family import NUMBERS, TEXT, Family, Variant
from assay.checker.rules import chain_em, chains, densities
from assay.claims.definitions import HOLDOUT, Definition, up


def _likelihood(value: float, direction: str, params: Mapping[str, Any]) -> str:
    shown = f"{params['center']:.6g}"
    within = up(value + abs(params["center"] - float(shown)), 1)
    return f"The log-likelihood of the training sequences, cut as listed, is {shown} nats per row, to within {within}."


def _parts(params: Mapping[str, Any]) -> str:
    return f" of the parts {', '.join(params['parts'])}"


def _stationary(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The model is near a fixed point of EM on the training sequences: an M step{_parts(params)} with the stated "
        f"priors gains at most {up(value)} nats per row."
    )


def _monotone(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"EM{_parts(params)} from the listed start comes within {up(params['distance'], 1)} of the model in "
        f"{params['steps']} steps, none of which lowers the log-likelihood and log-prior together "
        f"by more than {up(value, 1)} per row."
    )


def _holdout(value: float, direction: str, params: Mapping[str, Any]) -> str:
    low, high = params["low"], params["low"] + params["clip"]
    return (
        f"The mean over new sequences of -ln p / length, clipped to [{low:g}, {high:g}], is at most "
        f"{up(value + params['low'], 4)} nats (betting, {params['sequences']} hold-out sequences, "
        f"{params['repeated']} of which nearly repeat an earlier one)."
    )


CLAIMS = {
    "D50/1": Definition("hmm.log-likelihood", chains.LogLikelihood, _likelihood),
    "D50/2": Definition("hmm.stationary", chain_em.ChainStationary, _stationary),
    "D50/3": Definition("hmm.monotone", chain_em.ChainMonotone, _monotone),
    "P50/1": Definition(
        "hmm.holdout",
        chains.SequenceBetting,
        _holdout,
        ("A-SEQUENCES(holdout)", *HOLDOUT[1:], "A-RANGE", "A-RNG"),
        own_assumptions={
            "A-SEQUENCES(holdout)": "the hold-out sequences, cut as the claim lists them, are independent draws from "
            "one distribution, from which new sequences come too"
        },
    ),
}
_CHAIN = {"startprob_": NUMBERS, "transmat_": NUMBERS}
_GAUSSIANS = {"means_": NUMBERS, "precisions_cholesky_": NUMBERS}
FAMILY = Family(
    "hmm",
    {
        "categorical": Variant(
            {**_CHAIN, "emissionprob_": NUMBERS, "symbols_": TEXT}, chains.read_symbols, target=False
        ),
        "poisson": Variant({**_CHAIN, "lambdas_": NUMBERS}, chains.read_counts, target=False),
        **{
            kind: Variant({**_CHAIN, **_GAUSSIANS}, partial(chains.read_gaussians, kind), target=False)
            for kind in densities.KINDS
        },
        **{
            f"mixtures-{kind}": Variant(
                {**_CHAIN, "weights_": NUMBERS, **_GAUSSIANS}, partial(chains.read_mixtures, kind), target=False
            )
            for kind in densities.KINDS
        },
    },
    CLAIMS,
)
