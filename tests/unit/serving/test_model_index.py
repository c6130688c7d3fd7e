from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving.errors import RequestError
from headwise.serving.model_index import ModelIndex, listed, queue_by_name


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


def test_a_model_of_a_task_is_chosen_and_a_wrong_one_refused() -> None:
    first, second, other = model("a", "embed"), model("b", "embed"), model("words", "translate")
    index = ModelIndex([other, first, second])
    assert index.choose("embed", None) is first
    assert index.choose("embed", "b") is second
    for task, name, status, part in (
        ("fill", None, 400, "no model of the task 'fill'"),
        ("embed", "words", 400, "those that are: a, b"),
        ("embed", "none", 404, "no such model"),
    ):
        with pytest.raises(RequestError, match=part) as caught:
            index.choose(task, name)
        assert caught.value.status == status


def test_the_queue_of_a_request_is_found_by_the_fields_that_nobody_has_checked() -> None:
    first, second = model("a", "embed"), model("b", "embed")
    first.queue, second.queue = object(), object()
    index = ModelIndex([first, second])
    find = queue_by_name("embed")
    assert (find(index, {}), find(index, {"model": "b"})) == (first.queue, second.queue)
    assert find(index, {"model": 5}) is None
    assert queue_by_name("fill")(index, {}) is None
