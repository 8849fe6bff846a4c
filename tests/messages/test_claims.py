"""Every claim has its sentence in Chinese, made of the same texts and values as the English one."""

from string import Formatter

import pytest

from assay.checker.families import trees
from assay.checker.families.glm import CONVEX
from assay.checker.rules import densities, losses, tree_ensembles
from assay.claims.claim import Claim
from assay.claims.definitions import ASSUMPTIONS
from assay.claims.directory import codes, definition
from assay.messages import zh
from assay.messages.claims_zh import CLAIMS

SENTENCES = {definition(code).name: definition(code).sentence for code in codes() if not code.startswith("T")}
SEPARATORS = set(" ,，、；;")


def shown(text: str) -> set[tuple[str, str]]:
    """Return the values of a text with their formats; what stands between the items of a list may differ."""
    parts = [(name, spec or "") for _, name, spec, _ in Formatter().parse(text) if name is not None]
    return {(name, "" if set(spec) <= SEPARATORS else spec) for name, spec in parts}


def test_every_claim_and_no_other_has_a_chinese_sentence() -> None:
    assert set(CLAIMS) == set(SENTENCES)


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_texts_and_values_are_the_same(name: str) -> None:
    english, chinese = SENTENCES[name].texts, CLAIMS[name]
    assert set(english) == set(chinese)
    for which, text in english.items():
        assert shown(text) == shown(chinese[which]), which


def test_numbers_of_both_sentences_are_the_same() -> None:
    """Values and parts are filled in where they stand in the Chinese text."""
    params = {"loss": "squared-hinge", "C": 2.0, "penalty": {"L2": 0.5}, "intercept": True, "class": 3}
    claim = Claim("duality-gap", 0.0012341, params=params)
    assert claim.statement == (
        "The training objective of class number 3 against the rest (squared-hinge loss, C = 2, L2 penalty 0.5, free "
        "intercept) is at most 0.00124 above its minimum."
    )
    assert claim.said(CLAIMS["duality-gap"], zh.TERMS) == (
        "训练目标函数（第 3 类对其余各类）（平方合页损失，C = 2，L2 惩罚 0.5，截距不受惩罚）至多比其最小值高 0.00124。"
    )


def test_a_claim_turned_round_has_no_sentence() -> None:
    with pytest.raises(ValueError, match="no sentence for the direction"):
        Claim("train.error-floor", 3.0, "upper").said()


def test_every_assumption_is_translated() -> None:
    own = {name for code in codes() for name in definition(code).own_assumptions if not code.startswith("T")}
    assert set(zh.ASSUMPTIONS) == set(ASSUMPTIONS) | own


def test_the_vocabularies_of_the_checker_are_translated() -> None:
    words = {*losses.LOSSES, *CONVEX, *trees._CRITERIA, *densities.KINDS, *tree_ensembles._SHARES, "train", "holdout"}
    own = {"multinomial", "multinomial logistic", "log"}
    assert set(zh.TERMS) == words | own
