"""OpenTelemetry traces, where the extra is there and the environment names a collector; no query, no value."""

import os

from fastapi import FastAPI

from sqlcrystal.interfaces.server.logs import event


def trace(app: FastAPI) -> None:
    """Trace requests if OTEL_EXPORTER_OTLP_ENDPOINT is set; without the extra that is said and left at that."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return
    try:
        from opentelemetry import trace as api
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        event("no traces", level=30, missing=error.name or "", hint="pip install 'sqlcrystal[otel]'")
        return
    provider = TracerProvider(resource=Resource.create({"service.name": "sqlcrystal"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    api.set_tracer_provider(provider)
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider, excluded_urls="health,ready,static")
