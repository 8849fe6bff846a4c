"""`assay card`: the model card of a model file."""

from pathlib import Path

from assay.cli.paths import keep_apart
from assay.cli.predicting import open_model
from assay.files import written_whole
from assay.report import model_card


def card(model_file: Path, out: Path | None) -> None:
    """Run the command."""
    if out is not None and out.suffix.lower() not in (".md", ".html"):
        raise ValueError(f"--out must end in .md or .html; got {str(out)!r}.")
    model, certificate = open_model(model_file)
    if out is None:
        print(model_card.markdown(model, certificate, model_file.name))
        return
    keep_apart([model_file], {"--out": out})
    written = model_card.html if out.suffix.lower() == ".html" else model_card.markdown
    with written_whole(out) as part:
        part.write_text(written(model, certificate, model_file.name), encoding="utf-8")
