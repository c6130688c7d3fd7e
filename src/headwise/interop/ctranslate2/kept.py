"""The export that the fast engine needs: made on first use, and kept.

It is kept in the model directory, under ctranslate2/, or where that cannot be written, in the user's cache. It is not
among the files that config.json lists; it names all that it was made from, so a stale one is never used. A shipped
model brings its int8 form; whatever else is made of it goes to the cache, never into the installation.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwise.bundle.directory import Bundle
from headwise.bundle.shipped import is_shipped
from headwise.errors import WorkFailed
from headwise.files import locked_file
from headwise.interop.ctranslate2 import export as ctranslate2
from headwise.text.tokenizer import TokenizerPair

PRECISION = "int8"
KEPT = "ctranslate2"


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
    """Of several processes that need the same export, the first makes it while the others wait."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked_file(place.with_name(f".{place.name}.lock")):
        yield


def _key(bundle: Bundle) -> str:
    """A name for the export in the cache: another one for whatever is made from something else."""
    written = json.dumps(ctranslate2.origin(bundle), sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "headwise" / "ctranslate2"
