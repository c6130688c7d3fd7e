"""The prefixes that a model was trained with, and the choice among them. Needs no torch.

    preprocessing.json   {"kind": "text", "parts": [{"name": "de-en", "prefix": "translate German to English: ",
                         "languages": ["de", "en"]}, …]}

A prefix of null means that a column of the training table said it: every use has to say it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from headwise.bundle.assets import PREPROCESSING, read_preprocessing
from headwise.bundle.declaration import explain
from headwise.bundle.directory import Bundle
from headwise.config.family import Section
from headwise.config.schema import Data, Language
from headwise.errors import ModelError, UsageError
from headwise.files import shortened
from headwise.text.languages import base_language

KIND: Literal["text"] = "text"  # of preprocessing.json


class KnownPart(Section):
    """One of the things that a model can be told to do."""

    name: Annotated[str, Field(max_length=100)] = ""
    prefix: Annotated[str, Field(max_length=1000)] | None = ""
    languages: Annotated[list[Language], Field(max_length=100)] = Field(default_factory=list)


class _Written(Section):
    kind: Literal["text"]
    parts: Annotated[list[KnownPart], Field(min_length=1, max_length=1000)]


class Chosen(NamedTuple):
    """What is written before each source, and the languages of the source and the target."""

    prefix: str
    languages: tuple[str, ...]


class Asked(NamedTuple):
    """What a user says: a prefix (an empty one: the texts have theirs), languages, or nothing."""

    prefix: str | None = None
    source: str = ""
    target: str = ""


def prefixes_of(data: Data) -> dict[str, Any]:
    """What a model directory keeps; nothing where there is one corpus without a prefix."""
    parts = [
        KnownPart(
            name=part.name, prefix=None if part.has_prefix_column else part.prefix, languages=list(part.languages)
        )
        for part in data.parts
    ]
    if not data.mixture and parts[0].prefix == "":
        return {}
    return _Written(kind=KIND, parts=parts).model_dump(mode="json")


def parts_of(bundle: Bundle) -> list[KnownPart]:
    """What a model can be told to do; nothing if its directory lists nothing."""
    if PREPROCESSING not in bundle.files:
        return []
    try:
        return _Written.model_validate(read_preprocessing(bundle.path)).parts
    except ValidationError as error:
        place = bundle.path / PREPROCESSING
        raise ModelError(f"{place} is damaged: {explain(error)}; take another copy of the model") from None


def choose_prefix(bundle: Bundle, asked: Asked) -> Chosen:
    """Finds the prefix that is asked for among those of a model; the only one need not be asked for."""
    parts = parts_of(bundle)
    if asked.prefix is not None:
        return _by_prefix(parts, asked.prefix, bundle)
    if (asked.source or asked.target) and not parts:
        raise UsageError("give either --model, or --from and --to: a model has its own languages")
    fitting = [part for part in parts if _fits(part, asked)]
    found = {(part.prefix, tuple(part.languages)) for part in fitting}
    if not parts:
        return Chosen("", bundle.languages)
    if len(found) != 1:
        problem = "was trained for several things" if found else "was not trained for these languages"
        raise UsageError(f"{bundle.path} {problem}: choose {_choices(parts)}")
    ((prefix, languages),) = found
    if prefix is None:
        raise UsageError(f"{bundle.path} was trained with a prefix for each text: say it with --prefix TEXT")
    return Chosen(prefix, languages or bundle.languages)


def _by_prefix(parts: Sequence[KnownPart], prefix: str, bundle: Bundle) -> Chosen:
    """A known prefix with its languages, whatever spaces are around it; or another one, as it is."""
    for part in parts:
        if part.prefix is not None and prefix.strip() and prefix.strip() in (part.prefix.strip(), part.name):
            return Chosen(part.prefix, tuple(part.languages) or bundle.languages)
    return Chosen(prefix, bundle.languages)


def _fits(part: KnownPart, asked: Asked) -> bool:
    wanted = (asked.source, asked.target)
    if not any(wanted):
        return True
    own = part.languages if len(part.languages) == 2 else ("", "")
    return all(not code or base_language(code) == base_language(o) for code, o in zip(wanted, own, strict=True))


def _choices(parts: Sequence[KnownPart]) -> str:
    """How to say each of them, in one line."""
    pairs = [f"--from {part.languages[0]} --to {part.languages[1]}" for part in parts if len(part.languages) == 2]
    if len(pairs) == len(parts) == len(set(pairs)):
        return shortened(", ".join(pairs), 300)
    return shortened(", ".join(f"--prefix {(part.prefix or part.name).strip()!r}" for part in parts), 300)
