"""What a family's network offers to the rest: training, decoding and looking ask for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from headwise.text.vocabulary import EOS


class OutputLayer(Protocol):
    """From states to the vocabulary (or to labels)."""

    def logits(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        ...

    def loss(self, states: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Sums over rows (rows, D) of the smoothed objective and of -log P(target); the latter has no gradient."""
        ...


class State(Protocol):
    """The past of every row of a search."""

    length: int  # tokens so far

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]. Rows stand in groups, one group per source, in the sources' order."""
        ...


class Network(nn.Module):
    """The base of every family's network.

    `architecture` holds the arguments that build it again: what `config.json` keeps.
    """

    architecture: dict[str, Any]
    max_length: int | None = None  # longest sequence that it takes; None: no limit
    segment: int | None = None  # tokens read at once by a network that remembers earlier segments; None: it does not
    memory: int = 0  # tokens of earlier segments that it remembers
    output: OutputLayer

    def states(self, *inputs: Any) -> Tensor:
        """Everything up to the output layer: (B, T, D). The training loss starts here and never holds all logits."""
        raise NotImplementedError

    def carried(self, *inputs: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The states, and what the next segment of the same rows is given after its own inputs; mostly nothing."""
        return self.states(*inputs), ()

    def shard_units(self) -> Iterator[nn.Module | list[nn.Module]]:
        """What FSDP2 gathers and frees together, innermost first; what is left belongs to the whole."""
        yield from ()

    def attention_names(self) -> Mapping[str, Sequence[str]]:
        """What `look` may show: for each kind of attention its modules by name, first layer first."""
        return {}

    def position_biases(self) -> Mapping[str, nn.Module]:
        """What is added to scores by position, where anything is: for a kind of attention the module of all its layers.

        It is called with the numbers of queries and keys and returns (1, H, T, S).
        """
        return {}

    def entrance(self) -> nn.Module | None:
        """The module that receives the input's embeddings (B, S, D): where saliency is measured."""
        return None

    def probe(self) -> tuple[Tensor, ...]:
        """A fixed input of `states`, by whose answer an imported model is recognised; here four tokens per vocabulary.

        A network that reads anything else has its own.
        """
        vocabularies = [int(size) for name, size in self.architecture.items() if name.endswith("vocab")]
        return tuple(torch.tensor([[min(EOS + n, vocab - 1) for n in range(1, 5)]]) for vocab in vocabularies)


@runtime_checkable
class Stepper(Protocol):
    """A network that decodes token by token."""

    output: OutputLayer

    def start(self, source: tuple[Tensor, ...] | None, rows: int) -> State:
        """A state before the first token, `rows` rows for each source; None: there is no source."""
        ...

    def advance(self, state: Any, tokens: Tensor) -> Tensor:
        """Appends tokens, (rows,) or several per row (rows, T), and returns the states after the last, (rows, D)."""
        ...


@dataclass(frozen=True)
class DecoderParts:
    """A decoder that is a plain stack of layers, as the fast step wants it (`decoding/fast_step.py`)."""

    embed: Callable[[Tensor, int], Tensor]  # ids (rows, T) and the position of the first -> (rows, T, D)
    layers: nn.ModuleList  # EncoderLayer, or DecoderLayer with cross-attention
    norm: nn.Module  # after the last layer
    # What is added to the scores of the newest token's self-attention, by distance: (H, length) for the `length` latest
    # tokens, itself last.
    bias: Callable[[int], Tensor] | None = None
    scale: float = 1.0  # of the states after the norm
