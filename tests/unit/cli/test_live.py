from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from headwise.cli.live import Live
from headwise.training.loop import Trainer
from headwise.workflows.train import Finished

TRAINER = cast("Trainer", SimpleNamespace(step=7))


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
    assert lines[0].startswith("update 7 loss 2.0000 ppl 7.39 lr 1.000e-03")
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
    run = Path("runs/my")
    live.conclude(Finished(run, "steps", 40, 90.0, {"step": 30, "bleu": 31.25}))
    live.conclude(Finished(run, "SIGINT", 20, 9.0, {}))
    assert stream.getvalue().splitlines() == [
        "training text: 9 lines",
        "finished after 40 updates and 1.5 minutes (steps); best at update 30: bleu 31.25",
        "model: runs/my/model",
        "curves: headwise plot runs/my",
        "stopped at update 20 and saved; run the same command to resume",
    ]
