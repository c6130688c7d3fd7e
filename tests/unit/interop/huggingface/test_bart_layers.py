from __future__ import annotations

from headwise.interop.huggingface.bart_layers import layer_keys


def test_each_published_name_stands_once_and_only_decoders_look_at_the_source() -> None:
    encoder, decoder = (layer_keys(stack) for stack in ("encoder", "decoder"))
    for keys in (encoder, decoder):
        names = [name for key in keys for name in key.names]
        assert len(names) == len(set(names))
    assert not any("cross" in key.ours for key in encoder)
    found = {key.at(1).ours: key.at(1).theirs for key in decoder}
    parts = tuple(f"model.decoder.layers.1.encoder_attn.{name}_proj.weight" for name in "qkv")
    assert found["decoder.layers.1.cross_attention.query_key_value.weight"] == parts


def test_a_bias_of_keys_may_be_missing() -> None:
    keys = {key.ours: key for key in layer_keys("encoder", key_bias=False)}
    bias = keys["encoder.layers.{}.self_attention.query_key_value.bias"]
    assert bias.theirs[1] == ""
    assert len(bias.names) == 2
