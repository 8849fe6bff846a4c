"""The example of moods: words and characters, a certificate that holds, texts without labels."""

import pytest

from examples import sentiment


@pytest.mark.mission("FEA-05")
def test_moods_are_told_apart_in_both_languages(capsys):
    for found, moods in ((sentiment.english(300), 3), (sentiment.chinese(300), 2)):
        assert len(found.model.classes_) == moods
        assert found.accuracy == 1.0
        assert found.certificate.find("holdout.binomial").value < 0.03
    own, taught = sentiment.with_few_labels()
    assert taught >= own > 0.8
    sentiment.main()
    assert "Chinese: " in capsys.readouterr().out
