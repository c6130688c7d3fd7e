from __future__ import annotations

from headwise.evaluation.contamination import Overlap
from headwise.evaluation.metrics import Score
from headwise.tasks.part_scores import PartScores
from headwise.tasks.translation_scores import TranslationScores


def scores(value: float, seen: int) -> TranslationScores:
    return TranslationScores([Score("BLEU", value, "tok:13a")], overlap=Overlap(10, 10, seen), translations=["x"])


def test_every_part_is_reported_by_its_name_and_then_the_mean() -> None:
    found = PartScores({"de-en": scores(40.0, 1), "en-de": scores(30.0, 4)})
    assert found.lines() == [
        "de-en:",
        "BLEU    40.00  tok:13a",
        "en-de:",
        "BLEU    30.00  tok:13a",
        "mean:",
        "BLEU    35.00",
    ]
    assert found.as_dict()["means"] == {"BLEU": 35.0}
    assert found.overlap is not None
    assert found.overlap.seen == 4
    assert found.translations == ["x", "x"]
