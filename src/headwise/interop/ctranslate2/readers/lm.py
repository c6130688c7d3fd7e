"""CTranslate2's decoder without an encoder as our `lm`: exports of Headwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import Directory
from headwise.interop.ctranslate2.layer_keys import stack_keys, stack_settings
from headwise.interop.ctranslate2.own_export import read_own
from headwise.interop.imported import Imported
from headwise.interop.keys import Key

READS = ("TransformerDecoderSpec",)
_TABLE, _OUTPUT, _POSITIONS = "decoder/embeddings/weight", "decoder/projection", "decoder/position_encodings/encodings"


def read(directory: Directory) -> Imported:
    if not directory.manifest:
        raise ModelError(
            f"{directory.path}: of CTranslate2's language models Headwise imports its own exports only; import the "
            "model that this one was converted from"
        )
    rotary = (f"decoder/layer_{n}/self_attention/{name}" for n in range(directory.layers("decoder"))
              for name in ("rotary_dim", "rotary_interleave", "rotary_base"))  # fmt: skip
    ends = (f"{_OUTPUT}/weight", f"{_OUTPUT}/weight_scale", f"{_OUTPUT}/bias", _POSITIONS)
    return read_own(directory, keys, [*stack_settings("decoder"), *rotary, *ends], "lm")


def keys(architecture: dict[str, Any]) -> Iterator[Key]:
    yield Key("embedding.weight", (_TABLE,), vocabulary="target")
    if architecture["tie"] == "none":
        yield Key("output.weight", (f"{_OUTPUT}/weight",), vocabulary="target")
    if architecture["positions"] == "learned":
        yield Key("positions.weight", (_POSITIONS,))
    yield from stack_keys("stack", "decoder", architecture["layers"], norm=architecture["norm"] == "pre")
