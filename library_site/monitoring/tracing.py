"""Traces from a request through its statements to the deliveries of its events (OpenTelemetry).

OpenTelemetry's packages are optional: `start_tracing` imports `traces`, which imports them. Until then nothing is
wrapped, and nothing is traced.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

    from library_site.monitoring.traces import DeliverySpan, Traces

# Set by `start_tracing`.
active_traces: "Traces | None" = None


class PassedOnTrace:
    """Sends the stored trace of the event without a change."""

    def __init__(self, traceparent: str | None) -> None:
        self.traceparent = traceparent

    def set_result(self, status: int | None) -> None: ...


def start_tracing(processor: "SpanProcessor | None" = None) -> "Traces":
    """Starts tracing. Spans go to the processor, or are exported as OpenTelemetry's variables define."""
    global active_traces  # one for the process
    from library_site.monitoring.traces import Traces, make_exporting_processor

    active_traces = Traces(processor or make_exporting_processor())
    return active_traces


def get_traceparent() -> str | None:
    """The current span in the form of the header `traceparent` (W3C Trace Context, 3.2)."""
    return active_traces.get_traceparent() if active_traces else None


@contextmanager
def trace_delivery(kind: str, traceparent: str | None) -> Iterator["DeliverySpan | PassedOnTrace"]:
    """A span for one attempt to deliver an event of this kind, in the trace of the change."""
    if active_traces is None:
        yield PassedOnTrace(traceparent)
        return
    with active_traces.trace_delivery(kind, traceparent) as trace:
        yield trace
