"""`headwise import`: a published model becomes a model directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from headwise.bundle.directory import Bundle, open_bundle, write_config, write_directory
from headwise.bundle.weights import fill_directory, load_model
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.read import Imported, read_model
from headwise.models.interface import Network, Stepper
from headwise.tasks import find_task
from headwise.text.tokenizer import BOS, EOS

_GOLDEN_TOKENS = 8


@dataclass(frozen=True)
class ImportResult:
    """What was made."""

    path: Path
    family: str
    task: str
    parameters: int
    licence: str | None


def import_model(source: str | Path, output: Path) -> ImportResult:
    """Writes the model directory `output`, which must not exist yet, whole or not at all."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output} is already there; choose a new directory")
    imported = read_model(Path(source))
    return _write(imported, output)


def _write(imported: Imported, output: Path) -> ImportResult:
    from headwise import __version__

    card: dict[str, Any] = {"headwise": __version__, "origin": imported.origin}
    bundle = Bundle(output, imported.family, imported.architecture, imported.languages, card=card, task=imported.task)
    parameters = sum(tensor.numel() for tensor in imported.weights.values())

    def fill(new: Path) -> None:
        fill_directory(new, bundle, imported.weights, imported.tokenizers)
        imported.weights.clear()  # the model is opened again, as a user will open it
        found = golden_output(
            load_model(open_bundle(new, verify=False)), imported.task, imported.architecture["absent"]
        )
        if imported.golden is not None and imported.golden != found:
            raise ModelError(
                f"{imported.origin['source']} says that the model answers {imported.golden['output']} to "
                f"{imported.golden['input']}, but it answers {found['output']}; take another copy of the model"
            )
        write_config(new, replace(bundle, path=new, card={**card, "golden": found}))

    write_directory(output, fill)
    return ImportResult(output, imported.family, imported.task, parameters, imported.origin.get("licence"))


@torch.inference_mode()
def golden_output(network: Network, task: str, absent: int = 0) -> dict[str, list[int]]:
    """The likeliest tokens after a fixed input: a fingerprint of the weights and of all that computes with them."""
    if not isinstance(network, Stepper):
        raise ModelError(f"a model of the task '{task}' has no golden output")
    first = EOS + 1
    given = [first + number for number in range(4)]
    source = any("source" in fields for fields in find_task(task).reads)
    state = network.start((torch.tensor([[*given, EOS]]), torch.tensor([len(given) + 1])) if source else None, 1)
    tokens = torch.tensor([[BOS]] if source else [given])
    output: list[int] = []
    for _ in range(_GOLDEN_TOKENS):
        logits = network.output.logits(network.advance(state, tokens))
        if not bool(logits.isfinite().all()):
            raise ModelError("the model's answers are NaN or infinite; take another copy of it")
        logits[:, :EOS] = -torch.inf
        token = int(logits.argmax())
        output.append(token)
        if token == EOS:
            break
        tokens = torch.tensor([token])
    return {"input": given, "output": output}
