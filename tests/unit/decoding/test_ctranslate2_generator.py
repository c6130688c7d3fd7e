"""The fast engine writes what the torch engine writes, and says what it does not do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import save_model
from headwise.decoding.ctranslate2_generator import CTranslate2Generator
from headwise.errors import UsageError
from headwise.interop.ctranslate2.export import export
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import TokenizerPair
from headwise.workflows.generate import open_generator

ARRANGEMENTS = [
    {},
    {"norm": "pre", "positions": "learned", "activation": "gelu-tanh", "scale_embeddings": False},
    {"norm": "pre", "positions": "rotary", "tie": "none"},
]


def bundle_of(directory: Path, tokenizers: TokenizerPair, arrangement: dict[str, object]) -> Path:
    torch.manual_seed(5)
    sizes: dict[str, object] = {"model_dim": 32, "num_heads": 4, "layers": 2, "ff_dim": 64, "max_length": 16}
    model = LanguageModel(vocab=tokenizers.target.size, **{**sizes, **arrangement}).eval()  # type: ignore[arg-type]
    save_model(directory / "model", model, tokenizers, family="lm")
    return directory / "model"


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
def test_it_writes_the_torch_engines_text_with_its_probabilities(
    arrangement: dict[str, object], language_model: Path, tmp_path: Path
) -> None:
    tokenizers = TokenizerPair.load(language_model)
    path = bundle_of(tmp_path, tokenizers, arrangement)
    export(open_bundle(path), tokenizers, tmp_path / "fast", "float32")
    fast = CTranslate2Generator(open_bundle(path), tokenizers.target, tmp_path / "fast")
    slow = open_generator(path, "torch")
    # Within the context, beyond it, and after a prompt that is longer than it.
    for prompt, count in (("the", 5), ("the", 40), ("the quick brown fox jumps over", 20)):
        (found,) = fast.generate(prompt, max_tokens=count, temperature=0.0)
        (expected,) = slow.generate(prompt, max_tokens=count, temperature=0.0)
        assert (found.text, found.ids, found.stopped) == (expected.text, expected.ids, expected.stopped)
        assert found.log_probs == pytest.approx(expected.log_probs, abs=1e-4)


def test_many_prompts_at_once_become_what_each_becomes_alone(language_model: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(language_model, tmp_path / "model"))
    prompts = ["", "dog", "the quick brown fox", "the quick brown fox jumps over the lazy dog\n" * 4, "red"]
    options: dict[str, Any] = {"max_tokens": 60, "temperature": 0.0, "stop": "x"}
    for precision in ("float32", "int8"):
        fast = open_generator(path, "ctranslate2", precision=precision)
        alone = [fast.generate(prompt, **options) for prompt in prompts]
        together = fast.generate_each(prompts, **options)
        assert [one.ids for (one,) in together] == [one.ids for (one,) in alone]
        for (one,), (other,) in zip(together, alone, strict=True):
            assert (one.text, one.stopped) == (other.text, other.stopped)
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    assert fast.generate_each([], **options) == []
    plain = open_generator(path, "ctranslate2", token_scores=False).generate_each(prompts, **options)
    assert [(one.ids, one.log_probs) for (one,) in plain] == [(one.ids, ()) for (one,) in together]
    texts = [text for (text,) in open_generator(path).generate_each(prompts, **options)]
    assert [one.ids for one in texts] == [
        one.ids for (one,) in open_generator(path, "ctranslate2", precision="float32").generate_each(prompts, **options)
    ]


def test_stop_strings_and_streams_work_and_the_export_is_kept(language_model: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(language_model, tmp_path / "model"))
    fast = open_generator(path, "ctranslate2", precision="float32")
    (free,) = fast.generate("dog", max_tokens=30, temperature=0.0)
    stop = free.text[5]
    (held,) = fast.generate("dog", max_tokens=30, temperature=0.0, stop=stop)
    assert (held.text, held.stopped) == (free.text[: free.text.index(stop)], "stop")
    assert "".join(fast.stream("dog", max_tokens=30, temperature=0.0, stop=stop)) == held.text
    assert (path / "ctranslate2" / "float32" / "export.json").is_file()


def test_what_it_cannot_do_is_one_clear_line(language_model: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(language_model, tmp_path / "model"))
    fast = open_generator(path, "ctranslate2", precision="float32")
    for call in ({"temperature": 1.0}, {"temperature": 0.0, "samples": 2}, {"temperature": 0, "repetition_penalty": 2}):
        with pytest.raises(UsageError, match="use the torch engine"):
            fast.generate("the", **call)  # type: ignore[arg-type]
    adaptive = bundle_of(tmp_path / "other", TokenizerPair.load(language_model), {"cutoffs": [50]})
    with pytest.raises(UsageError, match="no adaptive softmax"):
        open_generator(adaptive, "ctranslate2")
