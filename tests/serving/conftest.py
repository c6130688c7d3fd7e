from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import RIGGED, Running, serving


@pytest.fixture(scope="session")
def server(word_model: Path, language_model: Path) -> Iterator[Running]:
    """A translator called `words` and a language model called `letters`, for tests that leave it as it was."""
    with serving("--model", f"words={word_model}", "--model", f"letters={language_model}", "--timeout", 600) as running:
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
