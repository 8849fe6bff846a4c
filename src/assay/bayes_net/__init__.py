"""Bayesian networks: structure, tables, and inference."""

from assay.bayes_net._classifier import BayesianNetworkClassifier
from assay.bayes_net._draws import read_bif
from assay.bayes_net._graph import Cpdag, all_dags, d_separated, structural_hamming_distance
from assay.bayes_net._inference import Answer, Explanation, TooLargeError
from assay.bayes_net._learner import BayesianNetwork, ChowLiu
from assay.bayes_net._network import Network

__all__ = [
    "Answer",
    "BayesianNetwork",
    "BayesianNetworkClassifier",
    "ChowLiu",
    "Cpdag",
    "Explanation",
    "Network",
    "TooLargeError",
    "all_dags",
    "d_separated",
    "read_bif",
    "structural_hamming_distance",
]
