"""The command `headwise` in this process, as `python -m headwise` runs it in one of its own."""

from __future__ import annotations

import sys

import pytest

from headwise.cli import main


class Command:
    """headwise("verb", …) gives (exit code, standard output, standard error)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[object, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["headwise", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main.run()
        out, err = self.capsys.readouterr()
        return end.value.code, out, err
