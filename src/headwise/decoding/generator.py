"""Text generation with torch: the prompt is read in one pass, then the token loop adds one token per step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.bundle.directory import Bundle
from headwise.decoding.fast_step import fast_stepper
from headwise.decoding.generation import Writer, Writing, prompt_ids, read_sampling, read_stops
from headwise.decoding.options import Sampling
from headwise.decoding.sampling import Sampler, row_key
from headwise.decoding.threads import Team, is_small
from headwise.decoding.token_filters import TokenFilters
from headwise.decoding.token_loop import Picker, TokenLoop
from headwise.errors import UsageError
from headwise.models.interface import Network, Stepper
from headwise.text.tokenizer import Tokenizer

_LEAST_ROWS = 4  # samples per core: with fewer, another core does not pay
_MOST_BYTES = 8 << 30  # keys and values of all rows


class Generator(Writer):
    """Generates text with a language model on torch. The end of sentence, which ends every line, is a line break."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, model: Network, *, never: Sequence[int] = ()) -> None:
        """`never` are ids that are not generated: their probabilities mean nothing, since training never saw them."""
        self.bundle, self.tokenizer, self.model = bundle, tokenizer, model.eval()
        self.never = tuple(never)
        self.context = model.max_length
        self._stepper: Stepper | None = None

    def write(
        self,
        prompt: str = "",
        *,
        samples: int = 1,
        max_tokens: int = 200,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> Iterator[list[Writing]]:
        if samples < 1 or max_tokens < 1:
            raise UsageError(f"samples and max_tokens must be at least 1, not {samples} and {max_tokens}")
        ids, stops = prompt_ids(self.tokenizer, prompt), read_stops(stop)
        writings = [Writing(self.tokenizer, ids, stops, max_tokens) for _ in range(samples)]
        return self._write(ids, writings, read_sampling(sampling))

    @torch.inference_mode()
    def _write(self, prompt: list[int], writings: list[Writing], sampling: Sampling) -> Iterator[list[Writing]]:
        # Built on first use and kept: the weights do not change during generation.
        stepper = self._stepper = self._stepper or fast_stepper(self.model)
        self._check_memory(len(writings), len(prompt) + writings[0].max_tokens)
        device = next(self.model.parameters()).device
        filters = TokenFilters(suppress=torch.tensor(self.never, dtype=torch.long, device=device))
        small = device.type == "cpu" and is_small(self.model)
        count = max(1, min(torch.get_num_threads(), len(writings) // _LEAST_ROWS)) if small else 1
        shares = [
            _Share(stepper, self.context, prompt, writings, range(n, len(writings), count), sampling, filters, device)
            for n in range(count)
        ]
        with Team(count, small=small) as team:
            while going := [share for share in shares if share.loop.rows]:
                team(_Share.step, going)
                yield writings

    def _check_memory(self, rows: int, tokens: int) -> None:
        """Refuses a request whose cache would take too much memory: every layer keeps two vectors per token."""
        tokens = tokens if self.context is None else min(tokens, self.context)
        sizes = self.model.architecture
        needed = 8 * rows * tokens * int(sizes.get("model_dim", 0)) * int(sizes.get("layers", 0))
        if needed > _MOST_BYTES:
            raise UsageError(
                f"{rows:,} texts of {tokens:,} tokens at once need {needed / 2**30:,.0f} GB of memory; "
                "reduce samples or max_tokens"
            )


class _Share:
    """The samples that one thread generates together."""

    def __init__(
        self,
        stepper: Stepper,
        context: int | None,
        prompt: list[int],
        writings: list[Writing],
        rows: range,
        sampling: Sampling,
        filters: TokenFilters,
        device: torch.device,
    ) -> None:
        self.context, self.prompt, self.device = context, prompt, device
        self.writings = [writings[row] for row in rows]
        keys = [row_key(sampling.seed, prompt, row) for row in rows]
        sampler = Sampler(sampling, np.array(keys, dtype=np.uint64))
        read = self._ids([prompt if context is None else prompt[-context:]])
        self.loop = TokenLoop(
            stepper, stepper.start(None, 1), read, self.writings, Picker(filters, sampler), before=prompt
        )

    @torch.inference_mode()
    def step(self) -> None:
        """Generates one more token for each row."""
        if self.context is not None and self.loop.state.length >= self.context:
            # The context is full: the model continues from its newer half.
            newer = [[*self.prompt, *self.writings[row].ids][-max(1, self.context // 2) :] for row in self.loop.rows]
            self.loop.restart(self.loop.stepper.start(None, 1), self._ids(newer))
        self.loop.step()

    def _ids(self, rows: list[list[int]]) -> Tensor:
        return torch.tensor(rows, device=self.device)
