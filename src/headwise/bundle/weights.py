"""Weights in and out of a model directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headwise.bundle.files import WEIGHTS, Bundle, open_bundle, write_config, write_directory
from headwise.errors import HeadwiseError, ModelError
from headwise.models.registry import Model, build_model
from headwise.text.tokenizer import TokenizerPair


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once: a matrix that is tied is stored under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_model(
    directory: Path,
    model: Model,
    tokenizers: TokenizerPair,
    *,
    family: str,
    languages: tuple[str, ...] = (),
    decoding: dict[str, Any] | None = None,
    card: dict[str, Any] | None = None,
    weights: dict[str, Tensor] | None = None,
) -> None:
    """Writes a model directory, replacing an older one. `weights` (an average, say) stand in for the model's own."""
    architecture = dict(model.architecture)
    bundle = Bundle(directory, family, architecture, languages, decoding or {}, card or {})

    def fill(new: Path) -> None:
        chosen = named_weights(model) if weights is None else weights
        save_file({name: tensor.contiguous().cpu() for name, tensor in chosen.items()}, new / WEIGHTS)
        tokenizers.save(new)
        write_config(new, bundle)

    write_directory(directory, fill)


def load_model(bundle: Bundle, device: torch.device | str = "cpu") -> Model:
    """The model of a directory, in evaluation mode, with exactly the weights that its architecture declares."""
    try:
        with torch.device("meta"):
            sizes = {
                name: tuple(p.shape) for name, p in build_model(bundle.family, bundle.architecture).named_parameters()
            }
        weights = load_file(bundle.path / WEIGHTS)
    except (TypeError, SafetensorError, OSError) as error:
        raise ModelError(f"{bundle.path} cannot be loaded: {error}") from error
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(sizes.keys() | found.keys()):
        if sizes.get(name) != found.get(name):
            raise ModelError(
                f"{bundle.path / WEIGHTS} does not fit its architecture: {name} should be {sizes.get(name)}, "
                f"is {found.get(name)}"
            )
    try:
        with torch.random.fork_rng(devices=[]):  # its random start is thrown away: the caller's generator must not move
            model = build_model(bundle.family, bundle.architecture)
    except HeadwiseError as error:
        raise ModelError(f"{bundle.path} declares an impossible architecture: {error}") from error
    set_weights(model, weights)
    return model.to(device).eval()


def open_model(path: str | Path, device: torch.device | str = "cpu") -> tuple[Bundle, Model, TokenizerPair]:
    """Everything of a model directory at once."""
    bundle = open_bundle(path)
    return bundle, load_model(bundle, device), TokenizerPair.load(bundle.path)


@torch.no_grad()
def set_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
