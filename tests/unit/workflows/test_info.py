from __future__ import annotations

import json
from pathlib import Path

from headwise.workflows.info import model_info


def test_everything_is_said_from_the_files_alone(word_model: Path) -> None:
    info = model_info(word_model)
    assert (info.family, info.task, info.languages, info.precision) == (
        "transformer",
        "translate",
        ("en", "de"),
        "float32",
    )
    assert info.family_about
    assert [(tokenizer.side, tokenizer.kind) for tokenizer in info.tokenizers] == [("both", "word")]
    assert info.parameters > 10_000
    assert info.files["model.safetensors"] > 4 * info.parameters
    assert json.loads(json.dumps(info.as_dict()))["architecture"]["model_dim"] == 64


def test_the_model_inside_of_a_run_is_found(word_model: Path, language_model: Path, tmp_path: Path) -> None:
    (tmp_path / "model").symlink_to(language_model)
    assert model_info(tmp_path).task == "generate"
