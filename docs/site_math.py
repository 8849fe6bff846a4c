"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, no network."""

from docutils.utils.math import latex2mathml, pick_math_environment
from sphinx.application import Sphinx


def _mathml(code: str, display: bool) -> str:
    if display and r"\\" in code:
        name = pick_math_environment(code).rstrip("*")
        code = rf"\begin{{{name}}}{code}\end{{{name}}}"
    return latex2mathml.tex2mathml(code, as_block=display)


def inline(writer, node) -> None:
    writer.body.append(_mathml(node.astext(), display=False))


def display(writer, node) -> None:
    writer.body.append(f'<div class="math">{_mathml(node.astext(), display=True)}</div>')


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(display, None))
    app.config.html_math_renderer = "mathml"
