"""A model of ours in the layout of the Hub: `from_pretrained` of `transformers` opens it, without code of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from headwise.bundle.assets import Assets
from headwise.bundle.checkpoint import load_tensors
from headwise.bundle.directory import WEIGHTS, Bundle, write_directory, write_json
from headwise.bundle.golden import GOLDEN as IN_CARD
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.layout import ROLES, Architecture, Beside, Layout, layout_for, role_ids
from headwise.interop.huggingface.published import CONFIG
from headwise.interop.huggingface.read import GOLDEN
from headwise.interop.readme import readme
from headwise.text.published import Numbering, Origin, around, release
from headwise.text.tokenizer import BOS, EOS, PAD, Tokenizer
from headwise.text.vocabulary import MASK, SPECIAL

_FILES = ("tokenizer.json", "target.tokenizer.json")


def export(bundle: Bundle, assets: Assets, directory: Path) -> None:
    """Writes `directory` whole or not at all."""
    architecture = bundle.declared.settings.model_validate(bundle.settings).model_dump(mode="json")
    architecture |= {name: bundle.architecture[name] for name in bundle.declared.sizes}
    origin: Any = bundle.card.get("origin")
    preferred = origin.get("model_type") if isinstance(origin, dict) else None
    try:
        kind, layout = layout_for(bundle.family, bundle.task_name, architecture, preferred)
        beside = _beside(bundle, assets, architecture)
    except UsageError as error:
        raise UsageError(f"{bundle.path} cannot be exported: {error}") from None
    weights = _weights(bundle, layout, architecture, beside)
    config = {"model_type": kind, "architectures": [layout.class_name], "dtype": "float32"}
    config |= {**_special(layout, architecture, beside), **_labels(assets.labels), **layout.write_config(architecture)}
    config |= {GOLDEN: bundle.card[IN_CARD]} if IN_CARD in bundle.card else {}

    def fill(new: Path) -> None:
        save_file(weights, new / WEIGHTS, metadata={"format": "pt"})
        if assets.text is not None:
            _write_tokenizers(new, layout, architecture, beside, bundle.languages)
        for name, content in layout.files(architecture, beside).items():
            (new / name).parent.mkdir(exist_ok=True)
            write_json(new / name, content)
        write_json(new / CONFIG, config)
        opened = f'from transformers import {layout.class_name}\n\nmodel = {layout.class_name}.from_pretrained(".")'
        (new / "README.md").write_text(readme(bundle, "transformers", layout.example or opened), encoding="utf-8")

    write_directory(directory, fill)


def _beside(bundle: Bundle, assets: Assets, architecture: Architecture) -> Beside:
    """What is written beside the weights; a vocabulary has its published order where it was imported."""
    tokenizers = assets.text
    if tokenizers is None:
        return Beside(assets)
    absent, origins = int(architecture.get("absent", 0)), _origins(bundle)
    sides = [tokenizers.source] if tokenizers.shared else [tokenizers.source, tokenizers.target]
    own = [Numbering.of(side.size - absent, {n: n - absent for n in range(absent, EOS + 1)}) for side in sides]
    numberings = [origin.numbering() for origin in origins] or own
    if any(numbering.special != numberings[0].special for numbering in numberings):
        raise UsageError("special tokens have other numbers in its source vocabulary than in the target's")
    return Beside(assets, tuple(numberings), origins)


def _weights(bundle: Bundle, layout: Layout, architecture: Architecture, beside: Beside) -> dict[str, torch.Tensor]:
    orders, weights = layout.orders(architecture, beside.numberings), load_tensors(bundle.path / WEIGHTS)
    theirs = layout.constants(architecture)
    theirs |= {name: torch.zeros(shape) for name, shape in layout.unused(architecture).items()}
    for key in layout.keys(architecture):
        if key.ours not in weights:
            raise ModelError(f"{bundle.path / WEIGHTS} does not fit its architecture: {key.ours} is missing")
        theirs |= key.to_theirs(weights.pop(key.ours).float(), orders)
    return theirs


def _origins(bundle: Bundle) -> tuple[Origin, ...]:
    """The numbering of the model that this one was imported from; a model of our own has ours."""
    found: Any = bundle.card.get("origin")
    try:
        return tuple(Origin(**origin) for origin in found["tokenizers"]) if found else ()
    except (KeyError, TypeError):
        return ()


def _special(layout: Layout, architecture: Architecture, beside: Beside) -> dict[str, Any]:
    """The ids of special tokens."""
    if not beside.numberings:
        return {}
    if layout.special_config is not None:
        return layout.special_config(architecture, beside.numbering)
    return role_ids(beside.numbering)


def _labels(labels: tuple[str, ...]) -> dict[str, Any]:
    if not labels:
        return {}
    numbered = {str(number): name for number, name in enumerate(labels)}
    return {"id2label": numbered, "label2id": {name: number for number, name in enumerate(labels)}}


def _write_tokenizers(
    new: Path, layout: Layout, architecture: Architecture, beside: Beside, languages: tuple[str, ...]
) -> None:
    pair, origins = beside.assets.tokenizers, beside.origins
    sides = [pair.source] if pair.shared else [pair.source, pair.target]
    ids = {SPECIAL[ours]: published for ours, published in beside.numbering.special.items()}
    for name, side, origin in zip(_FILES, sides, origins or (None, None), strict=False):
        parts = release(side, int(architecture.get("absent", 0)), origin)
        if layout.ends_texts and origin is None:
            parts["post_processor"] = around(
                dict(enumerate(SPECIAL)), ids, begins=layout.begins_texts, ends=beside.assets.ends
            )
        write_json(new / name, parts)
    # The class that reads any file of the tokenizers library as it stands.
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    config |= _roles(pair.source, origins[0] if origins else None, beside.numbering)
    if layout.begins_texts:
        named = origins[0].names if origins else {}
        roles = {"cls_token": SPECIAL[BOS], "sep_token": SPECIAL[EOS], "mask_token": MASK}
        config |= {role: named.get(name, name) for role, name in roles.items() if pair.source.find(name) is not None}
        config |= _encoder_inputs(architecture)
    if len(languages) == 2:
        config |= {"source_lang": languages[0], "target_lang": languages[1]}
    write_json(new / "tokenizer_config.json", config)


def _encoder_inputs(architecture: Architecture) -> dict[str, Any]:
    """What an encoder is given for each text, and the most tokens of it."""
    types = ["token_type_ids"] if architecture["segments"] > 1 else []  # else the texts of a pair look the same
    return {
        "model_input_names": ["input_ids", *types, "attention_mask"], "model_max_length": architecture["max_length"]
    }  # fmt: skip


def _roles(tokenizer: Tokenizer, origin: Origin | None, numbering: Numbering) -> dict[str, Any]:
    """Which token has which role."""
    names = {number: tokenizer.vocabulary[number] for number in numbering.special}
    if origin is not None:
        names = {number: origin.names.get(name, name) for number, name in names.items()}
    roles = {ROLES[number]: name for number, name in names.items()}
    if BOS in names and PAD not in names:  # begin of sentence is the padding of a model that has no other
        roles["pad_token"] = roles.pop("bos_token")
    return roles
