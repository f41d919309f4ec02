"""Reads Prometheus' text format."""

from collections.abc import Callable

import httpx
from prometheus_client.parser import text_string_to_metric_families

TOKEN = "a-token-of-the-tests"
# The values of samples, by name and the values of their labels.
Samples = dict[tuple[str, ...], float]


def scrape(get: Callable[..., httpx.Response]) -> Samples:
    """Returns the samples, of histograms the counts alone. `get` is called as httpx.get is, with /metrics."""
    response = get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return {
        (sample.name.removeprefix("library_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_sum", "_created"))
    }


def subtract(after: Samples, before: Samples) -> Samples:
    """Returns what was added."""
    added = {key: value - before.get(key, 0) for key, value in after.items()}
    return {key: value for key, value in added.items() if value}
