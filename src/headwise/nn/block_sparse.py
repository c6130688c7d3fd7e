"""Attention between blocks of tokens, to neighbours, to global blocks and to random ones: BigBird.

Zaheer et al. 2020 (arXiv 2007.14062). A block of queries sees the block before it, itself and the next one, the first
and the last block of the text, and `random` others, drawn once per head. The first and the last block see everything.
Time and memory grow with T instead of T².
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.errors import ShapeError
from headwise.nn.attention import fast_attention, scaled_dot_product_attention
from headwise.nn.cache import KeyValueCache
from headwise.nn.multi_head import MultiHeadAttention
from headwise.nn.window import check_self_attention, padding_of


@lru_cache(maxsize=4096)
def block_table(heads: int, count: int, random: int, seed: int, causal: bool) -> Tensor:
    """Which blocks each block of queries sees in a text of `count` blocks: (H, count, slots); -1 is an empty slot.

    The rows of the first and last block are not used: they see everything. With `causal` a block sees the first block,
    the one before it, itself, and random earlier ones, whatever comes later: there is no last block.
    """
    slots = (3 if causal else 5) + random
    if not causal and count <= slots:  # all of them have room
        return F.pad(torch.arange(count), (0, slots - count), value=-1).expand(heads, count, slots)
    table = torch.full((heads, count, slots), -1)
    for row in range(count):
        fixed = {0, row - 1, row} if causal else {0, count - 1, row - 1, row, row + 1}
        known = sorted(fixed & set(range(count)))
        others = torch.tensor([n for n in range(row if causal else count) if n not in fixed], dtype=torch.long)
        chance = _generator(seed, row, 0 if causal else count)
        drawn = torch.rand(heads, len(others), generator=chance).argsort(dim=1)[:, :random]
        table[:, row, : len(known)] = torch.tensor(known)
        table[:, row, len(known) : len(known) + drawn.size(1)] = others[drawn].sort(dim=1).values
    return table


def _generator(*numbers: int) -> torch.Generator:
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


class BlockSparseAttention(MultiHeadAttention):
    """Self-attention between blocks of `block` tokens. `allowed` may only hide padding: (B, 1, 1, T).

    What a row of a batch sees does not depend on how far it is padded: its last block is that of its last token. A text
    of at most 5 + `random` blocks sees all of itself. Dropout on the weights is for such texts only.

    With `draw=False` it computes what the library transformers computes in evaluation: there all random blocks are the
    first block, which then counts 1 + `random` times, the last block is that of the padded text, and texts of up to
    5 + 2 · `random` blocks see all of themselves.
    """

    def __init__(
        self, model_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, block: int, random: int = 3,
        seed: int = 0, draw: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(model_dim, num_heads, dropout, bias)
        if block < 1 or random < 0:
            raise ShapeError(f"a block has at least 1 token and sees at least 0 random ones, not {block} and {random}")
        self.block, self.random, self.seed, self.draw = block, random, seed, draw

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None, *,
        bias: Tensor | None = None, causal: bool = False, past: KeyValueCache | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D) three times -> (B, T, D)."""
        check_self_attention(query, key, value, self.model_dim, bias)
        if causal and not self.draw:
            raise ShapeError("draw=False is for reading a whole text: not with causal=True")
        real = padding_of(allowed)
        q, k, v = self.heads(query, 0, 3)  # (B, H, T, K)
        if past is not None:
            return self._step(q, k, v, past, causal)
        counts = self._counts(real, *query.shape[:2])
        if not causal and max(counts) <= self._slots + (0 if self.draw else 2 * self.random):
            return self.attend(q, k, v, None if real is None else real[:, None, None])
        heads = self._sparse(q, k, v, real, counts, causal)
        if (observer := self.observer) is not None:
            observer(lambda: self.weights(query, allowed, causal))
        out: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return out

    @property
    def _slots(self) -> int:
        return 5 + (self.random if self.draw else 0)

    def _counts(self, real: Tensor | None, rows: int, length: int) -> list[int]:
        """How many blocks each row of the batch has."""
        if real is None or not self.draw:
            return [-(-length // self.block)] * rows
        return [-(-tokens // self.block) for tokens in real.sum(dim=1).tolist()]

    def _tables(self, counts: list[int], causal: bool, blocks: int, device: torch.device) -> Tensor:
        """What each block of each row sees: (B, H, blocks, slots)."""
        random = self.random if self.draw else 0
        found = []
        for count in counts:
            table = block_table(self.num_heads, blocks if causal else count, random, self.seed, causal)
            found.append(F.pad(table, (0, 0, 0, blocks - table.size(1)), value=-1))
        return torch.stack(found).to(device)

    def _sparse(
        self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None, counts: list[int], causal: bool
    ) -> Tensor:  # (B, H, T, K) -> (B, H, T, K)
        rows, heads, length, size = q.shape
        missing = -length % self.block
        if missing and real is None:
            real = torch.ones(rows, length, dtype=torch.bool, device=q.device)
        padded = None if real is None else F.pad(real, (0, missing))
        q, k, v = (F.pad(x, (0, 0, 0, missing)) if missing else x for x in (q, k, v))
        blocks = q.size(2) // self.block
        table = self._tables(counts, causal, blocks, q.device)
        shape = rows, heads * blocks, -1, size
        place = torch.arange(rows * heads, device=q.device).view(rows, heads, 1, 1) * blocks + table.clamp(min=0)
        near_k, near_v = (
            x.reshape(-1, self.block, size).index_select(0, place.flatten()).view(shape) for x in (k, v)
        )  # (B, H · blocks, slots · block, K)
        allowed = self._mask(table, padded, causal)  # (B, H · blocks, 1 or block, slots · block)
        bias = None if self.draw else self._first_counts_more(table)
        found = fast_attention(q.reshape(shape), near_k, near_v, allowed, bias=bias, scale=self.scale)
        found = found.view(rows, heads, blocks, self.block, size)
        if not causal:
            found = self._with_global_rows(found, q, k, v, padded, counts)
        found = found.flatten(2, 3)[:, :, :length]
        return found if real is None else found.masked_fill(~real[:, None, :, None], 0.0)

    def _mask(self, table: Tensor, real: Tensor | None, causal: bool) -> Tensor:
        """Hides empty slots, padding and, if causal, what comes later."""
        rows, _, blocks, _ = table.shape
        allowed = (table >= 0)[..., None].expand(-1, -1, -1, -1, self.block)  # (B, H, blocks, slots, block)
        if real is not None:
            by_block = real.view(rows, blocks, self.block)
            allowed = (
                allowed & by_block[torch.arange(rows, device=real.device)[:, None, None, None], table.clamp(min=0)]
            )
        allowed = allowed.flatten(3)[:, :, :, None]  # (B, H, blocks, 1, slots · block)
        if causal:
            inside = torch.arange(self.block, device=table.device)
            key = (table[..., None] * self.block + inside).flatten(3)[:, :, :, None]
            query = torch.arange(blocks, device=table.device)[:, None] * self.block + inside  # (blocks, block)
            allowed = allowed & (key <= query[:, :, None])
        return allowed.flatten(1, 2)

    def _first_counts_more(self, table: Tensor) -> Tensor:
        """log(1 + random) for each key of the first block: softmax then counts it 1 + random times."""
        more = (table == 0).to(torch.float32) * math.log(1 + self.random)
        return more[..., None].expand(-1, -1, -1, -1, self.block).flatten(3).flatten(1, 2)[:, :, None]

    def _with_global_rows(
        self, found: Tensor, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None, counts: list[int]
    ) -> Tensor:
        """Replaces the first and the last block of each row, which see everything."""
        rows = torch.arange(len(counts), device=q.device)
        last = torch.tensor([max(0, count - 1) for count in counts], device=q.device)
        queries = q.reshape(*q.shape[:2], -1, self.block, q.size(3)).transpose(1, 2)  # (B, blocks, H, block, K)
        both = torch.cat((queries[:, 0], queries[rows, last]), dim=2)  # (B, H, 2 · block, K)
        seen = fast_attention(both, k, v, None if real is None else real[:, None, None], scale=self.scale)
        first, end = seen.chunk(2, dim=2)
        replaced = found.transpose(1, 2).index_put((rows, torch.zeros_like(last)), first).index_put((rows, last), end)
        return replaced.transpose(1, 2)

    def _step(self, q: Tensor, k: Tensor, v: Tensor, past: KeyValueCache, causal: bool) -> Tensor:
        """The newest tokens after those of the cache, which keeps all: random blocks may be anywhere."""
        if not causal:
            raise ShapeError("decoding token by token looks back only: pass causal=True")
        k, v = past.append(k, v)
        keys = k.size(2)
        counts = [-(-keys // self.block)]
        return self.attend(q, k, v, self.dense(counts, keys, True, q.device, first=keys - q.size(2)), causal=True)

    def dense(
        self, counts: list[int], length: int, causal: bool, device: torch.device | None = None, first: int = 0
    ) -> Tensor:
        """Which pairs may meet, padding aside: (B, H, T, T), from query `first` on. The definition, for reference."""
        place = device or torch.device("cpu")
        blocks = -(-length // self.block)
        table = self._tables(counts, causal, blocks, place)[:, :, first // self.block :]
        met = torch.zeros(*table.shape[:3], blocks + 1, dtype=torch.bool, device=place)
        met = met.scatter(3, table + 1, True)[..., 1:]  # an empty slot is column -1
        for row, count in enumerate([] if causal else counts):
            met[row, :, [n for n in (0, count - 1) if n >= 0], :count] = True
        rows = met.repeat_interleave(self.block, dim=2)[:, :, first % self.block :][:, :, : length - first]
        pairs = rows.repeat_interleave(self.block, dim=3)[..., :length]
        return pairs & pairs.new_ones(length - first, length).tril(first) if causal else pairs

    def weights(self, x: Tensor, allowed: Tensor | None = None, causal: bool = False) -> tuple[Tensor, Tensor]:
        """All weights, zeros included, (B, H, T, T), and which pairs may meet: the slow way, by a dense mask."""
        real, length = padding_of(allowed), x.size(1)
        q, k, v = self.heads(x, 0, 3)
        counts = self._counts(real, *x.shape[:2])
        pairs = self.dense(counts, length, causal, x.device)
        bias = None
        if not self.draw:
            bias = x.new_zeros(length, length)
            bias[self.block : (counts[0] - 1) * self.block, : self.block] = math.log(1 + self.random)
        if real is not None:
            pairs = pairs & real[:, None, None] & real[:, None, :, None]
        return scaled_dot_product_attention(q, k, v, pairs, bias=bias, scale=self.scale)[1], pairs

    def new_cache(self) -> KeyValueCache:
        return KeyValueCache()
