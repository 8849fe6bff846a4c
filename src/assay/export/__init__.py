"""Fitted models in forms that other programs run: ONNX graphs (extra `onnx`), and Python source without dependencies.

Both compute in double precision from the arrays that the model file stores, those that the fingerprint in a certificate
is about. They name that fingerprint; the certificate stays with the model file.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.export._onnx import onnx_model, save_onnx
    from assay.export._python import python_source, save_python

__all__ = ["onnx_model", "python_source", "save_onnx", "save_python"]


def __getattr__(name: str) -> Any:
    """Import on first use: the list of learners walks through all rooms, and the extra need not be installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.endswith(("_source", "_python")):
        from assay.export import _python

        return getattr(_python, name)
    try:
        from assay.export import _onnx
    except ModuleNotFoundError as error:
        raise ImportError(f"ONNX graphs need {error.name}: pip install 'assay[onnx]'.") from None
    return getattr(_onnx, name)
