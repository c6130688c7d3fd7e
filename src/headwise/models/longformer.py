"""Longformer: BERT with a sliding window and global tokens, for long texts (Beltagy et al. 2020, arXiv 2004.05150)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from headwise.config.families.bert import BertSettings
from headwise.config.families.longformer import LongformerSettings
from headwise.models.bert import Bert
from headwise.nn import Attention, WindowAttention, WindowPattern, padding_mask


class Longformer(Bert):
    """Bert whose tokens see `window` / 2 tokens on either side and the first token, which sees the whole text.

    Keyword arguments are those of LongformerSettings: window, global_first, and those of Bert.
    """

    settings: LongformerSettings
    settings_class: ClassVar[type[BertSettings]] = LongformerSettings

    def attention(self) -> Callable[[], Attention]:
        sizes = self.settings
        return partial(
            WindowAttention, sizes.model_dim, sizes.num_heads, sizes.weights_dropout, window=sizes.window,
            global_tokens=sizes.global_first,
        )  # fmt: skip

    def options(self, ids: Tensor, lengths: Tensor | None) -> dict[str, Any]:
        """What is padding and what is global, once for all layers."""
        real = None if lengths is None else padding_mask(lengths, ids.size(1))
        first = None
        if self.settings.global_first:
            first = torch.zeros_like(ids, dtype=torch.bool)
            first[:, :1] = True
        return {"pattern": WindowPattern(real, first)}
