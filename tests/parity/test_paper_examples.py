"""The worked numbers of the paper and its teaching notes, as Headwise computes them."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import headwise as hw
from headwise.config.families import find_family
from headwise.nn import Dropout, FeedForward, MultiHeadAttention


def close(actual: torch.Tensor, expected: object, tolerance: float = 5e-4) -> None:
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=actual.dtype), atol=tolerance, rtol=0.0)


def test_scaling_keeps_softmax_out_of_its_flat_ends() -> None:
    scores = torch.tensor([112.0, 96.0], dtype=torch.float64)
    close(scores.softmax(0), [1.0 - 1.1254e-07, 1.1254e-07], 1e-11)
    # The same through attention: d_k = 64, and q·k = 112 and 96.
    query, key = torch.ones(1, 64, dtype=torch.float64), torch.full((2, 64), 112 / 64, dtype=torch.float64)
    key[1] = 96 / 64
    _, weights = hw.nn.scaled_dot_product_attention(query, key, key)
    close(weights[0], [0.8808, 0.1192], 5e-5)


def test_a_dot_product_of_unit_variance_vectors_has_variance_d_k() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(100_000, 64, generator=generator) for _ in range(2))
    assert abs((q * k).sum(-1).var().item() - 64) < 1.5  # five standard errors of a variance from 100,000 draws


def test_one_head_by_hand() -> None:
    x = torch.tensor(
        [
            [1.0333236, -0.07687391, 1.94313157, -1.26162928],
            [1.18221604, -0.0298283, -1.46568319, 1.37369452],
            [-0.13959719, -0.50792964, -0.88052409, 1.52022357],
        ]
    )
    query = x @ torch.tensor([[0.2, 0.1], [0.3, 0.5], [0.4, 0.6], [0.1, 0.2]])
    key = x @ torch.tensor([[0.1, 0.3], [0.2, 0.4], [0.5, 0.7], [0.1, 0.2]])
    close(query @ key.T, [[2.136, -0.803, -0.882], [-0.902, 0.312, 0.369], [-1.038, 0.385, 0.428]])
    output, weights = hw.nn.scaled_dot_product_attention(query, key, x)
    close(weights, [[0.804, 0.101, 0.095], [0.172, 0.406, 0.422], [0.153, 0.417, 0.430]])
    close(
        output,
        [[0.937, -0.113, 1.331, -0.732], [0.598, -0.240, -0.632, 0.982], [0.591, -0.243, -0.694, 1.035]],
    )


def test_attention_is_a_soft_dictionary() -> None:
    keys = torch.tensor([[1.0, 2, 0], [0, 0, 2], [1, 2, 0], [1, 4, 0]])
    ages = torch.tensor([[18.0], [22], [20], [19]])
    # The example has no scaling: its query [1, 0, 0] is multiplied by √3 here, which the division by √d_k undoes.
    query = math.sqrt(3) * torch.tensor([[1.0, 0, 0]])
    output, weights = hw.nn.scaled_dot_product_attention(query, keys, ages)
    close(weights[0], [0.2969, 0.1092, 0.2969, 0.2969], 5e-5)
    close(output[0], [19.328], 1e-3)  # not the exact mean 19 of the three names: attention is soft
    sharp, _ = hw.nn.scaled_dot_product_attention(10 * query.double(), keys.double(), ages.double())
    close(sharp[0], [19.00005], 5e-6)


def test_causal_mask_of_four() -> None:
    expected = [[True, False, False, False], [True, True, False, False], [True, True, True, False], [True] * 4]
    assert hw.nn.causal_mask(4).tolist() == expected
    assert hw.nn.padding_mask(torch.tensor([2, 0, 3]), 3).tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_positions() -> None:
    code = hw.nn.sinusoidal_positions(5, 4)
    close(code[0], [0.0, 1.0, 0.0, 1.0], 1e-7)
    close(code[4], [-0.7568, -0.6536, 0.0400, 0.9992], 5e-5)
    robot = hw.nn.sinusoidal_positions(4, 4, base=100.0)
    close(robot, [[0, 1, 0, 1], [0.84, 0.54, 0.10, 1.00], [0.91, -0.42, 0.20, 0.98], [0.14, -0.99, 0.30, 0.96]], 5.1e-3)


@pytest.mark.parametrize("distance", [1, 7, 100])
def test_a_shift_of_position_is_a_linear_map_that_does_not_depend_on_the_position(distance: int) -> None:
    dim = 16
    code = hw.nn.sinusoidal_positions(400, dim).double()
    turn = torch.zeros(dim, dim, dtype=torch.float64)
    for i in range(0, dim, 2):
        angle = distance / 10000 ** (i / dim)
        turn[i : i + 2, i : i + 2] = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
    torch.testing.assert_close(code[: 400 - distance] @ turn.T, code[distance:], atol=1e-5, rtol=0.0)


def test_similarity_of_positions_falls_with_distance() -> None:
    code = hw.nn.sinusoidal_positions(60, 128)
    similarity = code[0] @ code.T
    near, middle, far = similarity[1], similarity[10], similarity[50]
    assert similarity[0] > near > middle > far


def test_shapes_of_two_heads_with_wide_values() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    w_q, w_k, w_v, w_o = torch.randn(4, 8), torch.randn(4, 8), torch.randn(4, 16), torch.randn(16, 4)
    q, k, v = ((x @ w).unflatten(-1, (2, -1)).transpose(0, 1) for w in (w_q, w_k, w_v))
    assert [tuple(t.shape) for t in (q, k, v)] == [(2, 3, 4), (2, 3, 4), (2, 3, 8)]
    output, weights = hw.nn.scaled_dot_product_attention(q, k, v)
    joined = output.transpose(0, 1).flatten(1)
    assert (tuple(weights.shape), tuple(joined.shape), tuple((joined @ w_o).shape)) == ((2, 3, 3), (3, 16), (3, 4))


def test_one_wide_matmul_split_in_eight_equals_eight_narrow_ones() -> None:
    torch.manual_seed(0)
    x, wide = torch.randn(2, 5, 512), torch.randn(512, 512)
    split = (x @ wide).unflatten(-1, (8, 64))
    for head in range(8):
        torch.testing.assert_close(split[..., head, :], x @ wide[:, 64 * head : 64 * head + 64], atol=1e-4, rtol=1e-4)


def test_layer_norm_uses_the_population_variance() -> None:
    heights = torch.tensor([140.0, 150, 160, 170, 180])
    norm = nn.LayerNorm(5)
    close(norm(heights), [-1.4142, -0.7071, 0.0, 0.7071, 1.4142], 5e-5)
    assert torch.equal(norm.weight, torch.ones(5))
    assert torch.equal(norm.bias, torch.zeros(5))


def test_label_smoothing_spreads_its_mass_over_every_class() -> None:
    logits, targets = torch.tensor([[2.0, 1, 0.1], [0.5, 2.5, 0.3]]), torch.tensor([0, 1])
    total, count = hw.label_smoothed_cross_entropy(logits, targets, smoothing=0.1, ignore=-1)
    assert (round(total.item() / count.item(), 6), count.item()) == (0.436873, 2)
    torch.testing.assert_close(total / count, F.cross_entropy(logits, targets, label_smoothing=0.1))
    # The other reading, mass ε/(K-1) on the other classes only:
    other = torch.tensor([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]])
    cross_entropy = -(other * logits.log_softmax(-1)).sum(-1).mean()
    close(cross_entropy, 0.496040, 1e-6)
    close(cross_entropy + (other * other.log()).sum(-1).mean(), 0.101642, 1e-6)


def test_the_three_dropouts_are_where_the_paper_and_its_code_have_them() -> None:
    model = hw.Transformer(source_vocab=9, model_dim=8, num_heads=2, encoder_layers=2, decoder_layers=3, ff_dim=8)
    rates = [m.rate for m in model.modules() if isinstance(m, Dropout)]
    sublayers, feed_forwards = 2 * 2 + 3 * 3, 2 + 3
    assert rates == [0.1] * (sublayers + feed_forwards + 1)  # and one on the sums of embeddings and positions
    assert {m.dropout for m in model.modules() if isinstance(m, MultiHeadAttention)} == {0.1}
    assert len([m for m in model.modules() if isinstance(m, FeedForward)]) == feed_forwards


@pytest.mark.parametrize("name", ["base", "big"])
def test_parameter_counts_follow_the_formula(name: str) -> None:
    family, vocab = find_family("transformer"), 37000
    assert family is not None
    sizes = family.resolve(name, {}).model_dump()
    with torch.device("meta"):
        model = hw.Transformer(source_vocab=vocab, **sizes)
    d, f = sizes["model_dim"], sizes["ff_dim"]
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * f + f + d, 2 * d
    encoder = sizes["encoder_layers"] * (attention + feed_forward + 2 * norm)
    decoder = sizes["decoder_layers"] * (2 * attention + feed_forward + 3 * norm)
    assert sum(p.numel() for p in model.parameters()) == encoder + decoder + vocab * d
    assert {"base": 63_082_496, "big": 214_245_376}[name] == encoder + decoder + vocab * d
    assert d // sizes["num_heads"] == 64
    if name == "base":  # torch's own counts two final norms more, which the paper does not have
        assert encoder + decoder + 2 * norm == 44_140_544


def test_base_is_the_default_of_the_constructor() -> None:
    family = find_family("transformer")
    assert family is not None
    with torch.device("meta"):
        model = hw.Transformer(source_vocab=100)
    assert model.settings == family.resolve("base", {})


def test_embeddings_are_scaled_and_one_matrix_serves_three_uses() -> None:
    model = hw.Transformer(source_vocab=50, model_dim=64, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=8)
    ids = torch.tensor([[3, 4]])
    torch.testing.assert_close(model.source_embedding(ids), model.source_embedding.weight[ids] * 8.0)
    assert model.source_embedding.weight is model.target_embedding.weight is model.output.weight
    target = hw.Transformer(
        source_vocab=40,
        target_vocab=50,
        model_dim=8,
        num_heads=2,
        encoder_layers=1,
        decoder_layers=1,
        ff_dim=8,
        tie="target",
    )
    assert target.source_embedding.weight.shape == (40, 8)
    assert target.target_embedding.weight is target.output.weight
    none = hw.Transformer(
        source_vocab=40,
        target_vocab=50,
        model_dim=8,
        num_heads=2,
        encoder_layers=1,
        decoder_layers=1,
        ff_dim=8,
        tie="none",
    )
    assert none.target_embedding.weight is not none.output.weight


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_logits_start_near_the_uniform_loss(norm: str) -> None:
    torch.manual_seed(0)
    model = hw.Transformer(
        source_vocab=1000, model_dim=64, num_heads=4, encoder_layers=2, decoder_layers=2, ff_dim=128, norm=norm
    )
    ids = torch.randint(0, 1000, (8, 12))
    logits = model.eval()(ids, ids)
    total, count = hw.label_smoothed_cross_entropy(logits, torch.randint(1, 1000, (8, 12)), smoothing=0.0)
    assert abs(total.item() / count.item() - math.log(1000)) < 1.0
    assert 0.5 < logits.std() < 1.5
