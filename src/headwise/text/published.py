"""Tokenizers of published models: their files with our special tokens in front, and back.

Ids 0 to 3 are padding, unknown, begin and end of sentence everywhere in Headwise, and a published vocabulary has them
elsewhere, under other names, or not at all. So its tokens are renumbered on import: first the special ones, then all
others in their order. Those of padding, unknown and begin that the file lacks get an id but no vector (the setting
`absent`). What it takes to undo this is the `Numbering`, which the card keeps
(docs/decisions/0016-published-models.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from headwise.errors import ModelError
from headwise.text.tokenizer import BOS, EOS, Tokenizer
from headwise.text.tokenizer_file import read_tokenizer
from headwise.text.vocabulary import SPECIAL

Parts = dict[str, Any]  # the content of a file of the tokenizers library

# Stands in a file whose text is whole documents (`Tokenizer.reads_documents`), and changes nothing.
_DOCUMENTS = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {},
}


@dataclass(frozen=True)
class Numbering:
    """How a published vocabulary is numbered here."""

    rows: int  # tokens of the published vocabulary
    absent: int = 0  # of our special tokens, those without a published one: always the first
    special: Mapping[int, int] = field(default_factory=dict)  # our special ids to published ids

    @classmethod
    def of(cls, rows: int, special: Mapping[int, int]) -> Numbering:
        """`special`: those of our special tokens that the vocabulary has. Absent ones must be the first, so where one
        is missing, those before it are ordinary tokens."""
        absent = next(n for n in range(len(SPECIAL) + 1) if all(number in special for number in range(n, len(SPECIAL))))
        if absent > EOS:
            raise ModelError("the vocabulary has no token that ends a text; the config must name its eos_token_id")
        kept = {number: special[number] for number in range(absent, len(SPECIAL))}
        if len(set(kept.values())) < len(kept) or not all(0 <= number < rows for number in kept.values()):
            raise ModelError(f"the special tokens {kept} are not different tokens of a vocabulary of {rows}")
        return cls(rows, absent, kept)

    @cached_property
    def order(self) -> list[int]:
        """The published id of each of our tokens that has one: of `absent`, `absent` + 1, …"""
        front = list(self.special.values())
        taken = set(front)
        return [*front, *(number for number in range(self.rows) if number not in taken)]

    @property
    def vocab(self) -> int:
        return self.rows + self.absent


@dataclass(frozen=True)
class Origin:
    """What of a published tokenizer file is not in ours: enough to write the file again."""

    rows: int
    special: dict[str, int]  # our id of a special token (a string, for JSON) to its published id
    names: dict[str, str]  # a token's name here to its published name
    added_tokens: list[dict[str, Any]]
    post_processor: dict[str, Any] | None

    def numbering(self) -> Numbering:
        return Numbering.of(self.rows, {int(ours): theirs for ours, theirs in self.special.items()})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


# ---- reading files


def read_parts(folder: Path) -> Parts:
    """tokenizer.json, or GPT-2's vocab.json and merges.txt."""
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json").parts
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    if not vocabulary.is_file() or not merges.is_file():
        raise ModelError(f"{folder} has no tokenizer.json, nor vocab.json and merges.txt; add the model's tokenizer")
    _read_json(vocabulary)  # for its messages
    try:
        model = models.BPE.from_file(str(vocabulary), str(merges))
    except Exception as error:  # the library raises bare Exception for whatever it cannot parse
        raise ModelError(f"{merges} does not fit {vocabulary.name}: {error}") from None
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return cast("Parts", json.loads(tokenizer.to_str()))


def vocabulary(parts: Parts, file: str | Path = "tokenizer.json") -> dict[int, str]:
    """Names by id, of the model's and of added tokens."""
    try:
        pieces = parts["model"]["vocab"]
        named = dict(enumerate(piece for piece, _ in pieces)) if isinstance(pieces, list) else {}
        named |= {int(number): name for name, number in pieces.items()} if isinstance(pieces, dict) else {}
        return named | {int(token["id"]): str(token["content"]) for token in parts.get("added_tokens") or []}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{file} has no vocabulary that can be read: {error!r}") from None


def is_ours(named: Mapping[int, str]) -> bool:
    """Whether a vocabulary has our special tokens where we have them: Headwise exported it."""
    return all(named.get(number) == name for number, name in enumerate(SPECIAL))


# ---- in and out


def adopt(
    parts: Parts, numbering: Numbering, file: str | Path = "tokenizer.json", *, documents: bool = True,
    renames: Mapping[str, str] | None = None,
) -> tuple[Tokenizer, Origin]:  # fmt: skip
    """The tokenizer with our numbering, and what is needed to undo it. `documents`: its texts have line breaks.

    `renames` gives tokens that a task needs, such as a mask, the names by which we know them.
    """
    named = vocabulary(parts, file)
    if max(named, default=0) >= numbering.rows:
        raise ModelError(f"{file} has a token {max(named)}, but the model has vectors for {numbering.rows} tokens only")
    given, order = renames or {}, numbering.order
    ours = dict(enumerate(SPECIAL))
    for number, published in enumerate(order[len(numbering.special) :], len(SPECIAL)):
        name = named.get(published, f"<unused-{published}>")
        ours[number] = given.get(name) or _free_name(name)
    names = {ours[n]: named.get(p, "") for n, p in enumerate(order, numbering.absent)}
    origin = Origin(
        numbering.rows,
        {str(ours_id): published for ours_id, published in numbering.special.items()},
        {name: published for name, published in names.items() if name != published},
        list(parts.get("added_tokens") or []),
        parts.get("post_processor"),
    )
    new_ids = {published: number for number, published in enumerate(order, numbering.absent)}
    renamed = {published: name for name, published in origin.names.items()}
    new = {**parts, "model": _with_vocabulary(parts["model"], ours, renamed), "truncation": None, "padding": None}
    new["added_tokens"] = _plain_added(origin.added_tokens, new_ids, ours)
    if not documents:
        new["post_processor"] = None
    elif not is_ours(named):
        new["post_processor"] = _DOCUMENTS
    return _load(new, file), origin


