"""Fitted models in forms that other programs run: ONNX graphs (extra `onnx`).

The graph computes in double precision from the arrays that the model file stores, those that the fingerprint in a
certificate is about. Its metadata name that fingerprint; the certificate stays with the model file.
"""

from assay.export._onnx import onnx_model, save_onnx

__all__ = ["onnx_model", "save_onnx"]
