from __future__ import annotations

import torch
from torch.testing import assert_close

from headwise.nn.global_attention import GlobalAttention, build_score
from headwise.nn.recurrent_decoder import RecurrentDecoder, RecurrentState


def decoder(**changes: object) -> RecurrentDecoder:
    torch.manual_seed(1)
    options: dict[str, object] = {"input_feeding": True, "dropout": 0.0, **changes}
    return RecurrentDecoder("lstm", 6, 4, 2, GlobalAttention(build_score("general", 4, 4)), **options).eval()  # type: ignore[arg-type]


def begun(network: RecurrentDecoder, group: int = 1) -> RecurrentState:
    memory = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(2))
    allowed = torch.tensor([[[True] * 5], [[True] * 3 + [False] * 2]])
    return network.start(memory, memory[:, 0], allowed, group)


def parts(state: RecurrentState) -> list[torch.Tensor]:
    return [*(part for layer in state.layers for part in layer), state.vector]


@torch.inference_mode()
def test_a_whole_target_leaves_the_state_as_it_was() -> None:
    network = decoder()
    state = begun(network)
    before = [part.clone() for part in parts(state)]
    network(torch.randn(2, 3, 6), state)
    assert state.length == 0
    assert all(torch.equal(old, new) for old, new in zip(before, parts(state), strict=True))


@torch.inference_mode()
def test_reorder_moves_every_part_of_a_row_and_its_sentence() -> None:
    network = decoder()
    state = begun(network, group=2)
    network.advance(torch.randn(4, 6), state)
    old, source = parts(state), state.source
    assert source is not None
    state.reorder(torch.tensor([3, 2]))
    for was, now in zip(old, parts(state), strict=True):
        assert torch.equal(now, was[[3, 2]])
    assert state.source is not None
    assert torch.equal(state.source.memory, source.memory[1:])
    assert torch.equal(state.source.keys, source.keys[1:])
    assert state.source.allowed is not None
    assert state.source.allowed.tolist() == [[[True, True, True, False, False]]]


@torch.inference_mode()
def test_hypotheses_that_move_within_their_sentences_do_not_copy_the_source() -> None:
    network = decoder()
    state = begun(network, group=2)
    network.advance(torch.randn(2, 6), state)
    source = state.source
    state.reorder(torch.tensor([0, 0, 1, 1]))
    assert state.source is source
    assert state.rows == 4


def test_dropout_between_layers_follows_the_seed_of_the_thread() -> None:
    from headwise.nn.kernels.dropout import seeded_dropout

    network = decoder(dropout=0.5).train()
    x = torch.randn(2, 3, 6)
    found = []
    for seed in (1, 1, 2):
        with seeded_dropout(seed):
            found.append(network(x, begun(network)))
    assert_close(found[0], found[1], rtol=0, atol=0)
    assert not torch.equal(found[0], found[2])
