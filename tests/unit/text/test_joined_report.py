from __future__ import annotations

from headwise.text.filters import FilterCounts
from headwise.text.findings import Finding, Report, Side
from headwise.text.joined_report import joined_report


def report(kept: int, severity: str) -> Report:
    finding = Finding("shift", severity, 3, "lines are shifted", "compare them")  # type: ignore[arg-type]
    counts = FilterCounts(kept, {"empty": 2})
    return Report([Side("source", (), lines=kept)], counts, [finding], 0.7, {"validation": 5}, "pairs")


def test_the_reports_on_several_parts_become_one_that_names_them() -> None:
    joined = joined_report({"de-en": report(10, "warning"), "en-de": report(20, "error")})
    assert (joined.counts.kept, joined.counts.dropped, joined.unit) == (30, {"empty": 4}, "pairs")
    assert [side.name for side in joined.sides] == ["de-en source", "en-de source"]
    assert [(one.severity, one.message) for one in joined.findings] == [
        ("error", "en-de: lines are shifted"), ("warning", "de-en: lines are shifted")
    ]  # fmt: skip
    assert joined.held_out == {"de-en validation": 5, "en-de validation": 5}
    assert joined.unusable


def test_the_report_on_a_single_corpus_stays_as_it_is() -> None:
    one = report(10, "note")
    assert joined_report({"": one}) is one
