"""Converts text to token ids and back with the `tokenizers` library; the JSON file also loads in that library alone.

Ids 0 to 3 are always padding, unknown, begin and end of sentence. They are only in the model's vocabulary and are not
"added tokens" of the library, which it would look for in the text: a user who writes `</s>` gets characters.

How each kind splits text
- bpe, unigram: one space is put before the text; it is split into runs of letters, single digits, runs of other signs
  (each with the one space before it) and single white-space characters; pieces are learnt within these runs. A space
  stays a space in its piece, so nothing needs escaping. A character without a piece of its own becomes its UTF-8 bytes
  (`<0xE2>`), so any text can be restored exactly. Text in a script without spaces is just a long run of letters.
- char: every character; those beyond `size` become bytes.      - byte: every UTF-8 byte.
- word: whatever is between white space; other words, and the word `<unk>` itself, are unknown. Spacing is lost.

Where text is split depends only on the classes of two neighbouring characters (letters and marks are one class).
Therefore no merge learnt within a run can ever cross a boundary: text/subword_regularisation.py relies on this to work
on ids alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import tokenizers
from tokenizers import decoders, models

from headwise.config import schema
from headwise.errors import DataError, ModelError
from headwise.files import write_whole
from headwise.text import vocabulary
from headwise.text.ragged import Ragged
from headwise.text.tokenizer_file import read_tokenizer
from headwise.text.vocabulary import BOS, BYTES, EOS, PAD, RESERVED, SPECIAL, UNK, is_extra

__all__ = ["BOS", "EOS", "PAD", "UNK", "Tokenizer", "TokenizerPair"]


class Tokenizer:
    """Splits text into the tokens of one vocabulary, and joins tokens to text."""

    pad, unk, bos, eos = PAD, UNK, BOS, EOS

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        self._inner = inner

    # ---- making, reading, writing

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        settings: schema.Tokenizer | None = None,
        extra: Sequence[str] = (),
        **changes: Any,
    ) -> Tokenizer:
        """Learns a vocabulary. Holds `texts` in memory (sample a huge corpus first); equal texts give equal files.

        Settings are those of [tokenizer] in a recipe, as such or by name: kind="bpe", size=8000. `extra` are special
        tokens that a task needs; see `find`.
        """
        chosen = schema.Tokenizer.model_validate(changes) if settings is None else settings
        return cls(vocabulary.train(list(texts), chosen, extra))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        parts = read_tokenizer(path).parts
        try:
            inner = tokenizers.Tokenizer.from_str(json.dumps(parts))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library raises bare Exception, and a panic is not even that
            raise ModelError(f"{path}: not a file of the tokenizers library ({error}); check the path") from None
        for number, name in enumerate(SPECIAL):
            if inner.id_to_token(number) != name:
                raise ModelError(
                    f"{path}: id {number} is {inner.id_to_token(number)!r}, but Headwise needs {name!r} there"
                )
        # A file from elsewhere may have settings that make ids depend on the batch, on chance, or on a user's `</s>`.
        inner.no_padding()
        inner.no_truncation()
        inner.encode_special_tokens = True
        if isinstance(inner.model, models.BPE):
            inner.model.dropout = None
        return cls(inner)

    def save(self, path: str | Path) -> None:
        """Writes the JSON file; a concurrent reader sees the old file or the new one, never a part."""
        write_whole(path, self.json.encode())

    @cached_property
    def json(self) -> str:
        return self._inner.to_str(pretty=True)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that determines the ids of a text."""
        return hashlib.sha256(self.json.encode()).hexdigest()

    # ---- what it is

    @property
    def size(self) -> int:
        return self._inner.get_vocab_size()

    @cached_property
    def kind(self) -> str:
        model = self.parts["model"]
        if model["type"] == "BPE":
            return "bpe" if model["merges"] else "byte" if all(map(is_extra, self.vocabulary[RESERVED:])) else "char"
        return {"WordLevel": "word", "Unigram": "unigram"}.get(model["type"], str(model["type"]).lower())

    def find(self, name: str) -> int | None:
        """The id of a token by its name, such as that of a task's special token; None: there is no such token."""
        return self._inner.token_to_id(name)

    @cached_property
    def normalisation(self) -> str:
        written = json.dumps(self.parts["normalizer"])
        return next((name for name in ("nfkc", "nfc") if f'"{name.upper()}"' in written), "none")

    @cached_property
    def reads_documents(self) -> bool:
        """Whether a text is a whole document, line breaks included, which an end of sentence ends (published models).

        Ours end every line with it. Only files of published models say what stands around a text.
        """
        return self._inner.post_processor is not None

    @property
    def parts(self) -> dict[str, Any]:
        """The content of the JSON file; "model" holds the merges or the scores."""
        return cast("dict[str, Any]", json.loads(self.json))

    def normalise(self, text: str) -> str:
        """Returns the text that `decode(encode(text))` restores (bpe, char, byte, unigram)."""
        return vocabulary.normaliser(self.normalisation).normalize_str(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<Tokenizer {self.kind}, {self.size} tokens, normalisation {self.normalisation}>"

    # ---- text to ids

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each text, without begin and end of sentence."""
        try:
            if len(texts) == 1:  # for several the library starts a thread pool
                return [self._inner.encode(texts[0], add_special_tokens=False).ids]
            return [encoding.ids for encoding in self._inner.encode_batch_fast(list(texts), add_special_tokens=False)]
        except (AttributeError, TypeError, UnicodeEncodeError):
            raise DataError(_explain_invalid_text(texts)) from None

    def encode_ragged(self, texts: Sequence[str]) -> Ragged:
        """Returns the ids of `encode_batch` in two flat arrays."""
        return Ragged.of(self.encode_batch(texts))

    # ---- ids to text

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of `ids`; leaves out padding, begin and end of sentence wherever they occur."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, sentences: Iterable[Iterable[int]]) -> list[str]:
        kept = [[int(number) for number in ids if number not in (PAD, BOS, EOS)] for ids in sentences]
        if len(kept) == 1:
            texts = [self._inner.decode(kept[0], skip_special_tokens=False)]
        else:
            texts = self._inner.decode_batch(kept, skip_special_tokens=False)
        for place, text in enumerate(texts):
            if "\ufffd" in text:
                texts[place] = self._inner.decode(self._with_valid_bytes(kept[place]), skip_special_tokens=False)
        return texts

    def _with_valid_bytes(self, ids: list[int]) -> list[int]:
        """Replaces each invalid byte sequence by one U+FFFD; the library would replace every byte of the run."""
        value_of = {token: value for value, piece in enumerate(BYTES) if (token := self._inner.token_to_id(piece))}
        token_of = {value: token for token, value in value_of.items()}
        repaired: list[int] = []
        for are_bytes, run in groupby(ids, value_of.__contains__):
            if are_bytes:
                raw = bytes(value_of[token] for token in run).decode("utf-8", errors="replace").encode()
                repaired += [token_of[value] for value in raw]
            else:
                repaired += run
        return repaired

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Returns each token in readable form: a space as ▁, a byte as <0xE2>. To get text, use `decode`."""
        return list(map(self._shown.__getitem__, ids))

    @cached_property
    def vocabulary(self) -> list[str]:
        """The pieces as stored, indexed by id."""
        return [cast("str", self._inner.id_to_token(number)) for number in range(self.size)]

    @cached_property
    def _shown(self) -> list[str]:
        decoder = self._inner.decoder
        if isinstance(decoder, decoders.ByteLevel):  # its pieces spell bytes in an alphabet of their own
            texts = (decoder.decode([piece]) for piece in self.vocabulary)
            return [
                (piece if "\ufffd" in text else text).replace(" ", "▁")
                for piece, text in zip(self.vocabulary, texts, strict=True)
            ]
        return [piece.replace(" ", "▁") for piece in self.vocabulary]


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides; the same object twice if they share a vocabulary (or there is only one side)."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        return self.source is self.target

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256((self.source.fingerprint + self.target.fingerprint).encode()).hexdigest()

    def save(self, directory: str | Path) -> list[Path]:
        """Writes tokenizer.json, or source.tokenizer.json and target.tokenizer.json; returns the files written."""
        folder = Path(directory)
        if self.shared:
            files = {folder / "tokenizer.json": self.source}
        else:
            files = {folder / "source.tokenizer.json": self.source, folder / "target.tokenizer.json": self.target}
        for path, tokenizer in files.items():
            tokenizer.save(path)
        return list(files)

    @classmethod
    def load(cls, directory: str | Path) -> TokenizerPair:
        folder = Path(directory)
        if (folder / "tokenizer.json").exists():
            return cls.one(Tokenizer.load(folder / "tokenizer.json"))
        if not (folder / "source.tokenizer.json").exists():
            raise ModelError(f"{folder}: there is no tokenizer.json; check that this is a model directory")
        return cls(Tokenizer.load(folder / "source.tokenizer.json"), Tokenizer.load(folder / "target.tokenizer.json"))

    @classmethod
    def one(cls, tokenizer: Tokenizer) -> TokenizerPair:
        return cls(tokenizer, tokenizer)


def _explain_invalid_text(texts: Sequence[object]) -> str:
    for text in texts:
        if not isinstance(text, str):
            return f"only text can be tokenized, not {type(text).__name__}"
    return "the text has half of a surrogate pair, which is not valid Unicode; decode the input as UTF-8"
