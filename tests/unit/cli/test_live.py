from __future__ import annotations

import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwise.cli import live as live_module
from headwise.cli.live import Live
from headwise.training.loop import Trainer
from headwise.workflows.train import Finished

TRAINER = cast("Trainer", SimpleNamespace(step=7, seconds_left=lambda: 90.4))


def said(*records: dict[str, Any]) -> list[str]:
    stream = io.StringIO()
    with Live(stream) as live:
        for record in records:
            live.hook.on_record(TRAINER, record)
    return stream.getvalue().splitlines()


def test_where_there_is_no_terminal_every_record_is_one_plain_line() -> None:
    train = {"event": "train", "step": 7, "log_loss": 2.0, "perplexity": 7.389, "rate": 1e-3, "padding": 0.1}
    validation = {"event": "validation", "step": 7, "log_loss": 2.1, "bleu": 31.2, "empty": 0.0, "best": True}
    lines = said(train, validation, {"event": "warning", "message": "the loss is [not] falling"})
    assert len(lines) == 3
    assert lines[0].startswith("update 7 loss 2.0000 ppl 7.39 left 0:01:30 lr 1.00e-03")
    assert len(lines[0]) <= 80
    assert lines[1] == "validation at update 7: log-loss 2.1  bleu 31.2  (best so far)"
    assert lines[2] == "warning: the loss is [not] falling"


def test_a_skipped_update_names_the_lines_that_it_came_from() -> None:
    (line,) = said({"event": "skipped", "step": 7, "loss": float("nan"), "file": "train.en", "lines": [3, 9]})
    assert line == "warning: update 7 skipped: NaN or infinite loss (nan) or gradient; train.en, lines 3, 9…"


def test_the_end_says_where_everything_is_and_how_to_go_on() -> None:
    stream = io.StringIO()
    live = Live(stream)
    live.preparing("training text", 5, None)
    live.preparing("training text", 9, 9)
    live.preparing("pictures", 1200, 1200)
    run = Path("runs/my")
    live.conclude(Finished(run, "steps", 40, 90.0, {"step": 30, "bleu": 31.25}))
    live.conclude(Finished(run, "SIGINT", 20, 9.0, {}))
    assert stream.getvalue().splitlines() == [
        "training text: 9 lines",
        "pictures: 1,200",
        "finished after 40 updates and 1.5 minutes (steps); best at update 30: bleu 31.25",
        "model: runs/my/model",
        "curves: headwise plot runs/my",
        "stopped at update 20 and saved; run the same command to resume",
    ]


def test_a_line_comes_every_ten_seconds_where_records_are_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(live_module.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    update = SimpleNamespace(tokens=90, positions=100, log_loss=2.5, skipped=False, rate=1e-3)
    trainer: Any = SimpleNamespace(step=7, took=0.5, progress=lambda: 0.25, seconds_left=lambda: 4000.0)
    with Live(stream) as live:
        for now[0] in (4.0, 9.0, 11.0, 15.0, 22.0):
            live.hook.after_update(trainer, cast("Any", update), cast("Any", SimpleNamespace(unit="rows")))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("update 7  loss 2.500  180 rows/s")
    assert lines[0].endswith("25% done, 1:06:40 left")
    assert len(lines[0]) <= 80


def test_the_time_left_is_visible_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    update = SimpleNamespace(tokens=90_000, positions=100_000, log_loss=12.345, skipped=False, rate=1e-3)
    trainer: Any = SimpleNamespace(step=1_234_567, took=0.5, progress=lambda: 0.25)
    live = Live(stream)
    live.hook.after_update(trainer, cast("Any", update), cast("Any", SimpleNamespace(unit="tokens")))
    live.console.print(live.bar.get_renderable())
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).strip("\n").splitlines()[-1]
    assert "update 1,234,567  loss 12.345" in shown
    assert re.search(r"\d:\d\d:\d\d|-:--:--", shown), shown
    assert len(shown) <= 80
