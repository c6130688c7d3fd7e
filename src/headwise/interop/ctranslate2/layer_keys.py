"""Key tables of CTranslate2's stacks of layers, for reading: what the families share."""

from __future__ import annotations

from collections.abc import Iterator

from headwise.interop.keys import Key

# The settings of a stack: numbers in the file that are not weights.
SETTINGS = (
    "num_heads", "pre_norm", "activation", "alignment_layer", "alignment_heads", "embeddings_merge", "scale_embeddings",
    "start_from_zero_embedding", "multi_query_attention", "alibi", "alibi_use_positive_positions", "scale_alibi",
)  # fmt: skip


def stack_settings(*stacks: str) -> list[str]:
    """Their names; old files have them without the stack."""
    return [*SETTINGS, *(f"{stack}/{name}" for stack in stacks for name in SETTINGS)]


def stack_keys(ours: str, theirs: str, layers: int, *, cross: bool = False, norm: bool = False) -> Iterator[Key]:
    """The weights of a stack: `cross` with attention to an encoder, `norm` with one after the last layer.

    The axes of the model's width are marked, for models that have it in another order.
    """
    for number in range(layers):
        place, there = f"{ours}.layers.{number}", f"{theirs}/layer_{number}"
        yield from attention_keys(f"{place}.self_attention", f"{there}/self_attention", ("linear_0",), "linear_1")
        yield from norm_keys(f"{place}.self_residual.norm", f"{there}/self_attention/layer_norm")
        if cross:
            parts = ("linear_0", "linear_1")  # the query has its own, since it reads another input
            yield from attention_keys(f"{place}.cross_attention", f"{there}/attention", parts, "linear_2")
            yield from norm_keys(f"{place}.cross_residual.norm", f"{there}/attention/layer_norm")
        yield Key(f"{place}.feed_forward.inner.weight", (f"{there}/ffn/linear_0/weight",), width=(1,))
        yield Key(f"{place}.feed_forward.inner.bias", (f"{there}/ffn/linear_0/bias",))
        yield Key(f"{place}.feed_forward.outer.weight", (f"{there}/ffn/linear_1/weight",), width=(0,))
        yield Key(f"{place}.feed_forward.outer.bias", (f"{there}/ffn/linear_1/bias",), width=(0,))
        yield from norm_keys(f"{place}.feed_residual.norm", f"{there}/ffn/layer_norm")
    if norm:
        yield from norm_keys(f"{ours}.norm", f"{theirs}/layer_norm")


def attention_keys(ours: str, theirs: str, projections: tuple[str, ...], output: str) -> Iterator[Key]:
    yield Key(f"{ours}.query_key_value.weight", tuple(f"{theirs}/{part}/weight" for part in projections), width=(1,))
    yield Key(f"{ours}.query_key_value.bias", tuple(f"{theirs}/{part}/bias" for part in projections))
    yield Key(f"{ours}.output.weight", (f"{theirs}/{output}/weight",), width=(0,))
    yield Key(f"{ours}.output.bias", (f"{theirs}/{output}/bias",), width=(0,))


def norm_keys(ours: str, theirs: str) -> Iterator[Key]:
    yield Key(f"{ours}.weight", (f"{theirs}/gamma",), width=(0,))
    yield Key(f"{ours}.bias", (f"{theirs}/beta",), width=(0,))
