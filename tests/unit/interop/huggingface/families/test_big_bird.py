from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from headwise.config.families.bigbird import FAMILY
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.families.big_bird import BIG_BIRD, LAYOUTS, read_config, write_config
from headwise.interop.huggingface.published import Config


def config(**values: Any) -> Config:
    return Config(Path("config.json"), values)


def test_an_empty_config_is_bigbird_base_and_comes_back() -> None:
    read = read_config(config())
    assert (read["block"], read["random"], read["draw"], read["activation"]) == (64, 3, False, "gelu-tanh")
    settings = {**FAMILY.settings.model_validate(read).model_dump(), "vocab": 9, "classes": None}
    written = BIG_BIRD.checked_config(settings)
    assert read_config(config(**written)) == read


def test_labels_are_read_through_the_activation_of_the_layers() -> None:
    labelled = next(layout for layout in LAYOUTS if layout.task == "classify")
    assert labelled.read_config(config())["pooler_activation"] == "gelu-tanh"
    assert read_config(config())["pooler_activation"] == "tanh"


@pytest.mark.parametrize(
    "values", [{"attention_type": "original_full"}, {"use_bias": False}, {"rescale_embeddings": True}]
)
def test_what_is_not_supported_is_one_line(values: dict[str, Any]) -> None:
    (name,) = values
    with pytest.raises(ModelError, match=f"{name} = .* is not supported"):
        read_config(config(**values))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"draw": True}, "draw = false"), ({"random": 0}, "random = 1 or more"), ({"classes": 2}, "pooler_activation")],
)
def test_what_the_hub_does_not_have_is_refused(changes: dict[str, Any], words: str) -> None:
    settings = {**FAMILY.settings().model_dump(), "draw": False, "classes": None}
    with pytest.raises(UsageError, match=words):
        write_config({**settings, **changes})


def test_a_file_of_sentencepiece_gives_its_ids_between_cls_and_sep(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece", reason="not installed: pip install -e '.[dev]'")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox", "jumps over the lazy dog"] * 20), model_writer=model,
        vocab_size=60, hard_vocab_limit=False, minloglevel=9, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
    )  # fmt: skip
    (tmp_path / "spiece.model").write_bytes(model.getvalue())
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    beside = BIG_BIRD.read_beside(tmp_path, config(vocab_size=theirs.get_piece_size()))
    there = dict(enumerate(beside.numbering.order, beside.numbering.absent))
    for text in ("the quick dog", "  lazy   fox jumps", "x"):
        assert [there[n] for n in beside.assets.tokenizers.source.encode(text)] == theirs.encode(text)
    assert [theirs.id_to_piece(there[number]) for number in (2, 3)] == ["[CLS]", "[SEP]"]
