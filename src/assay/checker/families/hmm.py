"""Hidden Markov models.

Arrays: `startprob_` (k,), `transmat_` (k, k), and `emissionprob_` (k, symbols) or (columns, k, symbols) and `symbols_`,
their names if they are text; or `lambdas_` (k, columns), rates of counts; or `means_` (k, d) and `precisions_cholesky_`
((k, d, d) full, (d, d) tied, (k, d) diag, (k,) spherical), upper triangular with a positive diagonal; or, with n
components in each state, `weights_` (k, n), `means_` (k, n, d) and `precisions_cholesky_` ((k, n, d, d), (k, d, d),
(k, n, d), (k, n)). A row may lack entries (NaN), which are left out.
"""

from functools import partial

from assay.checker.family import NUMBERS, TEXT, Family, Variant
from assay.checker.rules import chain_em, chains, densities
from assay.claims.definitions import HOLDOUT, Definition
from assay.claims.sentences import Params, Sentence, with_digits

_LIKELIHOOD = Sentence(
    {
        "": "The log-likelihood of the training sequences, cut as listed, is {shown} nats per row, to within "
        "{within:up1}."
    },
    with_digits,
)


def _letters(value: float, direction: str, params: Params) -> Params:
    return {"letters": list(params["parts"])}


_STATIONARY = Sentence(
    {
        "": "The model is near a fixed point of EM on the training sequences: an M step of the parts {letters:, } with "
        "the stated priors gains at most {value:up} nats per row."
    },
    _letters,
)


_MONOTONE = Sentence(
    {
        "": "EM of the parts {letters:, } from the listed start comes within {distance:up1} of the model in {steps} "
        "steps, none of which lowers the log-likelihood and log-prior together by more than {value:up1} per row."
    },
    _letters,
)


_HOLDOUT = Sentence(
    {
        "": "The mean over new sequences of -ln p / length, clipped to [{low:g}, {high:g}], is at most {bound:up4} "
        "nats (betting, {sequences} hold-out sequences, {repeated} of which nearly repeat an earlier one)."
    },
    lambda value, direction, params: {"high": params["low"] + params["clip"], "bound": value + params["low"]},
)


CLAIMS = {
    "D50/1": Definition("hmm.log-likelihood", chains.LogLikelihood, _LIKELIHOOD),
    "D50/2": Definition("hmm.stationary", chain_em.ChainStationary, _STATIONARY),
    "D50/3": Definition("hmm.monotone", chain_em.ChainMonotone, _MONOTONE),
    "P50/1": Definition(
        "hmm.holdout",
        chains.SequenceBetting,
        _HOLDOUT,
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
