"""Fillers: what `headwise.load` returns for an encoder that fills gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.directory import Bundle
from headwise.errors import UsageError
from headwise.evaluation.classification import softmax
from headwise.files import shortened
from headwise.tasks.gaps.interface import Candidate, Filled
from headwise.text.gaps import continues_word, count_gaps, encode_with_gaps, fill_gaps
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import BOS, EOS, MASK, SPECIAL

if TYPE_CHECKING:
    from headwise.look.capture import Look


class TokenEngine(Protocol):
    """Runs an encoder with an output over its vocabulary."""

    name: str

    def token_logits(self, items: Sequence[Any], places: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """For each item its logits at the given places, (places, V)."""
        ...


class Filler:
    """Fills the gaps, written [MASK], of texts; each gap stands for one token."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, engine: TokenEngine) -> None:
        mask = tokenizer.find(MASK)
        if mask is None:
            raise UsageError(
                f"{bundle.path}: the tokenizer has no token '{MASK}'; the model was not trained to fill gaps"
            )
        self.bundle, self.tokenizer, self.engine, self.mask = bundle, tokenizer, engine, mask
        self._never = [*range(len(SPECIAL)), mask]

    @property
    def network(self) -> Any:
        """The model itself, on torch."""
        return getattr(self.engine, "network", None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.bundle.path)!r}, engine={self.engine.name!r})"

    @overload
    def fill(self, texts: str, top: int = 5) -> Filled: ...  # type: ignore[overload-overlap]

    @overload
    def fill(self, texts: Sequence[str], top: int = 5) -> list[Filled]: ...

    def fill(self, texts: str | Sequence[str], top: int = 5) -> Filled | list[Filled]:
        """Fills each text; gives `top` candidates for each gap. Several gaps are filled independently of each other."""
        if isinstance(texts, str):
            return self.fill([texts], top)[0]
        items = [self.encode(text) for text in texts]
        places = [[place for place, token in enumerate(ids) if token == self.mask] for ids in items]
        found = self.engine.token_logits(items, places)
        return [self._filled(text, ids, logits, top) for text, ids, logits in zip(texts, items, found, strict=True)]

    def encode(self, text: str) -> list[int]:
        """A text with gaps as ids, with begin and end of sentence."""
        gaps = count_gaps(text)
        if not gaps:
            raise UsageError(f"there is no gap in '{text[:60]}'; write [MASK] where a word is missing")
        ids = [BOS, *encode_with_gaps(self.tokenizer, text, [self.mask] * gaps), EOS]
        longest = self.bundle.settings.longest
        if longest is not None and len(ids) > longest:
            raise UsageError(
                f"'{shortened(text, 60)}' has {len(ids)} tokens, but the model reads at most {longest}; shorten it"
            )
        return ids

    def length(self, text: str) -> int:
        return len(self.encode(text))

    def look(self, text: str) -> Look:
        """Shows the attention in one text."""
        from headwise.tasks.fill import TASK

        return TASK.look(self, text)

    def _filled(self, text: str, ids: list[int], logits: NDArray[np.float32], top: int) -> Filled:
        logits = logits.copy()
        logits[:, self._never] = -np.inf
        probabilities = softmax(logits)
        ranked = np.argsort(-probabilities, axis=1, kind="stable")[:, : min(top, logits.shape[1] - len(self._never))]
        best = [int(row[0]) for row in ranked]
        gaps = []
        for number, (row, chances) in enumerate(zip(ranked, probabilities, strict=True)):
            gaps.append(
                tuple(
                    Candidate(
                        self._word(int(token)), float(chances[token]),
                        self._joined(text, [*best[:number], int(token), *best[number + 1 :]]),
                    )
                    for token in row
                )
            )  # fmt: skip
        return Filled(self._joined(text, best), tuple(gaps))

    def _word(self, token: int) -> str:
        """A token as a reader sees it: without the space before it, or the mark of the rest of a word."""
        return self.tokenizer.pieces([token])[0].removeprefix("▁").removeprefix("Ġ").removeprefix("##")

    def _joined(self, text: str, tokens: Sequence[int]) -> str:
        """The text with these tokens in its gaps. A token that continues a word takes the space before the gap."""
        return fill_gaps(text, list(map(self._word, tokens)), [continues_word(self.tokenizer, one) for one in tokens])
