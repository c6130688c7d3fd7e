from __future__ import annotations

import pytest
import torch
from torch import nn

from headwise.config.schema import Training
from headwise.training.optimizers import build_optimizer, optimizer_tensors, restore_optimizer


def fit_line(name: str, steps: int) -> list[tuple[float, float, float]]:
    """y = 2x + 1 on x = 0…4 from w = b = 0: (w, b, loss before the step) after each step."""
    x = torch.arange(5.0)
    line = nn.Linear(1, 1)
    nn.init.zeros_(line.weight)
    nn.init.zeros_(line.bias)
    settings = Training(optimizer=name, learning_rate=0.01, betas=(0.9, 0.999), epsilon=1e-8)
    optimizer = build_optimizer(settings, line.parameters())
    course = []
    for _ in range(steps):
        loss = (line(x[:, None]).squeeze(1) - (2 * x + 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        course.append((line.weight.item(), line.bias.item(), loss.item()))
    return course


@pytest.mark.parametrize(
    ("name", "step", "expected"),
    [
        ("sgd", 0, (0.28, 0.10, 33.0)),
        ("sgd", 20, (1.9803, 0.7299, 0.1229)),
        ("sgd", 99, (2.0512, 0.8540, 0.0072)),
        ("momentum", 99, (1.9898, 0.9954)),
        ("adagrad", 99, (0.1821, 0.1819)),
        ("rmsprop", 99, (1.0241, 1.0187)),
        ("adam", 99, (0.8853, 0.8779)),
    ],
)
def test_optimizers_take_the_worked_course_on_a_line(name: str, step: int, expected: tuple[float, ...]) -> None:
    course = fit_line(name, step + 1)
    assert course[step][: len(expected)] == pytest.approx(expected, abs=6e-5)


def test_the_papers_adam_is_the_default() -> None:
    settings = Training()
    assert (settings.optimizer, settings.betas, settings.epsilon) == ("adam", (0.9, 0.98), 1e-9)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "adafactor"])
def test_a_restored_optimizer_goes_on_bit_for_bit(name: str) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> None:
        torch.manual_seed(number)
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    torch.manual_seed(0)
    settings = Training(optimizer=name, learning_rate=0.01, weight_decay=0.1)
    model = nn.Linear(3, 2)
    optimizer = build_optimizer(settings, model.parameters())
    for number in range(3):
        step(model, optimizer, number)
    other = nn.Linear(3, 2)
    other.load_state_dict(model.state_dict())
    resumed = build_optimizer(settings, other.parameters())
    restore_optimizer(resumed, other, optimizer_tensors(optimizer, model))
    for number in range(3, 6):
        step(model, optimizer, number)
        step(other, resumed, number)
    assert torch.equal(model.weight, other.weight)
    assert torch.equal(model.bias, other.bias)
