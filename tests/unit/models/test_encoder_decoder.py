from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.models.encoder_decoder import DecoderState, EncoderDecoder
from headwise.models.t5 import T5
from headwise.models.transformer import Transformer
from headwise.nn import KeyValueCache
from headwise.text.tokenizer import BOS, EOS, PAD

SIZES = {"model_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 2, "ff_dim": 20}


@pytest.fixture(params=["transformer", "t5"])
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    torch.manual_seed(0)
    if request.param == "t5":
        return T5(vocab=11, head_dim=6, **SIZES).eval()
    return Transformer(source_vocab=11, **SIZES).eval()


def test_token_by_token_is_the_whole_pass(model: EncoderDecoder) -> None:
    source, lengths, target = torch.randint(4, 11, (2, 5)), torch.tensor([5, 3]), torch.randint(4, 11, (2, 40))
    whole, state = model.states(source, target, lengths), model.start((source, lengths))
    for position in range(3):
        torch.testing.assert_close(model.advance(state, target[:, position]), whole[:, position])
    torch.testing.assert_close(model.advance(state, target[:, 3:40]), whole[:, -1])  # several tokens at once
    assert state.length == 40


def test_generate_writes_what_the_whole_pass_finds_likeliest_and_pads_after_the_end(model: Transformer | T5) -> None:
    source, lengths = torch.randint(4, 11, (6, 5)), torch.tensor([5, 3, 5, 1, 2, 4])
    written = model.train().generate(source, 12, lengths)
    assert model.training
    read = torch.cat([torch.full((6, 1), BOS), written[:, :-1]], dim=1)
    likeliest = model.eval()(source, read, lengths).argmax(dim=-1)
    for row, expected in zip(written.tolist(), likeliest.tolist(), strict=True):
        end = row.index(EOS) + 1 if EOS in row else len(row)
        assert row[:end] == expected[:end]
        assert set(row[end:]) <= {PAD}
    alone = model.generate(source[1:2, :3], 12)[0].tolist()
    assert alone == written[1].tolist()[: len(alone)], "padding changes nothing"
    with pytest.raises(ShapeError, match="max_tokens must be"):
        model.generate(source, 0)


def test_a_search_needs_a_source_and_a_batch_as_many_targets_as_sources(model: EncoderDecoder) -> None:
    with pytest.raises(ShapeError, match="needs a source"):
        model.start(None)
    with pytest.raises(ShapeError, match="3 sources but 2 targets"):
        model.states(torch.ones(3, 4, dtype=torch.long), torch.ones(2, 4, dtype=torch.long))


def test_every_parameter_but_tables_belongs_to_one_shard_unit(model: EncoderDecoder) -> None:
    units = [unit if isinstance(unit, list) else [unit] for unit in model.shard_units()]
    inside = {parameter for unit in units for module in unit for parameter in module.parameters()}
    outside = {name for name, parameter in model.named_parameters() if parameter not in inside}
    assert outside
    assert all("layers" not in name for name in outside)


def test_the_names_of_attentions_are_modules(model: EncoderDecoder) -> None:
    names = [name for names in model.attention_names().values() for name in names]
    assert len(names) == 5
    for name in names:
        assert model.get_submodule(name)


def test_a_state_follows_its_hypotheses_and_drops_sentences_that_are_done() -> None:
    cache = KeyValueCache()
    cache.append(*(torch.arange(4.0).view(4, 1, 1, 1) for _ in range(2)))
    cross = [(torch.tensor([10.0, 20.0]).view(2, 1, 1, 1),)]
    state = DecoderState(cross, torch.tensor([True, False]).view(2, 1, 1, 1), [cache], group=2, width=2)
    state.reorder(torch.tensor([3, 2]))  # only the second sentence is left, its hypotheses swapped
    assert cache.contents()[0].flatten().tolist() == [3.0, 2.0]
    assert state.cross[0][0].flatten().tolist() == [20.0]
    assert state.allowed is not None
    assert state.allowed.flatten().tolist() == [False]
