"""Saves and restores everything that a run needs to continue exactly where it was.

No random state is saved: every draw is a function of (seed, step). Nor does a checkpoint depend on the number of ranks:
its tensors are not sharded.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from headwise.bundle.checkpoint import Checkpoint
from headwise.bundle.weights import set_weights
from headwise.data.cursor import Cursor
from headwise.errors import ModelError
from headwise.training.gather import placed
from headwise.training.loop import Trainer
from headwise.training.optimizers import restore_optimizer


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
    """Puts a trainer into the state in which the checkpoint was written."""
    state = checkpoint.state
    try:
        parts = _parts(checkpoint, dict(trainer.model.named_parameters()))
        set_weights(trainer.model, parts["weights"])
        restore_optimizer(trainer.updater.optimizer, trainer.model, parts.get("optimizer", {}))
        if trainer.full.average is not None:
            trainer.full.average.restore(parts["average"])
        trainer.full.carry.restore(parts.get("carry", {}), trainer.world, trainer.updater.device)
        trainer.step, trainer.tokens, trainer.seconds = state["step"], state["tokens"], state["seconds"]
        trainer.cursor = Cursor(state["epoch"], state["index"])
        for hook in trainer.hooks:
            if type(hook).__name__ in state["hooks"]:
                hook.restore(state["hooks"][type(hook).__name__])
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"{checkpoint.path} does not fit this recipe: {error}") from error


def _parts(checkpoint: Checkpoint, parameters: dict[str, nn.Parameter]) -> dict[str, dict[str, Tensor]]:
    """Reads weights, optimizer state, averages and what is carried by name; of a sharded tensor, this rank's shard."""
    parts: dict[str, dict[str, Tensor]] = {}
    for path, tensor in checkpoint.each_tensor():
        part, _, name = path.partition(":")
        if part == "carry":
            parts.setdefault(part, {})[name] = tensor
            continue
        parameter = parameters[name.rpartition("/")[0] if part == "optimizer" else name]
        parts.setdefault(part, {})[name] = placed(tensor, parameter)
    return parts
