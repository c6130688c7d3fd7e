from __future__ import annotations

from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.workflows.classify import classify_lines, open_classifier


def test_chunks_keep_their_lines_and_an_empty_chunk_is_nothing(classifier_model: Path) -> None:
    chunks = [["dog cat dog", "", "red blue red"], [], ["one two one"]]
    found = list(classify_lines(open_classifier(classifier_model, "torch"), chunks))
    labels = [[None if answer is None else answer.label for answer in answers] for _, answers in found]
    assert labels == [["animals", None, "colours"], ["numbers"]]
    assert [lines for lines, _ in found] == [chunks[0], chunks[2]]


def test_a_model_of_another_task_is_refused_with_its_own_command(language_model: Path) -> None:
    with pytest.raises(UsageError, match="is a model of the task 'generate'; use headwise generate"):
        open_classifier(language_model)
