from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from fixtures_models import english_sentences, german

import headwise.workflows.load as workflow
from headwise.bundle.directory import Bundle
from headwise.config import schema
from headwise.decoding.generator import Generator
from headwise.decoding.hypothesis import Hypothesis, Scores
from headwise.decoding.options import Request, SearchOptions
from headwise.decoding.torch_engine import TorchEngine
from headwise.decoding.translator import Translation, Translator
from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair

TEXTS = [
    "the red dog sees 12 cats",
    "der rote Hund sieht 12 Katzen",
    "{name} is at https://example.org/x",
    "<b>ja</b>, nein!",
]


@pytest.fixture(scope="module")
def trained(word_model: Path) -> Translator:
    translator = workflow.load(word_model)
    assert isinstance(translator, Translator)
    return translator


@pytest.fixture(scope="module")
def untrained() -> Translator:
    """Subword tokens and random weights: it says anything but what is wanted."""
    torch.manual_seed(1)
    tokenizers = TokenizerPair.one(Tokenizer.train(TEXTS * 3, schema.Tokenizer(kind="bpe", size=330)))
    model = Transformer(
        source_vocab=tokenizers.source.size, model_dim=32, num_heads=4, encoder_layers=1, decoder_layers=1, ff_dim=64
    ).eval()
    bundle = Bundle(Path("nowhere"), "transformer", model.architecture, ("en", "de"))
    return Translator(bundle, tokenizers, TorchEngine(model))


class Recorder:
    """An engine that repeats the source and notes what it was asked."""

    name = "recorder"
    scores: Scores = "tokens"

    def __init__(self) -> None:
        self.sources: list[list[int]] = []

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        self.sources += [list(source) for source in sources]
        return [[Hypothesis.of(source, [-0.1] * (len(source) + 1), "eos", 0.6)] for source in sources]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        raise AssertionError("a translation asks no engine to score given targets")


@pytest.fixture
def copying(untrained: Translator) -> Translator:
    return Translator(untrained.bundle, untrained.tokenizers, Recorder())


def test_a_trained_model_translates_every_line_in_its_place(trained: Translator) -> None:
    sentences = english_sentences(50, seed=99)
    found = trained.translate(sentences, beam=3)
    assert sum(t.text == german(s) for t, s in zip(found, sentences, strict=True)) >= 48
    first = found[0]
    assert trained.tokenizers.target.decode(first.ids) == first.text
    assert len(first.tokens) == len(first.ids) == len(first.log_probs) - 1
    assert 0.0 <= first.confidence <= 1.0


def test_empty_and_blank_text_is_translated_to_nothing_without_asking_the_model(copying: Translator) -> None:
    found = copying.translate(["", "the dog", " \t\n", "the cat", "\u3000"])
    assert [t.text for t in found] == ["", "the dog", "", "the cat", ""]
    assert len(copying.engine.sources) == 2  # type: ignore[attr-defined]


def test_one_text_gives_one_translation_that_prints_usefully(trained: Translator) -> None:
    one = trained.translate("red dog", beam=2, n_best=2)
    assert one == trained.translate(["red dog"], beam=2, n_best=2)[0]
    assert str(one) == "rot Hund"
    assert repr(one).startswith("Translation('rot Hund', score=-0.0")
    assert repr(one).endswith(", 1 alternatives)")
    assert "en → de" in repr(trained)
    assert "engine='ctranslate2'" in repr(trained)


def test_no_text_at_all_gives_no_translations(trained: Translator) -> None:
    assert trained.translate([]) == []


def test_alternatives_are_other_texts_in_order(trained: Translator) -> None:
    (found,) = trained.translate(["one two three"], n_best=4)
    ranked = [found, *found.alternatives]
    assert len({t.text for t in ranked}) == len(ranked) > 1
    assert [t.score for t in ranked] == sorted((t.score for t in ranked), reverse=True)


@pytest.mark.parametrize("beam", [1, 5])
def test_glossary_terms_are_in_the_translation_as_words_of_their_own(untrained: Translator, beam: int) -> None:
    glossary = {"dog": "Köter", "cats": "Stubentiger", "red": "rot wie Blut"}
    texts = ["the red dog sees cats", "a dog", "cats and cats", "no such word", "Red!"]
    found = untrained.translate(texts, beam=beam, glossary=glossary, max_extra=3)
    wanted = [["Köter", "Stubentiger", "rot wie Blut"], ["Köter"], ["Stubentiger"], [], ["rot wie Blut"]]
    for translation, terms in zip(found, wanted, strict=True):
        for term in terms:
            at = translation.text.find(term)
            assert at >= 0
            around = translation.text[at - 1 : at] + translation.text[at + len(term) : at + len(term) + 1]
            assert not any(character.isalnum() for character in around)


