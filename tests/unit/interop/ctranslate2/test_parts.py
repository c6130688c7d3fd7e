from __future__ import annotations

import ctranslate2.specs
import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.interop.ctranslate2.parts import activation, positions, sinusoids
from headwise.nn import sinusoidal_positions


def test_the_position_table_is_the_models_own() -> None:
    np.testing.assert_allclose(sinusoids(700, 32), sinusoidal_positions(700, 32).numpy(), atol=1e-6)


def test_positions_are_learned_computed_or_zeros() -> None:
    sizes, learned = {"max_length": 5, "model_dim": 4}, np.ones((5, 4), dtype=np.float32)
    assert positions({**sizes, "positions": "learned"}, {"here.weight": learned}, "here") is learned
    assert np.array_equal(positions({**sizes, "positions": "sinusoidal"}, {}, "here"), sinusoids(5, 4))
    assert not positions({**sizes, "positions": "none"}, {}, "here").any()


def test_an_activation_that_ctranslate2_does_not_have_is_one_clear_line() -> None:
    assert activation(ctranslate2.specs, {"activation": "silu"}) == ctranslate2.specs.Activation.SWISH
    with pytest.raises(UsageError, match="ctranslate2 has no activation 'tanh'; use the torch engine"):
        activation(ctranslate2.specs, {"activation": "tanh"})
