"""The figures of a report, as images inside the page."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.learning import Study
from assay.text import shown


def figures(result: Study) -> Iterator[str]:
    """Yield each figure that the chosen model allows as an HTML element; a sentence if none can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        yield "<p>No figures: matplotlib is not installed (<code>pip install 'assay[plot]'</code>).</p>"
        return
    for caption, draw in _drawings(result):
        image = f"<img alt='{caption}' src='data:image/svg+xml;base64,{_svg(draw())}'>"
        yield f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _drawings(result: Study) -> Iterator[tuple[str, Callable[[], Any]]]:
    from assay import plot

    model, (X, y) = result.model.learner, result.encoded_holdout
    if result.task == "classify":
        yield "Hold-out rows by true and predicted class.", partial(plot.confusion, model, X, y)
        if hasattr(model, "predict_proba"):
            yield (
                "Predicted probabilities against what happened, on the hold-out rows.",
                partial(plot.calibration, model, X, y),
            )
    else:
        yield "Residuals on the hold-out rows.", partial(plot.residuals, model, X, y)
    names = result.model.encoding.feature_names()
    if np.shape(getattr(model, "coef_", ()))[-1:] == (len(names),):  # others weigh features of their own
        yield (
            "Largest coefficients of the encoded columns.",
            partial(plot.coefficients, model, names),
        )
    if len(getattr(model, "history_", ())) > 1:
        yield "How the fit went.", partial(plot.history, model)


def _svg(figure: Any) -> str:
    """Return the figure as SVG; the browser sets its text, so that labels in any script can be read.

    Characters that XML forbids are written as their escapes.
    """
    from matplotlib import rc_context

    content = io.StringIO()
    with rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(content, format="svg", metadata={"Date": None})
    lines = (shown(line) for line in content.getvalue().split("\n"))
    return base64.b64encode("\n".join(lines).encode()).decode()
