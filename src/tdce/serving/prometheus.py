"""What Prometheus is told: counts and times, of nobody in particular."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServerMetrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("tdce_requests", "Requests", ["method", "route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "tdce_request_seconds", "Time of a request", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.together = Histogram(
            "tdce_batch_requests", "Requests that were explained in one call", buckets=SIZES, registry=self.registry
        )
        self.rows = Counter("tdce_rows_explained", "Rows that were explained", registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS") else "other"
        self.requests.labels(known, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def explained(self, requests: int, rows: int) -> None:
        self.together.observe(requests)
        self.rows.inc(rows)

    def gauge(self, name: str, about: str, read: Callable[[], float]) -> None:
        Gauge(name, about, registry=self.registry).set_function(read)

    def text(self) -> bytes:
        return generate_latest(self.registry)
