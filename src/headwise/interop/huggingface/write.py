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

_ROLES = {PAD: "pad_token", UNK: "unk_token", BOS: "bos_token", EOS: "eos_token"}


def export(bundle: Bundle, tokenizers: TokenizerPair, directory: Path) -> None:
    """Writes `directory` whole or not at all."""
    found = layout_for(bundle.family)
    if found is None:
        raise UsageError(f"{bundle.path} cannot be exported: the Hub's layout of family '{bundle.family}' is not known")
    kind, layout = found
    if not tokenizers.shared:
        raise UsageError(f"{bundle.path} cannot be exported: there is one tokenizer in the Hub's layout, not two")
    architecture = bundle.declared.settings.model_validate(bundle.settings).model_dump(mode="json")
    architecture |= {name: bundle.architecture[name] for name in bundle.declared.sizes}
    try:
        config = layout.write_config(architecture)
    except UsageError as error:
        raise UsageError(f"{bundle.path} cannot be exported: {error}") from None
    absent, origin = architecture["absent"], _origin(bundle)
    rows = tokenizers.target.size - absent
    numbering = origin.numbering() if origin else Numbering.of(rows, {n: n - absent for n in range(absent, EOS + 1)})
    order, width = torch.tensor(numbering.order), layout.width_order(architecture)
    weights = load_tensors(bundle.path / WEIGHTS)
    theirs: dict[str, torch.Tensor] = {}
    for key in layout.keys(architecture):
        if key.ours not in weights:
            raise ModelError(f"{bundle.path / WEIGHTS} does not fit its architecture: {key.ours} is missing")
        theirs |= key.to_theirs(weights.pop(key.ours).float(), order, width)
    special = {f"{role}_id": numbering.special[n] for n, role in _ROLES.items() if n in numbering.special}

    def fill(new: Path) -> None:
        save_file(theirs, new / WEIGHTS, metadata={"format": "pt"})
        _write_tokenizer(new, tokenizers.target, absent, origin, numbering)
        if len(bundle.languages) == 2:
            _add(new / "tokenizer_config.json", source_lang=bundle.languages[0], target_lang=bundle.languages[1])
        described = {"model_type": kind, "architectures": [layout.class_name], "dtype": "float32", **special, **config}
        write_json(new / CONFIG, {**described, **_golden(bundle, numbering)})

    write_directory(directory, fill)


def _origin(bundle: Bundle) -> Origin | None:
    """The numbering of the model that this one was imported from; a model of our own has ours."""
    found: Any = bundle.card.get("origin")
    try:
        return Origin(**found["tokenizers"][0]) if found else None
    except (KeyError, TypeError, IndexError):
        return None


def _write_tokenizer(
    folder: Path, tokenizer: Tokenizer, absent: int, origin: Origin | None, numbering: Numbering
) -> None:
    parts = release(tokenizer, absent, origin)
    (folder / "tokenizer.json").write_text(json.dumps(parts, ensure_ascii=False, indent=1), encoding="utf-8")
    names = {number: tokenizer.vocabulary[number] for number in numbering.special}
    if origin is not None:
        names = {number: origin.names.get(name, name) for number, name in names.items()}
    roles = {_ROLES[number]: name for number, name in names.items()}
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
