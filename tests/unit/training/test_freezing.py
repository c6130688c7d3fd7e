"""Frozen weights stay as they are, and the rest is trained."""

from __future__ import annotations

import pytest
import torch

from headwise.config.schema import Training
from headwise.data.pairs import pair_batch
from headwise.errors import RecipeError
from headwise.models.transformer import Transformer
from headwise.text.ragged import Ragged
from headwise.training.freezing import freeze
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(1)
    return Transformer(
        source_vocab=20, model_dim=16, num_heads=2, encoder_layers=2, decoder_layers=1, ff_dim=16, dropout=0.0
    )


def test_an_update_changes_only_what_is_not_frozen(model: Transformer) -> None:
    settings = Training.model_validate({"optimizer": "adamw", "weight_decay": 0.1})
    count = freeze(model, ["encoder.layers.0.*", "source_embedding.*"])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    updater = Updater(model, build_optimizer(settings, model.parameters()))
    updater(pair_batch(Ragged.of([[5, 6, 7]]), Ragged.of([[8, 9]])), 0.01, 1)
    changed = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    frozen = {name for name in before if name.startswith(("encoder.layers.0.", "source_embedding."))}
    assert changed == {name for name, _ in model.named_parameters()} - frozen
    assert count == sum(before[name].numel() for name in frozen)


def test_a_pattern_that_matches_nothing_or_everything_is_refused(model: Transformer) -> None:
    with pytest.raises(RecipeError, match=r"no weight is named like 'encodr\.\*'; the model's parts are source_emb"):
        freeze(model, ["encodr.*"])
    with pytest.raises(RecipeError, match="every weight is frozen"):
        freeze(model, ["*"])
