"""Pictures as sequences: patches or a convolutional stem, and positions on a grid (Dosovitskiy et al. 2021).

Axis letters here: B batch, C channels, P side of a patch, R rows and G columns of the grid of patches, D model width.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.positions import sinusoidal_positions

Grid = tuple[int, int]  # rows and columns
RELU_GAIN = math.sqrt(2 / (1 - 1 / math.pi))  # 1 / the standard deviation of relu(x) for a standard normal x


class PatchEmbedding(nn.Module):
    """Cuts a picture into squares and projects each (equation 1 of the ViT paper, arXiv 2010.11929).

    The weight has the shape of a convolution whose stride is its width, which is what it computes; as a matrix product
    it takes half the time in training. What does not fill a patch at the right and at the bottom is left out.
    """

    def __init__(self, channels: int, patch_size: int, model_dim: int) -> None:
        super().__init__()
        self.channels, self.patch_size = channels, patch_size
        self.weight = nn.Parameter(torch.empty(model_dim, channels, patch_size, patch_size))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        nn.init.xavier_uniform_(self.weight.view(model_dim, -1))

    def forward(self, pixels: Tensor) -> Tensor:  # (B, C, height, width) -> (B, R·G, D)
        size = self.patch_size
        rows, columns = self.grid(pixels.size(2), pixels.size(3))
        cut = pixels[:, :, : rows * size, : columns * size]
        squares = cut.reshape(-1, self.channels, rows, size, columns, size).permute(0, 2, 4, 1, 3, 5)
        return F.linear(squares.flatten(3).flatten(1, 2), self.weight.flatten(1), self.bias)  # (B, R·G, C·P·P) -> D

    def grid(self, height: int, width: int) -> Grid:
        """Returns how many patches fit."""
        return height // self.patch_size, width // self.patch_size


class ConvolutionalStem(nn.Module):
    """Convolutions of 3 × 3 with pooling instead of patches: what small data need (CCT, Hassani et al. 2021).

    Each layer halves the picture, so there are log2(patch_size) of them; widths double up to `model_dim`. Neighbouring
    tokens share pixels, and the first layers know of edges what a Transformer would have to learn from many pictures.

    Filters are standardised whenever they are used (Brock et al. 2021, arXiv 2101.08692). What ReLU puts out is
    positive, and a filter that does not sum to zero passes its mean on: a large vector that all pictures have in
    common. Batch norm removes it as well, but has running means to keep.
    """

    def __init__(self, channels: int, patch_size: int, model_dim: int) -> None:
        super().__init__()
        if patch_size < 2 or patch_size & (patch_size - 1):
            raise ShapeError(
                f"a convolutional stem halves the picture per layer: patch_size must be 2, 4, 8, …, not {patch_size}"
            )
        self.channels = channels
        count = patch_size.bit_length() - 1
        widths = [channels, *(max(1, model_dim >> (count - 1 - number)) for number in range(count))]
        self.convolutions = nn.ModuleList(nn.Conv2d(before, after, 3, padding=1) for before, after in pairwise(widths))
        for convolution in self.convolutions:
            nn.init.kaiming_normal_(convolution.weight)  # type: ignore[arg-type]
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]

    def forward(self, pixels: Tensor) -> Tensor:  # (B, C, height, width) -> (B, R·G, D)
        x = pixels
        for convolution in self.convolutions:
            x = _convolve_channels_last(x, standardised(convolution.weight), convolution.bias)  # type: ignore[arg-type]
            x = RELU_GAIN * F.relu(F.max_pool2d(x, 3, stride=2, padding=1))  # same as relu first, on a quarter
        return x.flatten(2).transpose(1, 2)

    def grid(self, height: int, width: int) -> Grid:
        """Returns the size of the last layer's output: each halves, rounding up."""
        for _ in self.convolutions:
            height, width = (height + 1) // 2, (width + 1) // 2
        return height, width


def standardised(weight: Tensor) -> Tensor:
    """Each filter with mean 0 and variance 1 / (number of its inputs): (out, in, 3, 3) -> the same shape."""
    fan_in = math.prod(weight.shape[1:])
    return F.layer_norm(weight, weight.shape[1:]) / math.sqrt(fan_in)


def _convolve_channels_last(pixels: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves 3 × 3 with an output whose channels are last, the layout in which pooling and matrix products are fast.

    With one channel both layouts are the same, and PyTorch takes the slow one. A second channel of zeros tells them
    apart and makes convolution and pooling of grey pictures three times as fast.
    """
    if pixels.size(1) == 1:
        pixels, weight = F.pad(pixels, (0, 0, 0, 0, 0, 1)), F.pad(weight, (0, 0, 0, 0, 0, 1))
    return F.conv2d(pixels.contiguous(memory_format=torch.channels_last), weight, bias, padding=1)


class LearnedGrid(nn.Module):
    """Adds a trained vector per place of a grid, after `leading` ones for tokens that have no place, such as [CLS].

    For a grid of another size the vectors are interpolated (bicubic), as when a ViT is fine-tuned at a higher
    resolution (section 3.2 of its paper).
    """

    def __init__(self, model_dim: int, grid: Grid, leading: int = 0) -> None:
        super().__init__()
        self.grid, self.leading = grid, leading
        self.weight = nn.Parameter(torch.empty(leading + grid[0] * grid[1], model_dim))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor, grid: Grid) -> Tensor:  # (B, leading + R·G, D) -> the same
        return x + self.table(grid)

    def table(self, grid: Grid) -> Tensor:
        """Returns (leading + R·G, D)."""
        if grid == self.grid:
            return self.weight
        placed = self.weight[self.leading :].T.reshape(1, -1, *self.grid)  # (1, D, R, G)
        resized = F.interpolate(placed, size=grid, mode="bicubic", align_corners=False)
        return torch.cat((self.weight[: self.leading], resized[0].flatten(1).T))


class SinusoidalGrid(nn.Module):
    """Adds fixed sinusoids: half of the coordinates tell the row, half the column. Any size of grid will do."""

    def __init__(self, model_dim: int, leading: int = 0) -> None:
        super().__init__()
        if model_dim % 4:
            raise ShapeError(f"sinusoids of rows and columns need a model_dim that 4 divides, not {model_dim}")
        self.model_dim, self.leading = model_dim, leading

    def forward(self, x: Tensor, grid: Grid) -> Tensor:  # (B, leading + R·G, D) -> the same
        return x + self.table(grid).to(x)

    def table(self, grid: Grid) -> Tensor:
        """Returns (leading + R·G, D); zeros for the leading tokens."""
        rows, columns = (sinusoidal_positions(size, self.model_dim // 2) for size in grid)
        both = torch.cat((rows[:, None].expand(*grid, -1), columns[None].expand(*grid, -1)), dim=-1)  # (R, G, D)
        return F.pad(both.flatten(0, 1), (0, 0, self.leading, 0))
