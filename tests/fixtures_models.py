"""Small trained models that several test files share: made once per session, in seconds, with a fixed seed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from headwise.bundle.assets import Assets
from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.data.pairs import pair_batch
from headwise.evaluation.contamination import training_sketch
from headwise.losses import label_smoothed_cross_entropy
from headwise.models.interface import Network
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.models.whisper import Whisper
from headwise.text.ragged import Ragged
from headwise.text.speech_tokens import preprocessing
from headwise.text.tokenizer import Tokenizer, TokenizerPair

DICTIONARY = """
zero null one eins two zwei three drei four vier five fünf six sechs seven sieben eight acht nine neun red rot blue blau
green grün white weiß black schwarz dog Hund cat Katze bird Vogel fish Fisch horse Pferd
"""
ENGLISH, GERMAN = DICTIONARY.split()[0::2], DICTIONARY.split()[1::2]
WORDS = dict(zip(ENGLISH, GERMAN, strict=True))


def english_sentences(count: int, seed: int, longest: int = 7) -> list[str]:
    """Words in any order; `german` is their translation, word by word."""
    choose = random.Random(seed)
    return [" ".join(choose.choices(ENGLISH, k=choose.randint(1, longest))) for _ in range(count)]


def german(sentence: str) -> str:
    return " ".join(WORDS[word] for word in sentence.split())


def word_tokenizers() -> TokenizerPair:
    settings = schema.Tokenizer(kind="word", size=100)
    return TokenizerPair.one(Tokenizer.train([*ENGLISH, *GERMAN], settings))


def small_transformer(vocab: int, **changes: object) -> Transformer:
    sizes: dict[str, object] = {
        "model_dim": 64, "num_heads": 4, "encoder_layers": 1, "decoder_layers": 2, "ff_dim": 128, "dropout": 0.0,
        "norm": "pre",
    }  # fmt: skip
    return Transformer(source_vocab=vocab, **{**sizes, **changes})  # type: ignore[arg-type]


def teach(model: Network, tokenizers: TokenizerPair, steps: int) -> None:
    """Word-for-word translation of sentences that are drawn anew for every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 50) * min(1.0, 2 * (1 - step / steps))
        sources = english_sentences(32, seed=step)
        targets = [german(sentence) for sentence in sources]
        batch = pair_batch(
            Ragged.of(tokenizers.source.encode_batch(sources)), Ragged.of(tokenizers.target.encode_batch(targets))
        )
        loss, count = label_smoothed_cross_entropy(model(*batch.inputs), batch.targets, smoothing=0.0)
        optimizer.zero_grad()
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()


@pytest.fixture(scope="session")
def word_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory, English to German word by word, that makes next to no mistakes. Copy it to write into it."""
    torch.manual_seed(1)
    tokenizers = word_tokenizers()
    model = small_transformer(tokenizers.source.size)
    teach(model, tokenizers, steps=250)
    directory = tmp_path_factory.mktemp("models") / "word-model"
    trained_on = [sentence for step in range(250) for sentence in english_sentences(32, seed=step)]
    card = {"data": {"fingerprints": {"source": training_sketch(trained_on)}}}
    save_model(directory, model, tokenizers, family="transformer", languages=("en", "de"), card=card)
    return directory


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A character language model with random weights."""
    torch.manual_seed(2)
    settings = schema.Tokenizer(kind="char", size=300)
    tokenizers = TokenizerPair.one(Tokenizer.train(["the quick brown fox jumps over the lazy dog", *ENGLISH], settings))
    model = LanguageModel(
        vocab=tokenizers.source.size, model_dim=32, num_heads=4, layers=2, ff_dim=64, max_length=16
    ).eval()
    directory = tmp_path_factory.mktemp("models") / "language-model"
    save_model(directory, model, tokenizers, family="lm", languages=("en",))
    return directory


@pytest.fixture(scope="session")
def speech_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A speech model with windows of one second and random weights, which says some of the words."""
    torch.manual_seed(3)
    tokenizers = word_tokenizers()
    sizes: dict[str, int] = {
        "model_dim": 32, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 48, "mels": 20,
        "source_positions": 50, "padding": 10, "max_length": 12,
    }  # fmt: skip
    model = Whisper(vocab=tokenizers.target.size, **sizes).eval()
    directory = tmp_path_factory.mktemp("models") / "speech-model"
    assets = Assets(tokenizers, preprocessing=preprocessing(sizes["mels"]))
    save_model(directory, model, assets, family="whisper", task="transcribe", languages=("en",))
    return directory
