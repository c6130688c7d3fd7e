"""The Generator that `headwise.load` returns: a language model on torch that also shows its attention."""

from __future__ import annotations

from headwise.decoding import generator
from headwise.look.capture import Look


class Generator(generator.Generator):
    """Generates text, and shows what every head attends to in a text."""

    def look(self, text: str) -> Look:
        from headwise.tasks.generate import TASK

        return TASK.look(self, text)
