"""Hidden Markov models: sequences whose rows depend on a hidden state that moves by a Markov chain."""

from assay.hmm._categorical import CategoricalHMM
from assay.hmm._gaussian import GaussianHMM
from assay.hmm._mixtures import GMMHMM
from assay.hmm._poisson import PoissonHMM

__all__ = ["GMMHMM", "CategoricalHMM", "GaussianHMM", "PoissonHMM"]
