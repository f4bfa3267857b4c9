"""Measures for Prometheus: counts, waits and durations; no question, value or name of a person."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

OVERHEAD_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """The measures of one process, in a registry of their own so that two applications never mix."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        """Name every measure."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sqlcrystal_requests_total", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "sqlcrystal_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.answers = Counter(
            "sqlcrystal_answers_total", "Answers by database and end.", ["database", "end"], registry=self.registry
        )
        self.answer_seconds = Histogram(
            "sqlcrystal_answer_seconds", "Time an answer took.", ["database"], buckets=SECONDS, registry=self.registry
        )
        self.overhead_seconds = Histogram(
            "sqlcrystal_overhead_seconds",
            "A request's time in this server without its turn in line, the model and the databases.",
            ["route"],
            buckets=OVERHEAD_SECONDS,
            registry=self.registry,
        )
        self.tokens = Counter(
            "sqlcrystal_model_tokens_total",
            "Tokens by database and kind.",
            ["database", "kind"],
            registry=self.registry,
        )
        self.verdicts = Counter(
            "sqlcrystal_verdicts_total", "Verdicts by database.", ["database", "verdict"], registry=self.registry
        )
        self.running = Gauge("sqlcrystal_answers_running", "Answers under way.", ["database"], registry=self.registry)
        self.waiting = Gauge("sqlcrystal_answers_waiting", "Questions in line.", ["database"], registry=self.registry)

    def exposition(self) -> bytes:
        """The measures as Prometheus reads them."""
        return generate_latest(self.registry)
