from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures_published import as_marian_files, publish_marian

from headwise.errors import HeadwiseError
from headwise.interop.marian.read import read_model


@pytest.fixture
def files(tmp_path: Path) -> Path:
    publish_marian(tmp_path / "hub", encoder_layers=1, decoder_layers=1)
    as_marian_files(tmp_path / "hub", tmp_path / "files")
    return tmp_path / "files"


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        arrays = dict(np.load(folder / "model.npz"))
        change(arrays)
        np.savez(folder / "model.npz", **arrays)

    return apply


def setting(name: str, value: str) -> Callable[[Path], None]:
    def change(arrays: dict[str, Any]) -> None:
        lines = arrays["special:model.yml"].tobytes().rstrip(b"\0").decode().splitlines()
        text = "\n".join([*(line for line in lines if not line.startswith(f"{name}:")), f"{name}: {value}"])
        arrays["special:model.yml"] = np.frombuffer(text.encode() + b"\0", dtype=np.int8)

    return changed(change)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (setting("type", "s2s"), "type = 's2s' is not supported, only 'transformer'"),
        (setting("tied-embeddings-all", "false"), r"has 0 files \*src\.vocab\.yml"),
        (setting("transformer-preprocess", "n"), "transformer-preprocess = 'n' is not supported"),
        (setting("transformer-postprocess-emb", "nd"), "a layer norm after the embeddings is not supported"),
        (setting("transformer-ffn-activation", "gelu"), "transformer-ffn-activation = 'gelu' is not supported"),
        (setting("dim-emb", "many"), "dim-emb must be a whole number from 1"),
        (setting("dim-emb", "999999998"), "disagrees with|impossible"),
        (setting("enc-depth", "99999999"), "declares 100000000 layers, but the weights are"),
        (setting("enc-depth", "2"), "lacks model.encoder.layers.1"),
        (changed(lambda a: a.update(extra=np.ones(2, dtype=np.float32))), "has the unknown weights extra"),
        (changed(lambda a: a.pop("encoder_l1_self_Wq")), "lacks model.encoder.layers.0.self_attn.q_proj.weight"),
        (changed(lambda a: a.pop("special:model.yml")), r"lacks special:model\.yml; it is not a model of Marian"),
        (changed(lambda a: a.update(Wemb=a["Wemb"][:-1])), "has the shape .* disagrees"),
        (lambda folder: (folder / "source.spm").unlink(), r"source\.spm is missing"),
        (lambda folder: (folder / "opus.vocab.yml").unlink(), r"has 0 files \*vocab\*\.yml"),
        (lambda folder: (folder / "opus.vocab.yml").write_text("a: 0\n"), "must have </s> and <unk>"),
        (lambda folder: (folder / "second.npz").write_bytes(b""), r"has 2 files \*\.npz"),
    ],
)
def test_what_cannot_be_imported_is_one_line(files: Path, damage: Callable[[Path], object], words: str) -> None:
    damage(files)
    with pytest.raises(HeadwiseError, match=words) as caught:
        dict(read_model(files).weights)
    assert "\n" not in str(caught.value)
