"""`headwise check`: checks a corpus before training."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from headwise.config import schema
from headwise.text.corpus import expand_paths
from headwise.text.findings import Report
from headwise.text.report import OnProgress, check_corpus

Section = TypeVar("Section", bound=schema.Texts)


def check(data: schema.Data, base: Path | None = None, on_progress: OnProgress | None = None) -> Report:
    """Checks the text that `data` names; its paths and globs are relative to `base`."""
    return check_corpus(with_files(data, base), on_progress)


def with_files(data: schema.Data, base: Path | None = None) -> schema.Data:
    """Returns the data section with every path and glob replaced by the files that it matches."""
    held_out = {name: _expanded(getattr(data, name), base) for name in ("validation", "test")}
    return _expanded(data, base).model_copy(update=held_out)


def _expanded(texts: Section, base: Path | None) -> Section:
    sides = ("source", "target", "text")
    return texts.model_copy(update={side: tuple(expand_paths(getattr(texts, side), base)) for side in sides})