@pytest.mark.parametrize("beam", [1, 4])
def test_protected_spans_survive_unchanged(untrained: Translator, beam: int) -> None:
    texts = [
        "Hello {name}, see https://example.org/a?b=c for 12 cats",
        "<b>12</b> and 12 are 24,5%",
        "%s owes {amount} to me@example.org",
    ]
    spans = [
        ["{name}", "https://example.org/a?b=c", "12"],
        ["<b>", "</b>", "12", "12", "24,5%"],
        ["%s", "{amount}", "me@example.org"],
    ]
    for translation, wanted in zip(untrained.translate(texts, beam=beam, protect=True), spans, strict=True):
        for span in wanted:
            assert translation.text.count(span) >= wanted.count(span)
        if "<b>" in wanted:
            assert "</b>" in translation.text.split("<b>", 1)[1]


def test_without_being_asked_nothing_is_protected(untrained: Translator) -> None:
    (found,) = untrained.translate(["Hello {name}"], max_extra=3)
    assert "{name}" not in found.text


def test_a_prefix_is_how_the_translation_begins(trained: Translator) -> None:
    found = trained.translate(["one two", "three four"], prefix=["zwei", None])
    assert found[0].text.startswith("zwei")
    assert found[1].text == "drei vier"


def test_paragraphs_are_translated_sentence_by_sentence_with_their_spacing(copying: Translator) -> None:
    text = "The dog sees. The cat is red!\n\n  Nein, ja."
    (found,) = copying.translate([text])
    assert found.text == text
    assert [sentence.text for sentence in found.sentences] == ["The dog sees.", "The cat is red!", "Nein, ja."]
    assert len(copying.engine.sources) == 3  # type: ignore[attr-defined]
    (whole,) = copying.translate([text], split_sentences=False)
    assert (whole.text, whole.sentences) == (text, ())
    assert len(copying.engine.sources) == 4  # type: ignore[attr-defined]


def test_a_line_of_a_hundred_thousand_characters_is_translated_in_pieces_that_fit(copying: Translator) -> None:
    text = "the red dog sees " * 3000 + "x" * 50_000
    (found,) = copying.translate([text])
    assert found.text.replace(" ", "") == text.replace(" ", "")
    assert max(map(len, copying.engine.sources)) <= copying.longest_source  # type: ignore[attr-defined]


def test_confidence_follows_the_calibration_in_the_card(copying: Translator) -> None:
    card = {"calibration": {"mean_log_prob": [-1.0, 0.0], "quality": [0.2, 0.4]}}
    bundle = Bundle(Path("nowhere"), "transformer", copying.bundle.architecture, ("en", "de"), {}, card)
    (found,) = Translator(bundle, copying.tokenizers, Recorder()).translate(["the dog"])
    assert found.confidence == pytest.approx(0.38)


@pytest.mark.parametrize(
    ("texts", "options", "problem"),
    [
        ([5], {}, "int"),
        (["a"], {"beem": 3}, "beem"),
        (["a"], {"beam": 2, "n_best": 3}, "n_best"),
        (["a", "b"], {"prefix": ["x"]}, "2 texts but 1"),
    ],
)
def test_a_wrong_call_is_one_clear_line(
    copying: Translator, texts: object, options: dict[str, object], problem: str
) -> None:
    with pytest.raises((UsageError, DataError), match=problem) as caught:
        copying.translate(texts, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_load_gives_a_translator_or_a_generator_by_what_the_model_is(word_model: Path, language_model: Path) -> None:
    assert isinstance(workflow.load(word_model), Translator)
    assert isinstance(workflow.load(language_model), Generator)
    with pytest.raises(HeadwiseError, match="no model"):
        workflow.load(word_model / "nothing")


def test_a_translation_can_be_compared_and_kept(trained: Translator) -> None:
    once, again = trained.translate(["one two"]) + trained.translate(["one two"])
    assert isinstance(once, Translation)
    assert once.text == again.text
