"""`headwise import`: a published model becomes a model directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from headwise.bundle.assets import TEXTS, Assets
from headwise.bundle.directory import WEIGHTS, Bundle, write_config, write_directory
from headwise.bundle.golden import GOLDEN, check_golden, golden_output
from headwise.bundle.stored_weights import check_sizes
from headwise.bundle.weights import load_model
from headwise.bundle.weights_file import write_tensors
from headwise.errors import UsageError
from headwise.files import check_name
from headwise.interop.hub import fetch, is_hub_name
from headwise.interop.imported import Imported
from headwise.interop.sources import read_model


@dataclass(frozen=True)
class ImportResult:
    """What was made."""

    path: Path
    family: str
    task: str
    parameters: int
    licence: str | None


def import_model(source: str | Path, output: Path, revision: str | None = None, *, pairs: bool = False) -> ImportResult:
    """Writes the model directory `output`, which must not exist yet, whole or not at all.

    `source` is a folder, or the name of a model of the Hugging Face Hub, of which `revision` chooses a version.
    `pairs` tells that a classifier was trained on pairs of texts, which no file of it says.
    """
    check_name(source)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output} is already there; choose a new directory")
    if not Path(source).exists() and is_hub_name(str(source)):
        fetched = fetch(str(source), revision)
        imported = read_model(fetched.folder)
        told = {"source": fetched.name, "revision": fetched.revision}
        return _write(replace(imported, origin={**imported.origin, **told}), Path(source), output, pairs)
    if revision is not None:
        raise UsageError(f"--revision is for models of the Hub, but {source} is a folder here")
    return _write(read_model(Path(source)), Path(source), output, pairs)


def _write(imported: Imported, source: Path, output: Path, pairs: bool) -> ImportResult:
    from headwise import __version__

    if pairs:
        imported = replace(imported, assets=_of_pairs(imported, source))
    card: dict[str, Any] = {"headwise": __version__, "origin": imported.origin}
    bundle = Bundle(
        output, imported.family, imported.architecture, imported.languages, imported.decoding, card, task=imported.task
    )

    check_sizes(source, dict(imported.weights.shapes), imported.architecture, bundle.declared.sizes)

    def fill(new: Path) -> None:
        hashed = {WEIGHTS: write_tensors(new / WEIGHTS, imported.weights, imported.weights.shapes)}
        imported.assets.save(new)
        # Loaded from the file, because a model beside all that came up while it was read would need more memory.
        model = load_model(replace(bundle, path=new))
        golden = golden_output(model)
        if golden != imported.golden:
            check_golden(model, imported.golden, source)
        write_config(new, replace(bundle, card={**card, GOLDEN: golden}), hashed)

    write_directory(output, fill)
    parameters = sum(prod(shape) for shape in imported.weights.shapes.values())
    return ImportResult(output, imported.family, imported.task, parameters, imported.origin.get("licence"))


def _of_pairs(imported: Imported, source: Path) -> Assets:
    assets = imported.assets
    if not assets.labels or assets.text is None:
        raise UsageError(f"--pairs is for classifiers of texts, but {source} has the task {imported.task}")
    return replace(assets, preprocessing={**assets.preprocessing, TEXTS: 2})
