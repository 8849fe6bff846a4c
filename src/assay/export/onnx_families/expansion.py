"""Kernel expansions with a score for each class: kernel logistic regression, perceptron and discriminant."""

from assay.export.onnx_families.kernel import scores

__all__ = ["scores"]
