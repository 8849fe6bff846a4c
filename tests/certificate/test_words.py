"""A certificate in plain words: every statement, assumption and gap is there, once, and escaped."""

import json
from dataclasses import replace

import pytest

from assay.claims.claim import Claim, NotApplicable
from assay.claims.definitions import ASSUMPTIONS
from assay.claims.directory import codes, definition
from assay.claims.document import DocumentError, from_json, to_json
from assay.claims.words import UNDETECTABLE, population
from tests.certificate import count_cases, forge
from tests.certificate.forged_files import Parts, certificate_forgeries


def certificate():
    case = count_cases.holdout_case(0)
    facts = forge.claim("data.identity", float(len(case.X)), "lower", params={"set": "train"})
    case = replace(case, claims=(facts, case.claim), sealed=None).seal()
    return replace(
        case.sealed,
        not_applicable=(NotApplicable("vc", "too few rows for <this> class"),),
        unreported=(("vc", "0.01"),),
    )


def test_text_says_everything_once():
    issued = certificate()
    text = str(issued)
    for claim in issued.claims:
        assert text.count(claim.statement) == 1
    assert "Confidence 96 %" in text
    assert "at least 95 % of samples" in text
    assert "vc: too few rows for <this> class" in text
    assert "vc (0.01)" in text
    for code in issued.claims[1].assumptions:
        assert text.count(ASSUMPTIONS[code]) == 1
    for line in UNDETECTABLE:
        assert text.count(line) == 1


def test_every_assumption_of_every_claim_has_words():
    for name in codes().values():
        meaning = definition(name)
        assert all(meaning.assumption(code) != "unknown assumption" for code in meaning.assumptions), name
        assert set(meaning.own_assumptions) <= set(meaning.assumptions) - set(ASSUMPTIONS), name


def test_facts_alone_need_no_assumptions():
    text = str(replace(certificate(), claims=certificate().claims[:1], unreported=()))
    assert "assume" not in text
    assert "Confidence" not in text


def test_html_has_the_same_lines_escaped():
    html = certificate()._repr_html_()
    assert "too few rows for &lt;this&gt; class" in html
    assert "<this>" not in html
    assert html.count("<li>") == str(certificate()).count("  - ")


def test_a_forged_certificate_is_printed_whatever_its_fields_say():
    """No change of any one field that the reader lets through makes printing fail or adds a line."""
    parts = Parts({}, {}, json.loads(to_json(certificate())))
    printed = 0
    for name, change in certificate_forgeries(parts):
        forged = parts.copy()
        change(forged)
        try:
            read = from_json(json.dumps(forged.certificate))
        except DocumentError:
            continue
        printed += 1
        text, html = str(read), read._repr_html_()
        assert all(line.isprintable() for line in text.split("\n")), name
        assert "\n  - The error rate is 0 %." not in text, name
        assert html.startswith("<div>"), name
        assert read.tightest is None or read.tightest in read.claims, name
        assert population(read).render("zh", "page"), name
    assert printed > 100


def test_unknown_claims_have_no_sentence_and_hide_none():
    read = replace(certificate(), claims=(*certificate().claims, Claim("X99/1", 0.0)), data={})
    assert "1 claims that no definition explains." in str(read)
    assert "the certificate names no training rows" in str(read)
    assert read.claims[-1].kind == "X99/1"
    assert read.tightest is read.claims[1]
    assert read.find("holdout.binomial") is read.claims[1]


@pytest.mark.parametrize("form", ["", "\x1b[2J", ["axes"], None])
def test_a_part_that_a_forged_parameter_names_is_no_sentence(form):
    forged = forge.claim("kmeans.lower-bound", 1.0, "lower", params={"rows": 3, "clusters": 2, "form": form})
    text = str(replace(certificate(), claims=(forged, *certificate().claims)))
    assert "A malformed claim 'kmeans.lower-bound'" in text
    assert "\x1b" not in text
