"""Writes a network and its tokenizers as a model directory: what `headwise.save` is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.bundle.weights import save_model
from headwise.config.families import family_names, find_family
from headwise.errors import UsageError
from headwise.models.interface import Network
from headwise.text.tokenizer import Tokenizer, TokenizerPair


def save(
    model: Network,
    tokenizers: Tokenizer | TokenizerPair | tuple[Tokenizer, Tokenizer] | Assets,
    directory: str | Path,
    *,
    languages: Sequence[str] = (),
    task: str = "",
    decoding: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a model directory, replacing an older one, and returns its path; every command and `load` can use it.

    `tokenizers` is one, or one for the source and one for the target. `task` is by default the first of the family.
    """
    path = Path(directory)
    codes = (languages,) if isinstance(languages, str) else tuple(languages)
    save_model(
        path, model, _assets(tokenizers), family=_family(model), task=task, languages=codes,
        decoding=dict(decoding or {}),
    )  # fmt: skip
    return path


def _assets(given: Tokenizer | TokenizerPair | tuple[Tokenizer, Tokenizer] | Assets) -> Assets:
    if isinstance(given, Assets):
        return given
    if isinstance(given, Tokenizer):
        return Assets(TokenizerPair.one(given))
    return Assets(given if isinstance(given, TokenizerPair) else TokenizerPair(*given))


def _family(model: Network) -> str:
    """Finds the family whose network this is."""
    names = {f"{kind.__module__}:{kind.__qualname__}" for kind in type(model).__mro__}
    for name in family_names():
        family = find_family(name)
        if family is not None and family.network in names:
            return name
    raise UsageError(
        f"{type(model).__name__} is not the network of a family, so it could not be loaded again: declare one with "
        "register_family (docs/python.md has an example)"
    )
