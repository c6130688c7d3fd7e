"""A language model continues ids by itself."""

from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.models.lm import LanguageModel


@pytest.fixture
def model() -> LanguageModel:
    torch.manual_seed(3)
    return LanguageModel(vocab=20, model_dim=16, num_heads=2, layers=2, ff_dim=32, max_length=12)


def test_generate_is_what_the_whole_model_predicts_token_by_token(model: LanguageModel) -> None:
    prompt = torch.tensor([[5, 6, 7], [8, 9, 10]])
    expected = prompt
    model.eval()
    for _ in range(6):
        expected = torch.cat([expected, model(expected)[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    model.train()
    assert torch.equal(model.generate(prompt, 6), expected)
    assert model.training, "the mode is as it was"


def test_samples_repeat_with_the_seed_and_top_1_is_greedy(model: LanguageModel) -> None:
    prompt = torch.tensor([[5, 6]])
    drawn = []
    for _ in range(2):
        torch.manual_seed(1)
        drawn.append(model.generate(prompt, 8, temperature=2.0))
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], model.generate(prompt, 8))
    assert torch.equal(model.generate(prompt, 8, temperature=2.0, top_k=1), model.generate(prompt, 8))


def test_what_does_not_fit_is_refused(model: LanguageModel) -> None:
    with pytest.raises(ShapeError, match="at most 12 at once"):
        model.generate(torch.tensor([[5, 6]]), 12)
    with pytest.raises(ShapeError, match="at least one token"):
        model.generate(torch.zeros((1, 0), dtype=torch.long), 2)
