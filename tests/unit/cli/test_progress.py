from __future__ import annotations

import io
import sys

import pytest

from headwise.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("total", [None, 10])
def test_a_bar_is_for_people_only(total: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with progress("lines", total) as advance:
            advance(4)
            advance(6)
        assert ("lines" in stream.getvalue()) == stream.isatty()
