"""Measures for Prometheus and traces for OpenTelemetry: names and times; no question, value or name of a person."""

import os
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sqlcrystal.interfaces.server.logs import event
from sqlcrystal.serving.clock import watch_with

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

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


QUERIES = ("http.url", "http.target", "url.full", "url.query")
"""The attributes under which the instrumentation tells of an address together with its query."""


def trace(app: FastAPI) -> None:
    """Trace requests if OTEL_EXPORTER_OTLP_ENDPOINT is set; without the extra that is said and left at that."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        trace_to(app, BatchSpanProcessor(OTLPSpanExporter()))
    except ImportError as error:
        event("no traces", level=30, missing=error.name or "", hint="pip install 'sqlcrystal[otel]'")


def trace_to(app: FastAPI, processor: "SpanProcessor") -> None:
    """A span for every request, and within it one for every model call and statement, by name only."""
    from opentelemetry import trace as api
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(resource=Resource.create({"service.name": "sqlcrystal"}))
    provider.add_span_processor(processor)
    api.set_tracer_provider(provider)
    FastAPIInstrumentor.instrument_app(
        app,
        tracer_provider=provider,
        excluded_urls="health,ready,static",
        exclude_spans=["receive", "send"],
        server_request_hook=_without_query,
    )
    watch_with(provider.get_tracer("sqlcrystal").start_as_current_span)


def _without_query(span: Any, scope: dict[str, Any]) -> None:
    for name in QUERIES:
        if name in (span.attributes or {}):
            span.set_attribute(name, scope["path"])
