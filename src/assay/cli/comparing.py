"""`assay compare`: is one model proved better than another?"""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from assay import datasets
from assay import explain as explaining
from assay.cli.predicting import open_model, using
from assay.cli.screen import say
from assay.text import json_text


def compare(first: Path, second: Path, source: str, confidence: float, as_json: bool = False) -> None:
    """Run the command."""
    if not 0 < confidence < 1:
        raise ValueError(f"--confidence must be a number between 0 and 1, such as 0.95; got {confidence:g}.")
    models = open_model(first), open_model(second)
    bundled = source in datasets.TARGETS and not Path(source).exists()
    with using(first):
        result = explaining.compare(*models, datasets.load(source) if bundled else source, delta=1 - confidence)
    if as_json:
        record = asdict(result) | {"first": str(first), "second": str(second), "confidence": confidence}
        print(json_text(record))
        return
    console = Console()
    kind = "error rate" if models[0].model.task == "classify" else "mean absolute error"
    for which, path, loss in zip(("First", "Second"), (first, second), result.losses, strict=True):
        say(console, f"{which}: {path}, {kind} {loss:.5g} on {result.rows} rows.")
    what = "wrong" if models[0].model.task == "classify" else "further off"
    first_alone, second_alone = result.alone
    say(console, f"The first alone is {what} in {first_alone} of these rows, the second alone in {second_alone}.")
    for sentence in result.sentences:
        say(console, sentence)
