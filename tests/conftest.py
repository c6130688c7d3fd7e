"""What all tests share: one thread per test process, and the real corpora where they are."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = [
    "fixtures_models",
    "fixtures_page",
    "fixtures_shipped",
    "fixtures_ranks",
    "fixtures_published",
    "fixtures_encoders",
]


@pytest.fixture
def corpora() -> Path:
    """The folder of the real corpora, from HEADWISE_DATA."""
    folder = os.environ.get("HEADWISE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no corpora: set HEADWISE_DATA to their folder")
    return Path(folder)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what was skipped, and the reason, which names the remedy."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason.removeprefix('Skipped: ')}")
