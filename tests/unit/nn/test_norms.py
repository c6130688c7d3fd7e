from __future__ import annotations

import torch
import torch.nn.functional as F

from headwise.nn.norms import RMSNorm


def test_rms_norm_divides_by_the_root_mean_square_and_nothing_else() -> None:
    norm, x = RMSNorm(4), torch.tensor([[1.0, -3.0, 1.0, 5.0], [0.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(norm(x)[0], x[0] / 3.0)  # mean(x²) = 9
    assert norm(x)[1].tolist() == [0.0] * 4  # epsilon keeps it finite


def test_rms_norm_is_the_same_with_and_without_gradients() -> None:
    torch.manual_seed(0)
    norm, x = RMSNorm(6), torch.randn(2, 3, 6)
    torch.nn.init.normal_(norm.weight)
    with torch.no_grad():
        plain = norm(x)
    torch.testing.assert_close(norm(x.requires_grad_()), plain)
    torch.testing.assert_close(plain, F.rms_norm(x, (6,), norm.weight, 1e-6))


def test_half_precision_inputs_are_squared_in_float32() -> None:
    norm = RMSNorm(4)
    large = torch.full((1, 4), 300.0, dtype=torch.float16)  # its square is not a float16
    torch.testing.assert_close(norm(large), torch.ones(1, 4), atol=1e-3, rtol=1e-3)
    assert RMSNorm(4).to(torch.bfloat16)(large.bfloat16()).dtype == torch.bfloat16
