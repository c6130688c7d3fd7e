from __future__ import annotations

import numpy as np
import pytest
import torch

from headwise.look.capture import Look, look_at_text
from headwise.look.saliency import log_odds as log_odds_of
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import BOS, EOS, TokenizerPair


def test_saliency_is_the_slope_of_the_log_odds_along_the_embedding(
    seen: Look, model: Transformer, tokenizers: TokenizerPair
) -> None:
    """Against finite differences: the embedding of one source token is scaled a little up and down."""
    source = torch.tensor([[*tokenizers.source.encode("the animal was too tired"), EOS]])
    ids = tokenizers.target.encode("两只狗 tired")
    place, step, little = 2, 1, 1e-2

    def log_odds(factor: float) -> float:
        def scale(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            changed = inputs[0].clone()
            changed[0, place] *= factor
            return (changed, *inputs[1:])

        hook = model.source_positions.register_forward_pre_hook(scale)
        try:
            with torch.no_grad():
                logits = model(source, torch.tensor([[BOS, *ids]]))[0].double()
        finally:
            hook.remove()
        chance = logits.softmax(dim=-1)[step, ids[step]]
        return float((chance / (1 - chance)).log())

    slope = (log_odds(1 + little) - log_odds(1 - little)) / (2 * little)
    assert seen.saliency.shape == (len(ids) + 1, source.size(1))
    assert seen.saliency[step, place] == pytest.approx(slope, abs=2e-3)


def test_later_tokens_of_a_text_have_no_influence_on_earlier_ones(tokenizers: TokenizerPair) -> None:
    torch.manual_seed(5)
    lm = LanguageModel(vocab=tokenizers.source.size, model_dim=32, num_heads=4, layers=2, ff_dim=48).eval()
    saliency = look_at_text(lm, tokenizers.source, [EOS, *tokenizers.source.encode("the animal")]).saliency
    assert (saliency[np.triu_indices_from(saliency, k=1)] == 0).all()
    assert (saliency[np.tril_indices_from(saliency)] != 0).all()


def test_log_odds_are_of_the_written_token_against_all_others_together() -> None:
    logits, written = torch.randn(3, 7, dtype=torch.float64), torch.tensor([0, 6, 2])
    chance = logits.softmax(dim=-1)[torch.arange(3), written]
    torch.testing.assert_close(log_odds_of(logits, written), (chance / (1 - chance)).log())
