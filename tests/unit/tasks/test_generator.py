from __future__ import annotations

from pathlib import Path

import pytest

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks.generate import TASK
from headwise.tasks.generator import Generator


def test_a_generator_shows_what_it_attends_to_when_it_reads(language_model: Path) -> None:
    generator = TASK.open(open_bundle(language_model))
    assert isinstance(generator, Generator)
    look = generator.look("the dog")
    assert "".join(look.output.labels).startswith("the")
    assert set(look.attention) == {"causal"}
    with pytest.raises(UsageError, match="at most 16 at once"):
        generator.look("the dog " * 10)
