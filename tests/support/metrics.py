"""Reads Prometheus' text format."""

from collections.abc import Callable, Iterable

import httpx
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

TOKEN = "a-token-of-the-tests"
# The values of samples, by name and the values of their labels.
Samples = dict[tuple[str, ...], float]


def scrape(get: Callable[..., httpx.Response]) -> Samples:
    """Returns the samples, of histograms the counts alone. `get` is called as httpx.get is, with /metrics."""
    response = get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    samples = read_samples(text_string_to_metric_families(response.text))
    return {key: value for key, value in samples.items() if not key[0].endswith(("_bucket", "_sum", "_created"))}


def read_samples(metrics: Iterable[Metric]) -> Samples:
    samples = [sample for metric in metrics for sample in metric.samples]
    return {(sample.name.removeprefix("library_"), *sample.labels.values()): sample.value for sample in samples}


def subtract(after: Samples, before: Samples) -> Samples:
    """Returns what was added."""
    added = {key: value - before.get(key, 0) for key, value in after.items()}
    return {key: value for key, value in added.items() if value}
