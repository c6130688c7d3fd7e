"""BigBird: BERT with attention between blocks, for long texts (Zaheer et al. 2020, arXiv 2007.14062)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import ClassVar

from headwise.config.families.bert import BertSettings
from headwise.config.families.bigbird import BigBirdSettings
from headwise.models.bert import Bert
from headwise.nn import Attention, BlockSparseAttention
from headwise.nn.heads import Pooler


class BigBird(Bert):
    """Bert whose blocks of tokens see their neighbours, the first and the last block, and random ones.

    Keyword arguments are those of BigBirdSettings: block, random, seed, draw, and those of Bert.
    """

    settings: BigBirdSettings
    settings_class: ClassVar[type[BertSettings]] = BigBirdSettings

    def new_pooler(self) -> Pooler:
        return Pooler(self.settings.model_dim, self.settings.pooler_activation)

    def attention(self) -> Callable[[], Attention]:
        sizes, seeds = self.settings, count(self.settings.seed * self.settings.layers)

        def make() -> BlockSparseAttention:
            return BlockSparseAttention(
                sizes.model_dim, sizes.num_heads, sizes.weights_dropout, block=sizes.block, random=sizes.random,
                seed=next(seeds), draw=sizes.draw,
            )  # fmt: skip

        return make
