from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import RIGGED, Running, serving


@pytest.fixture(scope="session")
def models(
    word_model: Path, language_model: Path, classifier_model: Path, picture_model: Path, filler_model: Path,
    embedder_model: Path, speech_model: Path,
) -> dict[str, Path]:  # fmt: skip
    """One model of each kind, by the name that `server` has for it."""
    return {
        "words": word_model, "letters": language_model, "kinds": classifier_model, "stripes": picture_model,
        "gaps": filler_model, "vectors": embedder_model, "tones": speech_model,
    }  # fmt: skip


@pytest.fixture(scope="session")
def server(models: dict[str, Path]) -> Iterator[Running]:
    """A server with all `models` and the run of one, for tests that leave it as it was."""
    runs = models["kinds"].parent.parent
    named = [part for name, path in models.items() for part in ("--model", f"{name}={path}")]
    with serving(*named, "--runs", runs, "--timeout", 600) as running:
        yield running


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    """While this file exists, the engine of `held` answers nothing."""
    return tmp_path / "hold"


@pytest.fixture
def held(word_model: Path, flag: Path) -> Iterator[Running]:
    """A server with an engine that can be made to hang; its queue takes 4 requests."""
    with serving(word_model, "hang", flag, script=RIGGED) as running:
        yield running
        flag.unlink(missing_ok=True)
