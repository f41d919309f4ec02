"""The spans of requests, statements and deliveries. It needs OpenTelemetry's packages (requirements/optional.txt).

The names of spans are routes, kinds of statements and kinds of events, of which there are few. A span contains no body,
query, header, address of a person, parameter of a statement or message of an exception.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Token
from http import HTTPStatus
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any

from django.conf import settings
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from library_site.http.request_log import ENTRY_KEY, METHODS, current_request_id
from library_site.http.versioning import find_version

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# The headers of W3C Trace Context, by their keys in the environ.
TRACE_HEADERS = {"HTTP_TRACEPARENT": "traceparent", "HTTP_TRACESTATE": "tracestate"}
# The first words of statements that become names of spans. Other statements get the name STATEMENT.
STATEMENT_WORDS = frozenset(["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "SAVEPOINT", "RELEASE"])
MAX_STATEMENT_LENGTH = 2000
propagator = TraceContextTextMapPropagator()
# The span of a request, and what ends its time as the current span.
RequestSpan = tuple[Span, Token[Context]]


class Traces:
    def __init__(self, processor: SpanProcessor) -> None:
        self.provider = TracerProvider(resource=describe_service(), shutdown_on_exit=False)
        self.provider.add_span_processor(processor)
        self.tracer = self.provider.get_tracer("library_site")
        # Exports the remaining spans. The server ends its processes without `atexit`.
        Finalize(None, self.provider.shutdown, exitpriority=1)

    def find_traceparent(self) -> str | None:
        return format_traceparent(trace.get_current_span())

    def begin_request(self, environ: "WSGIEnvironment") -> RequestSpan:
        """Starts a span for the request, in the trace of the caller."""
        span = self.tracer.start_span("HTTP", extract_context(environ), SpanKind.SERVER)
        return span, otel_context.attach(trace.set_span_in_context(span))

    def end_request(self, begun: RequestSpan, environ: "WSGIEnvironment", route: str, status: int) -> None:
        span, token = begun
        describe_request(span, environ, route, status)
        otel_context.detach(token)
        span.end()

    def trace_statement(self, execute: Any, sql: str, parameters: Any, many: bool, context: Mapping[str, Any]) -> Any:
        """Is a StatementWrapper. A statement outside a recorded trace has no span."""
        if not trace.get_current_span().is_recording():
            return execute(sql, parameters, many, context)
        word = sql.split(None, 1)[0].upper()
        span = self.tracer.start_span(
            word if word in STATEMENT_WORDS else "STATEMENT",
            kind=SpanKind.CLIENT,
            attributes={
                "db.system.name": context["connection"].vendor,
                "db.query.text": sql[:MAX_STATEMENT_LENGTH],
            },
        )
        try:
            return execute(sql, parameters, many, context)
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            span.end()

    @contextmanager
    def trace_delivery(self, kind: str, traceparent: str | None) -> Iterator["DeliverySpan"]:
        """Yields a span for one attempt to deliver an event of this kind, in the trace of the change."""
        context = propagator.extract({"traceparent": traceparent} if traceparent else {}, Context())
        span = self.tracer.start_span(f"deliver {kind}", context, SpanKind.PRODUCER)
        try:
            yield DeliverySpan(span)
        finally:
            span.end()


class DeliverySpan:
    """The header to send, and the result that it receives."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.traceparent = format_traceparent(span)

    def set_result(self, status: int | None) -> None:
        """`status` is that of the receiver, or None."""
        if status:
            self.span.set_attribute("http.response.status_code", status)
        if not status or not 200 <= status < 300:
            self.span.set_status(Status(StatusCode.ERROR))


def describe_service() -> Resource:
    """OTEL_SERVICE_NAME, or else `library-web` and the like. Attributes given here would win over the variable."""
    is_named = "OTEL_SERVICE_NAME" in os.environ
    return Resource.create({} if is_named else {"service.name": f"library-{settings.LIBRARY_PROCESS}"})


def build_exporting_processor() -> SpanProcessor:
    """Exports in batches by OTLP over HTTP."""
    return BatchSpanProcessor(OTLPSpanExporter())


def extract_context(environ: "WSGIEnvironment") -> Context:
    """Returns the trace of the caller. If it is missing or invalid, a new trace begins."""
    headers = {name: environ[key] for key, name in TRACE_HEADERS.items() if key in environ}
    return propagator.extract(headers, Context()) if headers else Context()


def format_traceparent(span: Span) -> str | None:
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def describe_request(span: Span, environ: "WSGIEnvironment", route: str, status: int) -> None:
    if not span.is_recording():
        return
    # A client can send any method.
    method = environ[ENTRY_KEY].method
    name = method if method in METHODS else "HTTP"
    span.update_name(f"{name} {route}" if route else name)
    span.set_attribute("library.request_id", current_request_id.get())
    span.set_attribute("http.request.method", name)
    if route:
        span.set_attribute("http.route", route)
    if version := find_version(environ):
        span.set_attribute("library.version", version.number)
    span.set_attribute("http.response.status_code", status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.set_status(Status(StatusCode.ERROR))
