"""Traces: from a request through its statements and its event to the delivery."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from library_site.db import statements
from library_site.monitoring import tracing
from tests.support.books import build_book
from tests.support.endpoints import create_endpoint, publish_event
from tests.support.failures import break_database
from tests.support.receivers import respond_with, start_receiver
from webhooks.models import Event

SECRET = "open-sesame"
TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """Traces into memory."""
    exporter = InMemorySpanExporter()
    wrappers = [*statements.statement_wrappers]
    tracing.start_tracing(SimpleSpanProcessor(exporter))
    yield exporter
    tracing.active_traces = None
    connection.execute_wrappers.clear()
    statements.statement_wrappers[:] = wrappers


@pytest.fixture
def client(api: httpx.Client, exporter: InMemorySpanExporter) -> Iterator[httpx.Client]:
    """A client of a library that traces."""
    from library_site.wsgi import build_application

    transport = httpx.WSGITransport(build_application())
    # The connection of the tests is older than the application.
    statements.add_wrappers(connection)
    with httpx.Client(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


def take_spans(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    """Returns the spans since the last call, in the order of their ends."""
    spans = list(exporter.get_finished_spans())
    exporter.clear()
    return spans


def get_trace_id(span: ReadableSpan) -> str:
    assert span.context
    return f"{span.context.trace_id:032x}"


def test_a_request_is_a_span_with_its_statements(client: httpx.Client, exporter: InMemorySpanExporter) -> None:
    """On the compiled path too, which answers the read."""
    address = client.post("/api/v2/books", json=build_book(title=SECRET)).headers["Location"]
    take_spans(exporter)
    response = client.get(address, headers={"X-Request-ID": "the-traced-one"})
    *_, statement, request = take_spans(exporter)
    assert (response.status_code, request.name, dict(request.attributes or {})) == (
        200,
        "GET book",
        {
            "http.request.method": "GET",
            "http.route": "book",
            "http.response.status_code": 200,
            "library.version": 2,
            "library.request_id": "the-traced-one",
        },
    )
    assert (statement.name, statement.parent) == ("SELECT", request.context)
    assert statement.attributes
    assert "books_book" in str(statement.attributes["db.query.text"])


def test_spans_are_named_by_few_words_and_have_nothing_else_of_the_request(
    client: httpx.Client, exporter: InMemorySpanExporter
) -> None:
    client.headers["User-Agent"] = SECRET
    for method, address in [("GET", f"/{SECRET}"), ("BREW", "/"), ("GET", "/docs"), ("GET", f"/api/books/{SECRET}")]:
        client.request(method, address)
    spans = take_spans(exporter)
    assert [span.name for span in spans] == ["GET", "HTTP root", "GET docs", "GET book"]
    for credential in ({"Authorization": f"Bearer {SECRET}"}, {}):
        client.post("/api/v2/books", json=build_book(title=SECRET, isbn=SECRET), headers=credential)
        client.get(f"/api/v2/books?q={SECRET}", headers=credential)
    spans += take_spans(exporter)
    assert len(spans) > 8
    assert SECRET not in "".join(span.to_json() for span in spans)


def test_a_failure_is_marked_without_its_words(client: httpx.Client, exporter: InMemorySpanExporter) -> None:
    with break_database(OperationalError(SECRET)):
        client.get("/api/v2/books/1")
    spans = take_spans(exporter)
    assert {span.status.status_code.name for span in spans} == {"ERROR"}
    assert SECRET not in "".join(span.to_json() for span in spans)


def test_the_trace_of_the_caller_goes_on_for_one_request(client: httpx.Client, exporter: InMemorySpanExporter) -> None:
    for header in (TRACEPARENT, "nonsense", f"00-{'0' * 32}-{SPAN_ID}-01"):
        client.get("/", headers={"traceparent": header})
    for _ in range(2):
        client.get("/")
    first, *others = take_spans(exporter)
    assert (get_trace_id(first), first.parent is not None) == (TRACE_ID, True)
    assert [span.parent for span in others] == [None] * 4
    assert len({get_trace_id(span) for span in (first, *others)}) == 5
    assert tracing.find_traceparent() is None


def test_an_event_keeps_the_trace_of_its_change(client: httpx.Client, exporter: InMemorySpanExporter) -> None:
    """A new book and a changed one, which are written by different statements."""
    address = client.post("/api/v2/books", json=build_book(), headers={"traceparent": TRACEPARENT}).headers["Location"]
    client.put(address, json=build_book(year=1999), headers={"traceparent": TRACEPARENT})
    requests = [span for span in take_spans(exporter) if span.name.startswith(("POST", "PUT"))]
    events = Event.objects.order_by("pk").values_list("traceparent", flat=True)
    assert list(events) == [f"00-{TRACE_ID}-{span.context.span_id:016x}-01" for span in requests if span.context]
    assert len(requests) == 2


@pytest.fixture
def delivered_headers(transactional_db: None, allow_private: None) -> Any:
    """Delivers an event with a trace; returns a function that returns the headers that its receiver got."""

    def deliver() -> dict[str, str]:
        with start_receiver(respond_with(200)) as receiver:
            create_endpoint(url=receiver.url)
            publish_event()
            Event.objects.update(traceparent=TRACEPARENT)
            call_command("deliver_webhooks", once=True)
        [request] = receiver.requests
        return request.headers

    return deliver


def test_a_delivery_belongs_to_the_trace_of_the_change(delivered_headers: Any, exporter: InMemorySpanExporter) -> None:
    header = delivered_headers()["traceparent"]
    [span] = take_spans(exporter)
    assert span.context
    assert span.parent
    assert (span.name, get_trace_id(span), f"{span.parent.span_id:016x}") == ("deliver book.created", TRACE_ID, SPAN_ID)
    assert header == f"00-{TRACE_ID}-{span.context.span_id:016x}-01"
    assert dict(span.attributes or {}) == {"http.response.status_code": 200}


def test_a_worker_that_does_not_trace_passes_the_trace_on(delivered_headers: Any) -> None:
    assert delivered_headers()["traceparent"] == TRACEPARENT


def test_spans_are_exported_by_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    with start_receiver(respond_with(200)) as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.removesuffix("/hook"))
        monkeypatch.setenv("OTEL_SERVICE_NAME", "library-of-the-tests")
        traces = tracing.start_tracing()
        with traces.trace_delivery("book.created", TRACEPARENT):
            pass
        traces.provider.shutdown()
        tracing.active_traces = None
    [request] = receiver.requests
    [resource_spans] = ExportTraceServiceRequest.FromString(request.body).resource_spans
    names = {item.key: item.value.string_value for item in resource_spans.resource.attributes}
    assert (request.path, names["service.name"]) == ("/v1/traces", "library-of-the-tests")
    assert [span.name for span in resource_spans.scope_spans[0].spans] == ["deliver book.created"]
