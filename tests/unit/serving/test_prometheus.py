from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwise.serving.prometheus import Metrics


def test_counts_and_gauges_are_read_as_prometheus_reads_them() -> None:
    metrics, queue = Metrics(), SimpleNamespace(requests=3, active=2)
    watched: Any = queue
    assert metrics.watch(watched, "words", "main") is queue
    metrics.observer("words", "main")(5, 0.02)
    metrics.requests.labels("/translate", "POST", 200).inc()
    queue.requests = 4  # gauges are read when the metrics are
    lines = metrics.text().decode().splitlines()
    assert 'headwise_queue_requests{lane="main",model="words"} 4.0' in lines
    assert 'headwise_active_jobs{lane="main",model="words"} 2.0' in lines
    assert 'headwise_batch_jobs_sum{lane="main",model="words"} 5.0' in lines
    assert 'headwise_requests_total{method="POST",route="/translate",status="200"} 1.0' in lines


def test_two_servers_in_one_process_count_for_themselves() -> None:
    one, other = Metrics(), Metrics()
    one.tokens.labels("words").inc(7)
    assert b'headwise_tokens_total{model="words"} 7.0' in one.text()
    assert b"words" not in other.text()
