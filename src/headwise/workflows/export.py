"""From a model directory to another engine's format. What the fast engine needs is made on first use, and kept.

It lies in the model directory, under ctranslate2/, or where that cannot be written in the user's cache. It is not among
the files that config.json lists; it names the hash of the weights that it was made from, so a stale one is never used.
A shipped model brings its int8 form along; whatever else is made of it goes to the cache, never into the installation.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwise.bundle.directory import Bundle, open_bundle
from headwise.bundle.shipped import is_shipped
from headwise.errors import UsageError, WorkFailed
from headwise.interop import ctranslate2
from headwise.text.tokenizer import TokenizerPair

FORMATS = ("ctranslate2",)
PRECISION = "int8"
KEPT = "ctranslate2"


def export_model(model: str | Path, output: Path, to: str = "ctranslate2", precision: str = PRECISION) -> None:
    """Writes `output`, which must not be there yet, or be an export that is made anew."""
    if to not in FORMATS:
        raise UsageError(f"cannot export to '{to}'; there is {', '.join(FORMATS)}")
    bundle = open_bundle(model)
    if output.exists() and not _may_replace(output):
        raise UsageError(f"{output} is there already and is not an export; choose another place")
    ctranslate2.export(bundle, TokenizerPair.load(bundle.path), output, precision)


def kept_export(bundle: Bundle, tokenizers: TokenizerPair, precision: str = PRECISION) -> Path:
    """The directory of this model's export; made now if there is none yet."""
    places = [bundle.path / KEPT / precision, _cache() / f"{_key(bundle)}-{precision}"]
    for place in places:
        if ctranslate2.is_current(bundle, place, precision):
            return place
    for place in places[1:] if is_shipped(bundle.path) else places:
        try:
            with _alone(place):
                if not ctranslate2.is_current(bundle, place, precision):
                    ctranslate2.export(bundle, tokenizers, place, precision)
        except (WorkFailed, OSError):
            continue
        return place
    tried = " or ".join(map(str, places))
    raise WorkFailed(f"could not write an export for the fast engine to {tried}; use --engine torch")


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Of several processes that need the same export, the first makes it and the others wait."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_name(f".{place.name}.lock"), "w") as lock:
        with suppress(OSError):  # a file system without locks: the last one wins
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _may_replace(output: Path) -> bool:
    return output.is_dir() and (not any(output.iterdir()) or (output / ctranslate2.MANIFEST).is_file())


def _key(bundle: Bundle) -> str:
    return bundle.files.get("model.safetensors", "")[:16]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "headwise" / "ctranslate2"
