"""The progress bar of training from Python shows text as it is."""

from __future__ import annotations

from typing import cast

import pytest

from headwise.training.loop import Trainer
from headwise.workflows.progress_bar import ProgressBar


def test_a_line_that_looks_like_markup_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.say("chosen: [bold]x[/bold] 1")
    assert "chosen: [bold]x[/bold] 1" in capsys.readouterr().out


def test_warnings_are_shown_as_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.on_record(cast("Trainer", None), {"event": "slow", "message": "the machine has become slower"})
    assert "warning: the machine has become slower" in capsys.readouterr().out
