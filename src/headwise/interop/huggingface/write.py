"""A model of ours in the layout of the Hub: `from_pretrained` of `transformers` opens it, without code of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from headwise.bundle.checkpoint import load_tensors
from headwise.bundle.directory import WEIGHTS, Bundle, write_directory, write_json
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.layout import layout_for
from headwise.interop.huggingface.published import CONFIG
from headwise.interop.huggingface.read import GOLDEN
from headwise.text.published import Numbering, Origin, release
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerPair

_FILES = ("tokenizer.json", "target.tokenizer.json")
_ROLES = {PAD: "pad_token", UNK: "unk_token", BOS: "bos_token", EOS: "eos_token"}


def export(bundle: Bundle, tokenizers: TokenizerPair, directory: Path) -> None:
    """Writes `directory` whole or not at all."""
    found = layout_for(bundle.family)
    if found is None:
        raise UsageError(f"{bundle.path} cannot be exported: the Hub's layout of family '{bundle.family}' is not known")
    kind, layout = found
    if tokenizers.source.size != tokenizers.target.size:
        raise UsageError(f"{bundle.path} cannot be exported: its two vocabularies are one in the Hub's layout")
    architecture = bundle.declared.settings.model_validate(bundle.settings).model_dump(mode="json")
    architecture |= {name: bundle.architecture[name] for name in bundle.declared.sizes}
    try:
        config = layout.write_config(architecture)
    except UsageError as error:
        raise UsageError(f"{bundle.path} cannot be exported: {error}") from None
    absent, origins = architecture["absent"], _origins(bundle)
    origin = origins[0] if origins else None
    rows = tokenizers.target.size - absent
    numbering = origin.numbering() if origin else Numbering.of(rows, {n: n - absent for n in range(absent, EOS + 1)})
    order, width = torch.tensor(numbering.order), layout.width_order(architecture)
    weights = load_tensors(bundle.path / WEIGHTS)
    theirs: dict[str, torch.Tensor] = {}
    for key in layout.keys(architecture):
        if key.ours not in weights:
            raise ModelError(f"{bundle.path / WEIGHTS} does not fit its architecture: {key.ours} is missing")
        theirs |= key.to_theirs(weights.pop(key.ours).float(), order, width)
    if layout.ends_texts and not architecture.get("output_bias", True):
        theirs["final_logits_bias"] = torch.zeros(1, rows)
    special = {f"{role}_id": numbering.special[n] for n, role in _ROLES.items() if n in numbering.special}
    special = layout.special_config(numbering) if layout.special_config else special
    sides = [tokenizers.source] if tokenizers.shared else [tokenizers.source, tokenizers.target]

    def fill(new: Path) -> None:
        save_file(theirs, new / WEIGHTS, metadata={"format": "pt"})
        for name, side, origin in zip(_FILES, sides, origins or (None, None), strict=False):
            parts = release(side, absent, origin)
            if layout.ends_texts and origin is None:
                parts["post_processor"] = _ending(numbering.special[EOS])
            write_json(new / name, parts)
        _write_roles(new, tokenizers.source, origins[0] if origins else None, numbering)
        if len(bundle.languages) == 2:
            _add(new / "tokenizer_config.json", source_lang=bundle.languages[0], target_lang=bundle.languages[1])
        described = {"model_type": kind, "architectures": [layout.class_name], "dtype": "float32", **special, **config}
        write_json(new / CONFIG, {**described, **_golden(bundle, numbering)})

    write_directory(directory, fill)


def _origins(bundle: Bundle) -> tuple[Origin, ...]:
    """The numbering of the model that this one was imported from; a model of our own has ours."""
    found: Any = bundle.card.get("origin")
    try:
        return tuple(Origin(**origin) for origin in found["tokenizers"]) if found else ()
    except (KeyError, TypeError):
        return ()


def _ending(end: int) -> dict[str, Any]:
    """The step by which the tokenizers library puts an end of sentence after a text, as these models read it."""
    text, mark = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}
    token = {"id": "</s>", "ids": [end], "tokens": ["</s>"]}
    return {
        "type": "TemplateProcessing", "single": [text, mark], "pair": [text, mark], "special_tokens": {"</s>": token}
    }  # fmt: skip


def _write_roles(folder: Path, tokenizer: Tokenizer, origin: Origin | None, numbering: Numbering) -> None:
    names = {number: tokenizer.vocabulary[number] for number in numbering.special}
    if origin is not None:
        names = {number: origin.names.get(name, name) for number, name in names.items()}
    roles = {_ROLES[number]: name for number, name in names.items()}
    if BOS in names and PAD not in names:  # begin of sentence is the padding of a model that has no other
        roles["pad_token"] = roles.pop("bos_token")
    # The class that reads any file of the tokenizers library as it stands.
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **roles},
    )


def _add(file: Path, **values: str) -> None:
    write_json(file, {**json.loads(file.read_text(encoding="utf-8")), **values})


def _golden(bundle: Bundle, numbering: Numbering) -> dict[str, Any]:
    """One answer of the model, by which whoever imports it sees that nothing was lost."""
    golden: Any = bundle.card.get("golden")
    if not isinstance(golden, dict):
        return {}
    order = numbering.order
    return {GOLDEN: {side: [order[token - numbering.absent] for token in golden[side]] for side in golden}}
