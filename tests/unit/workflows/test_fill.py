from __future__ import annotations

from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.models.t5 import T5
from headwise.text.tokenizer import Tokenizer
from headwise.workflows.fill import open_filler
from headwise.workflows.save import save


def test_an_encoder_and_decoder_of_another_task_may_fill_if_it_knows_gaps(taught_to_translate: Path) -> None:
    with pytest.raises(UsageError, match="has no token '<extra_id_0>': it was not trained to fill gaps"):
        open_filler(taught_to_translate)


@pytest.fixture
def taught_to_translate(tmp_path: Path) -> Path:
    tokenizer = Tokenizer.train(["a b"], kind="word", size=20)
    model = T5(
        vocab=tokenizer.size, model_dim=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=1, ff_dim=16
    )
    return save(model, tokenizer, tmp_path / "model")


def test_a_filler_is_opened_and_other_models_are_refused(filler_model: Path, embedder_model: Path) -> None:
    assert open_filler(filler_model).fill(["red [MASK] green"], 1)[0].text.startswith("red ")
    with pytest.raises(UsageError, match="use headwise embed"):
        open_filler(embedder_model)
