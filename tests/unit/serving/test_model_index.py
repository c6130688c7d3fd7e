from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving.errors import RequestError
from headwise.serving.model_index import ModelIndex, listed


def model(name: str, task: str) -> Any:
    return SimpleNamespace(facts=SimpleNamespace(name=name, kind=task))


def test_models_are_found_by_name_and_by_task_and_a_wrong_name_lists_the_right_ones() -> None:
    first, second = model("words", "translate"), model("letters", "generate")
    index = ModelIndex([first, second])
    assert index.by_name("letters") is second
    assert index.any("letters") is second
    assert index.any(None) is first
    assert index.of_task("generate") == [second]
    assert index.of_task("classify") == []
    with pytest.raises(RequestError, match="there is no such model; there are words, letters") as caught:
        index.by_name("numbers")
    assert caught.value.status == 404
    assert listed([]) == "none"
