from __future__ import annotations

from headwise.bundle.weights import declared_shapes
from headwise.interop.ctranslate2.layer_keys import stack_keys, stack_settings


def test_the_tables_name_every_weight_of_both_stacks() -> None:
    from pathlib import Path

    sizes = {"model_dim": 8, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 3, "ff_dim": 12, "norm": "pre"}
    declared = declared_shapes(Path("model"), "transformer", {"source_vocab": 9, "target_vocab": 9, **sizes})
    keys = [
        *stack_keys("encoder", "encoder", 2, norm=True), *stack_keys("decoder", "decoder", 3, cross=True, norm=True)
    ]  # fmt: skip
    assert {key.ours for key in keys} == {name for name in declared if name.startswith(("encoder", "decoder"))}
    assert len({name for key in keys for name in key.names}) == sum(len(key.names) for key in keys)


def test_settings_stand_with_a_stack_or_without() -> None:
    assert {"num_heads", "decoder/num_heads"} <= set(stack_settings("decoder"))
