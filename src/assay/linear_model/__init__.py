"""Linear models: least squares, ridge, logistic regression, the perceptron."""

from assay.linear_model._least_squares import LinearRegression, Ridge
from assay.linear_model._logistic import LogisticRegression
from assay.linear_model._perceptron import Perceptron

__all__ = ["LinearRegression", "LogisticRegression", "Perceptron", "Ridge"]
