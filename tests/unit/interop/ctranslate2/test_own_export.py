from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_models import word_tokenizers

from headwise.bundle.weights import save_model
from headwise.errors import HeadwiseError
from headwise.interop.ctranslate2.own_export import read_own
from headwise.interop.ctranslate2.read import read_model, readers
from headwise.models.transformer import Transformer
from headwise.workflows.export import export_model


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    pair = word_tokenizers()
    sizes = {"model_dim": 8, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 8}
    save_model(tmp_path / "own", Transformer(source_vocab=pair.source.size, **sizes), pair, family="transformer")
    export_model(tmp_path / "own", tmp_path / "fast", precision="float32")
    return tmp_path / "fast"


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        manifest = json.loads((folder / "export.json").read_text())
        change(manifest)
        (folder / "export.json").write_text(json.dumps(manifest))

    return apply


def without_tokenizer(folder: Path) -> None:
    """As older versions exported."""
    (folder / "tokenizer.json").unlink()
    edited(lambda manifest: manifest["files"].pop("tokenizer.json"))(folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json is missing"),
        (without_tokenizer, r"has no tokenizer\.json; export the model again"),
        (edited(lambda m: m.update(family="lm")), "its family or architecture is not that of the model"),
        (edited(lambda m: m.update(architecture=[])), "its family or architecture is not that of the model"),
        (edited(lambda m: m["architecture"].update(source_vocab=7)), "declares source_vocab = 7, but the tokenizer"),
        (edited(lambda m: m["files"].update({"model.bin": "0" * 64})), r"model\.bin does not have the hash"),
        (edited(lambda m: m.pop("files")), "is damaged: it does not list its files"),
        (edited(lambda m: m["architecture"].update(norm="odd")), "declares an impossible architecture: norm"),
        (edited(lambda m: m["architecture"].update(model_dim=10**12)), "has the shape|impossible"),
        (edited(lambda m: m["architecture"].update(encoder_layers=3)), "lacks encoder/layer_1"),
    ],
)
def test_what_was_changed_after_the_export_is_one_line(
    exported: Path, damage: Callable[[Path], None], words: str
) -> None:
    damage(exported)
    with pytest.raises(HeadwiseError, match=words) as caught:
        dict(read_model(exported).weights)
    assert "\n" not in str(caught.value)


def test_a_directory_of_another_family_is_refused(exported: Path) -> None:
    from headwise.interop.ctranslate2.directory import open_directory

    assert readers()["TransformerSpec"](open_directory(exported)).family == "transformer"
    with pytest.raises(HeadwiseError, match="its family or architecture is not that of the model"):
        read_own(open_directory(exported), lambda sizes: [], [], "lm")
