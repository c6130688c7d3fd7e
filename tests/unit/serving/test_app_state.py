from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwise.serving.access import AccessRules
from headwise.serving.app_state import AppState
from headwise.serving.batch_queue import BatchQueue, QueueFull
from headwise.serving.limits import Limits
from headwise.serving.model_index import ModelIndex
from headwise.serving.prometheus import Metrics


def busy(name: str) -> Any:
    queue = BatchQueue(name, 1, Limits(queue=1), requests=1)
    return SimpleNamespace(facts=SimpleNamespace(name=name, kind="embed"), queue=queue)


def test_a_task_has_room_while_one_of_its_queues_has_and_a_refusal_is_counted() -> None:
    first, second = busy("a"), busy("b")
    state = AppState(ModelIndex([first, second]), AccessRules(), Limits(), Metrics())
    with pytest.raises(QueueFull, match="a is busy"):
        state.check_room("embed")
    assert b'headwise_rejections_total{model="a",reason="busy"} 1.0' in state.metrics.text()
    second.queue.requests = 0
    state.check_room("embed")
    state.check_room("fill")
