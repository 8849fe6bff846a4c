"""Neural networks: feed-forward networks by back-propagation and search, gates, neurons, small Boltzmann machines."""

from assay.neural_network._boltzmann import BoltzmannMachine, learn_boltzmann
from assay.neural_network._choice import Trial, hidden_units_by_trial, lambda_by_cross_validation
from assay.neural_network._classifier import MLPClassifier
from assay.neural_network._regressor import MLPRegressor
from assay.neural_network._units import ACTIVATIONS, Activation, ThresholdNetwork, neuron

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "BoltzmannMachine",
    "MLPClassifier",
    "MLPRegressor",
    "ThresholdNetwork",
    "Trial",
    "hidden_units_by_trial",
    "lambda_by_cross_validation",
    "learn_boltzmann",
    "neuron",
]
