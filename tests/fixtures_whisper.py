"""Small random Whispers, as `transformers` writes them, with tokenizers of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from fixtures_published import END, byte_level_bpe, randomised

LANGUAGES = ("en", "de", "zh")
MARKS = ("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>")


def publish_whisper(folder: Path, seed: int = 0, *, multilingual: bool = True, **changes: Any) -> Any:
    """A random Whisper with a window of one second, timestamps and a tokenizer; returns the model of `transformers`."""
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(seed)
    tokenizer = byte_level_bpe(300)
    marks = ["<|startoftranscript|>", *(f"<|{name}|>" for name in LANGUAGES), *MARKS]
    tokenizer.add_special_tokens(marks)
    ids: dict[str, int] = {name: tokenizer.token_to_id(name) for name in (END, *marks)}
    sizes = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 20,
        "max_source_positions": 50, "max_target_positions": 40, **changes,
    }  # fmt: skip
    special = {
        "pad_token_id": ids[END], "bos_token_id": ids[END], "eos_token_id": ids[END],
        "decoder_start_token_id": ids["<|startoftranscript|>"],
    }  # fmt: skip
    vocab = tokenizer.get_vocab_size() + 51  # timestamps 0.00 … 1.00, which the tokenizer's file does not name
    model = WhisperForConditionalGeneration(WhisperConfig(vocab_size=vocab, **special, **sizes))
    table = model.model.encoder.embed_positions.weight.detach().clone()
    randomised(model)
    with torch.no_grad():
        model.model.encoder.embed_positions.weight.copy_(table)
        model.proj_out.weight.mul_(4)  # so that one token stands out from the others
    several = {
        "lang_to_id": {f"<|{name}|>": ids[f"<|{name}|>"] for name in LANGUAGES},
        "task_to_id": {name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")},
    }  # fmt: skip
    model.generation_config = GenerationConfig(
        **special, is_multilingual=multilingual, no_timestamps_token_id=ids["<|notimestamps|>"],
        prev_sot_token_id=ids["<|startofprev|>"], suppress_tokens=[5, 17, *(ids[name] for name in MARKS[2:5])],
        begin_suppress_tokens=[tokenizer.token_to_id("Ġ"), ids[END]], max_length=sizes["max_target_positions"],
        alignment_heads=[[1, 0], [1, 3]], max_initial_timestamp_index=50, return_timestamps=False,
        **(several if multilingual else {}),
    )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    extractor = {"feature_size": sizes["num_mel_bins"], "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400}
    (folder / "preprocessor_config.json").write_text(json.dumps({**extractor, "chunk_length": 1}))
    return model


def columns(rows: int, end: int) -> list[int]:
    """Our id of each published token: end and begin of transcript are 3 and 2 here."""
    special = {end: 3, end + 1: 2}
    return [special.get(number, number + 2 + 2 * (number < end)) for number in range(rows)]
