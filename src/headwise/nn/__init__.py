"""The building blocks of a Transformer: modules and functions from tensors to tensors.

Axis letters, the same in every file: B batch, S source (or key) length, T target (or query) length, H heads,
K head size, D model width, F feed-forward width, V vocabulary. Masks are boolean, True = may attend, named `allowed`.
"""

from headwise.nn.adaptive import AdaptiveEmbedding
from headwise.nn.attention import AdditiveAttention, Attention, fast_attention, scaled_dot_product_attention
from headwise.nn.cache import Cache, KeyValueCache
from headwise.nn.dropout import Dropout
from headwise.nn.embedding import Embedding
from headwise.nn.feedforward import FeedForward, GatedFeedForward
from headwise.nn.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerMakers, Residual
from headwise.nn.masks import causal_mask, padding_mask
from headwise.nn.multi_head import MultiHeadAttention
from headwise.nn.norms import RMSNorm
from headwise.nn.observer import capture_attention
from headwise.nn.positions import (
    LearnedPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoidal_positions,
)
from headwise.nn.relative_bias import RelativeBias, relative_buckets

__all__ = [
    "AdaptiveEmbedding",
    "AdditiveAttention",
    "Attention",
    "Cache",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GatedFeedForward",
    "KeyValueCache",
    "LayerMakers",
    "LearnedPositions",
    "MultiHeadAttention",
    "NoPositions",
    "RMSNorm",
    "RelativeBias",
    "Residual",
    "RotaryPositions",
    "SinusoidalPositions",
    "capture_attention",
    "causal_mask",
    "fast_attention",
    "padding_mask",
    "relative_buckets",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
]
