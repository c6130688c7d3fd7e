"""Counts what the server does, for Prometheus. No text, key or address is part of it."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headwise.serving.batch_queue import BatchQueue

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
JOBS = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Keeps a registry of its own, so that several servers fit into one process.

    In the labels a queue is called a lane: dashboards rely on that name.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "headwise_requests", "Requests answered.", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "headwise_request_seconds", "From a request's arrival to the end of its answer.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.rejections = Counter(
            "headwise_rejections", "Requests refused, by reason.", ["model", "reason"], registry=self.registry
        )
        self.tokens = Counter("headwise_tokens", "Tokens written.", ["model"], registry=self.registry)
        self.sound = Counter("headwise_sound_seconds", "Sound transcribed.", ["model"], registry=self.registry)
        self.queue = Gauge(
            "headwise_queue_requests",
            "Requests accepted and not yet answered.",
            ["model", "lane"],
            registry=self.registry,
        )
        self.active = Gauge(
            "headwise_active_jobs", "Sentences or texts that are being processed.", ["model", "lane"],
            registry=self.registry,
        )  # fmt: skip
        self.batch = Histogram(
            "headwise_batch_jobs", "Sentences decoded together.", ["model", "lane"], buckets=JOBS,
            registry=self.registry,
        )  # fmt: skip
        self.decoding = Histogram(
            "headwise_batch_seconds", "Time of one call to the engine.", ["model", "lane"], buckets=SECONDS,
            registry=self.registry,
        )  # fmt: skip

    def observer(self, model: str, kind: str) -> Callable[[int, float], None]:
        """Makes a function that records each batch of a queue."""
        batch, decoding = self.batch.labels(model, kind), self.decoding.labels(model, kind)

        def observe(jobs: int, seconds: float) -> None:
            batch.observe(jobs)
            decoding.observe(seconds)

        return observe

    def watch(self, queue: BatchQueue, model: str, kind: str) -> BatchQueue:
        """Connects the gauges to a queue; they are read when the metrics are."""
        self.queue.labels(model, kind).set_function(lambda: queue.requests)
        self.active.labels(model, kind).set_function(lambda: queue.active)
        return queue

    def text(self) -> bytes:
        return generate_latest(self.registry)
