"""`assay export`: a model file as an ONNX graph."""

from pathlib import Path

from assay import export
from assay.cli.paths import keep_apart
from assay.cli.predicting import open_model


def run(model_file: Path, out: Path | None) -> None:
    """Run the command."""
    path = model_file.with_suffix(".onnx") if out is None else out
    if path.suffix.lower() != ".onnx":
        raise ValueError(f"--out must end in .onnx; got {str(path)!r}.")
    keep_apart([model_file], {"--out": path})
    model, _ = open_model(model_file)
    export.save_onnx(model, path)
    print(f"Written to {path}.")
