from __future__ import annotations

from headwise.bundle.weights import declared_shapes
from headwise.config.families.transformer import TransformerSettings
from headwise.interop.ctranslate2.readers.transformer import READS, keys


def test_the_table_names_every_weight_in_every_arrangement() -> None:
    from pathlib import Path

    assert "TransformerSpec" in READS
    tables = {"encoder": "encoder/embeddings_0/weight", "decoder": "decoder/embeddings/weight"}
    small = {"model_dim": 8, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 2, "ff_dim": 8}
    for changes in (
        {}, {"norm": "pre"}, {"tie": "target", "output_bias": True}, {"tie": "none", "output_bias": True},
        {"positions": "learned", "final_norm": True},
    ):  # fmt: skip
        settings = TransformerSettings.of({**small, **changes}).model_dump(mode="json")
        declared = declared_shapes(Path("model"), "transformer", {"source_vocab": 9, "target_vocab": 9, **settings})
        assert {key.ours for key in keys(settings, tables)} == declared.keys()
