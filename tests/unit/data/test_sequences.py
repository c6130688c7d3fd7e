from __future__ import annotations

import numpy as np
import torch

from headwise.data.sequences import NO_LABEL, sequence_batch, sequence_inputs
from headwise.text.ragged import Ragged

B, E = 2, 3  # begin and end of sentence


def test_an_input_is_begin_text_end_padded() -> None:
    ids, lengths = sequence_inputs(Ragged.of([[7, 8, 9], [5]]))
    assert ids.tolist() == [[B, 7, 8, 9, E], [B, 5, E, 0, 0]]
    assert lengths.tolist() == [5, 3]


def test_labels_count_whichever_class_they_are_and_shares_are_as_wide_as_their_rows() -> None:
    batch = sequence_batch(Ragged.of([[7, 8, 9], [5]]), torch.tensor([0, 1]))
    assert (batch.tokens, batch.ignore) == (2, NO_LABEL)
    long, short = batch.split(2)
    assert long.inputs[0].shape == (1, 5)
    assert short.inputs[0].tolist() == [[B, 5, E]]
    assert short.targets.tolist() == [1]
    assert np.array_equal(short.lines, [2])
