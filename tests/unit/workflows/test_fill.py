from __future__ import annotations

from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.workflows.fill import open_filler


def test_a_filler_is_opened_and_other_models_are_refused(filler_model: Path, embedder_model: Path) -> None:
    assert open_filler(filler_model).fill(["red [MASK] green"], 1)[0].text.startswith("red ")
    with pytest.raises(UsageError, match="use headwise embed"):
        open_filler(embedder_model)
