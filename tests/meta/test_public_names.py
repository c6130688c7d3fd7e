"""The names that users rely on. A change here needs a line in CHANGELOG.md."""

from __future__ import annotations

import importlib

import pytest

import headwise

PUBLIC = {
    "BigBird", "Longformer", "Performer",
    "Bert", "Classification", "Classifier", "Embedder", "Filler", "Generation", "Generator", "HeadwiseError",
    "LanguageModel", "RecurrentSeq2Seq", "T5", "Tokenizer", "Transformer", "TransformerXL", "Translation", "Translator",
    "ViT", "Whisper", "label_smoothed_cross_entropy", "load", "nn", "save", "train",
}  # fmt: skip
PARTS = {
    "AdaptiveEmbedding", "AdditiveAttention", "Attention", "Cache", "Decoder", "DecoderLayer", "Dropout", "Embedding",
    "Encoder", "EncoderLayer", "FeedForward", "GatedFeedForward", "KeyValueCache", "LayerMakers", "LearnedPositions",
    "MultiHeadAttention", "NoPositions", "RMSNorm", "RelativeBias", "Residual", "RotaryPositions",
    "SinusoidalPositions", "capture_attention", "causal_mask", "fast_attention", "padding_mask", "relative_buckets",
    "scaled_dot_product_attention", "sinusoidal_positions",
    "BlockSparseAttention", "FavorAttention", "RelativeAttention", "RelativePositions", "SegmentMemory",
    "WindowAttention", "WindowCache", "WindowPattern",
}  # fmt: skip


@pytest.mark.parametrize(("module", "names"), [("headwise", PUBLIC), ("headwise.nn", PARTS)])
def test_the_public_names_are_these_and_each_is_there(module: str, names: set[str]) -> None:
    loaded = importlib.import_module(module)
    assert set(loaded.__all__) == names
    for name in names:
        assert getattr(loaded, name) is not None


def test_dir_shows_the_public_names_before_they_are_loaded() -> None:
    assert set(dir(headwise)) == PUBLIC | {"__version__"}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Transfomer"):
        headwise.Transfomer  # noqa: B018
