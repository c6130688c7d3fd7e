from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from headwise.errors import ShapeError
from headwise.nn import sinusoidal_positions
from headwise.nn.patches import ConvolutionalStem, LearnedGrid, PatchEmbedding, SinusoidalGrid


@pytest.mark.parametrize("size", [(12, 12), (8, 16), (13, 18), (4, 4)])
def test_patches_are_a_convolution_whose_stride_is_its_width(size: tuple[int, int]) -> None:
    patches = PatchEmbedding(3, 4, 10)
    torch.nn.init.normal_(patches.bias)
    pixels = torch.randn(2, 3, *size, requires_grad=True)
    expected = F.conv2d(pixels, patches.weight, patches.bias, stride=4)
    assert patches.grid(*size) == tuple(expected.shape[2:])
    torch.testing.assert_close(patches(pixels), expected.flatten(2).transpose(1, 2))
    found = torch.autograd.grad(patches(pixels).pow(2).sum(), [pixels, *patches.parameters()])
    wanted = torch.autograd.grad(expected.pow(2).sum(), [pixels, *patches.parameters()])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(28, 28), (32, 20), (29, 31)])
def test_the_stem_is_convolution_relu_and_pooling_with_standardised_filters(
    size: tuple[int, int], channels: int
) -> None:
    stem = ConvolutionalStem(channels, 4, 8).double()
    x = pixels = torch.randn(2, channels, *size, dtype=torch.float64, requires_grad=True)
    for convolution in stem.convolutions:
        torch.nn.init.normal_(convolution.bias)
        weight = convolution.weight
        mean, variance = weight.mean((1, 2, 3), keepdim=True), weight.var((1, 2, 3), keepdim=True, correction=0)
        filters = (weight - mean) / torch.sqrt((variance + 1e-5) * weight[0].numel())
        x = F.max_pool2d(F.relu(F.conv2d(x, filters, convolution.bias, padding=1)), 3, stride=2, padding=1)
        x = x * (2 / (1 - 1 / torch.pi)) ** 0.5
    assert [tuple(c.weight.shape) for c in stem.convolutions] == [(4, channels, 3, 3), (8, 4, 3, 3)]
    assert stem.grid(*size) == tuple(x.shape[2:])
    found, expected = stem(pixels), x.flatten(2).transpose(1, 2)
    torch.testing.assert_close(found, expected)
    inputs = [pixels, *stem.parameters()]
    gradients = zip(
        torch.autograd.grad(found.pow(2).sum(), inputs), torch.autograd.grad(expected.pow(2).sum(), inputs), strict=True
    )
    for one, other in gradients:
        torch.testing.assert_close(one, other)


def test_what_all_pictures_have_in_common_does_not_drown_what_tells_them_apart() -> None:
    torch.manual_seed(1)
    pixels = torch.randn(64, 1, 28, 28) * 0.5 - 0.8  # mostly dark, as pictures on a black ground are
    tokens = ConvolutionalStem(1, 8, 64)(pixels)
    common = tokens.mean(dim=(0, 1))
    plain = pixels
    for convolution in ConvolutionalStem(1, 8, 64).convolutions:
        plain = F.max_pool2d(F.relu(convolution(plain)), 3, stride=2, padding=1)
    plain_common = plain.mean(dim=(0, 2, 3))
    share = common.square().sum() / tokens.square().sum(-1).mean()
    plain_share = plain_common.square().sum() / plain.square().sum(1).mean()
    assert share < plain_share - 0.1


@pytest.mark.parametrize("patch_size", [1, 3, 6])
def test_a_stem_that_cannot_halve_is_refused(patch_size: int) -> None:
    with pytest.raises(ShapeError, match="2, 4, 8"):
        ConvolutionalStem(1, patch_size, 8)


def test_learned_places_are_added_as_they_are_and_interpolated_for_other_grids() -> None:
    places = LearnedGrid(6, (3, 3), leading=1)
    x = torch.randn(2, 10, 6)
    torch.testing.assert_close(places(x, (3, 3)), x + places.weight)
    wider = places.table((4, 6))
    assert wider.shape == (25, 6)
    assert torch.equal(wider[0], places.weight[0])  # [CLS] has no place to move
    expected = F.interpolate(places.weight[1:].reshape(1, 3, 3, 6).permute(0, 3, 1, 2), (4, 6), mode="bicubic")
    torch.testing.assert_close(wider[1:].reshape(4, 6, 6), expected[0].permute(1, 2, 0))


def test_interpolated_places_stay_the_same_where_all_are_equal() -> None:
    places = LearnedGrid(4, (5, 5))
    with torch.no_grad():
        places.weight.copy_(torch.arange(4.0))
    torch.testing.assert_close(places.table((9, 2)), torch.arange(4.0).expand(18, 4))


def test_sinusoids_tell_row_and_column() -> None:
    table = SinusoidalGrid(8, leading=1).table((2, 3))
    rows, columns = sinusoidal_positions(2, 4), sinusoidal_positions(3, 4)
    assert torch.equal(table[0], torch.zeros(8))
    for row in range(2):
        for column in range(3):
            assert torch.equal(table[1 + 3 * row + column], torch.cat((rows[row], columns[column])))


def test_sinusoids_need_four_coordinates_per_wave() -> None:
    with pytest.raises(ShapeError, match="4 divides, not 6"):
        SinusoidalGrid(6)
