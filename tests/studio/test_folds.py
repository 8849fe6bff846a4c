"""A study whose every row is fitted to: its choice on the form, its pages, its report, in both languages."""

import re
from collections.abc import Iterator
from html import unescape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from assay import persist
from assay.messages import Message, from_plain
from assay.studio.app import studio
from assay.studio.security import Settings
from tests.studio.conftest import HERE, PORT, Person


def numbers() -> bytes:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(90, 2))
    rows = "\n".join(f"{x:.5f},{z:.5f},{2 * x + 0.3 * e:.5f}" for (x, z), e in zip(a, rng.normal(size=90)))
    return f"x,z,y\n{rows}\n".encode()


@pytest.fixture(scope="module")
def folded() -> Iterator[Any]:
    """A person with two finished studies by folds, of two classes and of numbers, and one with a hold-out set."""
    known = Settings(("127.0.0.1",), PORT, patience=120.0)
    with TestClient(studio(known), base_url=HERE, raise_server_exceptions=False) as client:
        client.get(f"/open?token={known.token}")
        someone = Person(client)
        table = someone.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
        classes = someone.learn(table, learners="LogisticRegression GaussianNB", certify="folds")
        plain = someone.learn(table, learners="GaussianNB", certify="nonsense")
        other = someone.upload(numbers()).url.path
        regress = someone.learn(other, learners="Ridge", certify="folds", metric="mae")
        runs = {"classes": classes, "regress": regress, "plain": plain}
        yield SimpleNamespace(person=someone, table=table, other=other, **runs)


def found(folded: Any, run: str) -> dict[str, Any]:
    return folded.person.workspace.runs[run.rsplit("/", 1)[1]].found


def test_the_form_offers_folds_and_keeps_rows_aside_unless_told(folded: Any) -> None:
    page = folded.person.get(folded.table).text
    assert 'name="certify"' in page
    assert re.findall(r'<option value="(holdout|folds)">', page) == ["holdout", "folds"]
    assert found(folded, folded.classes)["folds"] == found(folded, folded.regress)["folds"] == 3
    assert found(folded, folded.plain)["folds"] == 0
    assert "evaluated on a hold-out set of" in folded.person.get(f"{folded.plain}/model").text


@pytest.mark.parametrize("which", ["classes", "regress"])
def test_the_pages_say_what_was_fitted_to_what(folded: Any, which: str) -> None:
    run = getattr(folded, which)
    shown, board = found(folded, run), unescape(folded.person.get(run).text)
    model = unescape(folded.person.get(f"{run}/model").text)
    report = unescape(folded.person.get(f"{run}/files/report.html").text)
    for k in (1, 2, 3):
        assert f"Fold {k}: " in board
    assert "of 3 fold models" in board
    for page in (model, report):
        assert "was left out by one of them" in page
        assert "the first of the 3 models" in page
        assert "hold-out set of 0" not in page
        assert all(claim["says"] in page for claim in shown["claims"])
    assert "used once" not in board + report  # there are no finalists on common rows
    assert "used once" in folded.person.get(folded.plain).text
    assert 'id="threshold"' not in model
    assert "/learn?name=Fold" not in model


@pytest.mark.parametrize("which", ["classes", "regress"])
def test_the_model_is_verified_tried_and_taken_away(folded: Any, tmp_path: Any, which: str) -> None:
    run = getattr(folded, which)
    assert "The certificate holds" in folded.person.post(f"{run}/verify").text
    form = folded.person.get(f"{run}/try").text
    usual = dict(re.findall(r'name="(c\d+)" type="text"[^>]*value="([^"]*)"', form))
    page = folded.person.post(f"{run}/try", usual)
    assert page.status_code == 200, page.text
    assert "What would change it" in page.text
    answer = folded.person.get(f"{run}/files/model.assay")
    (tmp_path / "m.assay").write_bytes(answer.content)
    loaded = persist.load(tmp_path / "m.assay")
    assert len(loaded.model.learner.members) == 3
    assert any(claim.name.startswith("cross-validation.mean") for claim in loaded.certificate.claims)


@pytest.mark.parametrize("which", ["classes", "regress"])
def test_what_it_says_is_known_in_chinese(folded: Any, which: str) -> None:
    shown = found(folded, getattr(folded, which))
    reasons = [reason for _, reason in shown["not_claimed"]]
    notes = [row["note"] for row in shown["leaderboard"]]
    claims = [claim["says"] for claim in shown["claims"] if not claim["says_zh"]]
    run = folded.person.workspace.runs[getattr(folded, which).rsplit("/", 1)[1]]
    told = [event["text"] for event in run.job.events if event["kind"] == "note"]
    for text in (shown["why"], *shown["notes"], *reasons, *notes, *claims, *told):
        assert text == "" or isinstance(from_plain(text), Message), text
    folded.person.post("/language", {"language": "zh", "back": "/plan"})
    try:
        page = folded.person.get(getattr(folded, which)).text
        assert "第 1 折：" in page
        assert "3 个折模型的" in page
        assert "每一行都用于拟合" in folded.person.get(folded.table).text
    finally:
        folded.person.client.cookies.delete("assay_language")


def test_what_folds_do_not_go_with_is_refused_in_words_of_the_page(folded: Any) -> None:
    path = folded.person.post(f"{folded.other}/learn", {"certify": "folds", "clip": "3", "learners": "Ridge"}).url.path
    run = folded.person.workspace.runs[path.rsplit("/", 1)[1]]
    folded.person.client.portal.call(run.job.done)
    page = folded.person.get(path).text
    assert "leave the largest error that counts empty" in page
    assert "--clip" not in page


def test_two_models_of_one_table_are_not_compared_on_rows_that_were_fitted(folded: Any) -> None:
    first, second = (run.rsplit("/", 1)[1] for run in (folded.classes, folded.plain))
    page = unescape(folded.person.get(f"/compare?a={first}&b={second}").text)
    assert "fitted to every row of this table (folds)" in page
