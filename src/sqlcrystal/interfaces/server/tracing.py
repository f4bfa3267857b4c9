"""OpenTelemetry traces, where the extra is there and the environment names a collector; no query, no value."""

import os
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from sqlcrystal.interfaces.server.logs import event
from sqlcrystal.serving.clock import watch_with

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

QUERIES = ("http.url", "http.target", "url.full", "url.query")
"""What the instrumentation tells of an address together with its query."""


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
