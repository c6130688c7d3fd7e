"""The progress bar of training from Python shows text as it is."""

from __future__ import annotations

import pytest

from headwise.workflows.progress_bar import ProgressBar


def test_a_line_that_looks_like_markup_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.say("chosen: [bold]x[/bold] 1")
    assert "chosen: [bold]x[/bold] 1" in capsys.readouterr().out
