"""Weights in and out of a model directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headwise.bundle.assets import Saved
from headwise.bundle.checkpoint import load_tensors
from headwise.bundle.directory import WEIGHTS, Bundle, open_bundle, write_config, write_directory
from headwise.bundle.golden import GOLDEN, check_golden
from headwise.bundle.stored_weights import Shapes, check_sizes, stored_shapes
from headwise.cancellation import check_cancelled
from headwise.errors import HeadwiseError, ModelError, UsageError
from headwise.models.interface import Network
from headwise.models.registry import build_model
from headwise.text.tokenizer import TokenizerPair

_STORED = {"float32": torch.float32, "float16": torch.float16}  # by the bundle's precision


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once: a matrix that is tied is stored under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_model(
    directory: Path,
    model: Network,
    assets: Saved,
    *,
    family: str,
    task: str = "",
    languages: tuple[str, ...] = (),
    decoding: dict[str, Any] | None = None,
    card: dict[str, Any] | None = None,
    weights: dict[str, Tensor] | None = None,
    precision: str = "float32",
) -> None:
    """Writes a model directory, replacing an older one. `weights` (an average, say) stand in for the model's own."""
    architecture = dict(model.architecture)
    bundle = Bundle(
        directory, family, architecture, languages, decoding or {}, card or {}, precision=precision, task=task
    )
    chosen = _in_precision(named_weights(model) if weights is None else weights, precision)
    write_directory(directory, lambda new: fill_directory(new, bundle, chosen, assets))


def fill_directory(new: Path, bundle: Bundle, weights: dict[str, Tensor], assets: Saved) -> None:
    """Writes the files of a model into a directory that is being made."""
    save_file(weights, new / WEIGHTS)
    assets.save(new)
    write_config(new, bundle)


def _in_precision(weights: dict[str, Tensor], precision: str) -> dict[str, Tensor]:
    """Ready to be stored. float16 ends at 65,504: a weight beyond it would come back as infinity."""
    stored = {name: tensor.to("cpu", _STORED[precision]).contiguous() for name, tensor in weights.items()}
    for name, tensor in stored.items():
        if precision == "float16" and not torch.equal(tensor.isfinite(), weights[name].cpu().isfinite()):
            raise UsageError(f"{name} has weights that float16 cannot hold; store the model as float32")
    return stored


def load_model(bundle: Bundle, device: torch.device | str = "cpu") -> Network:
    """The model of a directory, in evaluation mode, with exactly the weights that its architecture declares.

    It computes in float32, however its weights are stored. An imported model must still give its golden answer.
    """
    check_weights(bundle)
    with torch.random.fork_rng(devices=[]), _Undrawn():  # the caller's generator must not move
        model = build_model(bundle.family, bundle.architecture)
    _read_weights(model, bundle.path / WEIGHTS)
    model.eval()
    check_golden(model, bundle.card.get(GOLDEN), bundle.path)
    _check_between_layers(model)
    return model.to(device)


def _check_between_layers(model: Network) -> None:
    """Lets a long pass be stopped or held before each of its layers, wherever the model is used."""
    for unit in model.shard_units():
        for layer in unit if isinstance(unit, list) else [unit]:
            layer.register_forward_pre_hook(_check_before)


def _check_before(layer: nn.Module, inputs: Any) -> None:
    check_cancelled()


class _Undrawn(TorchFunctionMode):
    """Leaves out the random start of weights, which are read anyway: drawing them takes longer than reading."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        drawn = func in (Tensor.normal_, Tensor.uniform_) and given.get("generator") is None
        if drawn or getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else given["tensor"]
        return func(*args, **given)


@torch.no_grad()
def _read_weights(model: nn.Module, file: Path) -> None:
    """One at a time, and the file is opened for each: mapped as a whole it would be in memory a second time."""
    try:
        for name, parameter in model.named_parameters():
            with safe_open(file, framework="pt") as stored:
                parameter.copy_(stored.get_tensor(name))
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from error


def start_from(bundle: Bundle, sizes: Mapping[str, Any]) -> tuple[Network, list[str]]:
    """A network to fine-tune, and the names of its weights that are new.

    It has the architecture of the model in a directory, but `sizes` (a number of labels, say) are those of new data.
    Weights whose name and shape agree are the model's; the others keep their random start.
    """
    check_weights(bundle)
    with torch.random.fork_rng(devices=[]):  # the caller's generator must not move
        model = build_model(bundle.family, {**bundle.architecture, **sizes})
    found = load_tensors(bundle.path / WEIGHTS)
    own = named_weights(model)
    known = {name: found[name] for name in own if name in found and found[name].shape == own[name].shape}
    if not known:
        raise ModelError(f"{bundle.path} has no weights that this task can start from; check model.from")
    set_weights(model, {**own, **known})
    return model, [name for name in own if name not in known]


def check_weights(bundle: Bundle) -> None:
    """Compares the stored tensors' shapes with those of the declared network, which is built without memory."""
    file = bundle.path / WEIGHTS
    found = stored_shapes(file, bundle.precision)
    check_sizes(file, found, bundle.architecture, bundle.declared.sizes)
    declared = declared_shapes(bundle.path, bundle.family, bundle.architecture)
    for name in sorted(declared.keys() | found.keys()):
        if declared.get(name) != found.get(name):
            raise ModelError(
                f"{file} does not fit its architecture: {name} should be {declared.get(name)}, is {found.get(name)}"
            )


def declared_shapes(path: Path, family: str, architecture: Mapping[str, Any]) -> Shapes:
    """The shapes of a network's weights, without memory for them: a config may declare anything."""
    try:
        with torch.device("meta"), _Undrawn():
            model = build_model(family, architecture)
    except ModelError:
        raise
    except (HeadwiseError, TypeError, ValueError, RuntimeError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise ModelError(f"{path} declares an impossible architecture: {reason}") from error
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def open_model(path: str | Path, device: torch.device | str = "cpu") -> tuple[Bundle, Network, TokenizerPair]:
    """Everything of a model directory at once."""
    bundle = open_bundle(path)
    return bundle, load_model(bundle, device), TokenizerPair.load(bundle.path)


@torch.no_grad()
def set_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
