"""The building blocks of a Transformer: modules and functions from tensors to tensors.

Axis letters, the same in every file: B batch, S source (or key) length, T target (or query) length, H heads,
K head size, D model width, F feed-forward width, V vocabulary. Masks are boolean, True = may attend, named `allowed`.
"""

from headwise.nn.adaptive import AdaptiveEmbedding
from headwise.nn.attention import AdditiveAttention, Attention, fast_attention, scaled_dot_product_attention
from headwise.nn.block_sparse import BlockSparseAttention
from headwise.nn.cache import Cache, KeyValueCache, SegmentMemory, WindowCache
from headwise.nn.dropout import Dropout
from headwise.nn.embedding import Embedding
from headwise.nn.favor import FavorAttention
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
from headwise.nn.relative import RelativeAttention, RelativePositions
from headwise.nn.relative_bias import RelativeBias, relative_buckets
from headwise.nn.window import WindowAttention, WindowPattern

__all__ = [
    "AdaptiveEmbedding",
    "AdditiveAttention",
    "Attention",
    "BlockSparseAttention",
    "Cache",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FavorAttention",
    "FeedForward",
    "GatedFeedForward",
    "KeyValueCache",
    "LayerMakers",
    "LearnedPositions",
    "MultiHeadAttention",
    "NoPositions",
    "RMSNorm",
    "RelativeAttention",
    "RelativeBias",
    "RelativePositions",
    "Residual",
    "RotaryPositions",
    "SegmentMemory",
    "SinusoidalPositions",
    "WindowAttention",
    "WindowCache",
    "WindowPattern",
    "capture_attention",
    "causal_mask",
    "fast_attention",
    "padding_mask",
    "relative_buckets",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
]
