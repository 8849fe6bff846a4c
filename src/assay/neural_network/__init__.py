"""Neural networks: feed-forward networks by back-propagation and search, radial basis functions, cascades, recurrent
networks; competition, resonance and maps; threshold gates, Boltzmann machines, restricted and stacked.

Single neurons and their activations are in `assay.neural_network.units`, the steps of back-propagation one by one in
`assay.neural_network.units`.
"""

from assay.borrowed import borrowed
from assay.neural_network._art import ART1, FuzzyART
from assay.neural_network._boltzmann import BoltzmannMachine, learn_boltzmann
from assay.neural_network._cascade import CascadeCorrelationClassifier, CascadeCorrelationRegressor
from assay.neural_network._competitive import CompetitiveLearning
from assay.neural_network._elman import ElmanClassifier, ElmanRegressor
from assay.neural_network._map import SelfOrganizingMap
from assay.neural_network._multilayer_perceptron import (
    MLPClassifier,
    MLPRegressor,
    hidden_units_by_trial,
    lambda_by_cross_validation,
)
from assay.neural_network._rbf import RBFClassifier, RBFRegressor
from assay.neural_network._rbm import BernoulliRBM, DeepBeliefNetwork
from assay.neural_network._recurrence import LayerInformation, layer_information
from assay.neural_network.units import ThresholdNetwork

__all__ = [
    "ART1",
    "BernoulliRBM",
    "BoltzmannMachine",
    "CascadeCorrelationClassifier",
    "CascadeCorrelationRegressor",
    "CompetitiveLearning",
    "DeepBeliefNetwork",
    "ElmanClassifier",
    "ElmanRegressor",
    "FuzzyART",
    "LayerInformation",
    "MLPClassifier",
    "MLPRegressor",
    "RBFClassifier",
    "RBFRegressor",
    "SelfOrganizingMap",
    "ThresholdNetwork",
    "hidden_units_by_trial",
    "lambda_by_cross_validation",
    "layer_information",
    "learn_boltzmann",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
