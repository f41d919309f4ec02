"""Traces from a request through its statements to the deliveries of its events (OpenTelemetry).

OpenTelemetry's packages are optional: `start_tracing` imports `traces`, which imports them. Until then nothing is
wrapped, and nothing is traced.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

    from library_site.monitoring.traces import Traces

# Set by `start_tracing`.
active_traces: "Traces | None" = None


def start_tracing(processor: "SpanProcessor | None" = None) -> "Traces":
    """Starts tracing. Spans go to the processor, or are exported as OpenTelemetry's variables define."""
    global active_traces  # one for the process
    from library_site.monitoring.traces import Traces, build_exporting_processor

    active_traces = Traces(processor or build_exporting_processor())
    return active_traces


def find_traceparent() -> str | None:
    """The current span in the form of the header `traceparent` (W3C Trace Context, 3.2)."""
    return active_traces.find_traceparent() if active_traces else None
