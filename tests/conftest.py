"""What all tests share: one thread per test process, and the real corpora where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["fixtures_models", "fixtures_page", "fixtures_shipped", "fixtures_ranks"]


@pytest.fixture
def corpora() -> Path:
    """The folder of the real corpora, from HEADWISE_DATA."""
    folder = os.environ.get("HEADWISE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("HEADWISE_DATA does not name the folder of the corpora")
    return Path(folder)
