"""report.html: leaderboard, card, certificate in plain words, figures; no other file is needed to read it.

Everything that comes from the data (column names, labels, file names) is escaped.
"""

import os
from collections.abc import Iterable
from html import escape

import numpy as np

from assay.claims.definitions import percent as percent_up
from assay.claims.definitions import up
from assay.claims.words import sections
from assay.files import written_whole
from assay.learning import TASKS, Candidate, Study, percent
from assay.report.drawing import figures
from assay.text import shown

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #5b6770; --line: #d9dee3; --paper: #fff;
  --mark: #2f6690; --tint: #eef3f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #a4aeb8; --line: #3a434c; --paper: #16191d;
    --mark: #8fbfe0; --tint: #20272e; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 64rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p.lead { font-size: 1.1rem; background: var(--tint); border-left: 4px solid var(--mark);
  padding: .8rem 1rem; }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-top: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; color: var(--soft); border-top: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.note { border-top: 0; padding-top: 0; color: var(--soft); font-size: .92rem; }
tr.chosen td { font-weight: 600; }
li { margin: .3rem 0; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }
figure { margin: 0; }
figure img { max-width: 100%; background: #fff; border-radius: 6px; }
figcaption { color: var(--soft); font-size: .92rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { color: var(--soft); }
dd { margin: 0; }
"""


def write_report(result: Study, path: str | os.PathLike[str], source: str) -> None:
    """Write the page; an existing file is replaced in one step."""
    with written_whole(path) as part:
        part.write_text(page(result, source), encoding="utf-8")


def page(result: Study, source: str) -> str:
    """Return the report as HTML text."""
    card = result.model.learner.card
    train, held = result.rows
    title = f"{card.name} for {result.model.target.name}"
    sections = [
        f"<h1>{_html(title)}</h1>",
        f"<p class='soft'>{_html(source)}: {train + held:,} rows, {len(result.model.columns)} columns, "
        f"{TASKS[result.task]} of <b>{_html(result.model.target.name)}</b>; {train:,} rows to fit, "
        f"{held:,} held out.</p>",
        f"<p class='lead'>{_html(result.why)}</p>",
        "<h2>Learners compared</h2>",
        _leaderboard(result),
        _list(result.notes),
        "<h2>The chosen model</h2>",
        _card(result),
        "<h2>What is certified</h2>",
        _certificate(result),
        "<h2>Figures</h2>",
        f"<div class='figures'>{''.join(figures(result))}</div>",
    ]
    body = "\n".join(section for section in sections if section)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{_html(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _leaderboard(result: Study) -> str:
    head = (
        "Learner",
        f"Cross-validation ({result.metric.name})",
        "Training error",
        "Held-out error",
        f"Certified at most ({percent(result.confidence)})",
        "Seconds",
    )
    kind = "share of rows predicted wrongly" if result.task == "classify" else "mean absolute error"
    rows = "".join(_row(one, result) for one in result.candidates)
    cells = "".join(f"<th{'' if i == 0 else ' class=n'}>{_html(text)}</th>" for i, text in enumerate(head))
    return (
        f"<div class='scroll'><table><tr>{cells}</tr>{rows}</table></div>"
        f"<p class='soft'>Errors: {kind}. Learners and settings were chosen by cross-validation inside the training "
        "rows; the hold-out rows were opened once, for the finalists, whose bounds hold together.</p>"
    )


def _row(one: Candidate, result: Study) -> str:
    def error(value: float) -> str:
        if np.isnan(value):
            return ""
        return f"{100 * value:.2f} %" if result.task == "classify" else f"{value:.5g}"

    note = f"<tr><td class='note' colspan='6'>{_html(one.note)}</td></tr>" if one.note else ""
    bound = "left out" if one.status == "left out" else ""
    if one.bound is not None:
        bound = percent_up(one.bound) if result.task == "classify" else up(one.bound, 5)
    judged = "" if np.isnan(one.cv) else f"{one.cv:.4g}"
    numbers = (judged, error(one.training_error), error(one.holdout_error), bound, f"{one.seconds:.2f}")
    cells = "".join(f"<td class='n'>{text}</td>" for text in numbers)
    settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
    name = f"{_html(one.name)} <span class='soft'>{_html(settings)}</span>" if settings else _html(one.name)
    return f"<tr{' class=chosen' if one is result.chosen else ''}><td>{name}</td>{cells}</tr>{note}"


def _card(result: Study) -> str:
    learner, encoding = result.model.learner, result.model.encoding
    card = learner.card
    settings = ", ".join(f"{name}={value!r}" for name, value in sorted(learner.get_params(deep=False).items()))
    facts = {
        "Method": f"{card.name} ({card.zh})",
        "Model": str(card.model),
        "Strategy": card.strategy,
        "Algorithm": card.algorithm,
        "Guarantee": ", ".join(card.guarantee),
        "Settings": settings,
        "Input": f"{len(result.model.columns)} columns encoded as {result.model.learner.n_features_in_}: "
        f"numbers scaled, gaps filled and marked, names one-hot ({len(encoding.nominal())} of them as they are)",
    }
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{_html(text)}</dd>" for name, text in facts.items()) + "</dl>"


def _certificate(result: Study) -> str:
    parts = [f"<h3>{_html(title)}</h3>{_list(lines)}" for title, lines in sections(result.certificate)]
    parts.append(
        "<p class='soft'>Anyone with the model file and the table can check all of this: "
        "<code>assay verify</code>. The claims are about the encoded rows, and the encoding is "
        "what the training rows give. That the labels are right, only those who wrote them can know.</p>"
    )
    return "\n".join(parts)


def _html(text: str) -> str:
    return escape(shown(text))


def _list(items: Iterable[str]) -> str:
    listed = "".join(f"<li>{_html(item)}</li>" for item in items)
    return f"<ul>{listed}</ul>" if listed else ""
