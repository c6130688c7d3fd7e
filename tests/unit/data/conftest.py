"""Small stores for tests of what reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_stores import sentences, store_of

from headwise.data.store import Store


@pytest.fixture
def pair_store(tmp_path: Path) -> Callable[..., Store]:
    def make(count: int = 300, longest: int = 12) -> Store:
        return store_of(tmp_path, source=sentences(count, 1, longest), target=sentences(count, 2, longest))

    return make


@pytest.fixture
def text_store(tmp_path: Path) -> Callable[[list[str]], Store]:
    return lambda lines: store_of(tmp_path, text=lines)
