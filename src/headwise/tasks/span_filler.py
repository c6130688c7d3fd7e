"""Span fillers: what `headwise.load` returns for an encoder and decoder that fill gaps of any length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from headwise.bundle.directory import Bundle
from headwise.data.spans import split_spans
from headwise.decoding.engine import Engine
from headwise.decoding.hypothesis import Hypothesis
from headwise.decoding.options import Request, SearchOptions
from headwise.errors import UsageError
from headwise.files import shortened
from headwise.tasks.gaps.interface import Candidate, Filled
from headwise.text.gaps import continues_word, count_gaps, encode_with_gaps, fill_gaps
from headwise.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from headwise.look.capture import Look

LONGEST = 512  # tokens of a text with gaps
Spans = tuple[tuple[int, ...], ...]  # the tokens of each gap


class SpanFiller:
    """Fills the gaps of texts, written [MASK] or <extra_id_0>; each gap stands for one or more tokens."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, engine: Engine, sentinels: tuple[int, ...]) -> None:
        self.bundle, self.tokenizer, self.engine, self.sentinels = bundle, tokenizer, engine, sentinels

    @property
    def network(self) -> Any:
        """The model itself, on torch."""
        return getattr(self.engine, "model", None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.bundle.path)!r}, engine={self.engine.name!r})"

    @overload
    def fill(self, texts: str, top: int = 5) -> Filled: ...  # type: ignore[overload-overlap]

    @overload
    def fill(self, texts: Sequence[str], top: int = 5) -> list[Filled]: ...

    def fill(self, texts: str | Sequence[str], top: int = 5) -> Filled | list[Filled]:
        """Fills each text; gives up to `top` candidates for each gap.

        All gaps of a text are filled together, by beam search. The probability of a candidate is the sum over those
        texts in the beam that have it in its gap.
        """
        if isinstance(texts, str):
            return self.fill([texts], top)[0]
        return [self._filled(text, self._search(text, top), top) for text in texts]

    def best(self, text: str) -> tuple[list[int], list[int]]:
        """What the network reads and what it writes, for a look inside."""
        return self.encode(text), list(self._search(text, 1)[0].tokens)

    def encode(self, text: str) -> list[int]:
        """A text with gaps as ids, without the end of sentence."""
        gaps = count_gaps(text)
        if not gaps:
            raise UsageError(f"there is no gap in '{text[:60]}'; write [MASK] where words are missing")
        if gaps > len(self.sentinels):
            raise UsageError(f"the text has {gaps} gaps, but the model knows {len(self.sentinels)}; shorten it")
        ids = encode_with_gaps(self.tokenizer, text, self.sentinels[:gaps])
        if len(ids) > LONGEST:
            raise UsageError(
                f"'{shortened(text, 60)}' has {len(ids)} tokens, but at most {LONGEST} are read; shorten it"
            )
        return ids

    def length(self, text: str) -> int:
        return len(self.encode(text))

    def look(self, text: str) -> Look:
        """Shows the attention in one text."""
        from headwise.tasks.fill import TASK

        return TASK.look(self, text)

    def _search(self, text: str, top: int) -> list[Hypothesis]:
        gaps = count_gaps(text)
        # One more sentinel than there are gaps: published models end with it.
        options = SearchOptions.of_model(
            self.bundle.decoding, n_best=top, length_penalty=0.0, suppress=self.sentinels[gaps + 1 :]
        )
        (found,) = self.engine.search([self.encode(text)], options, [Request(prefix=self.sentinels[:1])])
        return found

    def _filled(self, text: str, hypotheses: Sequence[Hypothesis], top: int) -> Filled:
        asked = self.sentinels[: count_gaps(text)]
        written = [split_spans(one.tokens, self.sentinels) for one in hypotheses]
        answers: list[Spans] = [tuple(tuple(spans.get(name, ())) for name in asked) for spans in written]
        chances = [math.exp(sum(one.log_probs)) for one in hypotheses]
        best, gaps = answers[0], []
        for number in range(len(asked)):
            sums: dict[tuple[int, ...], float] = defaultdict(float)
            for answer, chance in zip(answers, chances, strict=True):
                sums[answer[number]] += chance
            ranked = sorted(sums, key=lambda span: -sums[span])[:top]
            gaps.append(
                tuple(
                    Candidate(
                        self._words(span), sums[span], self._joined(text, (*best[:number], span, *best[number + 1 :]))
                    )
                    for span in ranked
                )
            )
        return Filled(self._joined(text, best), tuple(gaps))

    def _words(self, span: Sequence[int]) -> str:
        return self.tokenizer.decode(tuple(span)).strip()

    def _joined(self, text: str, spans: Spans) -> str:
        """The text with these tokens in its gaps; where there are none, the space before the gap goes too."""
        continued = [not span or continues_word(self.tokenizer, span[0]) for span in spans]
        return fill_gaps(text, [self._words(span) for span in spans], continued)