def release(tokenizer: Tokenizer, absent: int, origin: Origin | None) -> Parts:
    """The file as it was published; without an `origin`, our own with its special tokens that have vectors."""
    parts = tokenizer.parts
    pieces = tokenizer.vocabulary
    if origin is None:
        named = {number - absent: pieces[number] for number in range(absent, len(pieces))}
        added = [{**token, "id": int(token["id"]) - absent} for token in parts.get("added_tokens") or []]
        return {**parts, "model": _with_vocabulary(parts["model"], named, {}), "added_tokens": added}
    published = {
        number: origin.names.get(name, name)
        for number, name in zip(origin.numbering().order, pieces[absent:], strict=True)
    }
    known = {number: name for number, name in published.items() if name}
    return {
        **parts,
        "model": _with_vocabulary(parts["model"], known, origin.names),
        "added_tokens": origin.added_tokens,
        "post_processor": origin.post_processor,
    }


def pair_ends(parts: Parts) -> int:
    """How many special tokens a file puts between the texts of a pair: two, as RoBERTa does, or one."""
    step = parts.get("post_processor") or {}
    try:
        if step.get("type") == "TemplateProcessing":
            texts = [place for place, piece in enumerate(step.get("pair") or ()) if "Sequence" in piece]
            return 2 if len(texts) == 2 and texts[1] - texts[0] == 3 else 1
        return 2 if step.get("type") == "RobertaProcessing" else 1
    except (AttributeError, TypeError):
        raise ModelError("tokenizer.json is damaged: its post_processor cannot be read; take another copy") from None


def around(names: Mapping[int, str], ids: Mapping[str, int], begins: bool = True, ends: int = 1) -> Parts:
    """The step by which the library puts special tokens around a text, or around a pair of texts.

    `names` are those of our special tokens, `ids` their numbers; only with `begins` does one stand before a text.
    Between two texts are `ends`; two of them mean that the model does not tell the texts apart by their types.
    """

    def mark(number: int, kind: int = 0) -> Parts:
        return {"SpecialToken": {"id": names[number], "type_id": kind}}

    kind = 1 if ends == 1 else 0
    text, other = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": kind}}
    single = [*([mark(BOS)] if begins else []), text, mark(EOS)]
    used = [names[number] for number in ((BOS, EOS) if begins else (EOS,))]
    return {
        "type": "TemplateProcessing", "single": single,
        "pair": [*single, *[mark(EOS)] * (ends - 1), other, mark(EOS, kind)] if begins else single,
        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in used},
    }  # fmt: skip


def _free_name(name: str) -> str:
    """A special token of the file that is an ordinary token here must not have the name of one of ours."""
    return f"<|{name.strip('<>')}|>" if name in SPECIAL else name


def _with_vocabulary(model: dict[str, Any], named: Mapping[int, str], renamed: Mapping[str, str]) -> dict[str, Any]:
    """The library's model with these tokens; scores of unigram pieces stay with their piece."""
    ordered = sorted(named.items())
    if isinstance(model["vocab"], list):
        scores = {renamed.get(piece, piece): score for piece, score in model["vocab"]}
        lowest = min(scores.values(), default=0.0)
        unknown = str(model["vocab"][model["unk_id"]][0]) if model.get("unk_id") is not None else ""
        unknown = renamed.get(unknown, unknown)
        where = {name: number for number, name in ordered}
        return {
            **model,
            "vocab": [[name, scores.get(name, lowest)] for _, name in ordered],
            "unk_id": where.get(unknown),
        }
    token: Any = model.get("unk_token")
    return {
        **model,
        "vocab": {name: number for number, name in ordered},
        "unk_token": renamed.get(token, token),
    }


def _plain_added(added: list[dict[str, Any]], new_ids: Mapping[int, int], ours: Mapping[int, str]) -> list[Any]:
    """Tokens that the library looks for in the text; special ones are not text, so a user's are just characters."""
    plain = [token for token in added if not token.get("special")]
    return [{**token, "id": new_ids[int(token["id"])], "content": ours[new_ids[int(token["id"])]]} for token in plain]


def _load(parts: Parts, file: str | Path) -> Tokenizer:
    try:
        return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(parts)))
    except Exception as error:  # the library raises bare Exception for whatever it cannot parse
        raise ModelError(f"{file} is not a file of the tokenizers library: {error}") from None


def _read_json(path: Path) -> Parts:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}; take another copy of it") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} must hold a JSON object; take another copy of it")
    return value
