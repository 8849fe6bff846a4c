"""`assay card`: what the certificate says stands on the card, in both forms, and nothing of a table is markup."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import assay
from assay.claims.document import digest
from assay.cli.app import app
from assay.report.model_card import html, markdown


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame(
        {"<b>x|y</b>": x, "town": rng.choice(["Ulm", "*Bonn*"], 400), "y": np.where(x > 0.2, "a", "b")}
    )
    study = assay.learn(frame, "y", learners=["LogisticRegression"], trials=1, workers=0)
    path = tmp_path_factory.mktemp("card") / "m.assay"
    study.save(path)
    return path, study


def unescaped(text: str) -> str:
    return re.sub(r"\\([^\w\s])", r"\1", text)


def test_every_claim_and_assumption_stands_on_the_card(saved):
    path, study = saved
    text = unescaped(markdown(study.model, study.certificate, str(path)))
    for claim in study.certificate:
        assert " ".join(claim.statement.split()) in text
    assert digest(study.certificate) in text
    assert study.certificate.model.digest in text
    assert "assay verify" in text
    for title in ("Model details", "Uses", "Bias, risks and limitations", "Training data", "Evaluation", "Assumptions"):
        assert f"\n## {title}\n" in text
    assert "To be filled in: what the model is for" in text


def test_the_front_matter_is_what_hubs_read(saved):
    text = markdown(saved[1].model, saved[1].certificate, "m.assay")
    front = text.split("---\n")[1].splitlines()
    assert front == [
        "library_name: assay",
        "pipeline_tag: tabular-classification",
        "tags:",
        "- tabular",
        "- certificate",
    ]


def test_tables_have_as_many_cells_in_every_row(saved):
    for block in re.findall(r"(?:^\|.*\n)+", markdown(saved[1].model, saved[1].certificate, "m"), re.M):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open, self.names, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_well_formed_and_loads_nothing(saved):
    page = html(saved[1].model, saved[1].certificate, "m.assay")
    seen = Tags()
    seen.feed(page)
    assert seen.open == ["html"]
    assert "b" not in seen.names
    assert "<b>x|y</b>" in seen.text
    assert not {"script", "link", "img"} & seen.names
    for claim in saved[1].certificate:
        assert claim.statement in seen.text


def test_a_model_without_a_certificate_says_so(saved):
    assert "nothing is proved about this model" in markdown(saved[1].model, None, "m")


def test_the_command_writes_both_forms_and_refuses_others(saved, tmp_path):
    run = CliRunner()
    for name in ("card.md", "card.html"):
        done = run.invoke(app, ["card", str(saved[0]), "--out", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).stat().st_size > 1000
    printed = run.invoke(app, ["card", str(saved[0])]).stdout
    assert printed.strip() == (tmp_path / "card.md").read_text(encoding="utf-8").strip()
    assert run.invoke(app, ["card", str(saved[0]), "--out", str(tmp_path / "card.pdf")]).exit_code == 2
