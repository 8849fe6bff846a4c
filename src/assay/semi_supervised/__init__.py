"""Learners that also read rows without labels, marked -1, and one that makes its own targets from the rows."""

from assay.borrowed import borrowed
from assay.semi_supervised._em import GaussianEM, MultinomialEM
from assay.semi_supervised._entropy_logistic import EntropyLogisticRegression, Terms
from assay.semi_supervised._graph import LabelPropagation, LabelSpreading, graph_kernel, neighbour_graph
from assay.semi_supervised._labels import UNLABELLED, labelled, labelled_rows
from assay.semi_supervised._masked import MaskedFeatures
from assay.semi_supervised._self_training import SelfTrainingClassifier, VouchedClassifier

__all__ = [
    "UNLABELLED",
    "EntropyLogisticRegression",
    "GaussianEM",
    "LabelPropagation",
    "LabelSpreading",
    "MaskedFeatures",
    "MultinomialEM",
    "SelfTrainingClassifier",
    "Terms",
    "VouchedClassifier",
    "graph_kernel",
    "labelled",
    "labelled_rows",
    "neighbour_graph",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
