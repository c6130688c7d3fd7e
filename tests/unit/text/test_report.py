from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import pytest

from headwise.config.schema import Data, Filters, Model, Recipe, Texts
from headwise.errors import DataError, RecipeError, UsageError
from headwise.text.findings import Finding, Report
from headwise.text.report import check_corpus
from headwise.workflows.check import check as check_recipe


def check(data: Data, folder: Path) -> Report:
    family = "lm" if data.text else "transformer"
    return check_recipe(Recipe(data=data, model=Model.model_validate({"family": family})), folder)


def sentences(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Makes pairs whose lengths correlate, with noise, like those of translations."""
    drawn = random.Random(seed)
    source, target = [], []
    for number in range(count):
        words = drawn.randint(3, 25)
        source.append(f"{number} " + " ".join("w" * drawn.randint(1, 9) for _ in range(words)))
        target.append(
            f"{number} " + " ".join("v" * drawn.randint(1, 9) for _ in range(max(1, words + drawn.randint(-3, 3))))
        )
    return source, target


def report_on(folder: Path, source: list[str] | bytes, target: list[str] | bytes, **settings: object) -> Report:
    for name, side in (("train.en", source), ("train.de", target)):
        (folder / name).write_bytes(side if isinstance(side, bytes) else "".join(f"{line}\n" for line in side).encode())
    return check(Data(source="train.en", target="train.de", **settings), folder)


def found(report: Report, name: str) -> Finding:
    finding = report.finding(name)
    assert finding is not None, [each.name for each in report.findings]
    return finding


def test_a_sound_corpus_has_no_findings_and_right_totals(tmp_path: Path) -> None:
    report = report_on(tmp_path, ["a dog", "two small cats"], ["ein Hund", "zwei kleine Katzen"])
    assert report.findings == []
    assert not report.unusable
    assert [(side.lines, side.words, side.longest) for side in report.sides] == [(2, 5, 3), (2, 5, 3)]
    assert report.sides[0].characters == 5 + 14
    assert report.sides[0].histogram() == [("0", 0), ("1-5", 2)]
    assert report.counts.kept == report.counts.lines == 2


def test_faults_are_counted_with_their_first_lines(tmp_path: Path) -> None:
    source, target = sentences(200)
    target[4] = ""
    source[9] = "nul \x00 here it is"
    target[19] = source[19]
    source[29], target[29] = source[28], target[28]
    target[39] = "x"
    source[39] = "long " * 50
    report = report_on(tmp_path, source, target)
    places = {finding.name: (finding.count, finding.examples[0].line) for finding in report.findings}
    assert places == {
        "empty": (1, 5),
        "control": (1, 10),
        "copies": (1, 20),
        "duplicates": (1, 30),
        "max_ratio": (1, 40),
    }
    assert report.counts.dropped == {"empty": 1, "control": 1, "max_ratio": 1}
    assert report.counts.kept + 3 == report.counts.lines == 200
    assert not report.unusable


def test_examples_are_few_however_many_faults_there_are(tmp_path: Path) -> None:
    source, target = sentences(100)
    finding = found(report_on(tmp_path, source, target[:60] + [""] * 40), "empty")
    assert finding.count == 40
    assert [example.line for example in finding.examples] == [61, 62, 63, 64, 65]


def test_the_report_counts_what_training_will_drop(tmp_path: Path) -> None:
    source, target = sentences(50)
    report = report_on(tmp_path, source * 2, target * 2, filters=Filters(duplicates=True))
    assert report.counts.dropped == {"duplicates": 50}
    assert found(report, "duplicates").severity == "note"


def test_nothing_left_after_the_filters_is_an_error(tmp_path: Path) -> None:
    report = report_on(tmp_path, ["a", "b"], ["c\x00", "d\x00"])
    assert found(report, "nothing-left").severity == "error"
    assert report.unusable


@pytest.mark.parametrize(("longer", "shorter"), [("source", "target"), ("target", "source")])
def test_sides_of_different_length_cannot_be_trained_on(tmp_path: Path, longer: str, shorter: str) -> None:
    sides = dict(zip(("source", "target"), sentences(30), strict=True))
    sides[longer].append("one more line")
    finding = found(report_on(tmp_path, sides["source"], sides["target"]), "line-counts")
    assert finding.severity == "error"
    assert "31" in finding.message
    assert "30" in finding.message


# A line missing in the middle


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("lost", [1000, 2317, 4100])
def test_a_line_missing_in_the_middle_is_found_near_its_place(tmp_path: Path, side: int, lost: int) -> None:
    sides = sentences(5000)
    del sides[side][lost - 1]
    sides[1 - side].pop()  # equal counts: only the shift tells
    finding = found(report_on(tmp_path, *sides), "shift")
    assert finding.severity == "error"
    first = int(finding.message.split()[1])
    assert abs(first - lost) <= 20
    assert "shifted by 1 " in finding.message
    assert ("source", "target")[side] in finding.remedy


def test_a_shift_that_ends_at_another_missing_line_is_found_too(tmp_path: Path) -> None:
    source, target = sentences(5000)
    del source[1499]
    del target[2999]
    finding = found(report_on(tmp_path, source, target), "shift")
    words = finding.message.split()
    assert abs(int(words[1]) - 1500) <= 20
    assert abs(int(words[3]) - 3000) <= 20


def test_a_shift_by_a_whole_paragraph_is_suspected(tmp_path: Path) -> None:
    source, target = sentences(5000)
    del target[2500:2560]
    finding = found(report_on(tmp_path, source[:4940], target), "shift")
    assert finding.severity == "warning"
    assert abs(int(finding.message.split()[1]) - 2500) <= 150


def test_files_of_different_texts_are_suspected(tmp_path: Path) -> None:
    report = report_on(tmp_path, sentences(1000, seed=1)[0], sentences(1000, seed=2)[1])
    assert found(report, "unrelated").severity == "warning"


@pytest.mark.parametrize("order", ["as it is", "sorted", "two parts of different nature", "all of one length"])
def test_aligned_text_raises_no_alarm(tmp_path: Path, order: str) -> None:
    source, target = sentences(4000)
    if order == "sorted":
        source, target = map(
            list, zip(*sorted(zip(source, target, strict=True), key=lambda pair: len(pair[0])), strict=True)
        )
    if order == "two parts of different nature":
        source[2000:] = [line[:12] for line in source[2000:]]
        target[2000:] = [line[:14] for line in target[2000:]]
    if order == "all of one length":
        source, target = [line[:8] for line in source], [line[:8] for line in target]
    report = report_on(tmp_path, source, target)
    assert report.finding("shift") is None


DATA_FOLDER = os.environ.get("HEADWISE_DATA")


@pytest.mark.skipif(not DATA_FOLDER, reason="HEADWISE_DATA is not set")
@pytest.mark.parametrize(
    ("folder", "languages"), [("multi30k", ("en", "de")), ("multi30k", ("en", "cs")), ("tatoeba-zh-en", ("en", "zh"))]
)
def test_real_corpora_raise_no_false_alarm(folder: str, languages: tuple[str, str]) -> None:
    base = Path(DATA_FOLDER or "") / folder
    if not base.is_dir():
        pytest.skip(f"{folder} is not in HEADWISE_DATA")
    source, target = languages
    held_out = Texts(source=f"val.{source}.gz", target=f"val.{target}.gz")
    data = Data(source=f"train.{source}.gz", target=f"train.{target}.gz", languages=languages, validation=held_out)
    report = check(data, base)
    assert not report.unusable
    assert [finding.name for finding in report.findings if finding.severity == "warning"] == []


# Unreadable text is reported, not raised


def test_broken_encoding_is_counted_by_line(tmp_path: Path) -> None:
    report = report_on(tmp_path, b"good\nb\xe9d\nalso good\n\xff\n", ["gut", "schlecht", "auch gut", "kaputt"])
    finding = found(report, "encoding")
    assert (finding.severity, finding.count) == ("error", 2)
    assert [example.line for example in finding.examples] == [2, 4]
    assert report.counts.lines == 4


def test_utf16_a_cut_file_and_an_empty_one_are_reported(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1000)]
    packed = gzip.compress("\n".join(lines).encode())
    for data, name in (("\n".join(lines).encode("utf-16"), "encoding"), (packed[:-20], "damaged"), (b"", "empty-file")):
        report = report_on(tmp_path, data, lines)
        assert found(report, name).severity == "error"
        json.dumps(report.as_dict(), allow_nan=False)


def test_a_missing_file_and_mixed_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        check(Data(source="a", target="b"), tmp_path)
    (tmp_path / "a").write_text("text\n")
    for data in (
        Data(),
        Data(source="a", target="a", text="a"),
        Data(text="a", validation=Texts(source="a", target="a")),
    ):
        with pytest.raises((UsageError, RecipeError)):
            check(data, tmp_path)


# Data that cannot be intended


def test_the_same_file_on_both_sides_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    assert found(check(Data(source="a", target="a"), tmp_path), "same-file").severity == "error"


def test_copies_are_an_error_only_between_two_languages(tmp_path: Path) -> None:
    source, _ = sentences(40)
    assert not report_on(tmp_path, source, source).unusable
    assert found(report_on(tmp_path, source, source, languages=("en", "de")), "copies").severity == "error"


def test_swapped_sides_show_as_the_wrong_script(tmp_path: Path) -> None:
    report = report_on(tmp_path, ["Собака бежит быстро"] * 3, ["The dog runs fast"] * 3, languages=("en", "ru"))
    assert found(report, "script").severity == "error"


# Held-out text


def test_overlap_is_found_exactly_and_after_normalisation(tmp_path: Path) -> None:
    source, target = sentences(30)
    (tmp_path / "val.en").write_text(f"{source[3]}\n{source[5].upper()}  \n{source[7]}\nnew one\nnew two\n")
    (tmp_path / "val.de").write_text(f"{target[3]}\n{target[5]}\nanother translation\nneu eins\nneu zwei\n")
    report = report_on(tmp_path, source, target, validation=Texts(source="val.en", target="val.de"))
    finding = found(report, "validation-overlap")
    assert finding.severity == "warning"
    assert finding.message.startswith("2 of 5 validation lines occur in the training text (1 exactly, 1 apart")
    assert [(example.line, example.text) for example in finding.examples] == [
        (4, "validation line 1"),
        (6, "validation line 2"),
    ]
    assert found(report, "validation-source-overlap").count == 1


def test_test_text_that_is_training_text_is_an_error(tmp_path: Path) -> None:
    source, target = sentences(30)
    report = report_on(tmp_path, source, target, test=Texts(source="train.en", target="train.de"))
    assert found(report, "test-overlap").severity == "error"


def test_short_lines_of_a_language_model_may_recur_but_long_ones_are_reported(tmp_path: Path) -> None:
    long = "A whole sentence that nobody writes twice by chance, or so one hopes."
    (tmp_path / "train.txt").write_text(f"ROMEO:\n\n{long}\nbye\n")
    (tmp_path / "val.txt").write_text(
        f"ROMEO:\n\n{long}\nSomething else, and long enough to be compared with all of it.\n"
    )
    report = check(Data(text="train.txt", validation=Texts(text="val.txt")), tmp_path)
    assert found(report, "validation-overlap").message.startswith("1 of 2 validation lines")
    assert report.counts.kept == 4
    assert report.unit == "lines"


def test_the_short_form_has_totals_and_one_line_per_problem(tmp_path: Path) -> None:
    report = report_on(tmp_path, ["a dog", "", "a cat"], ["ein Hund", "nichts"])
    first, *problems = report.summary_lines()
    assert first == "2 pairs, 2 + 3 words; 1 kept, dropped: empty 1"
    assert len(problems) == 1
    assert problems[0].startswith("error: ")
    assert "\n" not in problems[0]


def test_progress_counts_the_lines_that_were_read(tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / side).write_text("a line\n" * 7, encoding="utf-8")
    told: list[int] = []
    check_corpus(Data(source=str(tmp_path / "en"), target=str(tmp_path / "de")), told.append)
    assert sum(told) == 7
