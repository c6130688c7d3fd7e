"""The files of sentence-transformers: what becomes of the states of an encoder, so that a text has one vector.

modules.json                  the steps: an encoder, pooling, and perhaps scaling to length 1
1_Pooling/config.json         which states stand for the text
sentence_bert_config.json     how many tokens of a text are read
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.bundle.directory import read_json
from headwise.errors import ModelError
from headwise.files import read_bounded
from headwise.interop.huggingface.published import Config

MODULES, POOLING, LENGTH = "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
_LARGEST = 1 << 20  # bytes of a file
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
_STEPS = {"Transformer": "", "Pooling": POOLING.partition("/")[0], "Normalize": "2_Normalize"}
_CONFIG = "config_sentence_transformers.json"


def read_pooling(folder: Path) -> str:
    """The pooling that the files name; the mean where there are none."""
    _check_steps(folder / MODULES)
    file = folder / POOLING
    if not file.is_file():
        return "mean"
    told = {key for key, value in read_json(file).items() if key.startswith("pooling_mode") and value is True}
    if len(told) != 1 or not told <= _POOLINGS.keys():
        raise ModelError(f"{file}: only the mean of all tokens or the first one is supported, not {sorted(told)}")
    return _POOLINGS[told.pop()]


def _check_steps(file: Path) -> None:
    """Vectors have length 1 here, with or without a step for it; there must be none that computes anything else."""
    if not file.is_file():
        return
    try:
        steps = json.loads(read_bounded(file, _LARGEST))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read: {error}; take another copy of it") from None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise ModelError(f"{file} must hold a list of steps; take another copy of it")
    for step in steps:
        name = str(step.get("type")).rpartition(".")[2]
        if name not in _STEPS:
            raise ModelError(f"{file}: the step {name} is not supported, only {', '.join(_STEPS)}")
        if name == "Pooling" and step.get("path") != _STEPS[name]:
            raise ModelError(f"{file}: the settings of Pooling must be in the folder {_STEPS[name]}")


def read_longest(folder: Path) -> int | None:
    """The tokens of a text that are read, special ones included; None where no file says so."""
    file = folder / LENGTH
    told = read_json(file) if file.is_file() else {}
    return None if told.get("max_seq_length") is None else Config(file, told).number("max_seq_length")


def sentence_files(architecture: Mapping[str, Any], longest: int | None) -> dict[str, Any]:
    """With these files beside it, `SentenceTransformer` opens a model: states, pooled, then of length 1."""
    return {
        MODULES: [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (kind, path) in enumerate(_STEPS.items())
        ],
        LENGTH: {"max_seq_length": longest, "do_lower_case": False},
        _CONFIG: {"prompts": {}, "similarity_fn_name": "cosine"},
        POOLING: {
            "word_embedding_dimension": architecture["model_dim"],
            **{mode: kind == architecture["pooling"] for mode, kind in _POOLINGS.items()},
        },
    }
