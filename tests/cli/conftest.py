from __future__ import annotations

import pytest
from command import Command


@pytest.fixture
def headwise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("HEADWISE_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "160")
    return Command(monkeypatch, capsys)
