"""Fitted models in forms that other programs run: ONNX graphs (extra `onnx`).

The graph computes in double precision from the arrays that the model file stores, those that the fingerprint in a
certificate is about. Its metadata name that fingerprint; the certificate stays with the model file.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.export._onnx import onnx_model, save_onnx

__all__ = ["onnx_model", "save_onnx"]


def __getattr__(name: str) -> Any:
    """Import on first use: the list of learners walks through all rooms, and the extra need not be installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from assay.export import _onnx
    except ModuleNotFoundError as error:
        raise ImportError(f"ONNX graphs need {error.name}: pip install 'assay[onnx]'.") from None
    return getattr(_onnx, name)
