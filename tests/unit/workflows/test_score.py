from __future__ import annotations

from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.workflows.score import score


def test_files_are_those_that_the_models_task_reads(word_model: Path, language_model: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the dog\n", encoding="utf-8")
    ((only,),) = score(str(language_model), {"text": str(tmp_path / "text")})
    assert only.log_prob < 0
    with pytest.raises(UsageError, match="is a model of the task 'generate': give it --text"):
        score(str(language_model), {"source": "a", "target": "b"})
    with pytest.raises(UsageError, match="is a model of the task 'translate': give it --source and --target"):
        score(str(word_model), {"text": str(tmp_path / "text")})
