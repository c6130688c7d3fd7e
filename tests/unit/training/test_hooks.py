from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwise.training.hooks import Log, Validate
from headwise.training.loop import Trainer


class Validation(Validate):
    """Scores that are given instead of measured."""

    def __init__(self, best_by: str, *measured: dict[str, float]) -> None:
        super().__init__(list, None, best_by)
        self.measured = iter(measured)

    def measure(self, trainer: Trainer) -> dict[str, Any]:
        measured = dict(next(self.measured))
        self.scores = tuple(name for name in measured if name != "log_loss")
        return measured


def trainer(step: int = 1, patience: int = 0) -> Trainer:
    settings = SimpleNamespace(patience=patience)
    return cast("Trainer", SimpleNamespace(step=step, settings=settings, stop=None, emit=lambda record: None))


@pytest.mark.parametrize(
    ("by", "measured", "better"),
    [
        ("loss", [{"log_loss": 2.0}, {"log_loss": 1.0}, {"log_loss": 1.5}], [True, True, False]),
        ("bleu", [{"log_loss": 2.0, "bleu": 5.0}, {"log_loss": 9.0, "bleu": 6.0}], [True, True]),
        ("loss", [{"log_loss": math.nan}, {"log_loss": 7.0}, {"log_loss": math.inf}], [True, True, False]),
        ("bleu", [{"log_loss": 2.0, "bleu": 5.0}, {"log_loss": math.nan, "bleu": 9.0}], [True, False]),
    ],
)
def test_the_best_is_the_best_by_its_score_and_never_one_without_a_number(
    by: str, measured: list[dict[str, float]], better: list[bool]
) -> None:
    hook = Validation(by, *measured)
    assert [hook.validate(trainer())["best"] for _ in measured] == better


def test_patience_ends_a_run_that_does_not_get_better() -> None:
    hook, run = Validation("loss", *({"log_loss": loss} for loss in (2.0, 3.0, 2.0))), trainer(patience=2)
    assert [(hook.validate(run), run.stop)[1] for _ in range(3)] == [None, None, "patience"]


def test_a_best_model_that_could_not_be_saved_is_not_the_best() -> None:
    hook = Validation("loss", {"log_loss": 2.0}, {"log_loss": 1.0})
    for step in (1, 2):
        hook.validate(trainer(step))
    hook.on_record(trainer(2), {"event": "not saved", "best_lost": False})
    assert hook.best == {"step": 2, "log_loss": 1.0}
    hook.on_record(trainer(2), {"event": "not saved", "best_lost": True})
    assert hook.best == {"step": 1, "log_loss": 2.0}


def test_the_log_is_json_that_any_program_reads(tmp_path: Path) -> None:
    log = Log(tmp_path, every=1)
    log.begin(trainer())
    log.on_record(trainer(), {"event": "train", "step": 1, "norm": math.inf, "loss": math.nan, "text": "é\n"})
    (line,) = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"event": "train", "step": 1, "norm": None, "loss": None, "text": "é\n"}


def test_a_resumed_log_is_cut_to_what_was_saved_and_a_lost_one_begins_anew(tmp_path: Path) -> None:
    log = Log(tmp_path, every=1)
    log.begin(trainer())
    log.on_record(trainer(), {"event": "train", "step": 1})
    saved = log.state()
    log.on_record(trainer(), {"event": "train", "step": 2})
    again = Log(tmp_path, every=1)
    again.restore(saved)
    again.begin(trainer())
    assert (tmp_path / "log.jsonl").read_text() == '{"event": "train", "step": 1}\n'
    (tmp_path / "log.jsonl").unlink()
    again.begin(trainer())
    again.on_record(trainer(), {"event": "train", "step": 2})
    assert (tmp_path / "log.jsonl").read_text() == '{"event": "train", "step": 2}\n'


def test_a_validation_loss_that_is_nan_or_infinite_ends_the_run_with_a_remedy() -> None:
    from contextlib import nullcontext
    from types import SimpleNamespace

    import torch

    from headwise.data.batch import Batch
    from headwise.errors import WorkFailed
    from headwise.losses import BatchLoss
    from headwise.training.hooks import Validate

    for value in (float("nan"), float("inf")):
        sums = BatchLoss(torch.tensor(value), torch.tensor(value), 3)
        hook = Validate(
            lambda: [Batch.of((torch.ones(1, 3),), torch.ones(1, 3))],
            lambda: pytest.fail("nothing is decoded"),
            "loss",
            lambda *arguments, found=sums: found,  # type: ignore[misc]
        )
        trainer: Any = SimpleNamespace(
            full=SimpleNamespace(evaluated=lambda: nullcontext(None)), settings=SimpleNamespace(threads=1),
            updater=SimpleNamespace(device="cpu"), step=7,
        )  # fmt: skip
        with pytest.raises(WorkFailed, match=r"at update 7 is NaN or infinite: .* lower training\.learning_rate"):
            hook.measure(trainer)
