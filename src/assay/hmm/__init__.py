"""Hidden Markov models: sequences whose rows depend on a hidden state that moves by a Markov chain."""

from assay.hmm._discrete import CategoricalHMM, PoissonHMM
from assay.hmm._gaussian import GaussianHMM
from assay.hmm._mixtures import GMMHMM

__all__ = ["GMMHMM", "CategoricalHMM", "GaussianHMM", "PoissonHMM"]
