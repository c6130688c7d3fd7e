from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from headwise.cli.check import check
from headwise.errors import UsageError

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(check)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.en").write_text("a dog\ntwo cats\n[red]a bird[/red] \x1b[31m\n")
    (tmp_path / "train.de").write_text("ein Hund\nzwei Katzen\nein Vogel\n")
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout


def test_a_sound_corpus_exits_with_zero_and_shows_its_size(corpus: Path) -> None:
    code, output = run("--source", "train.en", "--target", "train.de", "--languages", "en,de")
    assert code == 0
    assert "good to train on" in output
    assert "3 pairs = 2 kept + dropped by filters: control 1" in output
    assert "█" in output


def test_the_verdict_names_the_warnings(corpus: Path) -> None:
    (corpus / "table.csv").write_text("text,label\na dog,pet\na dog,animal\n" + "a bird,pet\na cat,animal\n" * 5)
    code, output = run("--table", "table.csv")
    assert code == 0
    assert output.splitlines()[-1].startswith(
        "verdict: it can be trained on, but read the warnings first: contradictions"
    )
    assert "good to train on" not in output


def test_text_cannot_act_on_the_terminal_or_on_the_layout(corpus: Path) -> None:
    _, output = run("--source", "train.en", "--target", "train.de")
    assert "[red]a bird[/red] \\x1b[31m" in output
    assert "\x1b" not in output


def test_an_unusable_corpus_exits_with_one_and_names_the_counts(corpus: Path) -> None:
    (corpus / "short.de").write_text("ein Hund\nzwei Katzen\n")
    code, output = run("--source", "train.en", "--target", "short.de")
    assert code == 1
    assert "error: line-counts" in output
    assert "3 lines, but short.de has 2" in output


def test_json_is_for_programs(corpus: Path) -> None:
    code, output = run("--source", "train.en", "--target", "train.de", "--json")
    report = json.loads(output)
    assert code == 0
    assert report["lines"] == {"in": 3, "kept": 2, "dropped": {"control": 1}}
    assert report["sides"][0]["words"] == 7
    assert report["findings"][0]["name"] == "control"
    assert report["findings"][0]["examples"][0]["line"] == 3
    assert report["unusable"] is False


def test_several_files_and_held_out_text_are_given_by_options(corpus: Path) -> None:
    sides = ["--source", "train.en", "--source", "train.en", "--target", "train.de", "--target", "train.de"]
    held_out = ["--validation-source", "train.en", "--validation-target", "train.de"]
    code, output = run(*sides, *held_out, "--json")
    report = json.loads(output)
    assert report["lines"]["in"] == 6
    assert report["held_out"] == {"validation": 3}
    assert code == 1
    assert "validation-overlap" in {finding["name"] for finding in report["findings"]}


def test_tsv_from_standard_input_with_chosen_columns(corpus: Path) -> None:
    code, output = run("--source", "-", "--format", "tsv", "--fields", "2,3", "--json", stdin="1\ta dog\tein Hund\n")
    assert code == 0
    assert [side["words"] for side in json.loads(output)["sides"]] == [2, 2]


def test_a_language_models_text_is_checked_too(corpus: Path) -> None:
    code, output = run("--text", "train.de")
    assert code == 0
    assert "3 lines = 3 kept" in output


def test_a_recipe_is_checked_with_paths_relative_to_it(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus / "recipe.toml").write_text('[data]\nsource = "train.en"\ntarget = "train.de"\n[model]\npreset = "tiny"\n')
    (corpus / "elsewhere").mkdir()
    monkeypatch.chdir(corpus / "elsewhere")
    code, output = run("../recipe.toml")
    assert code == 0
    assert "3 pairs" in output


def test_nothing_to_check_and_two_ways_at_once_are_refused(corpus: Path) -> None:
    for arguments in ([], ["--target", "train.de"], ["recipe.toml", "--source", "train.en"]):
        with pytest.raises(UsageError):
            run(*arguments)
