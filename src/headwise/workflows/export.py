"""`headwise export`: from a model directory to another engine's format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle, open_bundle
from headwise.errors import UsageError
from headwise.interop.ctranslate2.export import MANIFEST, export
from headwise.interop.ctranslate2.kept import PRECISION
from headwise.text.tokenizer import TokenizerPair

FORMATS = ("ctranslate2", "huggingface")


def export_model(model: str | Path, output: Path, to: str = "ctranslate2", precision: str = PRECISION) -> None:
    """Writes `output`, which must not exist yet, or be a CTranslate2 export that is made anew."""
    if to not in FORMATS:
        raise UsageError(f"cannot export to '{to}'; there is {', '.join(FORMATS)}")
    bundle = open_bundle(model)
    if output.exists() and not _may_replace(output):
        raise UsageError(f"{output} exists already and is not an export; choose another directory")
    if to == "ctranslate2":
        export(bundle, TokenizerPair.load(bundle.path), output, precision, complete=True)
    else:
        from headwise.interop.huggingface.write import export as export_to_hub

        export_to_hub(_with_golden(bundle), Assets.load(bundle.path), output)


def _with_golden(bundle: Bundle) -> Bundle:
    """The model with an answer of its own in its card, by which whoever imports it sees that nothing was lost."""
    from headwise.bundle.golden import GOLDEN, golden_output
    from headwise.bundle.weights import load_model

    return replace(bundle, card={**bundle.card, GOLDEN: golden_output(load_model(bundle))})


def _may_replace(output: Path) -> bool:
    return output.is_dir() and (not any(output.iterdir()) or (output / MANIFEST).is_file())
