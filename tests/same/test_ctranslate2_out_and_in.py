"""A model that is exported to CTranslate2 and imported again is the model that it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_models import word_tokenizers
from fixtures_published import publish_gpt2, publish_marian

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import open_model, save_model
from headwise.config import schema
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

SMALL = {"model_dim": 32, "num_heads": 4, "ff_dim": 48, "dropout": 0.2}
TRANSLATORS: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"norm": "pre", "final_norm": False, "activation": "gelu-tanh"},
    {"final_norm": True, "activation": "silu", "norm_epsilon": 1e-6},
    {"positions": "learned", "max_length": 50, "source_end": False},
    {"positions": "none", "tie": "target", "activation": "gelu"},
    {"tie": "none", "output_bias": True},
    {"tie": "target", "output_bias": True, "absent": 1},
    {"output_bias": True, "absent": 2, "encoder_layers": 3},
]
LANGUAGE_MODELS: list[dict[str, Any]] = [
    {},
    {"positions": "learned", "max_length": 50, "norm": "pre", "scale_embeddings": False, "activation": "gelu-tanh"},
    {"positions": "rotary", "norm": "pre", "tie": "none", "norm_epsilon": 1e-6},
    {"positions": "none", "absent": 3},
]


def two_tokenizers() -> TokenizerPair:
    settings = schema.Tokenizer(kind="char", size=300)
    return TokenizerPair(Tokenizer.train(["abc def"], settings), Tokenizer.train(["uvw xyz !?"], settings))


def randomised(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)


def check_same(folder: Path, before: str, after: str) -> None:
    (one, model, pair), (other, again, tokens) = (open_model(folder / name) for name in (before, after))
    assert (one.family, one.task_name, one.languages) == (other.family, other.task_name, other.languages)
    assert one.declared.settings.of(one.settings.model_dump()) == other.declared.settings.of(
        other.settings.model_dump()
    )
    assert tokens == pair
    assert tokens.shared == pair.shared
    weights, found = dict(model.named_parameters()), dict(again.named_parameters())
    assert weights.keys() == found.keys()
    for name in weights:
        assert torch.equal(weights[name], found[name]), name


@pytest.mark.parametrize("changes", TRANSLATORS, ids=str)
def test_a_translator_is_the_same_bit_for_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    torch.manual_seed(2)
    pair = two_tokenizers() if changes.get("tie", "all") != "all" else word_tokenizers()
    sizes = {**SMALL, "encoder_layers": 2, "decoder_layers": 2, **changes}
    model = Transformer(source_vocab=pair.source.size, target_vocab=pair.target.size, **sizes)
    randomised(model)
    save_model(tmp_path / "own", model, pair, family="transformer", languages=("en", "de"))
    export_model(tmp_path / "own", tmp_path / "fast", precision="float32")
    import_model(tmp_path / "fast", tmp_path / "again")
    check_same(tmp_path, "own", "again")
    origin = open_bundle(tmp_path / "again").card["origin"]
    assert (origin["format"], origin["source"]) == ("ctranslate2", "fast")


@pytest.mark.parametrize("changes", LANGUAGE_MODELS, ids=str)
def test_a_language_model_is_the_same_bit_for_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    torch.manual_seed(2)
    pair = TokenizerPair.one(two_tokenizers().target)
    model = LanguageModel(vocab=pair.target.size, **{**SMALL, "layers": 2, **changes})
    randomised(model)
    save_model(tmp_path / "own", model, pair, family="lm")
    export_model(tmp_path / "own", tmp_path / "fast", precision="float32")
    import_model(tmp_path / "fast", tmp_path / "again")
    check_same(tmp_path, "own", "again")


@pytest.mark.parametrize("publish", [publish_gpt2, publish_marian])
def test_a_published_model_is_still_itself_and_can_go_back_to_the_hub(tmp_path: Path, publish: Any) -> None:
    publish(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "own")
    export_model(tmp_path / "own", tmp_path / "fast", precision="float32")
    import_model(tmp_path / "fast", tmp_path / "again")
    check_same(tmp_path, "own", "again")
    for name in ("own", "again"):
        export_model(tmp_path / name, tmp_path / f"{name}-hub", to="huggingface")
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "own-hub" / file).read_bytes() == (tmp_path / "again-hub" / file).read_bytes()


def test_int8_comes_back_within_its_rounding(tmp_path: Path) -> None:
    torch.manual_seed(2)
    pair = word_tokenizers()
    model = Transformer(source_vocab=pair.source.size, **SMALL, encoder_layers=1, decoder_layers=1)
    save_model(tmp_path / "own", model, pair, family="transformer")
    export_model(tmp_path / "own", tmp_path / "fast")
    import_model(tmp_path / "fast", tmp_path / "again")
    _, again, _ = open_model(tmp_path / "again")
    found = dict(again.named_parameters())
    for name, weight in model.named_parameters():
        largest = weight.abs().amax(-1, keepdim=True)  # one scale per row
        assert bool(((found[name] - weight).abs() <= largest / 64 * 0.51).all()), name
    # What was rounded once is not rounded again.
    export_model(tmp_path / "again", tmp_path / "fast-again")
    import_model(tmp_path / "fast-again", tmp_path / "once-more")
    _, once_more, _ = open_model(tmp_path / "once-more")
    for name, weight in once_more.named_parameters():
        torch.testing.assert_close(weight, found[name], atol=1e-6, rtol=1e-6)
