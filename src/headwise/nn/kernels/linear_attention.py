"""Attention by positive random features, chunk by chunk: forward and backward pass of FAVOR+.

Features are computed where they are used, for a chunk of tokens that fits the cache, and again in the backward pass.
Nothing of size T · features is ever stored, and it takes half the time of the same operations on whole tensors.

    a = x·W √scale - ‖x‖² scale / 2      exponents, (tokens, features)
    φ(x) = exp(a - highest) + EPSILON    a factor common to all keys, or to one query, cancels

Values get a last column of ones, whose sum is the denominator. Because of EPSILON the result depends on `highest` a
little: numerator and denominator are exp(-highest) · X + EPSILON · Y. A common factor of both changes nothing, so the
gradient of `highest` is that of EPSILON · Y. Tensors are (N, T, …), where N stands for rows and heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.nn.kernels.precision import in_float32

EPSILON = 1e-4  # added to every feature, so that no denominator is zero
_CHUNK = 128  # tokens
_STEEPEST = 60.0  # beyond e^60 a rise within a chunk is cut off, so that nothing overflows
NOTHING = -1e30  # the exponent of a token that is not there


@dataclass
class RunningSums:
    """What is kept of the keys so far. Sums of features are relative to e^highest."""

    highest: Tensor  # (N, 1, 1): the highest exponent so far
    outer: Tensor  # Σ exp(a - highest) ⊗ [v; 1], (N, features, K + 1)
    plain: Tensor  # Σ [v; 1], (N, 1, K + 1)


@in_float32
def linear_attention(query: Tensor, key: Tensor, value: Tensor, projection: Tensor, real: Tensor | None) -> Tensor:
    """Every query sees every real key: (N, T, K) three times, (K, features), real (N, T, 1) -> (N, T, K)."""
    out: Tensor = _Whole.apply(query, key, _with_ones(value, real), projection, real)  # type: ignore[no-untyped-call]
    return out


@in_float32
def causal_linear_attention(
    query: Tensor, key: Tensor, value: Tensor, projection: Tensor, real: Tensor | None
) -> Tensor:
    """Each query sees itself and what is before it, by prefix sums: memory grows with T, not with T²."""
    out: Tensor = _Causal.apply(query, key, _with_ones(value, real), projection, real)  # type: ignore[no-untyped-call]
    return out


@torch.no_grad()
def advance(
    query: Tensor, key: Tensor, value: Tensor, projection: Tensor, past: RunningSums | None
) -> tuple[Tensor, RunningSums]:
    """The newest tokens after those of `past`, and the sums after them; without gradients, for decoding."""
    found = []
    for q, k, v in zip(*(_split(x) for x in (query, key, _with_ones(value, None))), strict=True):
        chunk = _Chunk.of(q, k, projection, None, past)
        found.append(chunk.sums(v, past))
        past = chunk.after(v, past)
    assert past is not None
    return _normalised(torch.cat(found, dim=1)), past


def _with_ones(value: Tensor, real: Tensor | None) -> Tensor:
    value = F.pad(value, (0, 1), value=1.0)
    return value if real is None else value * real


def _normalised(sums: Tensor) -> Tensor:
    return sums[..., :-1] / sums[..., -1:].clamp(min=torch.finfo(sums.dtype).tiny)


def _grad_of_sums(grad: Tensor, out: Tensor, denominator: Tensor) -> Tensor:
    """From the gradient of numerator / denominator to that of [numerator; denominator]; 0 where there is no key."""
    grad = torch.cat((grad, -(grad * out).sum(dim=-1, keepdim=True)), dim=-1)
    return grad.div_(denominator).masked_fill_(denominator == 0, 0.0)


def query_features(query: Tensor, projection: Tensor) -> tuple[Tensor, Tensor]:
    """exp(a - highest of the row), (N, C, features), and the highest feature, (N, C); the norm of a row cancels."""
    exponent = query @ projection
    highest, which = exponent.max(dim=-1, keepdim=True)
    return exponent.sub_(highest).exp_(), which[..., 0]


def _grad_of_query(grad: Tensor, features: Tensor, which: Tensor, projection: Tensor) -> Tensor:
    """From the gradient of φ(q) to that of the query; overwrites `features`."""
    of_highest = grad.sum(dim=-1, keepdim=True) * EPSILON
    return features.mul_(grad) @ projection.mT + of_highest * F.embedding(which, projection.mT)


def key_exponents(key: Tensor, projection: Tensor, real: Tensor | None) -> Tensor:
    """a, (N, C, features); `projection` is √scale · Wᵀ with scale = 1/√K."""
    norm = key.square().sum(dim=-1, keepdim=True)
    exponent = torch.baddbmm(norm, key, projection.expand(len(key), -1, -1), beta=-(key.size(-1) ** -0.5) / 2)
    return exponent if real is None else exponent.masked_fill_(~real, NOTHING)


def _grad_of_key(grad: Tensor, key: Tensor, projection: Tensor) -> Tensor:
    """From the gradient of the exponents to that of the key."""
    of_norm: Tensor = key * (grad.sum(dim=-1, keepdim=True) * key.size(-1) ** -0.5)
    return grad @ projection.mT - of_norm


class _Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, projection: Tensor, real: Tensor | None) -> Tensor:
        past, tops = None, list[tuple[Tensor, Tensor]]()
        for k, v, there in _chunks(key, value, real):
            exponent = key_exponents(k, projection, there)
            tops.append(exponent.max(dim=-1))
            highest = tops[-1][0].amax(dim=1)[:, None, None]
            highest = highest if past is None else torch.maximum(highest, past.highest)
            past = _added(exponent.sub_(highest).exp_(), v, highest, past)
        assert past is not None
        outer = past.outer + EPSILON * past.plain
        chunks = (query_features(q, projection)[0] for q in _split(query))
        sums = torch.cat([features.add_(EPSILON) @ outer for features in chunks], dim=1)
        out = _normalised(sums)
        best = _joined(tops)
        ctx.save_for_backward(query, key, value, projection, real, outer, past.highest, out, sums[..., -1:], *best)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, projection, real, outer, highest, out, denominator, top, which = ctx.saved_tensors
        grad_outer = torch.zeros_like(outer)
        grad_query, grad_key, grad_value = (torch.empty_like(x) for x in (query, key, value))
        grad = _grad_of_sums(grads[0], out, denominator)  # (N, T, K + 1)
        for q, g, place in zip(*(_split(x) for x in (query, grad, grad_query)), strict=True):
            features, own = query_features(q, projection)
            grad_outer.baddbmm_((features + EPSILON).mT, g)
            place.copy_(_grad_of_query(g @ outer.mT, features, own, projection))
        for (k, v, there), to_key, to_value in zip(
            _chunks(key, value, real), _split(grad_key), _split(grad_value), strict=True
        ):
            features = key_exponents(k, projection, there).sub_(highest).exp_()
            to_value.copy_((features + EPSILON) @ grad_outer)
            to_key.copy_(_grad_of_key(features.mul_(v @ grad_outer.mT), k, projection))
        of_highest = torch.zeros_like(top)
        total = (value.sum(dim=1) * grad_outer.sum(dim=1)).sum(dim=-1, keepdim=True) * EPSILON  # (N, 1)
        of_highest.scatter_(1, top.argmax(dim=1, keepdim=True), total)
        return grad_query, _with_highest(grad_key, of_highest, which, key, projection), grad_value, None, None


@dataclass
class _Chunk:
    """Features of one chunk of a causal pass."""

    query: Tensor  # with EPSILON, (N, C, features)
    which: Tensor  # the highest feature of each query, (N, C)
    key: Tensor  # exp(a - last), without EPSILON
    best: tuple[Tensor, Tensor]  # the highest exponent of each key, and its feature, (N, C) each
    highest: Tensor  # the highest exponent so far at each token, (N, C, 1)
    last: Tensor  # the same at the end of the chunk, (N, 1, 1)

    @classmethod
    def of(cls, q: Tensor, k: Tensor, projection: Tensor, real: Tensor | None, past: RunningSums | None) -> _Chunk:
        """Keys are relative to the highest exponent *so far*: one of the whole text would tell of tokens to come."""
        exponent = key_exponents(k, projection, real)
        best = exponent.max(dim=-1)
        highest = best.values.cummax(dim=1).values[..., None]
        highest = highest if past is None else torch.maximum(highest, past.highest)
        last = highest[:, -1:]
        features, which = query_features(q, projection)
        return cls(
            features.add_(EPSILON), which, exponent.sub_(last).exp_(), (best.values, best.indices), highest, last
        )

    def rise(self) -> Tensor:
        """exp(a - highest_t) = exp(a - last) · exp(last - highest_t): one product serves all queries. (N, C, 1)."""
        return (self.last - self.highest).clamp_(max=_STEEPEST).exp_()

    def share(self) -> Tensor:
        """What every key gets because of EPSILON, (N, C, 1)."""
        return self.query.sum(dim=-1, keepdim=True).mul_(EPSILON)

    def pairs(self) -> Tensor:
        """φ(q_t)·φ(k_s) for s ≤ t within the chunk, (N, C, C)."""
        return (self.query @ self.key.mT).mul_(self.rise()).add_(self.share()).tril_()

    def sums(self, v: Tensor, past: RunningSums | None) -> Tensor:
        """[numerator; denominator], (N, C, K + 1)."""
        sums = self.pairs() @ v
        if past is None:
            return sums
        earlier = (self.query @ past.outer).mul_((past.highest - self.highest).exp_())
        return sums.add_(earlier).add_(self.share() * past.plain)

    def after(self, v: Tensor, past: RunningSums | None) -> RunningSums:
        return _added(self.key, v, self.last, past)


class _Causal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, projection: Tensor, real: Tensor | None) -> Tensor:
        past: RunningSums | None = None
        found, tops, before = list[Tensor](), list[tuple[Tensor, Tensor]](), list[RunningSums | None]()
        for q, (k, v, there) in zip(_split(query), _chunks(key, value, real), strict=True):
            chunk = _Chunk.of(q, k, projection, there, past)
            found.append(chunk.sums(v, past))
            tops.append(chunk.best)
            before.append(past)
            past = chunk.after(v, past)
        sums = torch.cat(found, dim=1)
        out = _normalised(sums)
        ctx.before = before
        ctx.save_for_backward(query, key, value, projection, real, out, sums[..., -1:], *_joined(tops))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, projection, real, out, denominator, top, which = ctx.saved_tensors
        grad = _grad_of_sums(grads[0], out, denominator)
        grad_query, grad_key, grad_value = (torch.empty_like(x) for x in (query, key, value))
        of_steps = torch.empty_like(top[..., None])  # gradients of the highest exponent so far
        parts = [_split(x) for x in (query, grad, grad_query, grad_key, grad_value, of_steps)]
        later: RunningSums | None = None  # gradients of the sums after the chunk
        for q, g, to_query, to_key, to_value, to_highest, past, (k, v, there) in reversed(
            list(zip(*parts, ctx.before, _chunks(key, value, real), strict=True))
        ):
            chunk = _Chunk.of(q, k, projection, there, past)
            back = _ChunkGradients.of(chunk, g, v, past, later)
            later = back.before
            to_highest.copy_(back.share.mul_(chunk.share()))
            to_query.copy_(_grad_of_query(back.query, chunk.query.sub_(EPSILON), chunk.which, projection))
            to_key.copy_(_grad_of_key(back.key.mul_(chunk.key), k, projection))
            to_value.copy_(back.value)
        of_highest = torch.zeros_like(top).scatter_add_(1, top.cummax(dim=1).indices, of_steps[..., 0])
        return grad_query, _with_highest(grad_key, of_highest, which, key, projection), grad_value, None, None


@dataclass
class _ChunkGradients:
    """Gradients of a chunk's features, values and of what it took from before."""

    query: Tensor
    key: Tensor
    value: Tensor
    share: Tensor  # of `_Chunk.share`, (N, C, 1)
    before: RunningSums | None

    @classmethod
    def of(
        cls, chunk: _Chunk, g: Tensor, v: Tensor, past: RunningSums | None, later: RunningSums | None
    ) -> _ChunkGradients:
        """`g` are the gradients of the chunk's sums, `later` those of the running sums after it."""
        between = (g @ v.mT).tril_()  # of pairs, (N, C, C)
        share = between.sum(dim=-1, keepdim=True)
        between.mul_(chunk.rise())
        query, key, value = between @ chunk.key, between.mT @ chunk.query, chunk.pairs().mT @ g
        if later is not None:
            key.baddbmm_(v, later.outer.mT)
            value.baddbmm_(chunk.key, later.outer).add_(later.plain)
        before = None
        if past is not None:
            earlier = g * (past.highest - chunk.highest).exp_()
            query.baddbmm_(earlier, past.outer.mT)
            share.add_((g * past.plain).sum(dim=-1, keepdim=True))
            outer, plain = chunk.query.mT @ earlier, (chunk.share() * g).sum(dim=1, keepdim=True)
            if later is not None:
                outer.add_(later.outer * (past.highest - chunk.last).exp_())
                plain.add_(later.plain)
            before = RunningSums(past.highest, outer, plain)
        return cls(query.add_(share * EPSILON), key, value, share, before)


