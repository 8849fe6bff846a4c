"""A model card of a saved model, in the layout of Hugging Face: what the file knows, with blanks for the rest.

Metrics stand there as the certificate has them, with bounds; nothing is measured anew.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import assay
from assay.claims.claim import Certificate, Claim
from assay.claims.document import digest
from assay.claims.words import UNDETECTABLE, assumptions, population
from assay.learning import TableModel
from assay.messages import method
from assay.text import shown

_BLANK = "*To be filled in: {}*"
_MOST = 100  # columns and parameters that are listed
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}"
    "code{font:14px/1.4 ui-monospace,monospace}"
)


@dataclass(frozen=True)
class Part:
    """A section: what it says in sentences, items and a table, and a command or two."""

    title: str
    sentences: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    blanks: tuple[str, ...] = ()
    code: tuple[str, ...] = field(default=())


def parts(model: TableModel, certificate: Certificate | None, file: str) -> Iterator[Part]:
    """Yield the sections of the card of a model in a file."""
    yield _details(model, certificate)
    yield Part("Uses", blanks=("what the model is for, who uses it, and what it must not be used for",))
    yield _risks(certificate)
    yield Part(
        "How to get started", code=(f"assay predict {file} new.csv", f"assay serve {file}"),
        sentences=("New rows are read as the training rows were; see the columns below.",),
    )  # fmt: skip
    yield _training(model, certificate)
    yield from _evaluation(certificate)
    yield Part("Contact", blanks=("who answers for the model, and when it is to be looked at again",))


def _details(model: TableModel, certificate: Certificate | None) -> Part:
    learner = model.learner
    task = "classification" if model.task == "classify" else "regression"
    name = method(type(learner).__name__, learner.card.name, "en")
    rows = [("Task", f"tabular {task} of the column {model.target.name}"), ("Method", name)]
    if model.task == "classify":
        rows.append(("Classes", ", ".join(str(label) for label in model.classes_.tolist()[:_MOST])))
    given = {key: value for key, value in learner.get_params(deep=False).items() if _is_plain(value)}
    rows.append(("Settings", ", ".join(f"{key}={value}" for key, value in list(given.items())[:_MOST])))
    if certificate is not None:
        rows.append(("Model fingerprint", certificate.model.digest))
        rows.append(("Certificate", digest(certificate)))
    rows.append(("Made with", f"Assay {assay.__version__}"))
    return Part("Model details", head=("", ""), rows=tuple(rows))


def _is_plain(value: Any) -> bool:
    return value is not None and isinstance(value, (str, int, float, bool))


def _risks(certificate: Certificate | None) -> Part:
    known = (
        () if certificate is None else (f"The bounds below are about new data like this: {population(certificate)}",)
    )
    return Part(
        "Bias, risks and limitations", known, UNDETECTABLE,
        blanks=("groups of people whom errors hurt, and what was done about it",),
    )  # fmt: skip


def _training(model: TableModel, certificate: Certificate | None) -> Part:
    columns = [
        (column.name, column.kind, ", ".join(column.levels[:12]) + (", ..." if len(column.levels) > 12 else ""))
        for column in model.columns[:_MOST]
    ]
    lines = [] if len(model.columns) <= _MOST else [f"The first {_MOST} of {len(model.columns)} columns:"]
    if certificate is not None:
        counts = [f"{array.rows} {'hold-out' if name == 'holdout' else 'training'} rows (fingerprint {array.digest})"
                  for name, array in certificate.data.items()]  # fmt: skip
        lines.insert(0, f"The table had {', '.join(counts)}.")
    return Part(
        "Training data", tuple(lines), head=("Column", "Kind", "Levels"), rows=tuple(columns),
        blanks=("where the rows come from, when they were collected, and under which licence",),
    )  # fmt: skip


def _evaluation(certificate: Certificate | None) -> Iterator[Part]:
    if certificate is None:
        yield Part("Evaluation", ("The file holds no certificate: nothing is proved about this model.",))
        return
    new = [claim for claim in certificate if not claim.is_fact]
    sure = f"They hold together but for a failure probability of at most {certificate.delta_total}."
    none = "Nothing is proved about new data."
    yield Part("Evaluation", (sure if new else none,), head=("Claim", "Says"), rows=_claims(new))
    groups = [item for item in new if "group" in item.params]
    blank = (
        ()
        if groups
        else ("errors in groups that matter; a study with a column of groups certifies the error in new ones",)
    )
    yield Part("Subgroups", head=("Claim", "Says") if groups else (), rows=_claims(groups), blanks=blank)
    facts = [claim for claim in certificate if claim.is_fact]
    if facts:
        yield Part("Facts about the fit", head=("Claim", "Says"), rows=_claims(facts))
    yield Part("Assumptions", ("The statements about new data rest on this, which no checker can see:",),
               tuple(str(assumption) for assumption in assumptions(certificate)))  # fmt: skip
    yield Part(
        "How to verify", ("With the table that it was learnt from, everything above is computed again:",),
        code=("assay verify model.assay table.csv",),
    )  # fmt: skip


def _claims(claims: list[Claim]) -> tuple[tuple[str, ...], ...]:
    return tuple((claim.kind, claim.statement) for claim in claims)


def markdown(model: TableModel, certificate: Certificate | None, file: str) -> str:
    """Return the card as Markdown, with the front matter that model hubs read."""
    kind = "tabular-classification" if model.task == "classify" else "tabular-regression"
    front = ["---", "library_name: assay", f"pipeline_tag: {kind}", "tags:", "- tabular", "- certificate", "---"]
    lines = [*front, "", f"# Predictions of {_text(model.target.name)}", ""]
    for part in parts(model, certificate, file):
        lines += [f"## {part.title}", ""]
        lines += [line for sentence in part.sentences for line in (_text(sentence), "")]
        lines += [*(f"- {_text(item)}" for item in part.items), *([""] if part.items else [])]
        lines += [*(f"    {other_item}" for other_item in part.code), *([""] if part.code else [])]
        if part.rows:
            lines += [
                _row(part.head),
                _row(["---"] * len(part.head)),
                *(_row(map(_text, row)) for row in part.rows),
                "",
            ]
        lines += [line for blank in part.blanks for line in (_BLANK.format(blank), "")]
    return "\n".join(lines)


def html(model: TableModel, certificate: Certificate | None, file: str) -> str:
    """Return the card as a page that loads nothing."""
    title = escape(shown(f"Predictions of {model.target.name}"))
    body = [f"<h1>{title}</h1>"]
    for part in parts(model, certificate, file):
        body.append(f"<h2>{escape(part.title)}</h2>")
        body += [f"<p>{_html(sentence)}</p>" for sentence in part.sentences]
        body.append(_wrapped("ul", "".join(f"<li>{_html(item)}</li>" for item in part.items)))
        body += [f"<p><code>{_html(other_item)}</code></p>" for other_item in part.code]
        head = _wrapped("tr", "".join(f"<th>{_html(other_item)}</th>" for other_item in part.head))
        rows = "".join(_wrapped("tr", "".join(f"<td>{_html(cell)}</td>" for cell in row)) for row in part.rows)
        body.append(_wrapped("table", head + rows if rows else ""))
        body += [f"<p><em>To be filled in: {_html(blank)}</em></p>" for blank in part.blanks]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        + "\n".join(other_item for other_item in body if other_item)
    )


def _wrapped(tag: str, inner: str) -> str:
    return f"<{tag}>{inner}</{tag}>" if inner else ""


def _html(text: str) -> str:
    return escape(shown(text))


def _text(text: str) -> str:
    """Return text in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(shown(str(text)).split()))


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
