"""Optimizers by name, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from headwise.config.schema import Training


def build_optimizer(settings: Training, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Builds one of PyTorch's optimizers; the schedule sets the learning rate before each update."""
    rate, decay = settings.learning_rate, settings.weight_decay
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(parameters, rate, weight_decay=decay)
        case "momentum":
            return torch.optim.SGD(parameters, rate, momentum=settings.momentum, weight_decay=decay)
        case "adagrad":
            return torch.optim.Adagrad(parameters, rate, weight_decay=decay)
        case "rmsprop":
            return torch.optim.RMSprop(parameters, rate, alpha=0.9, eps=settings.epsilon, weight_decay=decay)
        case "adam":
            return torch.optim.Adam(parameters, rate, settings.betas, settings.epsilon, decay, fused=True)
        case "adamw":
            return torch.optim.AdamW(parameters, rate, settings.betas, settings.epsilon, decay, fused=True)
        case "adafactor":  # its rate is relative to the size of each weight matrix (Shazeer & Stern 2018, section 8)
            return torch.optim.Adafactor(parameters, rate, weight_decay=decay)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Returns the state of every parameter by name: 'encoder.layers.0….weight/exp_avg' -> tensor."""
    tensors = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"{name}/{key}"] = value
    return tensors


@torch.no_grad()
def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts the result of `optimizer_tensors` into a new optimizer of the same kind."""
    by_name: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        name, _, key = path.rpartition("/")
        by_name.setdefault(name, {})[key] = tensor
    for name, parameter in model.named_parameters():
        for key, tensor in by_name.get(name, {}).items():
            # Step counters stay where optimizers keep them (on the CPU), moments on the device of their parameter.
            place = parameter.device if tensor.shape == parameter.shape else tensor.device
            optimizer.state[parameter][key] = tensor.to(place).clone()
