from __future__ import annotations

import pytest
import torch

import headwise as hw
from headwise.config.families.t5 import FAMILY
from headwise.errors import ShapeError
from headwise.models.t5 import T5

SIZES = {"model_dim": 16, "num_heads": 2, "head_dim": 6, "encoder_layers": 2, "decoder_layers": 1, "ff_dim": 20}


def test_it_is_a_public_name_and_gives_logits_for_every_target_position() -> None:
    model = hw.T5(vocab=11, **SIZES)
    assert model(torch.randint(11, (2, 5)), torch.randint(11, (2, 3))).shape == (2, 3, 11)


def test_no_part_has_a_bias_and_the_position_tables_are_one_per_stack() -> None:
    names = [name for name, _ in T5(vocab=11, **SIZES).named_parameters()]
    assert not [name for name in names if name.endswith(".bias")]
    assert [name for name in names if "_bias." in name] == ["encoder_bias.weight", "decoder_bias.weight"]


def test_padding_of_the_source_changes_nothing_and_the_future_is_hidden() -> None:
    torch.manual_seed(0)
    model = T5(vocab=11, **SIZES).eval()
    source, target = torch.randint(4, 11, (1, 4)), torch.randint(4, 11, (1, 5))
    alone = model(source, target)
    padded = torch.cat((source, torch.randint(11, (1, 3))), dim=1)
    torch.testing.assert_close(model(padded, target, torch.tensor([4])), alone)
    changed = target.clone()
    changed[0, 3] += 1 if changed[0, 3] < 10 else -1
    torch.testing.assert_close(model(source, changed)[:, :3], alone[:, :3])
    assert not torch.allclose(model(source, changed)[:, 3:], alone[:, 3:])


@pytest.mark.parametrize("preset", FAMILY.presets)
def test_a_new_model_has_states_and_logits_of_variance_1(preset: str) -> None:
    torch.manual_seed(0)
    settings = {**FAMILY.presets[preset], "encoder_layers": 2, "decoder_layers": 2, "ff_dim": 64}
    model = T5(vocab=200, **settings).eval()
    source, target = torch.randint(4, 200, (4, 12)), torch.randint(4, 200, (4, 12))
    with torch.no_grad():
        states = model.states(source, target) / model.scale
        logits = model(source, target).scatter(2, target[..., None], 0.0)  # a tied model favours the token it reads
    assert states.std().item() == pytest.approx(1.0, abs=0.05)
    assert logits.std().item() == pytest.approx(1.0, abs=0.2)


def test_distances_that_no_bucket_can_hold_are_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="max_distance must be more"):
        T5(vocab=11, **SIZES, buckets=32, max_distance=16)
    with pytest.raises(ShapeError, match="buckets must be greater than or equal to 4"):
        T5(vocab=11, **SIZES, buckets=2)
