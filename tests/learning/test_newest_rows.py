"""A split by time: the newest rows are held out, the checker finds them again, and the certificate says so."""

from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.claims.document import from_json, to_json
from assay.claims.words import DECLARED, assumptions, population
from assay.report.env import page
from assay.report.views import shown_of


def table(kind):
    rng = np.random.default_rng(2)
    x, day = rng.normal(size=120), rng.integers(0, 40, 120)
    when = {
        "numbers": day.astype(float),
        "dates": np.array([f"{1 + d % 28:02d}.{1 + d // 28:02d}.2021" for d in day]),
        "names": np.array([f"2021-W{d:02d}" for d in day]),
    }[kind]
    return {"x": x, "when": when, "y": np.where(x + rng.normal(size=120) > 0, "yes", "no")}


def studied(kind="numbers"):
    columns = table(kind)
    found = assay.learn(columns, "y", time_column="when", learners=["LogisticRegression"], trials=1, workers=0)
    return columns, found


@pytest.mark.parametrize("kind", ["numbers", "dates", "names"])
def test_the_newest_rows_are_found_again(kind):
    columns, found = studied(kind)
    report = assay.verify(found.certificate, found.model, columns)
    assert report.holds, report.reason
    assert from_json(to_json(found.certificate)).time == found.certificate.time
    assert found.certificate.time["name"] == "when"


def test_other_rows_than_the_newest_are_refused():
    columns, found = studied()
    split = found.certificate.split
    other = dict(columns)
    oldest = np.argmin(np.where(np.isin(np.arange(120), split["train"]), columns["when"], np.inf))
    other["when"] = columns["when"].copy()
    other["when"][oldest] = 100.0  # a training row that is newer than all others
    assert "not the newest" in assay.verify(found.certificate, found.model, other).reason
    renamed = replace(found.certificate, time={**found.certificate.time, "name": "x"})
    assert "not the newest" in assay.verify(renamed, found.model, columns).reason
    nowhere = replace(found.certificate, time={**found.certificate.time, "name": "nowhere"})
    assert "cannot be told" in assay.verify(nowhere, found.model, columns).reason
    drawn = replace(found.certificate, split={**split, "seed": np.array([0])})
    assert "not both" in assay.verify(drawn, found.model, columns).reason


def test_names_have_no_other_order():
    columns, found = studied("names")
    levels = found.certificate.time["levels"]
    turned = replace(found.certificate, time={**found.certificate.time, "levels": levels[::-1]})
    assert "another order" in assay.verify(turned, found.model, columns).reason


def test_a_split_that_nothing_tells_is_a_declared_assumption():
    columns, found = studied()
    bare = replace(found.certificate, time=None)
    assert assay.verify(bare, found.model, columns).holds
    assert DECLARED in assumptions(bare)
    assert DECLARED not in assumptions(found.certificate)
    assert DECLARED in str(bare)


def test_pages_say_which_new_data_are_meant_in_both_languages():
    found = studied()[1]
    certificate = found.certificate
    assert "newest rows by the column 'when'" in population(certificate)
    assert "2 classes 'no', 'yes'" in population(certificate)
    said = population(certificate).render("zh", "page")
    assert "'when'" in said
    assert "2 个类别" in said
    shown = shown_of(found)
    assert "What new data means here" in page(shown, "t")
    assert "这里的“新数据”是指" in page(shown, "t", "zh")
    assert said.replace("'", "&#39;") in page(shown, "t", "zh")
