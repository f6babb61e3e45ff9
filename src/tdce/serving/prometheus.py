"""Metrics for Prometheus: counts and times, nothing about people."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

REQUEST_SECONDS_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60)
BATCH_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServerMetrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("tdce_requests", "Requests", ["method", "route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "tdce_request_seconds",
            "Time of a request",
            ["route"],
            buckets=REQUEST_SECONDS_BUCKETS,
            registry=self.registry,
        )
        self.batches = Histogram(
            "tdce_batch_requests", "Requests explained in one call", buckets=BATCH_SIZE_BUCKETS, registry=self.registry
        )
        self.rows = Counter("tdce_rows_explained", "Rows explained", registry=self.registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS") else "other"
        self.requests.labels(known, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def count_batch(self, requests: int, rows: int) -> None:
        self.batches.observe(requests)
        self.rows.inc(rows)

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        Gauge(name, description, registry=self.registry).set_function(read)

    def text(self) -> bytes:
        return generate_latest(self.registry)
