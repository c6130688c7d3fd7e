"""Opens encoders on CTranslate2, for labels, vectors or tokens. Does not import torch once the export is made."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from headwise.bundle.directory import Bundle
from headwise.errors import UsageError
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from headwise.decoding.ctranslate2_encoder import CTranslate2Encoder, Head


def label_encoder(bundle: Bundle, tokenizers: TokenizerPair, precision: str) -> CTranslate2Encoder:
    """Answers with logits of labels."""
    from headwise.decoding.encoder_heads import LabelHead

    return _open(bundle, tokenizers, precision, str(bundle.architecture["pooling"]), LabelHead(bundle))


def vector_encoder(bundle: Bundle, tokenizers: TokenizerPair, precision: str) -> CTranslate2Encoder:
    """Answers with pooled states; the mean, unless the model was trained to give vectors in another way."""
    trained_for_them = bundle.architecture.get("classes") == 0
    pooling = str(bundle.architecture["pooling"]) if trained_for_them else "mean"
    return _open(bundle, tokenizers, precision, pooling, None)


def token_encoder(bundle: Bundle, tokenizers: TokenizerPair, precision: str) -> CTranslate2Encoder:
    """Answers with logits over the vocabulary, at the places that are asked for."""
    from headwise.decoding.encoder_heads import TokenHead

    return _open(bundle, tokenizers, precision, "mean", TokenHead(bundle))


def _open(
    bundle: Bundle, tokenizers: TokenizerPair, precision: str, pooling: str, head: Head | None
) -> CTranslate2Encoder:
    """Raises UsageError or WorkFailed where CTranslate2 cannot run the model."""
    if not importlib.util.find_spec("ctranslate2"):
        raise UsageError("the ctranslate2 engine is not installed; pip install ctranslate2")
    from headwise.interop.ctranslate2.kept import kept_export

    directory = kept_export(bundle, tokenizers, precision)
    from headwise.decoding.ctranslate2_encoder import CTranslate2Encoder

    return CTranslate2Encoder(directory, segments=int(bundle.architecture["segments"]), pooling=pooling, head=head)
