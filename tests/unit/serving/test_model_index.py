from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving.batch_queue import BatchQueue, QueueFull
from headwise.serving.errors import RequestError
from headwise.serving.limits import Limits
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


def test_a_task_has_room_while_one_of_its_queues_has() -> None:
    first, second = model("a", "embed"), model("b", "embed")
    first.queue, second.queue = (BatchQueue(name, 1, Limits(queue=1), requests=1) for name in "ab")
    index = ModelIndex([first, second])
    assert queue_by_name("embed")(index, {"model": "b"}) is second.queue
    assert queue_by_name("embed")(index, {"model": 5}) is None
    with pytest.raises(QueueFull, match="a is busy"):
        index.check_room("embed")
    second.queue.requests = 0
    index.check_room("embed")
    index.check_room("fill")
