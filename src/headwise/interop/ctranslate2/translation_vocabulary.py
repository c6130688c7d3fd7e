"""The vocabularies of a CTranslate2 translator with our numbering, and the SentencePiece files that stand beside it.

Ids 0 to 3 are padding, unknown, begin and end of sentence here. A token that a vocabulary lacks gets a row of its own:
its vector is zero or that of the token with which decoding starts there, and its logit can never win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headwise.bundle.directory import read_json
from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import Directory, Rows
from headwise.nn.embedding import NEVER
from headwise.text.published import Numbering, adopt
from headwise.text.sentencepiece_file import read_pieces, unigram_parts
from headwise.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerPair

_PADDING = ("<blank>", "<pad>")  # of OpenNMT, of others
_FILES = (("source.spm", "target.spm"), ("sentencepiece.model", "sentencepiece.model"), ("spm.model", "spm.model"))


@dataclass(frozen=True)
class Vocabularies:
    """Tokenizers and, for the weights, what happens to the rows of each side."""

    tokenizers: TokenizerPair
    sizes: dict[str, int]
    orders: dict[str, Tensor]
    added: dict[str, Rows]  # empty, if nothing is added
    languages: tuple[str, ...]


def read_vocabularies(directory: Directory, *, shared: bool) -> Vocabularies:
    """`shared`: both stacks have one table of embeddings, so that both sides have one numbering."""
    if directory.config.get("add_source_bos"):
        raise ModelError(f"{directory.path}: a source that begins with a special token is not supported")
    files = _files(directory.path)
    target = directory.vocabulary("target_vocabulary", "shared_vocabulary")
    source = target if shared else directory.vocabulary("source_vocabulary", "shared_vocabulary")
    numberings, rows = zip(*(_number(directory, tokens) for tokens in (source, target)), strict=True)
    sides = [
        _tokenizer(file, tokens, numbering)
        for file, tokens, numbering in zip(files, (source, target), numberings, strict=True)
    ]
    if sides[0] == sides[1]:
        sides[1] = sides[0]
    names = ("source", "target")
    return Vocabularies(
        TokenizerPair(*sides),
        {f"{name}_vocab": numbering.vocab for name, numbering in zip(names, numberings, strict=True)},
        {name: torch.tensor(numbering.order) for name, numbering in zip(names, numberings, strict=True)},
        dict(zip(names, rows, strict=True)) if any(one.copies for one in rows) else {},
        _languages(directory.path),
    )


def _number(directory: Directory, tokens: list[str]) -> tuple[Numbering, Rows]:
    """The numbering of a vocabulary, and the rows that it lacks."""
    ids = {token: number for number, token in enumerate(tokens)}
    end, unknown = directory.token("eos_token", "</s>"), directory.token("unk_token", "<unk>")
    start = directory.token("decoder_start_token", "<s>")
    if start is None:
        raise ModelError(f"{directory.path}: a first target token that names the language is not supported")
    if end not in ids or unknown not in ids:
        raise ModelError(f"{directory.path}: the vocabulary lacks {unknown} or {end}; take another copy of the model")
    special = {UNK: ids[str(unknown)], EOS: ids[str(end)]}
    padding = next((token for token in _PADDING if token in ids), None)
    copies: list[int | None] = []
    from_zero = bool(directory.file.number("decoder/start_from_zero_embedding", 0))
    if start in ids and not from_zero and ids[start] not in (*special.values(), ids.get(str(padding))):
        special[BOS] = ids[start]
    else:
        special[BOS] = len(tokens) + len(copies)
        copies.append(None if from_zero else ids.get(start))
    if padding is not None and ids[padding] not in special.values():
        special[PAD] = ids[padding]
    else:
        special[PAD] = len(tokens) + len(copies)
        copies.append(None)
    return Numbering.of(len(tokens) + len(copies), special), Rows(tuple(copies), NEVER)


def _files(folder: Path) -> tuple[Path, Path]:
    """The SentencePiece files, in the directory or, in packages of Argos, one above."""
    for place in (folder, folder.parent):
        for source, target in _FILES:
            if (place / source).is_file() and (place / target).is_file():
                return place / source, place / target
        if (place / "bpe.model").is_file():
            raise ModelError(f"{place / 'bpe.model'} is a table of BPE merges; Headwise reads SentencePiece files only")
    raise ModelError(
        f"{folder} has no tokenizer; put the model's sentencepiece.model (or source.spm and target.spm) into it"
    )


def _tokenizer(file: Path, tokens: list[str], numbering: Numbering) -> Tokenizer:
    ids = {token: number for number, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise ModelError(f"{file.parent}: a token occurs twice in the vocabulary; take another copy of the model")
    tokenizer, _ = adopt(unigram_parts(read_pieces(file), ids), numbering, file, documents=False)
    return tokenizer


def _languages(folder: Path) -> tuple[str, ...]:
    """As the metadata.json of a package of Argos says."""
    file = folder.parent / "metadata.json"
    values: Mapping[str, object] = read_json(file) if file.is_file() else {}
    if values.get("target_prefix"):
        raise ModelError(f"{file}: a first target token that names the language is not supported")
    pair = values.get("from_code"), values.get("to_code")
    return tuple(map(str, pair)) if all(isinstance(code, str) and code for code in pair) else ()
