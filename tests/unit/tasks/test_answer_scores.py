from __future__ import annotations

import torch

from headwise.data.batch import Batch
from headwise.losses import BatchLoss
from headwise.tasks.answer_scores import AnswerScorer


def test_the_share_of_right_answers_over_all_batches_and_then_from_the_start() -> None:
    scorer, zero = AnswerScorer(), torch.zeros(())
    ids = torch.zeros(2, 3, dtype=torch.long)
    for answers in ([5, 6, 7], [5, 6, 9], [1, 1, 1]):
        batch = Batch.of((ids,), torch.tensor([[0, 5, 6], [7, 0, 0]]))
        scorer.add(batch, BatchLoss(zero, zero, 3, torch.tensor(answers)))
    scorer.add(Batch.of((ids,), torch.ones(2, 3)), BatchLoss(zero, zero, 6))
    assert scorer() == ({"accuracy": 5 / 9}, [])
    assert scorer() == ({"accuracy": 0.0}, [])