def _with_highest(grad: Tensor, of_highest: Tensor, which: Tensor, key: Tensor, projection: Tensor) -> Tensor:
    """Adds the gradients (N, T) of keys' highest exponents, which are those of feature `which`."""
    slope = F.embedding(which, projection.mT) - key * key.size(-1) ** -0.5
    return grad.addcmul_(of_highest[..., None], slope)


def _joined(tops: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    values, which = zip(*tops, strict=True)
    return torch.cat(values, dim=1), torch.cat(which, dim=1)


def _added(features: Tensor, v: Tensor, highest: Tensor, past: RunningSums | None) -> RunningSums:
    outer, plain = features.mT @ v, v.sum(dim=1, keepdim=True)
    if past is not None:
        outer, plain = outer.add_((past.highest - highest).exp_() * past.outer), plain.add_(past.plain)
    return RunningSums(highest, outer, plain)


def _split(x: Tensor) -> list[Tensor]:
    return list(x.split(_CHUNK, dim=1))  # type: ignore[no-untyped-call]


def _chunks(key: Tensor, value: Tensor, real: Tensor | None) -> list[tuple[Tensor, Tensor, Tensor | None]]:
    keys, values = _split(key), _split(value)
    there: list[Tensor | None] = [None] * len(keys) if real is None else [*_split(real)]
    return list(zip(keys, values, there, strict=True))
