"""A model in Marian's own files as one of ours: a table of names turns it into a MarianMT of the Hub.

As there, a token `<pad>` is added, with which decoding starts: its vector is zero, and it can never be produced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headwise.errors import ModelError
from headwise.interop.huggingface.families import marian
from headwise.interop.huggingface.published import Config, Published, Stored
from headwise.interop.huggingface.read import read_published
from headwise.interop.imported import Imported
from headwise.interop.marian.arrays import Array, Arrays, open_arrays
from headwise.interop.marian.yaml_lines import read_settings, read_vocabulary
from headwise.nn.embedding import NEVER
from headwise.text.sentencepiece_file import read_pieces

_SETTINGS = "special:model.yml"
_BIAS = "decoder_ff_logit_out_b"
# Tables of vectors by their names on the Hub: of one vocabulary, or of two.
_TABLES = {
    "Wemb": "model.shared.weight",
    "encoder_Wemb": "model.encoder.embed_tokens.weight",
    "decoder_Wemb": "model.decoder.embed_tokens.weight",
}
_IGNORED = r"special:.*|decoder_c_tt"
# What Headwise has in one way only; a setting that a file lacks has this value.
_MUST = {
    "type": "transformer", "transformer-preprocess": "",
    "transformer-postprocess": "dan", "transformer-postprocess-top": "", "transformer-ffn-depth": "2",
    "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": "false",
    "transformer-train-position-embeddings": "false",
}  # fmt: skip
_ATTENTION = {"self": "self_attn", "context": "encoder_attn"}
_NAME = re.compile(
    r"(?P<stack>encoder|decoder)_l(?P<layer>[1-9]\d{0,3})_"
    r"((?P<attention>self|context)_(?P<kind>W|b)(?P<part>[qkvo])|(?P<normed>self|context)_Wo_ln_(?P<norm>scale|bias)"
    r"|ffn_(?P<inner>W|b)(?P<number>[12])|ffn_ffn_ln_(?P<last>scale|bias))"
)
_KINDS = {"W": "weight", "b": "bias", "scale": "weight", "bias": "bias"}
_EMBEDDINGS = ("", "d")  # dropout after embeddings or nothing; a norm there is not supported


@dataclass(frozen=True)
class MarianFiles(Published):
    """The weights under the names of the Hub."""

    arrays: Arrays | None = None

    def _read(self, name: str) -> Tensor:
        assert self.arrays is not None
        stored = self.tensors[name]
        values = torch.from_numpy(self.arrays.read(stored.name).copy())
        if stored.name in _TABLES:
            return torch.cat((values, values.new_zeros(1, values.size(1))))
        if stored.name == _BIAS:
            return torch.cat((values, values.new_full((1, 1), NEVER)), dim=1)
        return values.T if _is_matrix(stored.name) else values.flatten()


def read_model(folder: Path) -> Imported:
    """Reads a folder with *.npz, a vocabulary or two (*.yml), source.spm and target.spm."""
    arrays = open_arrays(_only(folder, "*.npz"))
    settings = read_settings(arrays.text(_SETTINGS))
    ids = _vocabularies(folder, shared=settings.get("tied-embeddings-all", "true") == "true")
    config = Config(arrays.file, _config(arrays, settings, ids))
    sides = [read_pieces(folder / name) for name in ("source.spm", "target.spm")]
    beside = marian.beside_of(folder, config, ids, sides)
    published = MarianFiles(folder, config, _named(arrays), arrays)
    imported = read_published(published, marian.LAYOUTS[0], beside)
    imported.origin.update(format="marian", model_type="marian")
    return imported


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ModelError(f"{folder} has {len(found)} files {pattern}, but there must be one; move the others away")
    return found[0]


def _vocabularies(folder: Path, shared: bool) -> list[dict[str, int]]:
    """Tokens with their ids, of both sides or of each; decoder.yml, with settings of a search, is another file."""
    if shared:
        files = [_only(folder, "*vocab*.yml")]
    else:
        files = [_only(folder, f"*{side}.vocab.yml") for side in ("src", "trg")]
    found = []
    for file in files:
        ids = read_vocabulary(file)
        if "</s>" not in ids or "<unk>" not in ids or "<pad>" in ids:
            raise ModelError(f"{file}: the vocabulary must have </s> and <unk>, and no <pad>; take another copy")
        found.append({**ids, "<pad>": len(ids)})
    return found


def _config(arrays: Arrays, settings: Mapping[str, str], ids: Sequence[Mapping[str, int]]) -> dict[str, object]:
    """The settings as the config.json of a MarianMT."""
    tied = {} if len(ids) == 1 else {"tied-embeddings": "true", "tied-embeddings-src": "false"}
    for name, wanted in {**_MUST, **tied}.items():
        if settings.get(name, wanted) != wanted:
            raise ModelError(f"{arrays.file}: {name} = {settings[name]!r} is not supported, only {wanted!r}")
    if settings.get("transformer-postprocess-emb", "d") not in _EMBEDDINGS:
        raise ModelError(f"{arrays.file}: a layer norm after the embeddings is not supported")
    activation = settings.get("transformer-ffn-activation", "swish")
    if activation not in ("swish", "relu"):
        raise ModelError(f"{arrays.file}: transformer-ffn-activation = {activation!r} is not supported")

    def number(name: str) -> int:
        if not re.fullmatch(r"[1-9]\d{0,8}", settings.get(name, "")):
            raise ModelError(f"{arrays.file}: {name} must be a whole number from 1, not {settings.get(name)!r}")
        return int(settings[name])

    heads, inner = number("transformer-heads"), number("transformer-dim-ffn")
    return {
        "model_type": "marian", "d_model": number("dim-emb"), "encoder_layers": number("enc-depth"),
        "decoder_layers": number("dec-depth"), "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "encoder_ffn_dim": inner, "decoder_ffn_dim": inner, "activation_function": activation, "scale_embedding": True,
        "vocab_size": len(ids[0]), "decoder_vocab_size": len(ids[-1]), "max_position_embeddings": 512,
        "share_encoder_decoder_embeddings": len(ids) == 1, "decoder_start_token_id": ids[-1]["<pad>"],
        "eos_token_id": ids[-1]["</s>"], "output_bias": _BIAS in arrays.named,
    }  # fmt: skip


def _named(arrays: Arrays) -> dict[str, Stored]:
    """All arrays that hold weights by the names of the Hub, with the shapes that they have there."""
    found = {}
    for name, array in arrays.named.items():
        if not re.fullmatch(_IGNORED, name):
            found[_hub_name(name)] = Stored(arrays.file, _shape(name, array), name)
    return found


def _hub_name(name: str) -> str:
    if name in _TABLES or name == _BIAS:
        return _TABLES.get(name, "final_logits_bias")
    match = _NAME.fullmatch(name)
    if match is None:
        return name  # which is then refused as unknown
    part = match.groupdict()
    layer = f"model.{part['stack']}.layers.{int(part['layer']) - 1}"
    if part["attention"]:
        projection = "out_proj" if part["part"] == "o" else f"{part['part']}_proj"
        return f"{layer}.{_ATTENTION[part['attention']]}.{projection}.{_KINDS[part['kind']]}"
    if part["normed"]:
        return f"{layer}.{_ATTENTION[part['normed']]}_layer_norm.{_KINDS[part['norm']]}"
    if part["inner"]:
        return f"{layer}.fc{part['number']}.{_KINDS[part['inner']]}"
    return f"{layer}.final_layer_norm.{_KINDS[part['last']]}"


def _is_matrix(name: str) -> bool:
    return re.search(r"_W[qkvo12]$", name) is not None


def _shape(name: str, array: Array) -> tuple[int, ...]:
    shape = array.shape
    if name in _TABLES and len(shape) == 2:
        return shape[0] + 1, shape[1]
    if name == _BIAS and len(shape) == 2:
        return shape[0], shape[1] + 1
    if _is_matrix(name):
        return shape[::-1]
    return shape[1:] if len(shape) == 2 and shape[0] == 1 else shape
