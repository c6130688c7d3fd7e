"""`headwise export`: from a model directory to another engine's format."""

from __future__ import annotations

from pathlib import Path

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.interop.ctranslate2.export import MANIFEST, export
from headwise.interop.ctranslate2.kept import PRECISION
from headwise.text.tokenizer import TokenizerPair

FORMATS = ("ctranslate2",)


def export_model(model: str | Path, output: Path, to: str = "ctranslate2", precision: str = PRECISION) -> None:
    """Writes `output`, which must not exist yet, or be an export that is made anew."""
    if to not in FORMATS:
        raise UsageError(f"cannot export to '{to}'; there is {', '.join(FORMATS)}")
    bundle = open_bundle(model)
    if output.exists() and not _may_replace(output):
        raise UsageError(f"{output} exists already and is not an export; choose another directory")
    export(bundle, TokenizerPair.load(bundle.path), output, precision)


def _may_replace(output: Path) -> bool:
    return output.is_dir() and (not any(output.iterdir()) or (output / MANIFEST).is_file())
