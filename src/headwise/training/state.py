"""Everything that a run needs to go on exactly: into a checkpoint and out of it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from headwise.bundle.checkpoint import Checkpoint
from headwise.bundle.weights import named_weights, set_weights
from headwise.data.batching import Cursor
from headwise.errors import ModelError
from headwise.training.loop import Trainer
from headwise.training.optimizers import optimizer_tensors, restore_optimizer


def collect_tensors(trainer: Trainer) -> dict[str, Tensor]:
    """Weights, optimizer and moving average. Nothing random is kept: every draw is a function of (seed, step)."""
    parts = {
        "weights": named_weights(trainer.model),
        "optimizer": optimizer_tensors(trainer.updater.optimizer, trainer.model),
        "average": trainer.average.tensors() if trainer.average else {},
    }
    return {f"{part}:{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def loop_state(trainer: Trainer) -> dict[str, Any]:
    return {
        "step": trainer.step,
        "epoch": trainer.cursor.epoch,
        "index": trainer.cursor.index,
        "tokens": trainer.tokens,
        "seconds": trainer.elapsed(),
        "hooks": {type(hook).__name__: hook.state() for hook in trainer.hooks},
    }


def restore(trainer: Trainer, checkpoint: Checkpoint) -> None:
    """Puts a trainer where the checkpoint was written."""
    tensors, state = checkpoint.tensors(), checkpoint.state
    parts: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        part, _, name = path.partition(":")
        parts.setdefault(part, {})[name] = tensor
    try:
        set_weights(trainer.model, parts["weights"])
        restore_optimizer(trainer.updater.optimizer, trainer.model, parts.get("optimizer", {}))
        if trainer.average is not None:
            trainer.average.restore(parts["average"])
        trainer.step, trainer.tokens, trainer.seconds = state["step"], state["tokens"], state["seconds"]
        trainer.cursor = Cursor(state["epoch"], state["index"])
        for hook in trainer.hooks:
            hook.restore(state["hooks"].get(type(hook).__name__, {}))
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"{checkpoint.path} does not fit this recipe: {error}") from error
