from __future__ import annotations

from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from headwise.bundle.weights import save_model
from headwise.cli.look import look
from headwise.config import schema
from headwise.errors import ModelError, UsageError
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.workflows.look import look_inside

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(look)

TEXT = "two dogs cross the street"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories `translator` and `language`, with random weights."""
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("models")
    settings = schema.Tokenizer(kind="bpe", size=300)
    tokenizers = TokenizerPair.one(Tokenizer.train([TEXT, "zwei hunde kreuzen die straße"] * 4, settings))
    sizes = {"model_dim": 32, "num_heads": 2, "ff_dim": 48}
    transformer = Transformer(
        source_vocab=tokenizers.source.size,
        encoder_layers=2,
        decoder_layers=2,
        **sizes,  # type: ignore[arg-type]
    )
    save_model(folder / "translator", transformer, tokenizers, family="transformer", languages=("en", "de"))
    language = LanguageModel(vocab=tokenizers.source.size, layers=2, max_length=32, **sizes)  # type: ignore[arg-type]
    save_model(folder / "language", language, tokenizers, family="lm", languages=("en",))
    return folder


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    return result.exit_code, result.stdout


def test_a_page_is_written_for_the_models_own_translation(models: Path, tmp_path: Path) -> None:
    page = tmp_path / "attention.html"
    code, _ = run("--model", models / "translator", TEXT, "--output", page)
    assert code == 0
    own = look_inside(models / "translator", TEXT)
    written = page.read_text(encoding="utf-8")
    assert TEXT in written
    assert 'id="cross-1"' in written
    assert f'"{own.output.labels[0]}"' in written


def test_the_translation_that_is_looked_at_is_the_one_that_translate_gives(models: Path) -> None:
    from headwise.workflows.translate import open_translator

    translator = open_translator(models / "translator", "torch")
    before = translator.translate([TEXT], beam=3)[0]
    seen = translator.look(TEXT, beam=3)
    expected = translator.tokenizers.target.pieces(before.ids)
    assert len(seen.output.tokens) == len(expected) + 1
    assert translator.translate([TEXT], beam=3)[0] == before
    assert [round(float(chance), 4) for chance in seen.steps.chances[: len(before.ids)]] == [
        round(float(torch.tensor(value).exp()), 4) for value in before.log_probs[: len(before.ids)]
    ]


def test_a_forced_target_is_looked_at_instead(models: Path, tmp_path: Path) -> None:
    code, _ = run(
        "--model", models / "translator", TEXT, "--target", "zwei hunde", "--merge", "--what", "cross",
        "--layer", "2", "--head", "1", "--output", tmp_path / "cross.svg",
    )  # fmt: skip
    assert code == 0
    drawn = (tmp_path / "cross.svg").read_text(encoding="utf-8")
    assert ">hunde<" in drawn
    assert ">street<" in drawn
    assert "layer 2, head 1" in drawn


def test_an_alignment_is_printed_and_needs_no_file(models: Path) -> None:
    code, output = run("--model", models / "translator", TEXT, "--target", "zwei hunde kreuzen", "--what", "alignment")
    assert code == 0
    links = output.split()
    assert sorted(link.split("-")[1] for link in links) == ["0", "1", "2"]
    assert all(0 <= int(link.split("-")[0]) < 5 for link in links)


@pytest.mark.parametrize("what", ["attention", "causal", "positions", "mask", "saliency"])
def test_a_language_model_can_be_looked_into(models: Path, tmp_path: Path, what: str) -> None:
    code, _ = run("--model", models / "language", TEXT, "--what", what, "--output", tmp_path / "seen.html")
    assert code == 0
    name = what if what in ("positions", "saliency") else "causal"
    assert f'id="{name}-0"' in (tmp_path / "seen.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("model", "arguments", "problem"),
    [
        ("translator", [], "name the file to write"),
        ("translator", ["--output", "picture.gif"], "must end in .html, .svg or .png"),
        ("translator", ["--output", "a.png", "--layer", "9"], "no layer 9"),
        ("language", ["--output", "a.png", "--target", "zwei"], "a language model has no target"),
        ("language", ["--what", "alignment"], "a language model has no alignment"),
        ("language", ["--output", "a.png", "--what", "cross"], "has no cross-attention"),
    ],
)
def test_a_wrong_call_is_one_clear_line(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, arguments: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=problem) as error:
        run("--model", models / model, TEXT, *arguments)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        run("--model", tmp_path / "nowhere", TEXT, "--output", tmp_path / "a.html")


def test_a_text_too_long_for_one_pass_is_refused(models: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="look at one sentence at a time"):
        run("--model", models / "translator", "dogs " * 600, "--output", tmp_path / "a.html")
    with pytest.raises(UsageError, match="at most 32 at once"):
        run("--model", models / "language", "dogs " * 40, "--output", tmp_path / "a.html")
