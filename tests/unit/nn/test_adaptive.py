"""A large vocabulary with narrow vectors for rare words: as input, as output, and what it refuses."""

from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.models.lm import LanguageModel
from headwise.nn.adaptive import AdaptiveEmbedding


def test_a_word_has_its_clusters_vector_projected_and_scaled() -> None:
    torch.manual_seed(1)
    table = AdaptiveEmbedding(30, 16, [5, 12])
    found = table(torch.tensor([[0, 4, 5], [11, 12, 29]]))
    first, second, third = table.tables
    expected = [
        first[0], first[4], second[0] @ table.projections[0],
        second[6] @ table.projections[0], third[0] @ table.projections[1], third[17] @ table.projections[1],
    ]  # fmt: skip
    torch.testing.assert_close(found.flatten(0, 1), 4.0 * torch.stack(expected))
    assert [tuple(t.shape) for t in table.tables] == [(5, 16), (7, 4), (18, 1)]


def test_log_probabilities_add_up_and_the_loss_is_made_of_them() -> None:
    torch.manual_seed(2)
    table = AdaptiveEmbedding(40, 16, [8, 20])
    states, targets = torch.randn(50, 16), torch.randint(0, 40, (50,))
    log_probs = table.logits(states)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(50))
    total, log_loss = table.loss(states, targets)
    torch.testing.assert_close(total, -log_probs.gather(1, targets[:, None]).sum())
    assert torch.equal(total, log_loss)
    # A batch in which a cluster has no word is no special case.
    few = torch.zeros(3, dtype=torch.int64)
    torch.testing.assert_close(table.loss(states[:3], few)[0], -log_probs[:3, 0].sum())


@torch.no_grad()
def test_inputs_and_logits_start_with_variance_one() -> None:
    torch.manual_seed(3)
    table = AdaptiveEmbedding(9000, 256, [3000, 6000])
    for low in (0, 3000, 6000):
        assert float(table(torch.arange(low, low + 3000)[None]).std()) == pytest.approx(1.0, abs=0.1)
    # Log-probabilities within the head, or within a cluster, are logits less a number that is the same for all.
    log_probs = table.logits(torch.randn(500, 256))
    for low in (0, 3000, 6000):
        assert float(log_probs[:, low : low + 3000].std(dim=-1).mean()) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("cutoffs", [[], [0, 5], [5, 5], [9, 4], [5, 30], [5, 31]])
def test_cutoffs_must_rise_within_the_vocabulary(cutoffs: list[int]) -> None:
    with pytest.raises(ShapeError, match="cutoffs must be increasing"):
        AdaptiveEmbedding(30, 16, cutoffs)


@pytest.mark.parametrize("ids", [[[3, 30]], [[-1]]])
def test_an_id_outside_the_vocabulary_is_refused(ids: list[list[int]]) -> None:
    with pytest.raises(ShapeError, match="token ids must be 0…29"):
        AdaptiveEmbedding(30, 16, [10])(torch.tensor(ids))


def test_label_smoothing_is_refused() -> None:
    with pytest.raises(ShapeError, match="does not support label smoothing"):
        AdaptiveEmbedding(30, 16, [10]).loss(torch.randn(2, 16), torch.tensor([1, 2]), 0.1)


def test_a_language_model_ties_it_to_its_input_or_not() -> None:
    sizes = {"vocab": 100, "model_dim": 16, "num_heads": 2, "layers": 1, "ff_dim": 8, "cutoffs": [20, 50]}
    tied, free = LanguageModel(**sizes), LanguageModel(**sizes, tie="none")  # type: ignore[arg-type]
    assert tied.output is tied.embedding
    assert free.output is not free.embedding
    assert tied.architecture["cutoffs"] == [20, 50]
    ids = torch.randint(0, 100, (2, 5))
    torch.testing.assert_close(tied(ids).exp().sum(dim=-1), torch.ones(2, 5))
