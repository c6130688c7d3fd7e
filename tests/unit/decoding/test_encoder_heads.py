from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.bundle.directory import open_bundle
from headwise.decoding.encoder_heads import _ACTIVATIONS, TokenHead, pool, read_weights
from headwise.errors import ModelError
from headwise.nn import heads
from headwise.nn.feedforward import activation_function


@pytest.mark.parametrize("kind", ["first", "mean"])
def test_pooling_is_that_of_the_network_and_ignores_padding(kind: str) -> None:
    states, lengths = torch.randn(3, 5, 4), [5, 2, 3]
    expected = heads.pool(states, torch.tensor(lengths), kind).numpy()
    assert np.allclose(pool(states.numpy(), lengths, kind), expected, atol=1e-6)


@pytest.mark.parametrize("name", _ACTIVATIONS)
def test_activations_are_those_of_the_network(name: str) -> None:
    x = torch.linspace(-6, 6, 101)
    assert np.allclose(_ACTIVATIONS[name](x.numpy()), activation_function(name)(x).numpy(), atol=1e-5)


def test_a_model_without_weights_for_tokens_is_refused(classifier_model: Path) -> None:
    bundle = open_bundle(classifier_model)
    with pytest.raises(ModelError, match="no weights for tokens"):
        TokenHead(bundle)
    assert set(read_weights(bundle, ["embedding.weight", "nothing"])) == {"embedding.weight"}
